// TransportState: what the sets of atoms share of the transport: values that do not change, and arrays by
// queue pair. Private to the packet network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/core/reserved_array.h"
#include "sim/topology/topology.h"
#include "sim/transport/queue_pair.h"
#include "sim/transport/receiver/selective_receiver.h"
#include "sim/transport/sender/selective_sender.h"
#include "sim/transport/transport_parameters.h"

namespace netsim {

struct TransportState {
  // `node`: the section `transport`.
  TransportState(const Cluster& cluster_in, const ConfigNode& node);

  const Cluster& cluster;
  TransportParameters parameters;
  Framing framing;
  ReliabilityPlan reliability;
  std::unique_ptr<CongestionControl> congestion_control;
  CongestionNeeds needs;
  std::vector<std::uint8_t> ask_shift;  // by group of hosts: see SenderState
  bool echo_in_acks = false, stamps = false;
  MessageListener* listener = nullptr;
  bool observed = false;  // flows are written into the journal
  bool traced = false;    // deliveries are told with their delays: last packets write traces
  std::uint32_t delivered_reader = 0, acknowledged_reader = 0, vanished_reader = 0;
  std::vector<std::uint32_t> set_of_gpu;
  // By queue pair.
  ReservedArray<SenderState> senders;
  ReservedArray<ReceiverState> receivers;
  ReservedArray<QueuePairRecord> records;
  ReservedArray<Outstanding> outstanding;  // for those that are counted
  // For selective repeat only.
  ReservedArray<SelectiveSender> selective_senders;
  ReservedArray<SelectiveReceiver> selective_receivers;
  std::size_t state_stride;
  ReservedArray<std::byte> congestion;  // state_stride bytes each
  PathConstants& path_constants(std::size_t id) {
    return reinterpret_cast<PathConstants&>(congestion[id * state_stride]);
  }
  const PathConstants& path_constants(std::size_t id) const {
    return reinterpret_cast<const PathConstants&>(congestion[id * state_stride]);
  }
  // What congestion control keeps of a queue pair, behind the constants.
  std::byte* congestion_state(std::size_t id) {
    return &congestion[id * state_stride] + sizeof(PathConstants);
  }
  // By port; the numbers are those of Injectors of the port's set.
  std::vector<std::uint32_t> injector_of_port, gate_of_port;
};

}  // namespace netsim
