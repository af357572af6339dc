// ScheduledEndpoint: the Endpoint of a run with a flow scheduler. It stands between the executor and the
// packet network, and exists only where the configuration names a scheduler.
//
// It groups messages into flows, sends them as the scheduler wants, and applies decisions to messages under
// way. Flows of a set are touched by events of the set, or between events. All that concerns several sets
// happens between events, in the order of flow ids, so it does not depend on sets and threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/core/engine.h"
#include "sim/core/ids.h"
#include "sim/scheduling/flow/flow_ports.h"
#include "sim/scheduling/flow/flow_scheduler.h"
#include "sim/scheduling/flow/flow_summary.h"
#include "sim/scheduling/flow/flow_table.h"
#include "sim/scheduling/job_traffic.h"
#include "sim/scheduling/scheduling_intervals.h"
#include "sim/scheduling/view_history.h"
#include "sim/scheduling/view_keeper.h"
#include "sim/transport/forwarding_endpoint.h"

namespace netsim {

class ScheduledEndpoint final : public ForwardingEndpoint, private MessageListener {
 public:
  struct Setup {
    std::string name;                        // kind of the scheduler
    Time delay = 0;                          // time from a decision until it acts
    Time idle = 0;                           // how long a flow without messages is remembered
    std::vector<std::uint32_t> queue_pairs;  // by fabric: queue pairs between two GPUs
    std::vector<std::uint32_t> set_of_gpu;
    ViewFields views = ViewFields::all();  // fields that the scheduler sees
  };
  // All references must outlive this.
  ScheduledEndpoint(std::unique_ptr<Endpoint> network, std::unique_ptr<FlowScheduler> scheduler,
                    Engine& engine, const Cluster& cluster, Setup setup);

  // Returns the name of a communication of a job (Message::name).
  using NameOfCommunication = std::function<std::string(JobId job, std::uint32_t name)>;
  // Lets the scheduler decide at intervals, if it needs that. Must be called once, before the run.
  // `keeper` must outlive this; with null all fields are of the present, and there are no views of other
  // layers.
  void connect(SchedulingIntervals& intervals, NameOfCommunication names, ViewKeeper* keeper = nullptr);
  // Returns whether the scheduler needs set_jobs().
  bool needs_jobs() const { return needs_.jobs; }
  // Sets what the scheduler can ask about jobs. Must be called before the run; `traffic` must outlive this.
  void set_jobs(std::function<JobFacts(JobId)> facts, const JobTraffic& traffic) {
    job_facts_ = std::move(facts);
    traffic_ = &traffic;
  }
  const std::string& name() const { return setup_.name; }
  // Returns whether the scheduler decides at intervals.
  bool is_central() const { return needs_.central; }
  FlowSchedulingSummary summary() const;
  // Returns what the scheduler wants the user to know after the run.
  std::vector<std::string> notes() const { return scheduler_->notes(); }
  // Returns a line for each flow that is held, for stall reports.
  std::vector<std::string> waiting(std::size_t limit) const;

  void set_listener(MessageListener* listener) override;
  MessageHandle send(const SendRequest& request) override;
  Bytes cancel(const MessageHandle& message) override;

 private:
  // Place of a flow: its set, and its index in the set's table.
  struct FlowPlace {
    std::uint32_t set, index;
  };
  // A flow as it was when sizes were taken.
  struct SeenFlow {
    FlowView view;
    Message first;
    std::vector<PortId> ports;
  };
  // TreeKey: an all-reduce tree of a communication. Decisions act on all flows into it alike.
  struct TreeKey {
    JobId job;
    std::uint64_t communication = 0;
    AggregationId tree;
    auto operator<=>(const TreeKey&) const = default;
  };
  class Facts;

  void message_delivered(const Delivery& delivery) override { listener_->message_delivered(delivery); }
  void message_sent(const SendCompletion& completion) override;
  void message_left(const SendRequest& request) override;

  bool is_scheduled(const Message& message) const;
  std::uint32_t lane_of(const Message& message) const;
  Time now_of(std::uint32_t set) const { return engine_.set(set).loop().now(); }
  void ask(std::uint32_t set);
  bool concerns(const FlowTable::News& news) const;
  void at_interval(Time now, bool idle);
  void forget_idle(Time now);
  void number_flows();
  void view_flows();
  void join_trees();
  void leave_tree(const FlowEntry& flow);
  void note_news(Time now);
  bool take_visible(Time now);
  void keep_flows(Time now, Time time);
  std::span<const SeenFlow> seen_flows(Time now) const;
  void view_seen_flows(Time now);
  void hide(FlowView& flow, Time deadlines_known) const;
  const Message& first_message(const FlowView& flow) const;
  void decide(Time now);
  void act(const std::vector<FlowDecisions::Decision>& decisions);
  bool act_on_all(const FlowDecisions::Decision& decision, FlowPlace place);
  bool act(const FlowDecisions::Decision& decision, FlowPlace place);
  FlowEntry& entry(FlowPlace place) { return tables_[place.set]->entry(place.index); }
  static TreeKey tree_of(const FlowEntry& flow) {
    return {flow.view.job, flow.view.communication, flow.first.aggregation};
  }
  void find_ports(FlowEntry& flow);

  std::unique_ptr<FlowScheduler> scheduler_;
  FlowNeeds needs_;
  Engine& engine_;
  Setup setup_;
  FlowPorts ports_;
  MessageListener* listener_ = nullptr;
  SchedulingIntervals* intervals_ = nullptr;             // null: nothing is decided at intervals
  std::vector<std::unique_ptr<FlowTable>> tables_;       // by set
  std::unordered_map<std::uint32_t, FlowPlace> places_;  // by FlowId; looked up only, never iterated
  std::map<TreeKey, std::vector<FlowId>> trees_;         // the flows into each tree, by rising id
  std::uint32_t next_id_ = 0;
  NameOfCommunication names_;
  std::function<JobFacts(JobId)> job_facts_;  // empty, and traffic_ null: the scheduler does not need them
  const JobTraffic* traffic_ = nullptr;
  std::vector<FlowView> views_;  // of the present call of decide()
  Time again_ = kNever;          // time of the next call that the scheduler asked for
  FlowSchedulingSummary counts_;
  ViewKeeper* keeper_ = nullptr;
  std::optional<ViewHistory<std::vector<SeenFlow>>> seen_;  // nothing: decisions see the flows of the present
  std::set<Time> visible_;  // times at which news become visible, with an age of sizes or deadlines
};

}  // namespace netsim
