// NetworkCounters: what the whole packet network has transmitted, marked and lost. network_counters()
// describes each of them once: the sums, summary.json and the fingerprint follow from it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "sim/core/units.h"
#include "sim/network/aggregation/aggregation_counters.h"
#include "sim/network/counters.h"
#include "sim/topology/graph.h"

namespace netsim {

struct NetworkCounters {
  std::uint64_t packets = 0;                            // data packets delivered, over all kinds of links
  std::array<std::uint64_t, kLinkKinds> packet_hops{};  // data packets x links, by LinkKind
  std::uint64_t lost = 0;                               // packets lost on links, by loss rate or while down
  std::uint64_t no_route = 0;         // packets dropped because links that are down left no route
  std::uint64_t credit_stalls = 0;    // how often a class of a port ran out of credits
  std::uint64_t circuit_changes = 0;  // completed changes of optical switches' configurations
  std::uint64_t timeouts = 0;         // retransmission timeouts, after which packets were sent again
  Time longest_timeouts = 0;          // largest total time that a queue pair waited in timeouts
  // pfc_pauses counts the pauses that ports received, and pfc_resumes those of them that have ended.
  std::uint64_t drops = 0, ecn_marks = 0, cnps = 0, pfc_pauses = 0, pfc_resumes = 0, retransmissions = 0;
  // Messages on the scale-out fabric. flows_started leaves out those that were cancelled before any of them
  // left.
  std::uint64_t flows_started = 0, flows_done = 0;
  Bytes bytes_delivered = 0;  // payload on the scale-out fabric
  Bytes bytes_sent = 0;       // payload accepted by send() and not cancelled, scale-out
  Bytes bytes_cancelled = 0;  // payload accepted by send() that cancel() took back, scale-out
  Bytes max_queue = 0;        // largest number of bytes that waited at a port of a switch
  Bytes max_host_queue = 0;   // the same for a port of a NIC, a GPU or another part of a host
};

// AggregatingSwitch: what a switch has added up, and what aggregation trees took of it.
struct AggregatingSwitch {
  NodeId node = kNoId;
  AggregationCounters counters;
  Bytes memory = 0;         // largest memory of all trees together; NVSwitches have no trees
  std::uint32_t trees = 0;  // largest number of trees at once
  // Memory at present: that of all trees, and that of trees with messages in flight; and the number of trees.
  Bytes taken = 0, used = 0;
  std::uint32_t trees_now = 0;
  std::uint64_t waited = 0;       // messages that waited because the switch had no memory for their tree
  std::uint32_t aggregators = 0;  // largest number of occupied aggregators of best-effort groups
};

// NetworkCounterInfo: the description of one counter, apart from packet_hops.
struct NetworkCounterInfo {
  const char* key;  // in `network` of summary.json, with the unit where it is not a count; null: not there
  CounterField<NetworkCounters> field;
  CounterSum sum = CounterSum::total;
  // The counter of ports that it is the sum of; empty: it is not counted at ports.
  std::optional<CounterField<PortCounters>> of_ports = std::nullopt;
  enum class Ports : std::uint8_t { all, switches, hosts } ports = Ports::all;
  std::uint8_t hashed = 0;  // place in the `results` fingerprint, from 1; 0: not hashed
};
// Number of places of NetworkCounterInfo::hashed.
inline constexpr std::size_t kHashedNetworkCounters = 12;

// Returns the description of all counters, in the order of the keys of summary.json.
std::span<const NetworkCounterInfo> network_counters();

}  // namespace netsim
