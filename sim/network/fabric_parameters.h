// Parameters of the sections `network` and `network.switch` of the configuration.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "sim/core/config.h"
#include "sim/core/parameters.h"
#include "sim/core/units.h"
#include "sim/topology/graph.h"

namespace netsim {

// Flow control of a switch; see fabric.h.
enum class FlowControl : std::uint8_t { pfc, credits, none };
// Reaction to routes on which lossless packets can wait for each other in a cycle.
enum class DeadlockCheck : std::uint8_t { error, note, off };
// The moment at which a switch forwards a packet: when all of it has arrived, or after its header.
enum class Switching : std::uint8_t { store_and_forward, cut_through };

// The section `network.switch`. fabric_parameters.cpp describes each key.
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
  ConfigNode aggregation_switches;
  ConfigNode aggregation_formats;
  Time aggregation_latency = 0;
  Bytes aggregation_payload = 0;
  std::int64_t aggregation_outstanding = 0;
  BitRate aggregation_rate = 0;
  ConfigNode aggregation_rates;
  Bytes aggregation_memory = 0;
  std::int64_t aggregation_groups = 0;
  std::optional<std::int64_t> aggregators;
  std::optional<std::int64_t> aggregation_pairs;
  std::int64_t aggregation_back_pairs = 0;
};

// Treatment of packets on optical circuits that are taken down; see circuit_switching.h.
enum class CircuitChangeMode : std::uint8_t { drain, lose };

// The section `network.circuits`.
struct CircuitParameters {
  // The default holds for switches with mirrors: milliseconds (TPU v4: Jouppi et al., ISCA 2023, section 2).
  Time reconfiguration = 10 * kMillisecond;
  Time guard = 0;
  CircuitChangeMode law = CircuitChangeMode::drain;
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

// One of several packet fabrics, whose switches may have rules of their own.
struct FabricScope {
  NodeId first_switch = 0, end_switch = 0;  // the switches are nodes first_switch to end_switch - 1
  const ConfigNode* section = nullptr;      // entry of `network.fabrics`; null if there is none
  Bytes largest_packet = 0;  // payload and headers of the largest packet of its transport, bytes
  bool telemetry = false;    // whether its congestion control needs INT
};

// Rules of the switches and ports of a fabric.
struct SwitchRules {
  SwitchParameters switches;
  std::map<int, SwitchParameters>
      tiers;         // by tier (0 is next to the hosts): `switches` with the tier's changes
  ConfigNode where;  // the section that the rules come from, used in messages
  Bytes largest_packet = 0;
  bool telemetry = true;       // whether INT is written, if it is written at all
  std::uint32_t lossless = 0;  // bit per priority, set by build_classes()

  bool credits() const { return switches.flow_control == FlowControl::credits; }
  // Returns whether packets may wait for each other without limit.
  bool holds_back() const { return lossless != 0 || credits(); }
};
// Returns the rules from `network.switch` and `network.tiers`. `where` is the section, used in messages.
// Throws ConfigError.
SwitchRules common_rules(const FabricParameters& parameters, const ConfigNode& where, const Graph& graph);
// Returns the common rules with the changes that the scope's section makes. Throws ConfigError.
SwitchRules fabric_rules(const FabricParameters& parameters, const SwitchRules& common,
                         const FabricScope& scope, const Graph& graph);

}  // namespace netsim
