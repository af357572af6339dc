// PacketNetworkImpl: a TransportShard for each logical process on a Fabric, with what concerns all of them:
// connections, flow records and reports. Private to sim/transport.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/engine.h"
#include "sim/core/ids.h"
#include "sim/network/fabric.h"
#include "sim/topology/linked_gpus.h"
#include "sim/transport/connections/connections.h"
#include "sim/transport/connections/flow_records.h"
#include "sim/transport/packet_network.h"
#include "sim/transport/transport_shard.h"
#include "sim/transport/transport_state.h"

namespace netsim {

class PacketNetworkImpl final : public PacketNetwork, public KnowsLinkedGpus {
 public:
  PacketNetworkImpl(Engine& engine, const Cluster& cluster, const Partition& partition,
                    const ConfigNode& network, const ConfigNode& transport_node, std::uint64_t seed,
                    FlowObserver observer);

  void set_listener(MessageListener* listener) override { state_.listener = listener; }
  MessageHandle send(const SendRequest& request) override;
  std::string lacks_format(NumberFormat format) const override { return fabric_.lacks_format(format); }
  bool aggregates() const override { return netsim::aggregates(cluster_, fabric_); }
  std::string objection(const SwitchAggregation& aggregation) const override {
    return netsim::objection(state_, fabric_, aggregation);
  }
  MulticastSwitch multicast_switch(const SwitchAggregation& aggregation) const override {
    return netsim::multicast_switch(cluster_, aggregation);
  }
  bool limits_multicast() const override { return limits_multicast_groups(cluster_.graph); }
  AggregationId add_aggregation(const SwitchAggregation& aggregation) override {
    return state_.add_aggregation(aggregation);
  }
  bool hold(const MessageHandle& message) override {
    return !message.is_none() && sender_of(message.source).hold(message);
  }
  bool release(const MessageHandle& message) override {
    return !message.is_none() && sender_of(message.source).release(message);
  }
  bool set_priority(const MessageHandle& message, std::uint8_t priority) override {
    return !message.is_none() && sender_of(message.source).set_priority(message, priority);
  }
  Bytes cancel(const MessageHandle& message) override {
    return message.is_none() ? 0 : sender_of(message.source).cancel(message);
  }
  bool set_rate(const MessageHandle& message, BitRate rate) override {
    return !message.is_none() && sender_of(message.source).set_rate(message, rate);
  }
  bool set_path(const MessageHandle& message, std::uint32_t path_hint) override;
  Bytes left(const MessageHandle& message) const override {
    return message.is_none() ? 0 : sender_of(message.source).left(message);
  }
  std::uint32_t path_count(const Message& message) const override {
    return message.aggregation.is_none() ? connections_.path_count(message) : 1;
  }
  std::vector<PortId> path_of(const Message& message) const override;
  std::vector<PortPassage> passages(const Message& message, Bytes payload) const override {
    if (!message.aggregation.is_none()) return {};
    return connections_.passages(message, payload);
  }
  void tell_delays() override {
    state_.traced = true;
    fabric_.enable_traces();
  }
  Reach reach(GpuId source, GpuId destination) const override {
    if (source == destination) return Reach::self;
    const HostRouteKind way = cluster_.way(source, destination);
    if (way == HostRouteKind::packets) return Reach::scale_out;
    return way == HostRouteKind::pcie ? Reach::pcie : Reach::scale_up;
  }
  GpuSite site(GpuId gpu) const override {
    const std::vector<NodeId> nics = cluster_.nearest_nics(gpu);
    return {cluster_.gpus[gpu].host,          nics,
            cluster_.local_rate(gpu),         nics.empty() ? 0 : cluster_.nic_rate(nics.front()),
            cluster_.group_of(gpu).gpu_model, cluster_.is_beside_cpu(gpu),
            cluster_.links_to_nic(gpu),       cluster_.group_of(gpu).compute_capability};
  }
  Time delay_inside(GpuId source, GpuId destination) const override {
    return cluster_.delay_inside(source, destination);
  }
  std::vector<std::vector<GpuId>> linked_gpus() const override { return netsim::linked_gpus(cluster_); }
  BitRate direct_rate(GpuId source, GpuId destination) const override {
    return cluster_.direct_rate(source, destination);
  }
  std::uint32_t gpu_count() const override { return static_cast<std::uint32_t>(cluster_.gpus.size()); }
  TransportFigures transport_figures(std::uint32_t fabric) const override;
  MessageCost message_cost(const Message& message) const override { return connections_.cost(message); }
  MessageCost aggregation_cost(const SwitchAggregation& aggregation, AggregationUse use) const override {
    return netsim::aggregation_cost(state_, fabric_, aggregation, use);
  }
  void begin_anew(GpuId source, JobId job) override { connections_.begin_anew(source, job); }
  bool ways_differ() const override { return connections_.ways_differ(); }
  CircuitControl* circuits() override {
    return cluster_.graph.optical_switches().empty() ? nullptr : &circuits_;
  }
  NetworkCounters counters() const override;
  std::uint64_t progress() const override;
  std::uint64_t fruitless_rounds() const override;
  PortCounters port_counters(PortId port) const override { return fabric_.counters(port); }
  Bytes queued(PortId port) const override { return fabric_.queued(port); }
  std::vector<std::uint32_t> queue_pairs() const override { return connections_.queue_pairs(); }
  QueuePairView queue_pair_view(std::uint32_t id) const override;
  void keep_ended() override { connections_.keep_ended(); }
  void forget_ended() override { connections_.forget_ended(); }
  void report_unacknowledged() override { flows_.report_unacknowledged(); }
  std::uint64_t packets_fingerprint() const override;
  std::uint64_t events_fingerprint() const override {
    return fabric_.events_fingerprint() + connections_.events_digest();
  }
  bool deadlocked() const override { return !fabric_.deadlock().empty(); }
  bool is_down(PortId port) const override { return fabric_.is_down(port); }
  bool is_circuit_down(PortId port) const override { return fabric_.is_circuit_down(port); }
  std::vector<bool> failing_ports() const override { return fabric_.failing_ports(); }
  const FaultSchedule& fault_schedule() const override { return fabric_.fault_schedule(); }
  std::size_t path_steps() const override { return fabric_.path_steps(); }
  std::vector<std::string> waiting(std::size_t limit) const override;
  std::vector<std::string> notes() const override;
  std::vector<AggregatingSwitch> aggregating_switches() const override;

