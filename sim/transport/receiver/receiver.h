// Receiver: the receiving halves of the queue pairs of one logical process: order, replies and delivery. It
// replies as packets request. It knows only what the sender has told it about a message.
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

// Incoming: the data that the receiver has about a message, from the moment its last packet was made until
// delivery. Messages of a queue pair end in the order in which their last packets were made, whatever the
// order of their beginnings.
struct Incoming {
  Message message;
  Bytes bytes = 0;  // bytes carried: those of the message, or fewer after cancel()
  Time start = 0;
  std::uint32_t number = 0;    // within its queue pair, in order of send()
  std::uint32_t next = kNone;  // next message of the queue pair, in the order of their ends
};

class Receiver {
 public:
  // `delays` and `counts` belong to the logical process.
  Receiver(LogicalProcess& set, FabricShard& fabric, TransportState& state, IdealTimes& ideal_times,
           DelayDivision& delays, NetworkCounters& counts);
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  // Announces a message that ends with a packet in flight. Must be called before that packet arrives, in the
  // order of such packets.
  void expect(std::uint32_t id, const Incoming& incoming);

  // Handles a packet that arrives at the NIC.
  void on_receive(const Event& event);
  // Handles a packet that arrives at the GPU, behind the NIC or a scale-up link. Returns true for the last
  // packet of a message over scale-up links, which the sender must handle.
  bool on_deliver(const Event& event);

  // Handles the end of a time for which a reliability with ReliabilityPlan::own holds a reply back.
  void on_reply_timer(const Event& event);

  std::uint64_t packets_fingerprint() const { return packets_fingerprint_; }

 private:
  const FabricTransport& of(const ReceiverState& r) const { return transports_[r.transport]; }
  void on_ecn_mark(std::uint32_t id, std::uint32_t packet);
  void accept(std::uint32_t id, std::uint32_t packet);
  void out_of_order(std::uint32_t id, std::uint32_t psn, std::uint32_t packet);
  void accept_any(std::uint32_t id, std::uint32_t packet);
  void came_twice(std::uint32_t id, std::uint32_t psn, std::uint32_t packet);
  void accept_own(std::uint32_t id, std::uint32_t packet);
  ReceiverContext reliability_context(std::uint32_t id);
  void answer(std::uint32_t id, const ReceiverContext& context, const Reply& reply, std::uint32_t cause);
  void pass_on(std::uint32_t id, std::uint32_t messages, std::uint32_t packet);
  std::uint32_t make_reply(std::uint32_t id, PacketKind kind, std::uint32_t cause, std::uint32_t word);
  void reply(std::uint32_t id, PacketKind kind, std::uint32_t cause, std::uint32_t word) {
    const std::uint32_t packet = make_reply(id, kind, cause, word);
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
  // Copies of addresses in the state.
  const FabricTransport* transports_;
  ReceiverState* receivers_;
  Outstanding* outstanding_;
  SelectiveReceiver* kept_;
  Arena<Incoming> incoming_;
  std::uint64_t packets_fingerprint_ = 0;
};

}  // namespace netsim
