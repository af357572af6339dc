// PacketNetwork: the Endpoint that simulates every packet, with NICs and queue pairs, ports, links and
// switches. It is configured by the sections `network` and `transport`.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/engine.h"
#include "sim/core/parameters.h"
#include "sim/network/counters.h"
#include "sim/network/faults.h"
#include "sim/topology/partition.h"
#include "sim/topology/topology.h"
#include "sim/transport/circuit_control.h"
#include "sim/transport/endpoint.h"
#include "sim/transport/network_counters.h"

namespace netsim {

// FlowRecord: a message on the scale-out fabric whose last byte is at the destination GPU and acknowledged to
// the sender. At the end of a run that was cut, also one that is delivered and not yet acknowledged.
struct FlowRecord {
  // Hash of source, destination, class and number of the queue pair, and the message's number there in order
  // of send(). It does not depend on the job.
  std::uint64_t id = 0;
  Message message;
  Bytes bytes = 0;               // bytes carried: those of the message, or fewer after cancel()
  std::uint32_t queue_pair = 0;  // number within its (source, destination, job, class)
  Time start = 0;                // time of send()
  Time end = 0;                  // time of delivery of the last byte
  Time acknowledged = 0;  // when the last acknowledgement was back at the sender; 0: the run ended before
  Time ideal = 0;         // end - start of this message alone in an idle network; 0: unknown
};

// State of a queue pair at present, for samples.
struct QueuePairView {
  GpuId source, destination;
  std::uint32_t number = 0;  // number among the queue pairs of the two GPUs
  Bytes acknowledged = 0;    // payload bytes since the queue pair's beginning
  BitRate rate = 0;          // rate that congestion control allows
  bool busy = false;         // whether it has unfinished messages, held ones included
  std::uint32_t use = 0;     // rises when the id is given to another queue pair
  JobId job = 0;
};

// Properties of a fabric's transport that users of messages need.
struct TransportFigures {
  Bytes mtu = 4096;               // payload bytes of a packet
  std::uint32_t queue_pairs = 1;  // number between two GPUs, for the collective library's channels
  Time timeout = 0;               // retransmission timeout
  bool reacts_to_marks = false;   // whether its congestion control reacts to ECN marks
  bool window = false;            // whether congestion control or reliability limits what is in flight
  bool priorities = false;  // whether NICs or switches may serve queue pairs by priority of their messages
};

using HopCounts = std::array<std::uint64_t, kLinkKinds>;  // by LinkKind

// MessageCost holds the payload and the links of each packet of a message, while all links are up.
struct MessageCost {
  Bytes payload = 0;  // bytes in each packet but the last; 0: the network carries no such message
  // Number of links on the packet's way. If each packet has a random intermediate, it counts the direct way.
  HopCounts links{};
  // Number of links on the ways over `detours` intermediates, all ways together.
  HopCounts detour_links{};
  std::uint32_t detours = 0;  // number of intermediates counted; 0: packets make no detours
  bool always = false;        // every packet makes a detour, not only where queues are shorter that way
};

// How often queue pairs request acknowledgements: at least once in so many packets.
struct Acknowledging {
  std::optional<std::int64_t> every;  // empty: hosts of different kinds have different values
  std::string because;                // reason of the default, in words; "": configured
};

class PacketNetwork : public Endpoint {
 public:
  using FlowObserver = std::function<void(const FlowRecord&)>;
  // Creates the network from the sections `network` and `transport` (may be null). The cluster must outlive
  // it. `partition` assigns nodes to the engine's logical processes. The network handles the events of
  // packets and queue pairs.
  //
  // Its origins are 0 .. graph.port_count()-1.
  static std::unique_ptr<PacketNetwork> create(Engine& engine, const Cluster& cluster,
                                               const Partition& partition, const ConfigNode& network,
                                               const ConfigNode& transport, std::uint64_t seed,
                                               FlowObserver observer);
  // Return the keys that `network` (kind: packet) and `transport` accept, for --describe and the schema.
  static const ParameterTable& network_parameters();
  static const ParameterTable& transport_parameters();
  // Returns the acknowledgement setting of a packet fabric. It comes from section `transport`, else from what
  // congestion control needs, else from the hosts' NICs. `fabric` is its name, or "" for all fabrics without
  // a section of their own. Throws ConfigError.
  static Acknowledging acknowledging(const Cluster& cluster, const ConfigNode& transport,
                                     const std::string& fabric = "");

