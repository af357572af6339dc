// ScheduledEndpoint: the Endpoint of a run with a flow scheduler. It stands between the executor and the
// packet network, and exists only where the configuration names a scheduler.
//
// It groups messages into flows, sends them as the scheduler wants, and applies decisions to messages under
// way. Flows of a set are touched by events of the set, or between events. All that concerns several sets
// happens between events, in the order of flow ids, so it does not depend on sets and threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/core/engine.h"
#include "sim/scheduling/flow/flow_ports.h"
#include "sim/scheduling/flow/flow_scheduler.h"
#include "sim/scheduling/flow/flow_summary.h"
#include "sim/scheduling/flow/flow_table.h"
#include "sim/scheduling/job_traffic.h"
#include "sim/scheduling/scheduling_intervals.h"
#include "sim/topology/linked_gpus.h"
#include "sim/transport/endpoint.h"

namespace netsim {

class ScheduledEndpoint final : public Endpoint, public KnowsLinkedGpus, private MessageListener {
 public:
  struct Setup {
    std::string name;                        // kind of the scheduler
    Time delay = 0;                          // time from a decision until it acts
    Time idle = 0;                           // how long a flow without messages is remembered
    std::vector<std::uint32_t> queue_pairs;  // by fabric: queue pairs between two GPUs
    std::vector<std::uint32_t> set_of_gpu;
  };
  // All references must outlive this.
  ScheduledEndpoint(std::unique_ptr<Endpoint> network, std::unique_ptr<FlowScheduler> scheduler,
                    Engine& engine, const Cluster& cluster, Setup setup);

  // Returns the name of a communication of a job (Message::name).
  using NameOfCommunication = std::function<std::string(JobId job, std::uint32_t name)>;
  // Lets the scheduler decide at intervals, if it needs that. Must be called once, before the run.
  void connect(SchedulingIntervals& intervals, NameOfCommunication names);
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
  // Returns a line for each flow that is held, for stall reports.
  std::vector<std::string> waiting(std::size_t limit) const;

  void set_listener(MessageListener* listener) override;
  MessageHandle send(const SendRequest& request) override;
  Bytes cancel(const MessageHandle& message) override;

  // All other functions are those of the network.
  bool aggregates() const override { return network_->aggregates(); }
  std::string objection(const SwitchAggregation& aggregation) const override {
    return network_->objection(aggregation);
  }
  AggregationId add_aggregation(const SwitchAggregation& aggregation) override {
    return network_->add_aggregation(aggregation);
  }
  void begin_anew(GpuId source, JobId job) override { network_->begin_anew(source, job); }
  bool hold(const MessageHandle& message) override { return network_->hold(message); }
  bool release(const MessageHandle& message) override { return network_->release(message); }
  bool set_priority(const MessageHandle& message, std::uint8_t priority) override {
    return network_->set_priority(message, priority);
  }
  bool set_rate(const MessageHandle& message, BitRate rate) override {
    return network_->set_rate(message, rate);
  }
  bool set_path(const MessageHandle& message, std::uint32_t hint) override {
    return network_->set_path(message, hint);
  }
  Bytes left(const MessageHandle& message) const override { return network_->left(message); }
  std::uint32_t path_count(const Message& message) const override { return network_->path_count(message); }
  std::vector<PortId> path_of(const Message& message) const override { return network_->path_of(message); }
  void tell_delays() override { network_->tell_delays(); }
  bool ways_differ() const override { return network_->ways_differ(); }
  Reach reach(GpuId source, GpuId destination) const override { return network_->reach(source, destination); }
  Time delay_inside(GpuId source, GpuId destination) const override {
    return network_->delay_inside(source, destination);
  }
  BitRate direct_rate(GpuId source, GpuId destination) const override {
    return network_->direct_rate(source, destination);
  }
  GpuSite site(GpuId gpu) const override { return network_->site(gpu); }
  std::uint32_t gpu_count() const override { return network_->gpu_count(); }
  std::vector<std::vector<std::uint32_t>> linked_gpus() const override {
    return netsim::linked_gpus(cluster_);
  }

 private:
  // Place of a flow: its set, and its index in the set's table.
  struct FlowPlace {
    std::uint32_t set, index;
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
  void decide(Time now);
  void act(const std::vector<FlowDecisions::Decision>& decisions);
  bool act(const FlowDecisions::Decision& decision, FlowPlace place);
  void find_ports(FlowEntry& flow);

  std::unique_ptr<Endpoint> network_;
  std::unique_ptr<FlowScheduler> scheduler_;
  FlowNeeds needs_;
  Engine& engine_;
  const Cluster& cluster_;
  Setup setup_;
  FlowPorts ports_;
  MessageListener* listener_ = nullptr;
  SchedulingIntervals* intervals_ = nullptr;             // null: nothing is decided at intervals
  std::vector<std::unique_ptr<FlowTable>> tables_;       // by set
  std::unordered_map<std::uint32_t, FlowPlace> places_;  // by FlowId; looked up only, never iterated
  std::uint32_t next_id_ = 0;
  NameOfCommunication names_;
  std::function<JobFacts(JobId)> job_facts_;  // empty, and traffic_ null: the scheduler does not need them
  const JobTraffic* traffic_ = nullptr;
  std::vector<FlowView> views_;  // of the present call of decide()
  Time again_ = kNever;          // time of the next call that the scheduler asked for
  FlowSchedulingSummary counts_;
};

}  // namespace netsim
