// EventLoop: clock and event queue of one set of atoms (law 3). Entities hold a reference to their loop,
// never to a global simulator.
//
// The queue is a calendar of time buckets (Brown, CACM 1988): a bucket is sorted by (time, key) when its turn
// comes, which is order law 2 for free; events of the current bucket are known ahead, so what the next ones
// touch is prefetched. Bucket width and count follow the load; they never change the order. Events beyond the
// calendar's horizon wait in a heap.
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
  std::uint64_t order_key() const { return order_key_; }
  std::uint64_t executed() const { return executed_; }
  std::size_t pending() const { return pending_; }
  // The time of the earliest pending event; kNever if there is none. Changes nothing: events may still be
  // added at any time >= now(). It looks through the first bucket that holds events, once until the next
  // event is added or executed.
  Time next_time() const;

  // Who handles events of `kind`. One handler per kind and loop.
  void set_handler(EventKind kind, Handler handler, void* context) {
    handlers_[static_cast<std::size_t>(kind)].call = handler;
    handlers_[static_cast<std::size_t>(kind)].context = context;
  }
  // Arrays that events of `kind` touch, to prefetch: element event.target of the first and event.argument of
  // the second. `base` is the address of the pointer, so that the arrays may move. prefetch_also(): a second
  // array of which element event.target is touched.
  void set_prefetch(EventKind kind, const void* const* target_base, std::size_t target_size,
                    const void* const* argument_base, std::size_t argument_size);
  void prefetch_also(EventKind kind, const void* const* target_base, std::size_t target_size);

  // Sets the clock where no event before `time` is pending: what is done from outside is done at that time.
  void advance(Time time) {
    if (time <= now_) return;
    now_ = time;
    order_key_ = 0;
  }

  // Adds an event; time >= now(). `origin` gives the key.
  void schedule(Time time, Origin& origin, EventKind kind, std::uint32_t target, std::uint64_t argument = 0) {
    insert(Event{time, origin.next_key(), target, kind, argument});
  }
  void insert(const Event& event) {
    ++pending_;
    const std::int64_t bucket = event.time >> shift_;
    if (bucket > current_bucket_ && bucket < current_bucket_ + kBuckets) [[likely]] {
      push(static_cast<std::size_t>(bucket) & (kBuckets - 1), event);
    } else {
      insert_slow(event);
    }
  }

  // Executes events in order until none is left, `until` is passed (events at `until` itself are executed) or
  // stop() is called. Returns the number executed. now() is then the time of the last event executed.
  std::uint64_t run(Time until = kNever);
  // At most `count` events.
  std::uint64_t run_some(std::uint64_t count, Time until = kNever);
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }
  void clear_stop() { stopped_ = false; }

 private:
  static constexpr std::int64_t kBuckets = 4096;
  static constexpr std::uint32_t kChunkEvents = 15;
  static constexpr std::uint32_t kNone = UINT32_MAX;
  // An unrolled list of events: buckets take chunks from a free list, last returned first, so that only as
  // much memory is touched as events are pending.
  struct alignas(64) Chunk {
    Event events[kChunkEvents];
    std::uint32_t count;
    std::uint32_t next;
    std::uint64_t unused[3];
  };
  struct HandlerSlot {
    Handler call = nullptr;
    void* context = nullptr;
    const char* const* target_base = nullptr;
    std::size_t target_size = 0;
    const char* const* argument_base = nullptr;
    std::size_t argument_size = 0;
    const char* const* also_base = nullptr;
    std::size_t also_size = 0;
  };

  void push(std::size_t slot, const Event& event) {
    std::uint32_t chunk = buckets_[slot];
    if (chunk == kNone || chunks_[chunk].count == kChunkEvents) [[unlikely]]
      chunk = grow(slot);
    Chunk& c = chunks_[chunk];
    c.events[c.count++] = event;
  }
  std::uint32_t grow(std::size_t slot);
  void insert_slow(const Event& event);
  std::int64_t next_occupied() const;
  bool next_bucket(Time until);
  void collect(std::size_t slot);
  void rescale(int shift);
  void adapt();
  void prefetch(const Event& event) const;

  Time now_ = 0;
  std::uint64_t order_key_ = 0;
  std::uint64_t executed_ = 0;
  std::size_t pending_ = 0;
  int shift_ = 13;
  std::int64_t current_bucket_ = -1;
  std::size_t cursor_ = 0;
  bool stopped_ = false;
  std::vector<Event> current_;  // the current bucket, sorted; executed up to cursor_
  std::vector<std::uint32_t> buckets_;
  std::vector<std::uint64_t> occupied_;  // one bit per bucket
  std::vector<Chunk> chunks_;
  std::uint32_t free_chunk_ = kNone;
  std::vector<Event> far_;  // heap by (time, key): beyond the horizon
  std::uint64_t adapt_buckets_ = 0, adapt_events_ = 0, adapt_far_ = 0;  // since the width was last looked at
  mutable Time next_time_ = kNever;  // the answer of next_time() when so many were executed and pending
  mutable std::uint64_t next_time_executed_ = 0;
  mutable std::size_t next_time_pending_ = 0;
  int min_shift_;  // rises where narrower buckets would put too many events beyond the horizon
  std::array<HandlerSlot, static_cast<std::size_t>(EventKind::count)> handlers_{};
};

}  // namespace netsim
