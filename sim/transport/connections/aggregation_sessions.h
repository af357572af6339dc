// AggregationSessions: messages through switches that copy and sum, for one logical process. All GPUs of an
// aggregation group inside a host or NVLink domain belong to one logical process (partition.h). Those of a
// tree over a fabric may belong to several, which share its sessions (aggregation_directory.h).
//
// A session serves one communication on an aggregation group while its messages are in flight. It has queue
// pairs into the aggregation group's switch, one of the head or one of each member. A multicast also has one
// from the switch to each member, on which nothing is sent.
//
// So no packet needs to say what it is summed with: the n-th packets of all members belong together. A
// session with nothing in flight may be used by another communication next (aggregation_table.h).
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
// Without a pool of slots the link that has lost a packet sends it again (PortArbiter::repeat_on_link), and
// members take packets in order. A packet that is lost because a link is down ends the run. Messages take
// another tree when one of its links is known to be down.
//
// With a pool of slots (SwitchAggregation::pool) members send lost packets again. Each sum that arrives must
// hold the packet of every member exactly once, which its value tells (PoolWindow::value).
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
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/network/fabric.h"
#include "sim/network/fabric_shard.h"
#include "sim/transport/connections/aggregation_directory.h"
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
        trees_(connections.trees()),
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
  // notes() and add_to() tell about all logical processes, so one of them is asked. notes() returns notes for
  // the user: packets that came again at pools of slots, and memory where it is limited.
  std::vector<std::string> notes() const;
  // Adds the switches that add up.
  void add_to(std::map<NodeId, AggregatingSwitch>& switches) const;

 private:
  using Session = AggregationSession;
  using Key = AggregationKey;

  // Values of a tree that its switches need.
  struct TreeRules {
    std::uint32_t open = 0;   // largest number of open sums, or slots of the pool
    std::uint32_t slots = 0;  // slots of the pool; 0: no pool
    Bytes payload = 0;        // largest payload of a packet
    std::shared_ptr<const SwitchProtocol> protocol = nullptr;  // AggregationPool::protocol
    std::uint32_t kept = 0;                                    // sums that a switch keeps
    // The aggregators of the packets of a best-effort group; null: the group is none.
    const AggregatorIndices* indices = nullptr;
    std::optional<NumberFormat> format = {};  // SwitchAggregation::format
    JobId job = 0;
  };
  // The ways of a tree's members, by member: the ports to the root and back, and how many lead to the root.
  struct TreeWays {
    std::vector<std::vector<PortId>> ports;
    std::vector<std::size_t> heights;
    std::uint32_t busy = 0;  // number of packets of a member that keep its way busy
  };
  // The entries of a tree's members at the switches that add up their packets. `switches` is indexed as the
  // tree's switches.
  struct TreeEntries {
    std::vector<std::uint32_t> gpus, switches;
    std::uint32_t copies = 0;  // of a best-effort group: entry of the results at the root
  };
  // A member below a switch: a GPU, or a switch that adds up.
  struct Below {
    PortId port = kNoId;                // port of the switch that leads to it
    std::uint32_t path = 0;             // index of the step after that port
    std::vector<std::uint32_t> steps;   // these steps instead, where other switches are on the way
    bool gives = false, takes = false;  // whether a GPU in it sends, or receives sums
    std::uint32_t* entry = nullptr;     // its place in TreeEntries
    std::uint32_t keys = 0;             // sum of the keys of the GPUs in it, with a pool
    std::uint64_t workers = 0;          // of a best-effort group: a bit for each worker in it
    // Entry of the group that copies sums to the members of a switch below the root.
    std::uint32_t copies = 0;
  };
  const SwitchAggregation& group(const Key& key) const { return *state_.aggregations[key.aggregation]; }
  AggregationDirectory& directory_of(AggregationUse use) {
    return use == AggregationUse::allreduce ? trees_ : own_;
  }
  std::uint32_t member_of(const Message& message) const;
  static std::uint32_t key_of_member(std::uint32_t member);
  // Returns the path step at which a switch handles packets of this entry (SwitchAggregations).
  static constexpr std::uint32_t step_of(std::uint32_t entry) {
    return make_step(StepKind::route, kAggregationTarget | entry);
  }
  std::uint32_t begin(AggregationDirectory& directory, const Key& key, const Message& message);
  MessageHandle send_on(std::uint32_t session, const SendRequest& request);
  void send_waiting();
  std::uint32_t new_session(AggregationDirectory& directory, const Key& key);
  void connect_multicast(const Key& key, std::uint32_t session, std::uint32_t number);
  void connect_reduction(const Key& key, std::uint32_t session, std::uint32_t number);
  bool connect_tree(const Key& key, std::uint32_t number);
  TreeWays ways_of(const MemberTree& made, const AggregationPool& pool, Bytes full) const;
  static std::vector<PortId> way_by_server(const MemberTree& made, std::uint32_t server);
  void begin_best_effort(JobId job, std::uint32_t number, const MemberTree& made, const BestEffort& rules);
  std::uint32_t own_aggregators(JobId job, const MemberTree& made, std::uint32_t count);
  void set_best_effort_path(const Session& session, const MemberTree& made, std::uint32_t member,
                            const TreeEntries& entries);
  static std::uint64_t worker_bit(const Session& session, std::uint32_t member);
  void use_best_effort(std::uint32_t id, const AggregationPool& pool);
  void note_best_effort(std::vector<std::string>& notes) const;
  std::string best_effort_share() const;
  void best_effort_delivered(std::uint32_t id, std::uint32_t packet);
  void contribution_delivered(Session& session, std::uint32_t packet);
  void server_delivered(Session& session, std::uint32_t packet);
  static void set_members(Session& session, const SwitchAggregation& aggregation,
                          std::span<const GpuId> members);
  TreeEntries connect_switches(std::uint32_t number, const MemberTree& made,
                               const std::vector<std::size_t>& heights, const TreeRules& rules);
  Below connect_switch(std::uint32_t number, const AggregationTree::Switch& one, std::vector<Below> children,
                       const TreeRules& rules);
  std::vector<std::uint32_t> steps_up(const MemberTree& made, std::size_t member,
                                      const TreeEntries& entries) const;
  KeyStore* shared_tables(NodeId node, const TreeRules& rules);
  void note_key_stores(std::vector<std::string>& notes) const;
  bool take_memory(Session& session, const AggregationTree& tree, const TreeRules& rules);
  bool free_memory(NodeId node);
  struct InOrder {
    std::uint32_t packets = 0, messages = 0;
  };
  InOrder in_order(std::uint32_t id, std::uint32_t psn, bool last);
  void check_sum(std::uint32_t id, std::uint32_t packet) const;
  bool take_part(std::uint32_t id, std::uint32_t packet);
  std::uint32_t new_pair(const Key& key, std::uint32_t session, std::uint32_t member, std::uint32_t source,
                         std::uint32_t destination, std::uint32_t number);
  void begin_to_send(std::uint32_t id);
  void tell_ended(const Key& key, std::uint32_t id, bool sends);
  static Session::Open take_copy(Session& session, std::uint32_t member);
  void allreduce_copy_delivered(std::uint32_t id, std::uint32_t packet);
  void copy_delivered(std::uint32_t id, std::uint32_t packet);
  void sum_delivered(std::uint32_t id, std::uint32_t packet);
  void allreduce_sum_delivered(std::uint32_t id, std::uint32_t packet);
  DelayTeller* delays(std::uint32_t id, Bytes bytes, Time start, std::uint32_t packet);

  LogicalProcess& set_;
  FabricShard& fabric_;
  TransportState& state_;
  Connections& connections_;
  AggregationDirectory& trees_;
  AggregationDirectory own_;  // groups inside a host or NVLink domain
  Sender& sender_;
  IdealTimes& ideal_times_;
  DelayDivision& delays_;
  NetworkCounters& counts_;
  EventLoop& loop_;
  std::unordered_map<std::uint32_t, std::uint32_t> sessions_of_head_;  // number of sessions of each head
  // A message for whose tree a switch lacks memory.
  struct Waiting {
    SendRequest request;
    NodeId node = kNoId;  // that switch
  };
  std::deque<Waiting> waiting_;  // in order of send(); only with one logical process
  std::uint64_t waited_ = 0;     // number of such messages so far
  NodeId lacking_ = kNoId;       // switch that lacked memory for the tree that was refused last
  // Counts what parameter servers did. `added` are packets that they added, `sums` what they completed, and
  // `sent` the workers' packets in these sums. `dropped` are packets with data that a server had. There is
  // one logical process then.
  struct BestEffortUse {
    std::uint64_t added = 0, sums = 0, sent = 0, dropped = 0;
    std::map<JobId, std::uint32_t> own;  // by job: first of the aggregators that only it uses
    std::set<JobId> jobs;
    std::uint32_t next_own = 0;  // first aggregator that no job has for itself
  };
  BestEffortUse best_effort_;
};

}  // namespace netsim
