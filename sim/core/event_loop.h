// EventLoop: clock and event queue of one set of atoms (law 3). Entities hold a reference to their loop,
// never to a global simulator.
//
// The queue is a calendar of time buckets (Brown, CACM 1988): a bucket is sorted by (time, key) when its turn
// comes, which is order law 2 for free; events are known a bucket ahead, so what they touch is prefetched.
// Events beyond the calendar's horizon wait in a second, coarse one, and beyond that in a heap. The width of
// buckets follows the load; it never changes the order.
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
  // The largest key so far of the events executed at now(): what is written down with (now(), order_key()) by
  // several loops can be put into the order in which one loop would have executed the writers, because events
  // at now() are only ever scheduled by events of the same loop.
  std::uint64_t order_key() const;
  // Up to the last return from run() or run_some().
  std::uint64_t executed() const { return executed_; }
  std::size_t pending() const { return static_cast<std::size_t>(inserted_ - executed_); }
  // The time of the earliest pending event; kNever if there is none. Changes nothing: events may still be
  // added at any time >= now(). It looks through the first bucket that holds events, once until the next
  // event is added or executed. Not from a handler.
  Time next_time() const;

  // Who handles events of `kind`. One handler per kind and loop.
  void set_handler(EventKind kind, Handler handler, void* context) {
    handlers_[static_cast<std::size_t>(kind)] = {handler, context};
  }
  // The same for a method of `owner`, which takes the event.
  template <auto Method, class Owner>
  void set_handler(EventKind kind, Owner& owner) {
    set_handler(
        kind, [](void* self, const Event& event) { (static_cast<Owner*>(self)->*Method)(event); }, &owner);
  }
  // Arrays that events of `kind` touch, to prefetch: element event.target of the first and the element that
  // the low half of event.argument says of the second. `base` is the address of the pointer, so that the
  // arrays may move. prefetch_also(): a second one, where what belongs to a target
  // begins pair_bytes * (target / 2) behind the base, and odd_bytes later if the target is odd.
  void set_prefetch(EventKind kind, const void* const* target_base, std::size_t target_size,
                    const void* const* argument_base, std::size_t argument_size);
  void prefetch_also(EventKind kind, const void* const* base, std::size_t pair_bytes, std::size_t odd_bytes);
  // Another one: two cache lines of the element that the high half of event.argument says.
  void prefetch_high(EventKind kind, const void* const* base, std::size_t size);
  // One more, of 32-bit numbers: the element that the number at byte `offset` of the argument's says.
  void prefetch_behind(EventKind kind, std::size_t offset, const void* const* base);

  // Sets the clock where no event before `time` is pending: what is done from outside is done at that time.
  void advance(Time time) {
    if (time > now_) now_ = time;
  }

  // Adds an event; time >= now(). `origin` gives the key.
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

  // Executes events in order until none is left or `until` is passed (events at `until` itself are executed).
  // Returns the number executed. now() is then the time of the last event executed.
  std::uint64_t run(Time until = kNever);
  // At most `count` events.
  std::uint64_t run_some(std::uint64_t count, Time until = kNever);

 private:
  static constexpr std::int64_t kBuckets = 4096;  // of each calendar
  static constexpr int kCoarse = 8;               // a coarse bucket is 2^8 fine ones
  static constexpr std::uint32_t kChunk = 16;
  static constexpr int kPlaceBits = 26;

  // An array of buckets, each an unrolled list in events_: chunks of one head, whose `target` is where the
  // chunk before begins (0: none), and kChunk - 1 events. A bucket's number is where its next event goes; a
  // multiple of kChunk says that there is no room: its last chunk is full, or it has none and the number is
  // 0.
  struct Calendar {
    std::vector<std::uint32_t> buckets;
    std::array<std::uint64_t, kBuckets / 64> occupied{};  // bit per bucket
    std::uint64_t words = 0;                              // bit per word of `occupied` that is not 0
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
    std::size_t also_odd;  // bytes
    const char* const* behind;
    std::uint32_t behind_offset, behind_mask;  // of the index; no array: 0
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
    key_shift_ = shift + kPlaceBits;  // the key's head takes what time and place leave
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
  int shift_;              // of times to buckets
  int key_shift_;
  std::uint64_t inserted_ = 0, executed_ = 0;
  std::vector<Event> events_;
  Calendar fine_, coarse_;
  // The current bucket, sorted, executed up to cursor_: time since the bucket's beginning, as much of the key
  // as there is room for, and where in events_ (kPlaceBits).
  std::vector<std::uint64_t> current_;  // the first count_ are used
  std::size_t cursor_ = 0, count_ = 0;
  std::uint32_t current_events_ = 0;  // its list
  std::vector<std::uint32_t> spare_;  // places in it whose events have been executed
  std::uint32_t free_chunk_ = 0;
  std::vector<std::vector<Event>> outgrown_;  // earlier events_: the running event may lie in one
  std::vector<Event> far_;                    // heap by (time, key): beyond the coarse horizon
  std::uint64_t adapt_buckets_ = 0, adapt_events_ = 0, adapt_far_ = 0;  // since the width was last looked at
  int min_shift_;  // rises where narrower buckets would put too many events beyond the horizon
  // The answers of next_time() and order_key(), and to what they belong.
  mutable Time next_time_ = kNever;
  mutable std::uint64_t next_time_inserted_ = 0, next_time_executed_ = 0;
  mutable std::uint64_t order_key_ = 0;
  mutable Time order_time_ = 0;
  mutable std::size_t ordered_ = 0;
  std::array<HandlerSlot, static_cast<std::size_t>(EventKind::count)> handlers_{};
  std::array<PrefetchSlot, static_cast<std::size_t>(EventKind::count)> prefetch_;
};

}  // namespace netsim
