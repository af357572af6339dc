// A cluster and its packet network from YAML text, with flows sent at given times: for tests below the
// collectives.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/engine.h"
#include "sim/topology/topology.h"
#include "sim/transport/packet_network.h"

namespace netsim::test {

class PacketFixture : public MessageListener {
 public:
  // `yaml`: topology, host, hosts, network, transport as in a configuration file.
  explicit PacketFixture(const std::string& yaml, std::uint64_t seed = 1)
      : root(parse_config(yaml, "test.yaml")), cluster(build_cluster(root)) {
    network = PacketNetwork::create(loop, cluster, Partition(), section("network"), section("transport"),
                                    seed, [this](const FlowRecord& flow) { flows.push_back(flow); });
    network->set_listener(this);
    loop.loop().set_handler(
        EventKind::job,
        [](void* self, const Event& event) { static_cast<PacketFixture*>(self)->start(event.argument); },
        this);
  }

  void send(std::uint32_t from, std::uint32_t to, Bytes bytes, Time at = 0, std::uint32_t channel = 0) {
    Message message;
    message.source = from;
    message.destination = to;
    message.bytes = bytes;
    message.traits.channel = channel;
    send(message, at);
  }
  // On a queue pair of its own, in a data class.
  void send_class(std::uint32_t from, std::uint32_t to, Bytes bytes, std::uint8_t traffic_class,
                  Time at = 0) {
    Message message;
    message.source = from;
    message.destination = to;
    message.bytes = bytes;
    message.traits.channel = static_cast<std::uint32_t>(messages.size());
    message.traits.own_queue_pair = true;
    message.traits.traffic_class = traffic_class;
    send(message, at);
  }
  void send(Message message, Time at) {
    message.tag = messages.size();
    messages.push_back(message);
    delivered.push_back(-1);
    sent.push_back(-1);
    loop.loop().schedule(at, origin_, EventKind::job, 0, message.tag);
  }
  void message_delivered(const Delivery& delivery) override {
    delivered[delivery.message.tag] = loop.now();
    delivery_order.push_back(delivery.message.tag);
  }
  void message_sent(const SendCompletion& completion) override {
    sent[completion.request.message.tag] = loop.now();
  }

  const ConfigNode& section(const std::string& name) const {
    static const ConfigNode none;
    const ConfigNode* node = root.find(name);
    return node != nullptr ? *node : none;
  }

  // The port from one node to a neighbour, by their names.
  PortId port(const std::string& from, const std::string& to) const {
    for (PortId id = 0; id < cluster.graph.port_count(); ++id) {
      if (cluster.graph.port_name(id) == from + "->" + to) return id;
    }
    throw std::out_of_range("no port " + from + "->" + to);
  }
  PortCounters at(const std::string& from, const std::string& to) const {
    return network->port_counters(port(from, to));
  }
  bool all_delivered() const {
    return std::all_of(delivered.begin(), delivered.end(), [](Time at) { return at >= 0; });
  }

  ConfigNode root;
  Engine loop;
  Cluster cluster;
  std::unique_ptr<PacketNetwork> network;
  std::vector<Message> messages;
  std::vector<Time> delivered, sent;  // by order of send(); -1: not yet
  std::vector<std::uint64_t> delivery_order;
  std::vector<FlowRecord> flows;

 private:
  void start(std::uint64_t tag) { network->send({messages[tag]}); }
  Origin origin_{(1U << 24) - 1};
};

}  // namespace netsim::test
