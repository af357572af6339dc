// Connections: queue pairs come into being, get their paths, other ones when routes change, and are used
// again when nothing of them is left. Makes the plain data of both halves; what runs belongs to Sender and
// Receiver.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "sim/core/random.h"
#include "sim/network/fabric.h"
#include "sim/topology/topology.h"
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
  // Of each set, in order: before the first queue pair.
  void add_sender(Sender& sender);

  // The queue pair that the message travels on, made where there is none. Runs in the source's set.
  // ConfigError where the message's class is none of the network's.
  std::uint32_t queue_pair(const SendRequest& request);

  // See Endpoint.
  void begin_anew(std::uint32_t source, std::uint32_t job);

  // One of those that join the ends of a fan, new: what is sent on it takes these steps; `idle`: the ports
  // from its source to its destination. A number that no other one of these two GPUs and this job has. Runs
  // in the source's set.
  struct FanPair {
    std::uint32_t source = 0, destination = 0, job = 0, number = 0;  // as of QueuePairIdentity
    std::vector<PortId> idle;
    Combining combining = {};
    // Of an aggregation tree: the port of the NIC (kNoId: the first one), its headers, class and transport,
    // and the packets that may be on their way.
    PortId wire = kNoId;
    std::uint32_t header = 0, window = UINT32_MAX;
    std::uint8_t traffic_class = 0, transport = 0;
  };
  std::uint32_t fan_pair(const FanPair& pair);
  // It may be sent on: it begins with these steps, and then its packets are delivered to `delivered_as`.
  void set_fan_path(std::uint32_t id, std::vector<std::uint32_t> steps, std::uint32_t delivered_as);
  // Steps behind a port of another path.
  std::uint32_t add_path(const std::vector<std::uint32_t>& steps) { return fabric_.add_path(steps); }
  const Fabric& fabric() const { return fabric_; }
  // The index of the first of the steps from its source to its destination, `idle` and then its delivery.
  std::uint32_t path_of(std::uint32_t id) const { return state_.records[id].idle.first; }

  // The others run between events.

  // See PacketNetwork::message_cost and Endpoint::ways_differ.
  MessageCost cost(const SendRequest& request) const;
  bool ways_differ() const;
  // Those that there are, by source, destination, class, number and job. Their numbers tell nothing: with
  // several threads it is chance who comes first.
  std::vector<std::uint32_t> queue_pairs() const;
  // A queue pair's message is over at both ends: if it is its only one, it is used again once nothing is left
  // of it on its way.
  void message_ended(std::uint32_t id);
  // See PacketNetwork.
  void keep_ended() { keeps_ended_ = true; }
  void forget_ended() { forgotten_ = ended_.size(); }
  // Digests of the events of all queue pairs, those that are over included.
  std::uint64_t events_digest() const;

 private:
  // Paths that a queue pair had before routes changed: packets may be on them still.
  struct FormerPaths {
    struct Path {
      PathPlace place;
      bool free = false;  // none are: the queue pair is another one since
    };
    std::vector<Path> data, back;
    void set_free();
  };

  // The NICs of a queue pair, and the ports between them and its GPUs.
  using Ends = Cluster::NicEnds;

  Sender& sender_of(std::uint32_t gpu) { return *senders_[state_.set_of_gpu[gpu]]; }

  // Number and class of a message's queue pair between its two GPUs.
  struct Lane {
    std::uint32_t number = 0;
    std::uint8_t traffic_class = 0;
    std::uint64_t packed() const { return static_cast<std::uint64_t>(traffic_class) << 32 | number; }
  };
  Lane lane_of(const SendRequest& request) const;
  std::uint64_t flow_of(const SendRequest& request, const Lane& lane) const;
  void count_detours(MessageCost& cost, const Ends& ends) const;
  std::uint32_t new_pair(const SendRequest& request, const Lane& lane);
  std::uint32_t take_number(std::uint32_t set);
  void make_halves(std::uint32_t id);
  void connect_scale_up(std::uint32_t id);
  void connect_scale_out(std::uint32_t id, std::uint8_t traffic_class);

  Ends ends(std::uint32_t id) const;
  std::vector<std::uint32_t> data_steps(std::uint32_t id, const Ends& ends, const Routes& routes) const;
  std::vector<std::uint32_t> ack_steps(std::uint32_t id, const Ends& ends, const Routes& routes) const;
  Time idle_round_trip(std::uint32_t id, const Ends& ends) const;
  bool route(std::uint32_t id, const Routes& routes, bool in_use);
  // Keeps the queue pair's present way in TransportState::former_ways.
  void note_former_way(std::uint32_t id);
  void route_data(std::uint32_t id, const Ends& ends, std::vector<std::uint32_t> steps, bool in_use);
  // Where switches lead packets, and as which flow.
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
  std::vector<Sender*> senders_;  // by set
  const Routes* routes_;
  std::vector<bool> down_at_start_;
  std::unique_ptr<Routes> live_routes_;  // while other links are down, or dark, than at the start
  // Per source GPU, sorted: destination << 40 | class << 32 | number, job << 32 | queue pair.
  std::vector<std::vector<std::pair<std::uint64_t, std::uint64_t>>> known_;
  std::vector<FormerPaths> former_paths_;         // by queue pair; grows only when routes change
  std::vector<std::vector<std::uint32_t>> free_;  // by the source's set: those that may be used again
  // Queue pairs that are over but for what may still be on its way: from ended_first_ on, oldest first.
  std::vector<std::uint32_t> ended_;
  std::size_t ended_first_ = 0;
  bool keeps_ended_ = false;  // those from forgotten_ on are not used again yet
  std::size_t forgotten_ = 0;
  std::uint64_t ended_digest_ = 0;  // of those whose numbers may be used again
};

}  // namespace netsim
