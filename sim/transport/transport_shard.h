// TransportShard: the transport of one logical process, made of a receiver and a sender. The sender's half of
// a queue pair belongs to the logical process of its source, the receiver's half to that of its destination.
// They communicate only by packets and notices. Private to the packet network.
#pragma once

#include "sim/core/logical_process.h"
#include "sim/network/fabric_shard.h"
#include "sim/transport/connections/aggregation_sessions.h"
#include "sim/transport/connections/connections.h"
#include "sim/transport/connections/delay_division.h"
#include "sim/transport/receiver/receiver.h"
#include "sim/transport/sender/sender.h"

namespace netsim {

class TransportShard {
 public:
  TransportShard(LogicalProcess& set, FabricShard& fabric, TransportState& state, Connections& connections,
                 const Fabric& whole_fabric);
  TransportShard(const TransportShard&) = delete;
  TransportShard& operator=(const TransportShard&) = delete;

  Sender& sender() { return sender_; }
  const Sender& sender() const { return sender_; }
  const Receiver& receiver() const { return receiver_; }
  AggregationSessions& aggregations() { return aggregations_; }
  // Returns the counters of this logical process only.
  const NetworkCounters& counts() const { return counts_; }

 private:
  static constexpr std::size_t kCacheLine = 64;

  void on_deliver(const Event& event) {
    if (!receiver_.on_deliver(event)) return;
    const auto packet = static_cast<std::uint32_t>(event.argument);
    if (state_.senders[event.target].aggregation) return aggregations_.delivered(event.target, packet);
    sender_.delivered_over_scale_up(event.target, packet);
  }

  TransportState& state_;
  NetworkCounters counts_;
  IdealTimes ideal_times_;
  DelayDivision delays_;
  Receiver receiver_;
  Sender sender_;
  AggregationSessions aggregations_;
  // Addresses of the arrays' pointers for EventLoop::set_prefetch.
  const void* senders_base_;
  const void* second_lines_base_;  // second cache lines of the senders
  const void* receivers_base_;
};

}  // namespace netsim
