// PacketNetwork: the Endpoint that plays every packet: NICs and queue pairs, ports, links, switches (sections
// `network` and `transport` of the configuration).
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
#include "sim/topology/partition.h"
#include "sim/topology/topology.h"
#include "sim/transport/circuit_control.h"
#include "sim/transport/endpoint.h"

namespace netsim {

// One message on the scale-out fabric, when its last byte is at the destination GPU and the sender knows it.
struct FlowRecord {
  std::uint64_t id = 0;  // hash of (source, destination, class and number of the queue pair, number of the
                         // message there), in order of send(); not of the job
  SendRequest request;
  std::uint32_t queue_pair = 0;  // number within its (source, destination, job, class)
  Time start = 0;                // handed to the queue pair
  Time end = 0;                  // last byte delivered
  Time acknowledged = 0;         // the last acknowledgement is back at the sender; 0: the run ended before
  Time ideal = 0;                // end - start of this message alone in an idle network
};

// A queue pair as it is now, for samples.
struct QueuePairView {
  std::uint32_t source = 0, destination = 0, number = 0;  // GPUs, number among the pairs of these two
  Bytes acknowledged = 0;                                 // payload, since the pair's beginning
  BitRate rate = 0;                                       // that congestion control allows
  bool busy = false;                                      // has unfinished messages, held ones too
  std::uint32_t use = 0;                                  // rises when the id is given to another queue pair
};

struct NetworkCounters {
  std::uint64_t packets = 0;                            // data packets delivered, all link kinds
  std::array<std::uint64_t, kLinkKinds> packet_hops{};  // data packets x links, by LinkKind
  std::uint64_t lost = 0;                               // on links: loss rate, link down
  std::uint64_t no_route = 0;                           // dropped: links that are down left no way on
  std::uint64_t credit_stalls = 0;                      // of ports: a class ran out of credits
  std::uint64_t circuit_changes = 0;                    // of optical switches: to another configuration
  std::uint64_t timeouts = 0;                           // of retransmission, after which packets went again
  Time longest_timeouts = 0;                            // the most that one queue pair waited in timeouts
  // pfc_pauses: of ports; pfc_resumes: those of them that have ended.
  std::uint64_t drops = 0, ecn_marks = 0, cnps = 0, pfc_pauses = 0, pfc_resumes = 0, retransmissions = 0;
  // Messages on the scale-out fabric; started: without those that were cancelled before any of them left.
  std::uint64_t flows_started = 0, flows_done = 0;
  Bytes bytes_delivered = 0;  // payload, scale-out
  Bytes bytes_sent = 0;       // payload accepted by send() and not cancelled, scale-out
  Bytes bytes_cancelled = 0;  // payload accepted by send() that cancel() took back, scale-out
  Bytes max_queue = 0;        // the most that waited at a port of a switch
  Bytes max_host_queue = 0;   // the most that waited at a port of a NIC, a GPU or another part of a host
};

// What a fabric's transport makes of messages.
struct TransportFigures {
  Bytes mtu = 4096;               // payload of a packet
  std::uint32_t queue_pairs = 1;  // between two GPUs, for the collective library's channels
  Time timeout = 0;               // of retransmission
  bool hears_marks = false;       // ECN marks mean something to its congestion control
  bool window = false;            // its own or its reliability's limit of what is in flight
};

using HopCounts = std::array<std::uint64_t, kLinkKinds>;  // by LinkKind

// MessageCost holds the payload and the links of each packet of a message, while all links are up.
struct MessageCost {
  Bytes payload = 0;  // of all packets but the last; 0: the network carries no such message
  // Counts the links of the packet's way. Where chance draws an intermediate for each packet, it counts
  // those of the straight way.
  HopCounts links{};
  // Counts the links of the ways over `detours` intermediates, all of them together.
  HopCounts detour_links{};
  std::uint32_t detours = 0;  // 0: packets make none
  bool always = false;        // they make one always, and not only where queues are shorter that way
};

// How often queue pairs ask for acknowledgements: every so many packets at most.
struct Acknowledging {
  std::optional<std::int64_t> every;  // empty: hosts of different kinds have different ones
  std::string because;                // of the default, in words; "": configured
};

class PacketNetwork : public Endpoint {
 public:
  using FlowObserver = std::function<void(const FlowRecord&)>;
  // `network`, `transport`: sections of the configuration (may be null). The cluster must outlive the
  // network. `partition`: which of the engine's sets a node is of. Handles the packet and queue pair events.
  // Origins 0 .. graph.port_count()-1 are its own.
  static std::unique_ptr<PacketNetwork> create(Engine& engine, const Cluster& cluster,
                                               const Partition& partition, const ConfigNode& network,
                                               const ConfigNode& transport, std::uint64_t seed,
                                               FlowObserver observer);
  // What `network` (kind: packet) and `transport` accept, for --describe and the schema.
  static const ParameterTable& network_parameters();
  static const ParameterTable& transport_parameters();
  // What section `transport` says, or else what congestion control needs, or else what the hosts' NICs do; of
  // the packet fabric of that name, or "": of all that have nothing of their own. ConfigError.
  static Acknowledging acknowledging(const Cluster& cluster, const ConfigNode& transport,
                                     const std::string& fabric = "");

  // By number in Cluster::fabrics, of a packet fabric.
  virtual TransportFigures transport_figures(std::uint32_t fabric) const = 0;
  // Returns the cost of a message that goes through no fan.
  virtual MessageCost message_cost(const SendRequest& request) const = 0;
  // Returns the links that the n-th packets of all members' messages (of a multicast: the head's) cross
  // together until they are where they belong. The fan has no objection().
  virtual MessageCost fan_cost(const SwitchFan& fan, FanUse use) const = 0;
  // Null where the cluster has no optical switches.
  virtual CircuitControl* circuits() = 0;

  virtual NetworkCounters counters() const = 0;
  virtual PortCounters port_counters(PortId port) const = 0;
  // What waits at a port now, as buffers count it.
  virtual Bytes queued(PortId port) const = 0;
  // The queue pairs that there are, by source, destination, class and number. An id stays that of its pair
  // until that is over.
  virtual std::vector<std::uint32_t> queue_pairs() const = 0;
  virtual QueuePairView queue_pair_view(std::uint32_t id) const = 0;
  // For who looks at them now and then: queue pairs that are over are not used again before the next call of
  // forget_ended().
  virtual void keep_ended() = 0;
  virtual void forget_ended() = 0;
  // Tells the observer of the flows that are delivered and not acknowledged, in order of delivery: once,
  // after the run's last event.
  virtual void report_unacknowledged() = 0;
  virtual std::uint64_t packets_fingerprint() const = 0;
  virtual std::uint64_t events_fingerprint() const = 0;
  // Whether ports wait for each other in a circle; the engine is then stopped, and waiting() names them
  // first.
  virtual bool deadlocked() const = 0;
  // By port: those that the fault plan takes down at some time.
  virtual std::vector<bool> failing_ports() const = 0;
  // Steps that all paths take up, former ones that packets may be on included: a measure of memory.
  virtual std::size_t path_steps() const = 0;
  // Queue pairs with unfinished messages and paused ports with waiting bytes, one line each.
  virtual std::vector<std::string> waiting(std::size_t limit) const = 0;
  // Things the user should know ("headroom below the formula ...").
  virtual std::vector<std::string> notes() const = 0;
};

}  // namespace netsim
