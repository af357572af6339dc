// TimerLine: the retransmission timers of one set, in the order in which they end. Nearly all of them are set
// for the same time ahead, so a timer that is set later ends later: they stand in a line of 24 bytes each,
// and only the first are events of the loop. A timer outlives what it was for: a queue pair that is over, all
// of it but the timer, is given back, and what the timer's end would have added to its digest stays in the
// line.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/core/units.h"

namespace netsim {

class TimerLine {
 public:
  struct Timer {
    std::uint64_t time : 63, over : 1;  // over: its queue pair is
    std::uint64_t key;                  // Event::key
    std::uint64_t value;                // the queue pair; if it is over, see above
  };

  // Timers that end before the last one of the line are events of their own.
  bool takes(Time time) const { return count_ == 0 || time >= last_; }
  // Where the timer is until it has ended. `insert(timer, place)` is called for those that are events of the
  // loop from now on.
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
  // The event of the timer at `place` is executed; a copy of the timer.
  template <class Insert>
  Timer end(std::uint32_t place, Insert insert) {
    const Timer timer = (*this)[place];
    if (--pending_ > 0) return timer;
    // The loop has executed all that end at this time, in the order of their keys.
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
  // Behind the last timer, in a new chunk where that one's is full.
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

  std::vector<Chunk> chunks_;  // from first_chunk_ on by `next`; the others are free
  std::vector<std::uint32_t> free_;
  std::uint32_t first_chunk_ = kNoChunk, last_chunk_ = kNoChunk;
  std::uint32_t first_ = 0;    // place of the first timer
  std::uint32_t end_ = kFull;  // of the next one; kFull: it needs a chunk
  std::size_t count_ = 0;      // in the line
  std::size_t events_ = 0;     // of them, from the first on, those that were made events
  std::size_t pending_ = 0;    // of these, those that have not been executed
  Time first_time_ = 0, last_ = 0;
};

}  // namespace netsim