 private:
  class Circuits final : public CircuitControl {
   public:
    explicit Circuits(CircuitSwitching& switching) : switching_(switching) {}
    const std::vector<std::string>& configurations() const override { return switching_.configurations(); }
    Time request_latency() const override { return switching_.request_latency(); }
    void configure(std::uint32_t configuration, std::function<void()> when_up) override {
      switching_.configure(configuration, std::move(when_up));
    }

   private:
    CircuitSwitching& switching_;
  };

  Sender& sender_of(GpuId gpu) { return shards_[state_.set_of_gpu[gpu]]->sender(); }
  const Sender& sender_of(GpuId gpu) const { return shards_[state_.set_of_gpu[gpu]]->sender(); }
  // Returns whether the queue pair has unfinished messages.
  bool busy(std::uint32_t id) const;
  std::string wait_of(std::uint32_t id) const;
  std::string dead_link(std::uint32_t id) const;
  std::string dead_link_of_tree(std::uint32_t id) const;
  std::vector<std::string> find_idle_keys(const ConfigNode& network, const ConfigNode& transport) const;
  PathObjection worst_path(std::size_t transport) const;
  bool is_used(std::size_t transport) const;
  // Returns the name of the fabric with this transport, for example "storage". Returns "" for the transport
  // common to all fabrics, or if there is only one.
  std::string fabric_with(std::size_t transport) const;

  const Cluster& cluster_;
  TransportState state_;
  FabricParameters parameters_;
  Fabric fabric_;
  Connections connections_{state_, fabric_};
  FlowRecords flows_;
  Circuits circuits_{fabric_.circuits()};
  std::vector<std::string> idle_keys_;  // notes
  std::vector<std::unique_ptr<TransportShard>> shards_;
};

}  // namespace netsim
