// EventLoop: the clock and the event queue of one set of atoms (law 3). Entities hold a reference to their
// loop, never to a global simulator.
//
// The queue is a calendar of time buckets (Brown, CACM 1988). A bucket is sorted by (time, key) when its turn
// comes, which gives the order of law 2. The events of the next bucket are known one bucket ahead, so the
// memory that they touch is prefetched.
//
// Events beyond the calendar's horizon wait in a second, coarse calendar, and beyond that in a heap. The
// width of the buckets follows the load and never changes the order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/core/event.h"
#include "sim/core/units.h"

namespace netsim {

class EventLoop {
 public:
  using Handler = void (*)(void* context, const Event& event);

  EventLoop();

  Time now() const { return now_; }
  // Returns the largest key so far of the events executed at now(). Records that several loops write with
  // (now(), order_key()) can be sorted into the order in which a single loop would have executed their
  // writers. This holds because only events of the same loop schedule events at now().
  std::uint64_t order_key() const;
  // Returns the number of events executed up to the last return from run() or run_some().
  std::uint64_t executed() const { return executed_; }
  std::size_t pending() const { return static_cast<std::size_t>(inserted_ - executed_); }
  // Returns whether an event of one of these kinds is pending, a bit for each kind. It looks at all events.
  bool has_pending(std::uint32_t kinds) const;
  // Returns the time of the earliest pending event, or kNever if there is none. Events may still be added at
  // any time >= now(). The first call scans one bucket; the result is kept until an event is added or
  // executed. A handler must not call it.
  Time next_time() const;

  // Registers the handler of events of `kind`. A loop has one handler per kind.
  void set_handler(EventKind kind, Handler handler, void* context) {
    handlers_[static_cast<std::size_t>(kind)] = {handler, context};
  }
  // Registers a method of `owner` that takes the event as the handler.
  template <auto Method, class Owner>
  void set_handler(EventKind kind, Owner& owner) {
    set_handler(
        kind, [](void* self, const Event& event) { (static_cast<Owner*>(self)->*Method)(event); }, &owner);
  }
  // Names the arrays that events of `kind` touch, so that they are prefetched. The index in the first array
  // is event.target, in the second the low half of event.argument. A base is the address of the array's
  // pointer, because arrays may move. Sizes are bytes of an element.
  void set_prefetch(EventKind kind, const void* const* target_base, std::size_t target_size,
                    const void* const* argument_base, std::size_t argument_size);
  // Adds an array whose elements lie in pairs. The element of a target begins pair_bytes * (target / 2) bytes
  // after the base, and odd_bytes later if the target is odd.
  void prefetch_also(EventKind kind, const void* const* base, std::size_t pair_bytes, std::size_t odd_bytes);
  // Adds an array whose index is the high half of event.argument. Two cache lines of the element are
  // prefetched.
  void prefetch_high(EventKind kind, const void* const* base, std::size_t size);
  // Adds an array whose index is read from the argument's element: the 32-bit number at byte `offset` of it.
  void prefetch_behind(EventKind kind, std::size_t offset, const void* const* base);

  // Sets the clock to `time` for actions from outside. No event before `time` may be pending.
  void advance(Time time) {
    if (time > now_) now_ = time;
  }

  // Adds an event at `time` >= now(). `origin` provides its key.
  void schedule(Time time, Origin& origin, EventKind kind, std::uint32_t target, std::uint64_t argument = 0) {
    insert(Event{time, origin.next_key(), target, kind, argument});
  }
  void insert(Event event) {
    ++inserted_;
    const std::int64_t bucket = event.time >> shift_;
    if (bucket > current_bucket_ && bucket < fine_end_) [[likely]] {
      push(fine_, static_cast<std::size_t>(bucket) & (kBuckets - 1), event);
    } else {
      insert_slow(event);
    }
  }

  // Executes events in order until none at or before `until` is left. Returns the number executed. now() is
  // then the time of the last event executed.
  std::uint64_t run(Time until = kNever);
  // Executes at most `count` events.
  std::uint64_t run_some(std::uint64_t count, Time until = kNever);

 private:
  static constexpr std::int64_t kBuckets = 4096;  // buckets of each calendar
  static constexpr int kCoarse = 8;               // a coarse bucket is 2^8 fine ones
  static constexpr std::uint32_t kChunk = 16;
  static constexpr int kPlaceBits = 26;

