// The sections `network` and `network.switch` of the configuration.
#pragma once

#include <cstdint>
#include <map>

#include "sim/core/config.h"
#include "sim/core/parameters.h"
#include "sim/core/units.h"
#include "sim/topology/graph.h"

namespace netsim {

// How switches hold their senders back: see fabric.h.
enum class FlowControl : std::uint8_t { pfc, credits, none };
// What becomes of routes on which lossless packets can come to wait for each other in a circle.
enum class DeadlockCheck : std::uint8_t { error, note, off };
// When a switch passes a packet on.
enum class Switching : std::uint8_t { store_and_forward, cut_through };

// The section `network.switch`; what each says stands in fabric_parameters.cpp.
struct SwitchParameters {
  Bytes buffer = 0;
  double alpha = 0.125;
  Bytes reserve = 4096;
  Bytes resume_offset = 3072;
  FlowControl flow_control = FlowControl::pfc;
  Bytes headroom = 0;
  Time pfc_response = 0;
  Bytes pfc_frame = 64;
  Bytes credit_buffer = 0;
  std::int64_t classes = 1;
  ConfigNode lossless;
  ConfigNode scheduler;
  ConfigNode marker;
  ConfigNode routing;
  Switching forwarding = Switching::store_and_forward;
  Bytes header = 64;
  Time latency = 0;
  std::int64_t queue_limit = 0;
  bool aggregation = false;
  Time aggregation_latency = 0;
  Bytes aggregation_payload = 0;
  std::int64_t aggregation_outstanding = 0;
};

// What becomes of packets on optical circuits that go: see circuit_switching.h.
enum class CircuitLaw : std::uint8_t { drain, lose };

// The section `network.circuits`.
struct CircuitParameters {
  // Of switches with mirrors: milliseconds (TPU v4: Jouppi et al., ISCA 2023, section 2).
  Time reconfiguration = 10 * kMillisecond;
  Time guard = 0;
  CircuitLaw law = CircuitLaw::drain;
  Time rotation = 0;
  bool stagger = false;
  ConfigNode schedule;
  Time request_latency = 1 * kMicrosecond;
};

// The section `network`.
struct FabricParameters {
  SwitchParameters switches;
  CircuitParameters circuits;
  ConfigNode tiers;
  ConfigNode fabrics;
  ConfigNode faults;
  Time detection_delay = 100 * kMicrosecond;
  DeadlockCheck deadlock_check = DeadlockCheck::error;
  Time transmission_resolution = 0;
};

const Parameters<FabricParameters>& fabric_parameters();

// One of several packet fabrics, as far as its switches may work otherwise than others'.
struct FabricScope {
  NodeId first_switch = 0, end_switch = 0;  // the nodes from the one up to before the other
  const ConfigNode* section = nullptr;      // of `network.fabrics`; null: there is none
  Bytes largest_packet = 0;                 // payload and headers of the largest one that its transport makes
  bool telemetry = false;                   // its congestion control wants INT
};

// What holds at the switches and ports of a fabric.
struct SwitchRules {
  SwitchParameters switches;
  std::map<int, SwitchParameters> tiers;  // by tier (0: next to the hosts): `switches` and what differs there
  ConfigNode where;                       // the section that says so, for messages
  Bytes largest_packet = 0;
  bool telemetry = true;       // where INT is written at all
  std::uint32_t lossless = 0;  // bit per priority: build_classes()

  bool credits() const { return switches.flow_control == FlowControl::credits; }
  // Packets may wait for each other without end.
  bool holds_back() const { return lossless != 0 || credits(); }
};
// Of `network.switch`, `where`, and `network.tiers`. ConfigError.
SwitchRules common_rules(const FabricParameters& parameters, const ConfigNode& where, const Graph& graph);
// The same with what the scope's section says otherwise.
SwitchRules fabric_rules(const FabricParameters& parameters, const SwitchRules& common,
                         const FabricScope& scope, const Graph& graph);

}  // namespace netsim
