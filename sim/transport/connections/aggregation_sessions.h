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
// Nothing is retransmitted without a pool of slots: a packet that a link loses ends the run
// (PortArbiter::fail_aggregation). A session with nothing in flight gets another tree when one of its links
// is known to be down.
//
// With a pool of slots (SwitchAggregation::pool) members send lost packets again. Each sum that arrives must
// hold the packet of every member exactly once, which its value tells (SlotWindow::value).
//
// The data that a member sends up and gets back is a flow from it to itself. Its ideal time leaves out the
// latency of summing.
//
// If the sum goes to one member only, the others get packets of headers back, which open their windows. If
// one member sends and all receive, nothing is summed, and its own copy opens its window.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "sim/network/fabric.h"
#include "sim/network/fabric_shard.h"
#include "sim/transport/connections/aggregation_memory.h"
#include "sim/transport/connections/aggregation_places.h"
#include "sim/transport/connections/connections.h"
#include "sim/transport/connections/delay_division.h"
#include "sim/transport/sender/sender.h"
#include "sim/transport/transport_state.h"

namespace netsim {

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
  // Returns the number of messages that wait for memory of switches.
  std::size_t waiting() const { return waiting_.size(); }
  // Returns notes for the user: packets that came again at pools of slots, and memory where it is limited.
  std::vector<std::string> notes() const;
  // Adds this logical process's part to the switches that add up.
  void add_to(std::map<NodeId, AggregatingSwitch>& switches) const;

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
    std::uint32_t keys = 0;    // of a tree with a pool of slots: sum of the keys of all members
    // Where unfinished sums leave switches: the sum of what has come, by member and slot.
    std::vector<std::uint32_t> parts;
    std::vector<AggregationMemory::Share> memory;  // of a tree: what it takes of the memory of its switches
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

  // Queue pairs of aggregation groups have numbers above all channels. A session has 2 numbers, one for each
  // direction at the switch; a tree has 1.
  static constexpr std::uint32_t kBeyondChannels = 1U << 31;

  // Values of a tree that its switches need.
  struct TreeRules {
    std::uint32_t open = 0;   // largest number of open sums, or slots of the pool
    std::uint32_t slots = 0;  // slots of the pool; 0: no pool
    Bytes payload = 0;        // largest payload of a packet
    std::shared_ptr<const SwitchProtocol> protocol = nullptr;  // AggregationPool::protocol
    std::uint32_t kept = 0;                                    // sums that a switch keeps
  };
  // The entries of a tree's members at the switches that add up their packets. `switches` is indexed as the
  // tree's switches.
  struct TreeEntries {
    std::vector<std::uint32_t> gpus, switches;
  };
  // A member below a switch: a GPU, or a switch that adds up.
  struct Below {
    PortId port = kNoId;                // port of the switch that leads to it
    std::uint32_t path = 0;             // index of the step after that port
    std::vector<std::uint32_t> steps;   // these steps instead, where other switches are on the way
    bool gives = false, takes = false;  // whether a GPU in it sends, or receives sums
    std::uint32_t* entry = nullptr;     // its place in TreeEntries
    std::uint32_t keys = 0;             // sum of the keys of the GPUs in it, with a pool
    // Entry of the group that copies sums to the members of a switch below the root.
    std::uint32_t copies = 0;
  };
  const SwitchAggregation& group(const Key& key) const { return *state_.aggregations[key.aggregation]; }
  static Key key_of(const Message& message);
  // Returns the path step at which a switch handles packets of this entry (SwitchAggregations).
  static constexpr std::uint32_t step_of(std::uint32_t entry) {
    return make_step(StepKind::route, kAggregationTarget | entry);
  }
  MessageHandle send(Session& session, const SendRequest& request);
  void send_waiting();
  std::uint32_t session_of(const Key& key);
  std::uint32_t new_session(const Key& key, std::uint32_t number);
  void connect_multicast(std::uint32_t session, std::uint32_t number);
  void connect_reduction(std::uint32_t session, std::uint32_t number);
  bool connect_tree(std::uint32_t number);
  static void set_members(Session& session, const SwitchAggregation& aggregation,
                          std::span<const GpuId> members);
  TreeEntries connect_switches(std::uint32_t number, const MemberTree& made,
                               const std::vector<std::size_t>& heights, const TreeRules& rules);
  Below connect_switch(std::uint32_t number, const AggregationTree::Switch& one, std::vector<Below> children,
                       const TreeRules& rules);
  std::vector<std::uint32_t> steps_up(const MemberTree& made, std::size_t member,
                                      const TreeEntries& entries) const;
  bool take_memory(Session& session, const AggregationTree& tree, const TreeRules& rules);
  bool free_memory(NodeId node);
  void check_sum(const Session& session, std::uint32_t packet) const;
  bool take_part(Session& session, std::uint32_t member, std::uint32_t packet);
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
  AggregationMemory memory_;
  // A message for whose tree a switch lacks memory.
  struct Waiting {
    SendRequest request;
    NodeId node = kNoId;  // that switch
  };
  std::deque<Waiting> waiting_;  // in order of send()
  std::uint64_t waited_ = 0;     // number of such messages so far
  NodeId lacking_ = kNoId;       // switch that lacked memory for the tree that was refused last
  // Keys of pools' switches that are given and act on other trees only.
  bool pool_has_payload_ = false, pool_has_outstanding_ = false;
};

}  // namespace netsim