  // Each bucket is an unrolled list of chunks in events_. A chunk has one head and kChunk - 1 events; the
  // head's `target` is the index of the chunk before it, 0 for none. `buckets` holds the index at which a
  // bucket's next event goes. A multiple of kChunk means that the last chunk is full or, if 0, that there is
  // no chunk.
  struct Calendar {
    std::vector<std::uint32_t> buckets;
    std::array<std::uint64_t, kBuckets / 64> occupied{};  // a bit per bucket, set where it holds events
    std::uint64_t words = 0;                              // a bit per word of `occupied`, set where not 0
  };
  struct HandlerSlot {
    Handler call = nullptr;
    void* context = nullptr;
  };
  struct Prefetch {
    const char* const* base;
    std::size_t size;
  };
  struct alignas(64) PrefetchSlot {
    Prefetch target, also, argument, high;
    std::size_t also_odd;  // `odd_bytes` of prefetch_also()
    const char* const* behind;
    std::uint32_t behind_offset, behind_mask;  // offset and mask of the index; both 0 without an array
  };

  void push(Calendar& calendar, std::size_t slot, const Event& event) {
    std::uint32_t at = calendar.buckets[slot];
    if (at % kChunk == 0) [[unlikely]]
      at = grow(calendar, slot);
    events_[at] = event;
    calendar.buckets[slot] = at + 1;
  }
  std::uint32_t grow(Calendar& calendar, std::size_t slot);
  std::uint32_t add_chunk(std::uint32_t bucket);
  void add_memory();
  std::uint32_t take(Calendar& calendar, std::size_t slot);
  template <class Visit>
  void visit(std::uint32_t bucket, Visit visit) const;
  void release(std::uint32_t bucket);
  void insert_slow(Event event);
  void insert_current(const Event& event);
  void forget_executed();
  std::uint64_t entry(const Event& event, Time bucket_start, std::uint32_t place) const {
    return (static_cast<std::uint64_t>(event.time - bucket_start) << (64 - shift_)) |
           (event.key >> key_shift_ << kPlaceBits) | place;
  }
  static std::uint32_t place_in(std::uint64_t entry) {
    return static_cast<std::uint32_t>(entry & ((1U << kPlaceBits) - 1));
  }
  const Event& event_of(std::uint64_t entry) const { return events_[place_in(entry)]; }
  void set_shift(int shift) {
    shift_ = shift;
    key_shift_ = shift + kPlaceBits;  // the key's upper bits get what time and place leave of 64
  }
  bool in_order(std::uint64_t a, std::uint64_t b) const;
  static std::int64_t next_occupied(const Calendar& calendar, std::int64_t first);
  Time earliest(const Calendar& calendar, std::int64_t bucket) const;
  Time earliest_far() const;
  void leave_bucket();
  bool next_bucket(Time until);
  void look_ahead(std::int64_t bucket) const;
  void move_horizon(std::int64_t bucket);
  void load(std::uint32_t bucket);
  void sort_current();
  void prefetch(const Event& event) const;
  void prefetch_behind(const Event& event) const;
  void rescale(int shift);
  void adapt();

  Time now_ = 0;
  std::int64_t current_bucket_ = -1;
  std::int64_t fine_end_;  // first bucket that is not in the fine calendar; a multiple of 2^kCoarse
  int shift_;              // a time shifted right by this is its bucket's number
  int key_shift_;
  std::uint64_t inserted_ = 0, executed_ = 0;
  std::vector<Event> events_;
  Calendar fine_, coarse_;
  // The current bucket, sorted and executed up to cursor_. An entry holds the time since the bucket's
  // beginning, the upper bits of the key, and the index in events_ (kPlaceBits).
  std::vector<std::uint64_t> current_;  // only the first count_ are valid
  std::size_t cursor_ = 0, count_ = 0;
  std::uint32_t current_events_ = 0;  // list of the current bucket
  std::vector<std::uint32_t> spare_;  // indices in that list whose events have been executed
  std::uint32_t free_chunk_ = 0;
  std::vector<std::vector<Event>> outgrown_;  // former storage of events_, in which the running event may lie
  std::vector<Event> far_;                    // heap by (time, key) of events beyond the coarse horizon
  std::uint64_t adapt_buckets_ = 0, adapt_events_ = 0, adapt_far_ = 0;  // counts since adapt() last ran
  int min_shift_;  // rises where narrower buckets would put too many events beyond the horizon
  // The last answers of next_time() and order_key(), with the state in which they were given.
  mutable Time next_time_ = kNever;
  mutable std::uint64_t next_time_inserted_ = 0, next_time_executed_ = 0;
  mutable std::uint64_t order_key_ = 0;
  mutable Time order_time_ = 0;
  mutable std::size_t ordered_ = 0;
  std::array<HandlerSlot, static_cast<std::size_t>(EventKind::count)> handlers_{};
  std::array<PrefetchSlot, static_cast<std::size_t>(EventKind::count)> prefetch_;
};

}  // namespace netsim
