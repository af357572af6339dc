// FanLanes: messages through switches that copy and add up, of one set of atoms (all that a fan joins is in
// one set: partition.h). A lane is what one communication has of a fan while its messages are on their way:
// queue pairs into the fan's switch, one of the head or one of each member, and for a multicast one out of it
// to each member, which nothing is sent on. So what the packets of a lane are added to needs to be said by no
// packet: the n-th of each member belong together. A lane on which nothing is on its way may be another
// communication's next.
//
// A fan that is turned is an aggregation tree over a fabric (sim/topology/aggregation_tree.h): one queue pair
// of each member into it, on which the sums come back. Their packets have the headers of the fabric's
// transport and no acknowledgements of their own: a sum that is back tells that the packet has arrived. A
// member has at most so many packets on their way (network.switch.aggregation_outstanding), so what waits for
// others in switches, as an addend, a sum or a copy, is bounded, and a link that is held back holds back
// all members. Nothing is sent again: a packet that a link loses ends the run (PortArbiter::lose_of_fan). A
// lane on which nothing is on its way gets another tree when a link of its own is known to be down. What a
// member sends up and gets back is a flow from it to itself, whose ideal time is that without the latency of
// adding up. Where the sum goes to one member only, the others get packets of headers back, which open their
// windows. Where one member sends and all get it, there is nothing to add up, and its own copy opens its
// window.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "sim/network/fabric.h"
#include "sim/network/fabric_shard.h"
#include "sim/transport/connections/connections.h"
#include "sim/transport/connections/delay_division.h"
#include "sim/transport/sender/sender.h"
#include "sim/transport/transport_state.h"

namespace netsim {

struct AggregationTree;

class FanLanes {
 public:
  // `sender`, `delays`, `counts`: of the same set.
  FanLanes(LogicalProcess& set, FabricShard& fabric, TransportState& state, Connections& connections,
           Sender& sender, IdealTimes& ideal_times, DelayDivision& delays, NetworkCounters& counts)
      : set_(set),
        fabric_(fabric),
        state_(state),
        connections_(connections),
        sender_(sender),
        ideal_times_(ideal_times),
        delays_(delays),
        counts_(counts),
        loop_(set.loop()) {}
  FanLanes(const FanLanes&) = delete;
  FanLanes& operator=(const FanLanes&) = delete;

  // See Endpoint: `request.fan` is one that has no objection.
  void send(const SendRequest& request);
  // The last packet of a message, or of a tree any packet, has come on a queue pair of a fan and was released
  // just now.
  void delivered(std::uint32_t id, std::uint32_t packet);

 private:
  // Of messages that share a lane.
  struct Key {
    const SwitchFan* fan = nullptr;
    FanUse use = FanUse::none;
    std::uint8_t traffic_class = 0;  // of those that are turned
    std::uint32_t job = 0;
    std::uint64_t communication = 0, tag = 0;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  struct Lane {
    Key key;
    std::vector<std::uint32_t> in;    // queue pairs into the switch: of the head, or by member
    std::vector<PortId> ports;        // of a tree: those that it goes up by
    std::uint64_t looked_at = 0;      // of a tree: TransportState::route_changes when it was whole
    std::vector<std::uint32_t> out;   // of a multicast: by member
    std::uint64_t on_their_way = 0;   // messages
    std::vector<std::uint32_t> gpus;  // of a tree: by queue pair into it, who is there
    // Of a tree: whether the GPU sends, or gets the sums.
    std::vector<std::uint8_t> gives, takes;
    std::uint32_t header = 1;  // of a tree: bytes of a packet without data
    // Of a multicast, and of a tree with GPUs that send nothing: copies that each member has, and messages
    // that some members still lack, the first of which is number first_open.
    struct Open {
      SendRequest request;
      Time start = 0;
      std::uint32_t left = 0;
    };
    std::vector<std::uint64_t> copies;
    std::deque<Open> open;
    std::uint64_t first_open = 0;
  };
  // Where a queue pair is.
  struct Place {
    std::uint32_t lane = 0, member = 0;
  };

  std::uint32_t lane_of(const Key& key);
  std::uint32_t new_lane(const Key& key, std::uint32_t number);
  void connect_multicast(std::uint32_t lane, std::uint32_t number);
  void connect_reduction(std::uint32_t lane, std::uint32_t number);
  void connect_tree(std::uint32_t lane);
  std::vector<std::uint32_t> connect_switches(std::uint32_t number, const AggregationTree& tree,
                                              const std::vector<std::size_t>& heights, std::uint32_t open);
  bool is_whole(Lane& lane) const;
  std::uint32_t new_pair(std::uint32_t lane, std::uint32_t member, std::uint32_t source,
                         std::uint32_t destination, std::uint32_t number);
  void turned_copy_delivered(Lane& lane, std::uint32_t member, std::uint32_t id, std::uint32_t packet);
  void copy_delivered(Lane& lane, std::uint32_t member, std::uint32_t id, std::uint32_t packet);
  void sum_delivered(Lane& lane, std::uint32_t member, std::uint32_t id, std::uint32_t packet);
  void sum_turned(std::uint32_t id, std::uint32_t packet);
  DelayTeller* delays(std::uint32_t id, Bytes bytes, Time start, std::uint32_t packet);

  LogicalProcess& set_;
  FabricShard& fabric_;
  TransportState& state_;
  Connections& connections_;
  Sender& sender_;
  IdealTimes& ideal_times_;
  DelayDivision& delays_;
  NetworkCounters& counts_;
  EventLoop& loop_;
  std::deque<Lane> lanes_;
  std::unordered_map<Key, std::uint32_t, KeyHash> lane_of_;  // looked up only
  // Lanes of a fan, use and job, the oldest first: by the key without communication and tag.
  std::unordered_map<Key, std::vector<std::uint32_t>, KeyHash> lanes_of_fan_;
  std::unordered_map<std::uint32_t, Place> places_;                 // by queue pair
  std::unordered_map<std::uint32_t, std::uint32_t> lanes_of_head_;  // how many there are
  std::uint32_t trees_ = 0;                                         // how many there have been
};

// The port by which a GPU goes to the switch that joins it with the others of a fan; kNoId: it has no such
// port for all of them. The way back is the same link.
PortId port_into_fan(const Cluster& cluster, std::uint32_t gpu, const SwitchFan& fan);
// Whether any switch of the cluster's fabrics adds up.
bool aggregates(const Cluster& cluster, const Fabric& fabric);
// Why the cluster's switches cannot do what the fan asks for, in words; empty: they can.
std::string objection(const Cluster& cluster, const Fabric& fabric, const SwitchFan& fan);
// See PacketNetwork.
MessageCost fan_cost(const TransportState& state, const Fabric& fabric, const SwitchFan& fan, FanUse use);

}  // namespace netsim
