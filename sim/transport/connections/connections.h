// Connections: creates queue pairs, gives them paths, reroutes them when routes change, and reuses them when
// nothing of them is left. It sets up the plain data of both halves. Sender and Receiver run them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "sim/core/random.h"
#include "sim/network/fabric.h"
#include "sim/topology/topology.h"
#include "sim/transport/connections/aggregation_directory.h"
#include "sim/transport/endpoint.h"
#include "sim/transport/packet_network.h"
#include "sim/transport/sender/sender.h"
#include "sim/transport/transport_state.h"

namespace netsim {

class Connections {
 public:
  Connections(TransportState& state, Fabric& fabric);
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;
  // Adds the senders of all logical processes, in their order. Must be called before the first queue pair.
  void add_sender(Sender& sender);

  // Returns the queue pair of the message, creating it if there is none. Runs in the source's logical
  // process. Throws ConfigError if the message's class is not one of the network's.
  std::uint32_t queue_pair(const Message& message);

  // Returns the queue pair's path for messages with this path hint (Sender::hinted_paths()), making it if
  // there is none. Returns kNone where hints have no effect. Runs in the source's logical process.
  std::uint32_t hinted_path(std::uint32_t id, std::uint32_t hint);
  // Implement Endpoint::path_count(), path_of() and passages().
  std::uint32_t path_count(const Message& message) const;
  std::vector<PortId> path_of(const Message& message) const;
  std::vector<PortPassage> passages(const Message& message, Bytes payload) const;
  // Returns whether a message had a path hint that routing does not take.
  bool ignored_hints() const { return ignored_hints_.load(std::memory_order_relaxed); }
  // Returns whether a message with a priority had a queue pair of its own where nothing compares those.
  bool ignored_priorities() const { return ignored_priorities_.load(std::memory_order_relaxed); }

  // Implements Endpoint::begin_anew().
  void begin_anew(GpuId source, JobId job);

  // Parameters of a new queue pair between the ends of an aggregation group. `idle` holds the ports from its
  // source to its destination. `number` must be unique among the queue pairs of these GPUs and this job.
  struct AggregationPair {
    GpuId source, destination;
    JobId job = 0;
    std::uint32_t number = 0;  // as in QueuePairIdentity
    std::vector<PortId> idle;
    InNetworkCapability combining = {};
    // With an all-reduce tree: the NIC's port (kNoId: the first port), headers in bytes, packets that may be
    // in flight, class and transport.
    PortId wire = kNoId;
    std::uint32_t header = 0, window = UINT32_MAX;
    std::uint8_t traffic_class = 0, transport = 0;
  };
  // Returns ReceiverState::key of a queue pair between the ends of an aggregation group.
  static std::uint64_t aggregation_key(GpuId source, GpuId destination, std::uint32_t number) {
    return hash_combine(static_cast<std::uint64_t>(source) << 32 | destination, ~std::uint64_t{number});
  }
  // Creates the queue pair, except for what begin_aggregation_pair() does. Any thread may call it.
  std::uint32_t aggregation_pair(const AggregationPair& pair);
  // Completes a queue pair with a path, before its first message. Runs in the source's logical process.
  void begin_aggregation_pair(std::uint32_t id);
  // Gives the queue pair its path, by which messages are sent. It begins with these steps, and its
  // packets are then delivered to queue pair `delivered_as`.
  void set_aggregation_path(std::uint32_t id, std::vector<std::uint32_t> steps, std::uint32_t delivered_as);
  // Adds steps that follow a port of another path.
  std::uint32_t add_path(const std::vector<std::uint32_t>& steps) { return fabric_.add_path(steps); }
  const Fabric& fabric() const { return fabric_; }
  // Returns the sessions of aggregation trees.
  AggregationDirectory& trees() { return trees_; }
  const AggregationDirectory& trees() const { return trees_; }
  // Returns the index of the first step from the queue pair's source to its destination: `idle`, then
  // delivery.
  std::uint32_t path_of(std::uint32_t id) const { return state_.records[id].idle.first; }

  // The functions below run between events.

  // Implement PacketNetwork::message_cost() and Endpoint::ways_differ().
  MessageCost cost(const Message& message) const;
  bool ways_differ() const;
  // Returns the existing queue pairs, sorted by source, destination, class, number and job. Their ids carry
  // no meaning, because with several threads their order is random.
  std::vector<std::uint32_t> queue_pairs() const;
  // Called when a message of the queue pair is over at both ends. If it was the queue pair's only one, the id
  // is reused once nothing of it is in flight.
  void message_ended(std::uint32_t id);
  // Implement PacketNetwork.
  void keep_ended() { keeps_ended_ = true; }
  void forget_ended() { forgotten_ = ended_.size(); }
  // Returns the digests of the events of all queue pairs, those that are over included.
  std::uint64_t events_digest() const;