  // Returns the figures of a packet fabric, given its number in Cluster::fabrics.
  virtual TransportFigures transport_figures(std::uint32_t fabric) const = 0;
  // Returns the cost of a message that uses no aggregation group.
  virtual MessageCost message_cost(const Message& message) const = 0;
  // Returns the number of links that the n-th packets of all members' messages cross together. For a
  // multicast it is the head's packet. objection() must be empty for the aggregation group.
  virtual MessageCost aggregation_cost(const SwitchAggregation& aggregation, AggregationUse use) const = 0;
  // Returns null if the cluster has no optical switches.
  virtual CircuitControl* circuits() = 0;

  virtual NetworkCounters counters() const = 0;
  // Returns a number that grows with each packet that arrives for the first time, and each new sum.
  virtual std::uint64_t progress() const { return counters().packets; }
  // Returns how often the members of aggregation groups with pools of slots have sent their packets again
  // since their last sum, the least of all. 0: there is none, or another queue pair waits for a timeout.
  virtual std::uint64_t fruitless_rounds() const { return 0; }
  // Returns the switches that have added up packets or refused a tree, in order of their nodes.
  virtual std::vector<AggregatingSwitch> aggregating_switches() const { return {}; }
  virtual PortCounters port_counters(PortId port) const = 0;
  // Returns the bytes that wait at a port now, as buffers count them.
  virtual Bytes queued(PortId port) const = 0;
  // Returns the existing queue pairs, sorted by source, destination, class and number. An id belongs to its
  // queue pair until that is over.
  virtual std::vector<std::uint32_t> queue_pairs() const = 0;
  virtual QueuePairView queue_pair_view(std::uint32_t id) const = 0;
  // keep_ended() is for callers that sample queue pairs. Ids of queue pairs that are over are then not reused
  // before the next call of forget_ended().
  virtual void keep_ended() = 0;
  virtual void forget_ended() = 0;
  // Reports to the observer the flows that are delivered but not acknowledged, in order of delivery. Called
  // once, after the run's last event.
  virtual void report_unacknowledged() = 0;
  virtual std::uint64_t packets_fingerprint() const = 0;
  virtual std::uint64_t events_fingerprint() const = 0;
  // Returns whether ports wait for each other in a cycle. The engine is then stopped, and waiting() lists
  // these ports first.
  virtual bool deadlocked() const = 0;
  // Returns whether the port's link is known to be down by a fault, which is detected some time after it.
  virtual bool is_down(PortId /*port*/) const { return false; }
  // Returns whether the port belongs to a circuit that is down.
  virtual bool is_circuit_down(PortId /*port*/) const { return false; }
  // Returns, by port, whether the fault schedule takes it down at any time.
  virtual std::vector<bool> failing_ports() const = 0;
  // Returns the faults of links that are configured.
  virtual const FaultSchedule& fault_schedule() const = 0;
  // Returns the steps of all paths, former ones that packets may be on included. It is a measure of memory.
  virtual std::size_t path_steps() const = 0;
  // Returns one line for each queue pair with unfinished messages and each paused port with waiting bytes.
  virtual std::vector<std::string> waiting(std::size_t limit) const = 0;
  // Returns notes for the user, for example that headroom is below the formula.
  virtual std::vector<std::string> notes() const = 0;
};

}  // namespace netsim
