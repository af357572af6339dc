#include "sim/core/event_loop.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/sorting_network.h"

namespace netsim {
namespace {

bool later(const Event& a, const Event& b) { return before(b, a); }

// The bucket width is halved above kManyEvents and doubled below kFewEvents, both mean events per bucket,
// checked every kAdaptEvery buckets. It is doubled permanently if more than one event in kFarShare was beyond
// the fine calendar. Moving these costs more than longer buckets do (with 8,192 busy hosts most packets on
// links were there).
constexpr std::uint64_t kFarShare = 4;
constexpr std::uint64_t kAdaptEvery = 512, kFewEvents = 4, kManyEvents = 12;
constexpr int kMinShift = 6;
constexpr int kMaxShift = 34;

// Target of prefetches of kinds without arrays, so that no event has to check whether its kind has any.
alignas(64) constexpr char kNothing[64] = {};
constexpr const char* kNowhere = kNothing;

}  // namespace

EventLoop::EventLoop()
    : fine_end_((kBuckets - 1) >> kCoarse << kCoarse), events_(2 * kChunk), min_shift_(kMinShift) {
  set_shift(13);
  fine_.buckets.resize(kBuckets);
  coarse_.buckets.resize(kBuckets);
  current_.resize(64);
  free_chunk_ = kChunk;  // an index of 0 means no chunk
  const Prefetch none{&kNowhere, 0};
  prefetch_.fill({none, none, none, none, 0, &kNowhere, 0, 0});
}

void EventLoop::set_prefetch(EventKind kind, const void* const* target_base, std::size_t target_size,
                             const void* const* argument_base, std::size_t argument_size) {
  PrefetchSlot& slot = prefetch_[static_cast<std::size_t>(kind)];
  const auto array = [](const void* const* base, std::size_t size) {
    return base == nullptr ? Prefetch{&kNowhere, 0}
                           : Prefetch{reinterpret_cast<const char* const*>(base), size};
  };
  slot.target = array(target_base, target_size);
  slot.argument = array(argument_base, argument_size);
}

void EventLoop::prefetch_also(EventKind kind, const void* const* base, std::size_t pair_bytes,
                              std::size_t odd_bytes) {
  PrefetchSlot& slot = prefetch_[static_cast<std::size_t>(kind)];
  slot.also = {reinterpret_cast<const char* const*>(base), pair_bytes};
  slot.also_odd = odd_bytes;
}

void EventLoop::prefetch_high(EventKind kind, const void* const* base, std::size_t size) {
  prefetch_[static_cast<std::size_t>(kind)].high = {reinterpret_cast<const char* const*>(base), size};
}

void EventLoop::prefetch_behind(EventKind kind, std::size_t offset, const void* const* base) {
  PrefetchSlot& slot = prefetch_[static_cast<std::size_t>(kind)];
  slot.behind = reinterpret_cast<const char* const*>(base);
  slot.behind_offset = static_cast<std::uint32_t>(offset);
  slot.behind_mask = UINT32_MAX;
}

// ---- Lists of events

// Adds a chunk in front of the bucket's list and returns where the next event goes.
std::uint32_t EventLoop::add_chunk(std::uint32_t bucket) {
  if (free_chunk_ == 0) add_memory();
  const std::uint32_t chunk = free_chunk_;
  free_chunk_ = events_[chunk].target;
  events_[chunk].target = bucket == 0 ? 0 : bucket - kChunk;
  return chunk + 1;
}

void EventLoop::add_memory() {
  const auto had = static_cast<std::uint32_t>(events_.size());
  std::vector<Event> larger(2 * events_.size());
  NETSIM_CHECK(larger.size() <= std::size_t{1} << kPlaceBits, "too many events are pending in one loop");
  std::copy(events_.begin(), events_.end(), larger.begin());
  events_.swap(larger);
  outgrown_.push_back(std::move(larger));
  for (std::uint32_t chunk = had; chunk + kChunk < events_.size(); chunk += kChunk)
    events_[chunk].target = chunk + kChunk;
  free_chunk_ = had;
}

std::uint32_t EventLoop::grow(Calendar& calendar, std::size_t slot) {
  calendar.occupied[slot / 64] |= 1ULL << (slot % 64);
  calendar.words |= 1ULL << (slot / 64);
  return add_chunk(calendar.buckets[slot]);
}

std::uint32_t EventLoop::take(Calendar& calendar, std::size_t slot) {
  const std::uint32_t bucket = calendar.buckets[slot];
  calendar.buckets[slot] = 0;
  std::uint64_t& word = calendar.occupied[slot / 64];
  word &= ~(1ULL << (slot % 64));
  if (word == 0) calendar.words &= ~(1ULL << (slot / 64));
  return bucket;
}

// Calls visit(i, end) for each piece events_[i .. end) of a bucket's list.
template <class Visit>
[[gnu::always_inline]] inline void EventLoop::visit(std::uint32_t bucket, Visit visit) const {
  while (bucket != 0) {
    const std::uint32_t chunk = (bucket - 1) / kChunk * kChunk;
    visit(chunk + 1, bucket);
    const std::uint32_t before = events_[chunk].target;
    bucket = before == 0 ? 0 : before + kChunk;
  }
}

void EventLoop::release(std::uint32_t bucket) {
  while (bucket != 0) {
    const std::uint32_t chunk = (bucket - 1) / kChunk * kChunk;
    const std::uint32_t before = events_[chunk].target;
    events_[chunk].target = free_chunk_;
    free_chunk_ = chunk;
    bucket = before == 0 ? 0 : before + kChunk;
  }
}

// ---- Insertion outside of the fine calendar

void EventLoop::insert_slow(Event event) {
  const std::int64_t bucket = event.time >> shift_;
  if (bucket <= current_bucket_) {
    insert_current(event);
    return;
  }
  ++adapt_far_;
  const std::int64_t coarse = bucket >> kCoarse;
  if (coarse < (fine_end_ >> kCoarse) + kBuckets) {
    push(coarse_, static_cast<std::size_t>(coarse) & (kBuckets - 1), event);
    return;
  }
  far_.push_back(event);
  std::push_heap(far_.begin(), far_.end(), later);
}

inline bool EventLoop::in_order(std::uint64_t a, std::uint64_t b) const {
  if ((a ^ b) >> kPlaceBits != 0) return a < b;
  return before(event_of(a), event_of(b));
}

// Releases the executed events of the current bucket, except the running event. A bucket may last as long as
// the run if no event takes time.
void EventLoop::forget_executed() {
  order_key();  // while the events exist
  const std::size_t gone = cursor_ - 1;
  for (std::size_t i = 0; i < gone; ++i) spare_.push_back(place_in(current_[i]));
  const auto begin = current_.begin();
  std::copy(begin + static_cast<std::ptrdiff_t>(gone), begin + static_cast<std::ptrdiff_t>(count_), begin);
  count_ -= gone;
  cursor_ = ordered_ = 1;
}

// Inserts an event into the current bucket.
void EventLoop::insert_current(const Event& event) {
  constexpr std::size_t kMany = 4096;
  if (cursor_ >= kMany && cursor_ >= count_ / 2) [[unlikely]]
    forget_executed();
  std::uint32_t at = current_events_;
  if (!spare_.empty()) {
    at = spare_.back();
    spare_.pop_back();
  } else {
    if (at % kChunk == 0) at = add_chunk(at);
    current_events_ = at + 1;
  }
  events_[at] = event;
  const Time start = current_bucket_ << shift_;
  const std::uint64_t number = event.time < start ? at : entry(event, start, at);
  if (count_ == current_.size()) current_.resize(2 * count_);
  const auto first = current_.begin() + static_cast<std::ptrdiff_t>(cursor_);
  const auto last = current_.begin() + static_cast<std::ptrdiff_t>(count_);
  ++count_;
  auto place = last;
  constexpr std::ptrdiff_t kNear = 16;
  while (place != first && last - place < kNear && in_order(number, place[-1])) --place;
  if (last - place == kNear) {
    place = std::upper_bound(first, place, number,
                             [this](std::uint64_t a, std::uint64_t b) { return in_order(a, b); });
  }
  std::copy_backward(place, last, last + 1);
  *place = number;
}

// ---- Next event

// Returns the first bucket from `first` on that holds events, or INT64_MAX if there is none.
std::int64_t EventLoop::next_occupied(const Calendar& calendar, std::int64_t first) {
  const std::size_t start = static_cast<std::size_t>(first) & (kBuckets - 1);
  std::size_t word = start / 64;
  std::uint64_t bits = calendar.occupied[word] & ~0ULL << (start % 64);
  if (bits == 0) {
    if (calendar.words == 0) return INT64_MAX;
    // The word itself comes last; then its bits before `start` count.
    const auto skip =
        static_cast<std::size_t>(std::countr_zero(std::rotr(calendar.words, static_cast<int>(word) + 1)));
    word = (word + 1 + skip) % (kBuckets / 64);
    bits = calendar.occupied[word];
  }
  const std::size_t slot = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
  return first + static_cast<std::int64_t>((slot - start) & (kBuckets - 1));
}

Time EventLoop::earliest(const Calendar& calendar, std::int64_t bucket) const {
  Time first = kNever;
  visit(calendar.buckets[static_cast<std::size_t>(bucket) & (kBuckets - 1)],
        [&](std::uint32_t i, std::uint32_t end) {
          for (; i < end; ++i) first = std::min(first, events_[i].time);
        });
  return first;
}

// Returns the time of the earliest event outside of the fine calendar.
Time EventLoop::earliest_far() const {
  const Time first = far_.empty() ? kNever : far_.front().time;
  const std::int64_t coarse = next_occupied(coarse_, fine_end_ >> kCoarse);
  return coarse == INT64_MAX ? first : std::min(first, earliest(coarse_, coarse));
}

Time EventLoop::next_time() const {
  if (cursor_ < count_) return event_of(current_[cursor_]).time;
  if (pending() == 0) return kNever;
  if (next_time_inserted_ == inserted_ && next_time_executed_ == executed_) return next_time_;
  const std::int64_t next = next_occupied(fine_, current_bucket_ + 1);
  next_time_ = next != INT64_MAX ? earliest(fine_, next) : earliest_far();
  next_time_inserted_ = inserted_;
  next_time_executed_ = executed_;
  return next_time_;
}

std::uint64_t EventLoop::order_key() const {
  std::uint64_t key = 0;
  std::size_t i = cursor_;
  for (; i > ordered_; --i) {
    const Event& event = event_of(current_[i - 1]);
    if (event.time != now_) break;
    key = std::max(key, event.key);
  }
  if (i == ordered_ && order_time_ == now_) key = std::max(key, order_key_);
  ordered_ = cursor_;
  order_time_ = now_;
  order_key_ = key;
  return key;
}

// ---- From bucket to bucket

// Prevents GCC 12 from dropping the calls of a function that only prefetches, which it takes for one without
// effect.
inline void has_effect() { __asm__ volatile(""); }

// Prefetches the memory that an event will use.
inline void EventLoop::prefetch(const Event& event) const {
  has_effect();
  const PrefetchSlot& slot = prefetch_[static_cast<std::size_t>(event.kind)];
  __builtin_prefetch(*slot.target.base + slot.target.size * event.target, 1);
  __builtin_prefetch(
      *slot.also.base + slot.also.size * (event.target >> 1) + slot.also_odd * (event.target & 1U), 1);
  __builtin_prefetch(*slot.argument.base + slot.argument.size * static_cast<std::uint32_t>(event.argument),
                     1);
  const char* const high = *slot.high.base + slot.high.size * (event.argument >> 32);
  __builtin_prefetch(high, 1);
  __builtin_prefetch(high + 64, 1);
}

// Prefetches the array behind the argument's element, once that element has arrived from prefetch().
inline void EventLoop::prefetch_behind(const Event& event) const {
  has_effect();
  const PrefetchSlot& slot = prefetch_[static_cast<std::size_t>(event.kind)];
  const char* const element =
      *slot.argument.base + slot.argument.size * static_cast<std::uint32_t>(event.argument);
  std::uint32_t index = 0;
  std::memcpy(&index, element + slot.behind_offset, sizeof(index));
  __builtin_prefetch(*slot.behind + sizeof(std::uint32_t) * std::size_t{index & slot.behind_mask});
}

void EventLoop::leave_bucket() {
  order_key();  // while the events exist
  release(current_events_);
  current_events_ = 0;
  spare_.clear();
  cursor_ = count_ = ordered_ = 0;
  if (!outgrown_.empty()) outgrown_.clear();
}

// Moves to the next bucket that holds events, if it begins no later than `until`.
bool EventLoop::next_bucket(Time until) {
  if (count_ != 0) leave_bucket();
  if (adapt_buckets_ >= kAdaptEvery) adapt();
  std::int64_t next = next_occupied(fine_, current_bucket_ + 1);
  if (next == INT64_MAX) {
    const Time far = earliest_far();
    if (far == kNever) return false;
    next = far >> shift_;
  }
  if (until != kNever && next > (until >> shift_)) return false;
  current_bucket_ = next;
  if (next + kBuckets >= fine_end_ + (std::int64_t{1} << kCoarse)) move_horizon(next);
  load(take(fine_, static_cast<std::size_t>(next) & (kBuckets - 1)));
  ++adapt_buckets_;
  adapt_events_ += count_;
  look_ahead(next);
  return true;
}

// Prefetches the memory that the events of the bucket after `bucket` use, and the events of the bucket after
// that.
void EventLoop::look_ahead(std::int64_t bucket) const {
  const std::int64_t next = next_occupied(fine_, bucket + 1);
  if (next == INT64_MAX) return;
  const auto touch = [this](std::uint32_t i, std::uint32_t end) {
    for (; i < end; ++i) prefetch(events_[i]);
  };
  visit(fine_.buckets[static_cast<std::size_t>(next) & (kBuckets - 1)], touch);
  const std::int64_t beyond = next_occupied(fine_, next + 1);
  if (beyond == INT64_MAX) return;
  const std::uint32_t end = fine_.buckets[static_cast<std::size_t>(beyond) & (kBuckets - 1)];
  has_effect();
  constexpr std::uint32_t kLine = 64 / sizeof(Event);
  for (std::uint32_t i = (end - 1) / kChunk * kChunk; i < end; i += kLine) __builtin_prefetch(&events_[i]);
}

// Lets the fine calendar begin at `bucket` and moves the events that it now covers into it.
void EventLoop::move_horizon(std::int64_t bucket) {
  const std::int64_t coarse_end = (bucket + kBuckets) >> kCoarse;
  std::int64_t coarse = fine_end_ >> kCoarse;
  fine_end_ = coarse_end << kCoarse;
  const auto move = [this](const Event event) {
    push(fine_, static_cast<std::size_t>(event.time >> shift_) & (kBuckets - 1), event);
  };
  while ((coarse = next_occupied(coarse_, coarse)) < coarse_end) {
    const std::uint32_t list = take(coarse_, static_cast<std::size_t>(coarse) & (kBuckets - 1));
    visit(list, [&](std::uint32_t i, std::uint32_t end) {
      for (; i < end; ++i) move(events_[i]);
    });
    release(list);
  }
  while (!far_.empty() && (far_.front().time >> shift_) < fine_end_) {
    move(far_.front());
    std::pop_heap(far_.begin(), far_.end(), later);
    far_.pop_back();
  }
}

// Makes the list the current bucket and sorts it.
void EventLoop::load(std::uint32_t bucket) {
  current_events_ = bucket;
  const Time start = current_bucket_ << shift_;
  std::size_t count = 0;
  visit(
      bucket, [&](std::uint32_t i, std::uint32_t end) __attribute__((always_inline)) {
        if (count + kChunk + 16 > current_.size()) [[unlikely]]
          current_.resize(2 * current_.size());
        std::uint64_t* numbers = current_.data() + count;
        count += end - i;
        for (const Event* event = events_.data() + i; i < end; ++i, ++event) {
          *numbers++ = entry(*event, start, i);
          prefetch_behind(*event);
        }
      });
  count_ = count;
  sort_current();
}

void EventLoop::sort_current() {
  std::uint64_t* const numbers = current_.data();
  sort_numbers(numbers, count_);
  for (std::size_t i = 1; i < count_; ++i) {
    if ((numbers[i] ^ numbers[i - 1]) >> kPlaceBits != 0) [[likely]]
      continue;
    std::size_t end = i + 1;  // end of the entries with equal numbers, which need the full comparison
    while (end < count_ && (numbers[i] ^ numbers[end]) >> kPlaceBits == 0) ++end;
    std::sort(numbers + i - 1, numbers + end,
              [this](std::uint64_t a, std::uint64_t b) { return in_order(a, b); });
    i = end;
  }
}

// ---- Width of the buckets

void EventLoop::adapt() {
  std::uint64_t mean = adapt_events_ / adapt_buckets_;
  if (mean > kManyEvents && adapt_far_ * kFarShare > adapt_events_ && shift_ < kMaxShift) {
    min_shift_ = shift_ + 1;
    rescale(min_shift_);
  } else if (mean > kManyEvents && shift_ > min_shift_) {
    int shift = shift_;
    for (; mean > kManyEvents && shift > min_shift_; mean /= 2) --shift;
    rescale(shift);
  } else if (mean < kFewEvents && shift_ < kMaxShift) {
    rescale(shift_ + 1);
  }
  adapt_buckets_ = adapt_events_ = adapt_far_ = 0;
}

// Changes the bucket width. Called between buckets only, when there are no current events.
void EventLoop::rescale(int shift) {
  std::vector<Event> all;
  all.swap(far_);
  for (Calendar* calendar : {&fine_, &coarse_}) {
    for (std::size_t slot = 0; calendar->words != 0; ++slot) {
      const std::uint32_t list = take(*calendar, slot);
      visit(list, [&](std::uint32_t i, std::uint32_t end) {
        all.insert(all.end(), events_.begin() + i, events_.begin() + end);
      });
      release(list);
    }
  }
  set_shift(shift);
  current_bucket_ = (now_ >> shift_) - 1;
  fine_end_ = (current_bucket_ + kBuckets) >> kCoarse << kCoarse;
  inserted_ -= all.size();
  for (const Event& event : all) insert(event);
}

bool EventLoop::has_pending(std::uint32_t kinds) const {
  bool found = false;
  const auto look = [&](const Event& event) {
    found = found || (kinds >> static_cast<unsigned>(event.kind) & 1U) != 0;
  };
  for (std::size_t i = cursor_; i < count_; ++i) look(event_of(current_[i]));
  for (const Calendar* calendar : {&fine_, &coarse_}) {
    for (const std::uint32_t bucket : calendar->buckets) {
      visit(bucket, [&](std::uint32_t i, std::uint32_t end) {
        for (; i < end; ++i) look(events_[i]);
      });
    }
  }
  for (const Event& event : far_) look(event);
  return found;
}

// ---- Running

std::uint64_t EventLoop::run(Time until) { return run_some(UINT64_MAX, until); }

std::uint64_t EventLoop::run_some(std::uint64_t count, Time until) {
  std::uint64_t done = 0;
  while (done < count) {
    if (cursor_ == count_ && !next_bucket(until)) break;
    const Event& event = event_of(current_[cursor_]);
    if (event.time > until) break;
    ++cursor_;
    now_ = event.time;
    ++done;
    const HandlerSlot& slot = handlers_[static_cast<std::size_t>(event.kind)];
    slot.call(slot.context, event);
  }
  executed_ += done;
  return done;
}

}  // namespace netsim