 private:
  // Paths that a queue pair had before routes changed. Packets may still be on them.
  struct FormerPaths {
    struct Path {
      PathPlace place;
      bool free = false;  // no packet is on it: the id belongs to another queue pair since
    };
    std::vector<Path> data, back;
    void set_free();
  };

  // The NICs of a queue pair, and the ports between them and its GPUs.
  using Ends = Cluster::NicEnds;

  Sender& sender_of(GpuId gpu) { return *senders_[state_.set_of_gpu[gpu]]; }

  // Number and class of a message's queue pair between its two GPUs.
  struct Lane {
    std::uint32_t number = 0;
    std::uint8_t traffic_class = 0;
    std::uint64_t packed() const { return static_cast<std::uint64_t>(traffic_class) << 32 | number; }
  };
  Lane lane_of(const Message& message) const;
  std::uint64_t flow_of(const Message& message, const Lane& lane) const;
  void count_detours(MessageCost& cost, const Ends& ends) const;
  std::uint32_t new_pair(const Message& message, const Lane& lane);
  std::uint32_t take_number(std::uint32_t set);
  std::uint32_t new_number();
  void make_halves(std::uint32_t id);
  void connect_scale_up(std::uint32_t id);
  void connect_scale_out(std::uint32_t id, std::uint8_t traffic_class);

  Ends ends(std::uint32_t id) const;
  std::vector<std::uint32_t> data_steps(std::uint32_t id, const Ends& ends, const Routes& routes,
                                        std::uint32_t hint = kNoPathHint) const;
  std::vector<std::uint32_t> whole_path(std::uint32_t id, const Ends& ends,
                                        std::vector<std::uint32_t> steps) const;
  std::vector<std::uint32_t> arrival_steps(std::uint32_t id, const Ends& ends,
                                           std::vector<std::uint32_t>& steps) const;
  bool takes_hints() const { return fabric_.routing().takes_path_hints(); }
  void route_hinted(std::uint32_t id, const Ends& ends, const Routes& routes);
  std::vector<std::uint32_t> ack_steps(std::uint32_t id, const Ends& ends, const Routes& routes) const;
  Time idle_round_trip(std::uint32_t id, const Ends& ends) const;
  bool route(std::uint32_t id, const Routes& routes, bool in_use);
  // Adds the queue pair's present way to TransportState::former_ways.
  void note_former_way(std::uint32_t id);
  void route_data(std::uint32_t id, const Ends& ends, std::vector<std::uint32_t> steps, bool in_use);
  // Destination and flow of packets that switches route.
  struct Toward {
    NodeId nic;
    std::uint64_t flow;
  };
  std::uint64_t back_flow(std::uint32_t id) const { return hash_combine(state_.receivers[id].key, 1); }
  void put_routed_path(PathPlace& place, std::vector<std::uint32_t> steps, const Toward& toward,
                       const std::vector<std::uint32_t>& last, std::vector<FormerPaths::Path>* former);
  FormerPaths& former_paths(std::uint32_t id);
  bool begins_with(const PathPlace& place, const std::vector<std::uint32_t>& steps) const;
  bool keep_path(PathPlace& place, const std::vector<std::uint32_t>& steps,
                 std::vector<FormerPaths::Path>* former) const;
  void put_path(PathPlace& place, const std::vector<std::uint32_t>& steps,
                std::vector<FormerPaths::Path>* former);
  void routes_changed();

  void use_again(std::uint32_t id);
  std::uint64_t digest(std::uint32_t id) const;

  const Cluster& cluster_;
  TransportState& state_;
  Fabric& fabric_;
  std::vector<Sender*> senders_;  // by logical process
  const Routes* routes_;
  std::vector<bool> down_at_start_;
  std::unique_ptr<Routes> live_routes_;  // while other links or circuits are down than at the start
  // By source GPU, sorted pairs: destination << 40
  //
  // class << 32
  //
  // number, and job << 32
  //
  // queue pair.
  std::vector<std::vector<std::pair<std::uint64_t, std::uint64_t>>> known_;
  std::atomic<bool> ignored_hints_ = false, ignored_priorities_ = false;
  std::vector<FormerPaths> former_paths_;         // by queue pair; grows only when routes change
  std::vector<std::vector<std::uint32_t>> free_;  // by the source's logical process: ids to be reused
  // Queue pairs that are over except for what may still be in flight, oldest first, from ended_first_ on.
  std::vector<std::uint32_t> ended_;
  std::size_t ended_first_ = 0;
  bool keeps_ended_ = false;  // ids from forgotten_ on are not reused yet
  std::size_t forgotten_ = 0;
  AggregationDirectory trees_;
  std::uint64_t ended_digest_ = 0;  // of queue pairs whose ids were released for reuse
};

}  // namespace netsim
