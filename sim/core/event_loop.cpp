#include "sim/core/event_loop.h"

#include <algorithm>
#include <bit>

namespace netsim {
namespace {

bool later(const Event& a, const Event& b) { return before(b, a); }

// Buckets are short: insertion sort beats the general one up to about this length.
constexpr std::size_t kInsertionSort = 24;

void sort_events(Event* first, std::size_t count) {
  if (count > kInsertionSort) {
    std::sort(first, first + count, before);
    return;
  }
  for (std::size_t i = 1; i < count; ++i) {
    if (!before(first[i], first[i - 1])) continue;
    const Event moved = first[i];
    std::size_t j = i;
    do {
      first[j] = first[j - 1];
      --j;
    } while (j > 0 && before(moved, first[j - 1]));
    first[j] = moved;
  }
}

// How far ahead of the running event the arrays are prefetched.
constexpr std::size_t kPrefetchAhead = 4;

// The width is doubled below and halved above these mean numbers of events a bucket, looked at every so many
// buckets. It is doubled for good where more than one event in kFarShare lay beyond the horizon: the heap
// costs more than longer buckets (with 8,192 busy hosts most packets on links were in it).
constexpr std::uint64_t kFarShare = 4;
constexpr std::uint64_t kAdaptEvery = 4096, kFewEvents = 3, kManyEvents = 16;
constexpr int kMinShift = 6, kMaxShift = 34;

}  // namespace

EventLoop::EventLoop()
    : buckets_(static_cast<std::size_t>(kBuckets), kNone),
      occupied_(static_cast<std::size_t>(kBuckets) / 64, 0),
      min_shift_(kMinShift) {}

void EventLoop::set_prefetch(EventKind kind, const void* const* target_base, std::size_t target_size,
                             const void* const* argument_base, std::size_t argument_size) {
  HandlerSlot& slot = handlers_[static_cast<std::size_t>(kind)];
  slot.target_base = reinterpret_cast<const char* const*>(target_base);
  slot.target_size = target_size;
  slot.argument_base = reinterpret_cast<const char* const*>(argument_base);
  slot.argument_size = argument_size;
}

void EventLoop::prefetch_also(EventKind kind, const void* const* target_base, std::size_t target_size) {
  HandlerSlot& slot = handlers_[static_cast<std::size_t>(kind)];
  slot.also_base = reinterpret_cast<const char* const*>(target_base);
  slot.also_size = target_size;
}

std::uint32_t EventLoop::grow(std::size_t slot) {
  std::uint32_t chunk = free_chunk_;
  if (chunk == kNone) {
    chunk = static_cast<std::uint32_t>(chunks_.size());
    chunks_.emplace_back();
  } else {
    free_chunk_ = chunks_[chunk].next;
  }
  chunks_[chunk].count = 0;
  chunks_[chunk].next = buckets_[slot];
  buckets_[slot] = chunk;
  occupied_[slot / 64] |= 1ULL << (slot % 64);
  return chunk;
}

void EventLoop::insert_slow(const Event& event) {
  if ((event.time >> shift_) <= current_bucket_) {
    const auto first = current_.begin() + static_cast<std::ptrdiff_t>(cursor_);
    current_.insert(std::upper_bound(first, current_.end(), event, before), event);
    return;
  }
  ++adapt_far_;
  far_.push_back(event);
  std::push_heap(far_.begin(), far_.end(), later);
}

void EventLoop::collect(std::size_t slot) {
  std::uint32_t chunk = buckets_[slot];
  while (chunk != kNone) {
    Chunk& c = chunks_[chunk];
    current_.insert(current_.end(), c.events, c.events + c.count);
    const std::uint32_t next = c.next;
    c.next = free_chunk_;
    free_chunk_ = chunk;
    chunk = next;
  }
  buckets_[slot] = kNone;
  occupied_[slot / 64] &= ~(1ULL << (slot % 64));
}

// The first bucket of the calendar behind the current one that holds events; INT64_MAX: none.
std::int64_t EventLoop::next_occupied() const {
  const auto mask = static_cast<std::size_t>(kBuckets - 1);
  const std::size_t start = static_cast<std::size_t>(current_bucket_ + 1) & mask;
  const std::size_t words = occupied_.size();
  for (std::size_t i = 0; i <= words; ++i) {
    const std::size_t word = (start / 64 + i) % words;
    std::uint64_t bits = occupied_[word];
    if (i == 0) bits &= ~0ULL << (start % 64);
    if (i == words) bits &= (start % 64) != 0 ? ~(~0ULL << (start % 64)) : 0;
    if (bits == 0) continue;
    const std::size_t slot = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
    return current_bucket_ + 1 + static_cast<std::int64_t>((slot - start) & mask);
  }
  return INT64_MAX;
}

Time EventLoop::next_time() const {
  if (pending_ == 0) return kNever;
  if (cursor_ < current_.size()) return current_[cursor_].time;
  if (next_time_pending_ == pending_ && next_time_executed_ == executed_) return next_time_;
  Time first = far_.empty() ? kNever : far_.front().time;
  const std::int64_t next = next_occupied();
  if (next != INT64_MAX) {
    std::uint32_t chunk = buckets_[static_cast<std::size_t>(next) & (kBuckets - 1)];
    for (; chunk != kNone; chunk = chunks_[chunk].next) {
      const Chunk& c = chunks_[chunk];
      for (std::uint32_t i = 0; i < c.count; ++i) first = std::min(first, c.events[i].time);
    }
  }
  next_time_pending_ = pending_;
  next_time_executed_ = executed_;
  next_time_ = first;
  return first;
}

// Moves to the next bucket that holds events, if it begins no later than `until`.
bool EventLoop::next_bucket(Time until) {
  current_.clear();
  cursor_ = 0;
  if (++adapt_buckets_ >= kAdaptEvery) adapt();
  std::int64_t next = next_occupied();
  const auto mask = static_cast<std::size_t>(kBuckets - 1);
  if (!far_.empty()) next = std::min(next, far_.front().time >> shift_);
  if (next == INT64_MAX || (until != kNever && next > (until >> shift_))) return false;
  current_bucket_ = next;
  const std::size_t slot = static_cast<std::size_t>(next) & mask;
  if (buckets_[slot] != kNone) collect(slot);
  while (!far_.empty() && (far_.front().time >> shift_) < next + kBuckets) {
    const Event event = far_.front();
    std::pop_heap(far_.begin(), far_.end(), later);
    far_.pop_back();
    if ((event.time >> shift_) == next) {
      current_.push_back(event);
    } else {
      push(static_cast<std::size_t>(event.time >> shift_) & mask, event);
    }
  }
  sort_events(current_.data(), current_.size());
  adapt_events_ += current_.size();
  return true;
}

void EventLoop::adapt() {
  const std::uint64_t mean = adapt_events_ / adapt_buckets_;
  const bool too_far = adapt_far_ * kFarShare > adapt_events_;
  if (mean > kManyEvents && too_far && shift_ < kMaxShift) {
    min_shift_ = shift_ + 1;
    rescale(min_shift_);
  } else if (mean > kManyEvents && shift_ > min_shift_) {
    rescale(shift_ - 1);
  } else if (mean < kFewEvents && shift_ < kMaxShift) {
    rescale(shift_ + 1);
  }
  adapt_buckets_ = adapt_events_ = adapt_far_ = 0;
}

// Only between buckets: current_ is empty.
void EventLoop::rescale(int shift) {
  std::vector<Event> all;
  all.swap(far_);
  for (std::size_t slot = 0; slot < buckets_.size(); ++slot) collect(slot);
  all.insert(all.end(), current_.begin(), current_.end());
  current_.clear();
  shift_ = shift;
  current_bucket_ = (now_ >> shift_) - 1;
  pending_ -= all.size();
  for (const Event& event : all) insert(event);
}

// Always inline: GCC 12 takes a function that only prefetches for one without effect and drops the call.
[[gnu::always_inline]] inline void EventLoop::prefetch(const Event& event) const {
  const HandlerSlot& slot = handlers_[static_cast<std::size_t>(event.kind)];
  if (slot.target_base != nullptr) __builtin_prefetch(*slot.target_base + slot.target_size * event.target, 1);
  if (slot.argument_base != nullptr)
    __builtin_prefetch(*slot.argument_base + slot.argument_size * event.argument, 1);
  if (slot.also_base != nullptr) __builtin_prefetch(*slot.also_base + slot.also_size * event.target, 1);
}

std::uint64_t EventLoop::run(Time until) { return run_some(UINT64_MAX, until); }

std::uint64_t EventLoop::run_some(std::uint64_t count, Time until) {
  std::uint64_t done = 0;
  while (done < count && !stopped_) {
    if (cursor_ == current_.size() && !next_bucket(until)) break;
    const Event event = current_[cursor_];
    if (event.time > until) break;
    ++cursor_;
    if (cursor_ + kPrefetchAhead < current_.size()) prefetch(current_[cursor_ + kPrefetchAhead]);
    order_key_ = event.time == now_ ? std::max(order_key_, event.key) : event.key;
    now_ = event.time;
    --pending_;
    ++done;
    const HandlerSlot& slot = handlers_[static_cast<std::size_t>(event.kind)];
    slot.call(slot.context, event);
  }
  executed_ += done;
  return done;
}

}  // namespace netsim
