// FlowRecords: the messages on the scale-out fabric as a whole. A flow is over when both its ends are
// finished. The logical processes write the ends into the journal; here they are paired, between events.
//
// Both ends of a queue pair finish messages in the same order: by the psns of their last packets.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/arena.h"
#include "sim/core/engine.h"
#include "sim/transport/connections/connections.h"
#include "sim/transport/flow_ends.h"
#include "sim/transport/packet_network.h"
#include "sim/transport/transport_state.h"

namespace netsim {

class FlowRecords {
 public:
  // Registers as a reader of the engine's journals. Without an observer nothing is written.
  FlowRecords(Engine& engine, TransportState& state, Connections& connections,
              PacketNetwork::FlowObserver observer);
  FlowRecords(const FlowRecords&) = delete;
  FlowRecords& operator=(const FlowRecords&) = delete;

  // Implements PacketNetwork::report_unacknowledged().
  void report_unacknowledged();

 private:
  // A flow of which one end is known to be finished. It is in a list of its queue pair, oldest first, in
  // which the same end of all flows is known.
  struct HalfFlow {
    FlowDelivered delivered;
    Time acknowledged = 0;
    std::uint32_t next = kNone;
  };
  struct HalfFlows {
    std::uint32_t oldest = kNone, newest = kNone;
    bool delivered = false;  // which end is known
  };

  void flow_delivered(const FlowDelivered& flow);
  void flow_acknowledged(const FlowAcknowledged& flow);
  void flow_vanished(const FlowVanished& flow) { connections_.message_ended(flow.queue_pair); }
  void wait_for_other_end(std::uint32_t queue_pair, bool delivered, const HalfFlow& half);
  bool take_half(std::uint32_t queue_pair, bool delivered, HalfFlow& half);
  void end_flow(const FlowDelivered& flow, Time acknowledged);
  FlowRecord record_of(const FlowDelivered& flow, Time acknowledged) const;

  const TransportState& state_;
  Connections& connections_;
  PacketNetwork::FlowObserver observer_;
  JournalOf<FlowDelivered, FlowRecords> delivered_{*this, &FlowRecords::flow_delivered};
  JournalOf<FlowAcknowledged, FlowRecords> acknowledged_{*this, &FlowRecords::flow_acknowledged};
  JournalOf<FlowVanished, FlowRecords> vanished_{*this, &FlowRecords::flow_vanished};
  Arena<HalfFlow> half_flows_;
  std::vector<HalfFlows> half_flows_of_;  // by queue pair
};

}  // namespace netsim
