// AggregationSessions: messages through switches that copy and sum, for one logical process. All GPUs of an
// aggregation group belong to one logical process (partition.h).
//
// A session serves one communication on an aggregation group while its messages are in flight. It has queue
// pairs into the aggregation group's switch, one of the head or one of each member. A multicast also has one
// from the switch to each member, on which nothing is sent.
//
// So no packet needs to say what it is summed with: the n-th packets of all members belong together. A
// session with nothing in flight may be used by another communication next.
//
// An aggregation group with `allreduce` is an all-reduce tree over a fabric
// (sim/topology/aggregation_tree.h). Each member has one queue pair into it, on which the sums come back. Its
// packets have the headers of the fabric's transport and no acknowledgements: a sum that comes back
// acknowledges its packet.
//
// A member has a limited number of packets in flight (network.switch.aggregation_outstanding). So the
// addends, sums and copies that wait in switches are limited too, and a link that is held back holds back all
// members.
//
// Nothing is retransmitted: a packet that a link loses ends the run (PortArbiter::fail_aggregation). A
// session with nothing in flight gets another tree when one of its links is known to be down.
//
// The data that a member sends up and gets back is a flow from it to itself. Its ideal time leaves out the
// latency of summing.
//
// If the sum goes to one member only, the others get packets of headers back, which open their windows. If
// one member sends and all receive, nothing is summed, and its own copy opens its window.
#pragma once

#include <cstdint>
#include <deque>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "sim/network/fabric.h"
#include "sim/network/fabric_shard.h"
#include "sim/transport/connections/aggregation_places.h"
#include "sim/transport/connections/connections.h"
#include "sim/transport/connections/delay_division.h"
#include "sim/transport/sender/sender.h"
#include "sim/transport/transport_state.h"

namespace netsim {

struct AggregationTree;

class AggregationSessions {
 public:
  // `sender`, `delays` and `counts` belong to the same logical process.
  AggregationSessions(LogicalProcess& set, FabricShard& fabric, TransportState& state,
                      Connections& connections, Sender& sender, IdealTimes& ideal_times,
                      DelayDivision& delays, NetworkCounters& counts)
      : set_(set),
        fabric_(fabric),
        state_(state),
        connections_(connections),
        sender_(sender),
        ideal_times_(ideal_times),
        delays_(delays),
        counts_(counts),
        loop_(set.loop()) {}
  AggregationSessions(const AggregationSessions&) = delete;
  AggregationSessions& operator=(const AggregationSessions&) = delete;

  // Sends a message through its aggregation group, to which objection() must be empty.
  MessageHandle send(const SendRequest& request);
  // Called when the last packet of a message, or any packet of a tree, has arrived on a queue pair of an
  // aggregation group. The packet was released just now.
  void delivered(std::uint32_t id, std::uint32_t packet);

 private:
  // Key of messages that share a session.
  struct Key {
    AggregationId aggregation;
    AggregationUse use = AggregationUse::none;
    std::uint8_t traffic_class = 0;  // only with AggregationUse::allreduce
    JobId job = 0;
    std::uint64_t communication = 0, tag = 0;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  struct Session {
    Key key;
    std::vector<std::uint32_t> in;   // queue pairs into the switch: of the head, or by member
    std::vector<PortId> ports;       // of a tree: the ports on the way up
    std::uint64_t looked_at = 0;     // of a tree: TransportState::route_changes when no link of it was down
    std::vector<std::uint32_t> out;  // of a multicast: queue pairs by member
    std::uint64_t on_their_way = 0;  // messages in flight
    std::vector<GpuId> gpus;         // of a tree: the GPU of each queue pair into it
    // For a tree: whether the GPU sends, and whether it receives the sums.
    std::vector<std::uint8_t> gives, takes;
    std::uint32_t header = 1;  // of a tree: bytes of a packet without data
    // For a multicast, and a tree with GPUs that send nothing: `copies` counts the messages delivered to
    // each member. `open` holds messages that some members have not received yet, the first of which is
    // number first_open.
    struct Open {
      Message message;
      Time start = 0;
      std::uint32_t left = 0;
    };
    std::vector<std::uint64_t> copies;
    std::deque<Open> open;
    std::uint64_t first_open = 0;
  };
  // The session and member of a queue pair.
  struct Place {
    std::uint32_t session = 0, member = 0;
  };

  const SwitchAggregation& group(const Key& key) const { return *state_.aggregations[key.aggregation]; }
  std::uint32_t session_of(const Key& key);
  std::uint32_t new_session(const Key& key, std::uint32_t number);
  void connect_multicast(std::uint32_t session, std::uint32_t number);
  void connect_reduction(std::uint32_t session, std::uint32_t number);
  void connect_tree(std::uint32_t session);
  std::vector<std::uint32_t> connect_switches(std::uint32_t number, const AggregationTree& tree,
                                              const std::vector<std::size_t>& heights, std::uint32_t open);
  bool is_whole(Session& session) const;
  std::uint32_t new_pair(std::uint32_t session, std::uint32_t member, std::uint32_t source,
                         std::uint32_t destination, std::uint32_t number);
  void allreduce_copy_delivered(Session& session, std::uint32_t member, std::uint32_t id,
                                std::uint32_t packet);
  void copy_delivered(Session& session, std::uint32_t member, std::uint32_t id, std::uint32_t packet);
  void sum_delivered(Session& session, std::uint32_t member, std::uint32_t id, std::uint32_t packet);
  void allreduce_sum_delivered(std::uint32_t id, std::uint32_t packet);
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
  std::deque<Session> sessions_;
  std::unordered_map<Key, std::uint32_t, KeyHash> session_of_;  // never iterated
  // Sessions of an aggregation group, use, class and job, the oldest first. The key has no communication and
  // tag.
  std::unordered_map<Key, std::vector<std::uint32_t>, KeyHash> sessions_of_aggregation_;
  std::unordered_map<std::uint32_t, Place> places_;                    // by queue pair
  std::unordered_map<std::uint32_t, std::uint32_t> sessions_of_head_;  // number of sessions of each head
  std::uint32_t trees_ = 0;                                            // number of trees created so far
};

}  // namespace netsim
