// Receiver: the receiving halves of the queue pairs of one set of atoms: order, replies, delivery. It answers
// what packets ask and remembers of a message only what the sender has told of it.
#pragma once

#include <cstdint>

#include "sim/core/arena.h"
#include "sim/core/logical_process.h"
#include "sim/network/fabric_shard.h"
#include "sim/transport/connections/delay_division.h"
#include "sim/transport/connections/ideal_times.h"
#include "sim/transport/flow_ends.h"
#include "sim/transport/packet_network.h"
#include "sim/transport/transport_state.h"

namespace netsim {

// What the receiver knows of a message, from when its last packet was made until it is delivered: messages of
// a queue pair end in the order in which their last packets were made, whatever the order of their
// beginnings.
struct Incoming {
  SendRequest request;
  Time start = 0;
  std::uint32_t number = 0;    // within its queue pair, in order of send()
  std::uint32_t next = kNone;  // of the queue pair, in order of their ends
};

class Receiver {
 public:
  // `delays`, `counts`: the set's.
  Receiver(LogicalProcess& set, FabricShard& fabric, TransportState& state, IdealTimes& ideal_times,
           DelayDivision& delays, NetworkCounters& counts);
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  // What ends with a packet that is on its way: before it is here, in the order of such packets.
  void expect(std::uint32_t id, const Incoming& incoming);

  // Events of the loop. A packet is at the NIC.
  void on_receive(const Event& event);
  // It is at the GPU, behind the NIC or a scale-up link. Returns true for the last one of a message over
  // scale-up links, which is the sender's business.
  bool on_deliver(const Event& event);

  std::uint64_t packets_fingerprint() const { return packets_fingerprint_; }

 private:
  const FabricTransport& of(const ReceiverState& r) const { return transports_[r.transport]; }
  void hear_mark(std::uint32_t id, std::uint32_t packet);
  void accept(std::uint32_t id, std::uint32_t packet);
  void out_of_order(std::uint32_t id, std::uint32_t psn, std::uint32_t packet);
  void accept_any(std::uint32_t id, std::uint32_t packet);
  void came_twice(std::uint32_t id, std::uint32_t psn, std::uint32_t packet);
  std::uint32_t make_reply(std::uint32_t id, PacketKind kind, std::uint32_t cause, std::uint32_t arrived);
  void reply(std::uint32_t id, PacketKind kind, std::uint32_t cause, std::uint32_t arrived) {
    const std::uint32_t packet = make_reply(id, kind, cause, arrived);
    fabric_.enqueue(receivers_[id].back_port, packet);
  }
  void count_arrival(std::uint32_t id, std::uint32_t psn);
  void deliver(std::uint32_t id, std::uint32_t messages, std::uint32_t packet);

  LogicalProcess& set_;
  EventLoop& loop_;
  FabricShard& fabric_;
  TransportState& state_;
  IdealTimes& ideal_times_;
  DelayDivision& delays_;
  NetworkCounters& counts_;
  // Of the state.
  const FabricTransport* transports_;
  ReceiverState* receivers_;
  Outstanding* outstanding_;
  SelectiveReceiver* kept_;
  Arena<Incoming> incoming_;
  std::uint64_t packets_fingerprint_ = 0;
};

}  // namespace netsim
