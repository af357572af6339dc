// ForwardingEndpoint: an Endpoint that passes every call on to another one, which it owns. A class that
// stands between the executor and the network derives from it and overrides what it changes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/topology/linked_gpus.h"
#include "sim/transport/endpoint.h"

namespace netsim {

class ForwardingEndpoint : public Endpoint, public KnowsLinkedGpus {
 public:
  // `cluster` must outlive this.
  ForwardingEndpoint(std::unique_ptr<Endpoint> network, const Cluster& cluster)
      : network_(std::move(network)), cluster_(cluster) {}

  void set_listener(MessageListener* listener) override { network_->set_listener(listener); }
  MessageHandle send(const SendRequest& request) override { return network_->send(request); }
  bool aggregates() const override { return network_->aggregates(); }
  std::string lacks_format(NumberFormat format) const override { return network_->lacks_format(format); }
  std::string objection(const SwitchAggregation& aggregation) const override {
    return network_->objection(aggregation);
  }
  MulticastSwitch multicast_switch(const SwitchAggregation& aggregation) const override {
    return network_->multicast_switch(aggregation);
  }
  bool limits_multicast() const override { return network_->limits_multicast(); }
  AggregationId add_aggregation(const SwitchAggregation& aggregation) override {
    return network_->add_aggregation(aggregation);
  }
  void begin_anew(GpuId source, JobId job) override { network_->begin_anew(source, job); }
  bool hold(const MessageHandle& message) override { return network_->hold(message); }
  bool release(const MessageHandle& message) override { return network_->release(message); }
  bool set_priority(const MessageHandle& message, std::uint8_t priority) override {
    return network_->set_priority(message, priority);
  }
  Bytes cancel(const MessageHandle& message) override { return network_->cancel(message); }
  bool set_rate(const MessageHandle& message, BitRate rate) override {
    return network_->set_rate(message, rate);
  }
  bool set_path(const MessageHandle& message, std::uint32_t hint) override {
    return network_->set_path(message, hint);
  }
  Bytes left(const MessageHandle& message) const override { return network_->left(message); }
  std::uint32_t path_count(const Message& message) const override { return network_->path_count(message); }
  std::vector<PortId> path_of(const Message& message) const override { return network_->path_of(message); }
  std::vector<PortPassage> passages(const Message& message, Bytes payload) const override {
    return network_->passages(message, payload);
  }
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
  std::vector<std::vector<GpuId>> linked_gpus() const override { return netsim::linked_gpus(cluster_); }

 protected:
  // Returns whether the message carries data from one GPU to another over a packet fabric.
  bool is_over_fabric(const Message& message) const {
    return !message.credit && message.aggregation.is_none() && message.source != message.destination &&
           network_->reach(message.source, message.destination) == Reach::scale_out;
  }
  // Returns the number of the message's queue pair between its two GPUs. `queue_pairs` has the number of
  // these for each fabric.
  std::uint32_t lane_of(const Message& message, const std::vector<std::uint32_t>& queue_pairs) const {
    if (message.traits.own_queue_pair) return message.traits.channel;
    return message.traits.channel % queue_pairs[cluster_.packet_fabric(message.source, message.destination)];
  }

  std::unique_ptr<Endpoint> network_;
  const Cluster& cluster_;
};

}  // namespace netsim
