// TimerQueue: the retransmission timers of one logical process, in the order of their ends. Nearly all have
// the same length, so a timer that is set later ends later. They form a line with 24 bytes per timer, and
// only the first ones are events of the loop.
//
// A timer may outlive its queue pair, whose id is then reused. The value that the timer would have added to
// the queue pair's digest is stored in the line.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/core/units.h"

namespace netsim {

class TimerQueue {
 public:
  struct Timer {
    std::uint64_t time : 63, over : 1;  // over: its queue pair is over
    std::uint64_t key;                  // order among events of the same time (Event::key)
    std::uint64_t value;                // the queue pair; if that is over, the addition to its digest
  };

  // Returns whether the line accepts a timer. One that ends before the line's last timer must be an event of
  // its own.
  bool takes(Time time) const { return count_ == 0 || time >= last_; }
  // Appends a timer and returns its place, valid until the timer has ended. `insert(timer, place)` is called
  // for timers that become events of the loop.
  template <class Insert>
  std::uint32_t add(Time time, std::uint64_t key, std::uint32_t queue_pair, Insert insert) {
    const std::uint32_t place = end_place();
    (*this)[place] = {static_cast<std::uint64_t>(time) & kTimeMask, 0, key, queue_pair};
    ++count_;
    last_ = time;
    if (count_ == 1 || (events_ + 1 == count_ && time == first_time_)) {
      first_time_ = time;
      ++events_;
      ++pending_;
      insert((*this)[place], place);
    }
    return place;
  }
  // Called when the event of the timer at `place` is executed. Returns a copy of the timer.
  template <class Insert>
  Timer end(std::uint32_t place, Insert insert) {
    const Timer timer = (*this)[place];
    if (--pending_ > 0) return timer;
    // The loop has executed all timers that end at this time, in the order of their keys.
    for (; events_ > 0; --events_) remove_first();
    if (count_ == 0) return timer;
    first_time_ = static_cast<Time>((*this)[first_].time);
    std::uint32_t at = first_;
    for (; events_ < count_ && static_cast<Time>((*this)[at].time) == first_time_; at = after(at)) {
      ++events_;
      ++pending_;
      insert((*this)[at], at);
    }
    return timer;
  }
  Timer& operator[](std::uint32_t place) { return (*chunks_[place / kChunk].timers)[place % kChunk]; }

 private:
  static constexpr std::uint64_t kTimeMask = ~std::uint64_t{0} >> 1;
  static constexpr std::uint32_t kChunk = 256, kNoChunk = UINT32_MAX, kFull = UINT32_MAX;
  struct Chunk {
    std::unique_ptr<std::array<Timer, kChunk>> timers;
    std::uint32_t next = kNoChunk;
  };

  std::uint32_t after(std::uint32_t place) const {
    return (place + 1) % kChunk != 0 ? place + 1 : chunks_[place / kChunk].next * kChunk;
  }
  // Returns the place behind the last timer, in a new chunk if the last one is full.
  std::uint32_t end_place() {
    if (count_ == 0 && first_chunk_ == kNoChunk) {
      first_chunk_ = last_chunk_ = take_chunk();
      first_ = end_ = first_chunk_ * kChunk;
    } else if (end_ == kFull) {
      const std::uint32_t chunk = take_chunk();
      chunks_[last_chunk_].next = chunk;
      last_chunk_ = chunk;
      end_ = chunk * kChunk;
    }
    const std::uint32_t place = end_;
    end_ = (end_ + 1) % kChunk != 0 ? end_ + 1 : kFull;
    return place;
  }
  void remove_first() {
    --count_;
    const std::uint32_t chunk = first_ / kChunk;
    if ((first_ + 1) % kChunk != 0) {
      ++first_;
      return;
    }
    first_chunk_ = chunks_[chunk].next;
    free_.push_back(chunk);
    if (first_chunk_ == kNoChunk) {
      last_chunk_ = kNoChunk;
    } else {
      first_ = first_chunk_ * kChunk;
    }
  }
  std::uint32_t take_chunk() {
    if (free_.empty()) {
      chunks_.push_back({std::make_unique<std::array<Timer, kChunk>>(), kNoChunk});
      free_.reserve(chunks_.capacity());
      return static_cast<std::uint32_t>(chunks_.size() - 1);
    }
    const std::uint32_t chunk = free_.back();
    free_.pop_back();
    chunks_[chunk].next = kNoChunk;
    return chunk;
  }

  std::vector<Chunk> chunks_;  // from first_chunk_ on, linked by `next`; the others are free
  std::vector<std::uint32_t> free_;
  std::uint32_t first_chunk_ = kNoChunk, last_chunk_ = kNoChunk;
  std::uint32_t first_ = 0;    // place of the first timer
  std::uint32_t end_ = kFull;  // place of the next timer; kFull: it needs a new chunk
  std::size_t count_ = 0;      // timers in the line
  std::size_t events_ = 0;     // leading timers that were made events
  std::size_t pending_ = 0;    // those of them that have not been executed
  Time first_time_ = 0, last_ = 0;
};

}  // namespace netsim
