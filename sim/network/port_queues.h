// PortQueues: the waiting packets of a switch port whose queue discipline schedules them itself
// (port_scheduler.h). Each data queue of the port is divided into the same number of first-in-first-out
// queues.
//
// The queues are numbered from 0, first all of data queue 0, then those of data queue 1, and so on. Data
// queues are the classes in virtual channel 0, then those in channel 1. Nothing is allocated after
// construction.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "sim/core/index.h"
#include "sim/core/units.h"
#include "sim/network/packet_view.h"

namespace netsim {

class PortQueues {
 public:
  // `data_queues` is the number of classes times virtual channels, `each` the number of queues in each.
  PortQueues(std::uint32_t classes, std::uint32_t data_queues, std::uint32_t each)
      : classes_(classes),
        each_(each),
        queues_(std::size_t{data_queues} * each),
        occupied_((queues_.size() + 63) / 64) {}

  // For schedulers.
  std::uint32_t size() const { return static_cast<std::uint32_t>(queues_.size()); }
  std::uint32_t queues_per_class() const { return each_; }
  std::uint32_t traffic_class(std::uint32_t queue) const { return queue / each_ % classes_; }
  Bytes bytes(std::uint32_t queue) const { return queues_[queue].bytes; }
  std::uint32_t packets(std::uint32_t queue) const { return queues_[queue].packets; }
  // Returns whether the queue holds a packet and its class is neither paused nor without credits. It holds in
  // PortScheduler::select() only.
  bool may_send(std::uint32_t queue) const {
    return queues_[queue].packets != 0 && (ready_ >> queue / each_ & 1) != 0;
  }
  // Returns the packet that the queue sends next. The queue must hold one.
  PacketView head(std::uint32_t queue) const {
    return view_of(*packets_, queues_[queue].head, traffic_class(queue));
  }
  // Returns the first queue that may send, counted from `from` and then from 0. At least one must.
  std::uint32_t next(std::uint32_t from) const {
    const std::uint32_t found = search(from);
    return found != kNoIndex ? found : search(0);
  }
  // Calls visit(queue) for each queue that may send, in ascending order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::uint32_t queue = search(0); queue != kNoIndex; queue = search(queue + 1)) visit(queue);
  }

  // For the port. `ready` has a bit per data queue that may send; it holds until the next call.
  void set_ready(std::uint32_t ready) { ready_ = ready; }
  // Sets the arena of the queued packets. It must be called before all other functions.
  void set_packets(PacketArena& packets) { packets_ = &packets; }
  void push(std::uint32_t queue, std::uint32_t packet);
  // Removes and returns the first packet of a queue, which must not be empty.
  std::uint32_t pop(std::uint32_t queue);
  // Returns the index of the first packet of a queue; kNoIndex: it is empty.
  std::uint32_t front(std::uint32_t queue) const { return queues_[queue].head; }

 private:
  struct Queue {
    std::uint32_t head = kNoIndex, tail = kNoIndex;
    std::uint32_t packets = 0;
    Bytes bytes = 0;
  };

  // Returns the first queue at or after `from` that may send; kNoIndex: there is none.
  std::uint32_t search(std::uint32_t from) const;

  std::uint32_t classes_, each_;
  std::vector<Queue> queues_;
  std::vector<std::uint64_t> occupied_;  // bit per queue that holds a packet
  std::uint32_t ready_ = UINT32_MAX;
  PacketArena* packets_ = nullptr;
};

inline void PortQueues::push(std::uint32_t queue, std::uint32_t packet) {
  Queue& q = queues_[queue];
  Packet& k = (*packets_)[packet];
  k.next = kNoIndex;
  if (q.packets == 0) {
    q.head = packet;
    occupied_[queue / 64] |= std::uint64_t{1} << queue % 64;
  } else {
    (*packets_)[q.tail].next = packet;
  }
  q.tail = packet;
  ++q.packets;
  q.bytes += k.bytes;
}

inline std::uint32_t PortQueues::pop(std::uint32_t queue) {
  Queue& q = queues_[queue];
  const std::uint32_t packet = q.head;
  q.head = (*packets_)[packet].next;
  q.bytes -= (*packets_)[packet].bytes;
  if (--q.packets == 0) {
    q.tail = kNoIndex;
    occupied_[queue / 64] &= ~(std::uint64_t{1} << queue % 64);
  }
  return packet;
}

inline std::uint32_t PortQueues::search(std::uint32_t from) const {
  for (std::size_t word = from / 64; word < occupied_.size(); ++word) {
    std::uint64_t bits = occupied_[word];
    if (word == from / 64) bits &= ~std::uint64_t{0} << from % 64;
    for (; bits != 0; bits &= bits - 1) {
      const auto queue =
          static_cast<std::uint32_t>(word * 64) + static_cast<std::uint32_t>(std::countr_zero(bits));
      if (may_send(queue)) return queue;
    }
  }
  return kNoIndex;
}

}  // namespace netsim
