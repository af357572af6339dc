// A line of switches with packets that enter its first egress port at given times. It tests queues alone,
// without NICs and congestion control.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/engine.h"
#include "sim/network/fabric.h"
#include "sim/topology/graph.h"

namespace netsim::test {

struct Hop {
  BitRate rate;
  Time delay;
};

class PortFixture {
 public:
  struct Arrival {
    Time time;
    std::uint32_t bytes;
  };
  struct Passage {
    Time arrival;  // at the first port
    Time end;      // delivered behind the last link
    std::uint32_t bytes;
  };
  // The next packet; bytes = 0: there are no more. Times must not fall.
  using Arrivals = std::function<Arrival()>;
  using Observer = std::function<void(const Passage&)>;

  // `network`: the section of that name, YAML. Each hop is the link out of one more switch.
  PortFixture(const std::vector<Hop>& hops, const std::string& network, Arrivals arrivals, Observer observer)
      : arrivals_(std::move(arrivals)), observer_(std::move(observer)) {
    build(hops, network);
    loop.loop().set_handler(
        EventKind::job, [](void* self, const Event& e) { static_cast<PortFixture*>(self)->arrive(e); }, this);
    loop.loop().set_handler(
        EventKind::deliver, [](void* self, const Event& e) { static_cast<PortFixture*>(self)->leave(e); },
        this);
    plan();
  }
  PortFixture(const PortFixture&) = delete;
  PortFixture& operator=(const PortFixture&) = delete;

  std::uint64_t arrived() const { return arrived_; }
  std::uint64_t left() const { return left_; }

  Engine loop;
  Graph graph;
  std::unique_ptr<Fabric> fabric;
  std::vector<PortId> ports;  // of the hops

 private:
  void build(const std::vector<Hop>& hops, const std::string& network) {
    const LinkSpec feed;
    NodeId at = graph.add_node(NodeKind::nic, graph.add_atom(), "source");
    for (std::size_t i = 0; i <= hops.size(); ++i) {
      const bool end = i == hops.size();
      const NodeId next =
          end ? graph.add_node(NodeKind::nic, graph.add_atom(), "sink")
              : graph.add_node(NodeKind::fabric_switch, graph.add_atom(), "switch" + std::to_string(i));
      LinkSpec link = feed;
      if (i > 0) {
        link.rate = hops[i - 1].rate;
        link.delay = hops[i - 1].delay;
      }
      const PortId port = graph.add_link(at, next, link);
      if (i == 0) {
        source_ = port;
      } else {
        ports.push_back(port);
      }
      at = next;
    }
    node_ = parse_config(network, "network.yaml");
    fabric = std::make_unique<Fabric>(loop, graph, nullptr, Partition(), fabric_parameters().parse(node_),
                                      node_, 4096, 1);
    std::vector<std::uint32_t> steps;
    for (std::size_t i = 1; i < ports.size(); ++i) steps.push_back(make_step(StepKind::port, ports[i]));
    steps.push_back(make_step(StepKind::deliver, 0));
    path_ = fabric->add_path(steps);
  }
  void plan() {
    next_ = arrivals_();
    if (next_.bytes > 0) loop.loop().schedule(next_.time, origin_, EventKind::job, 0);
  }
  void arrive(const Event&) {
    const std::uint32_t index = fabric->shard(0).packets().allocate();
    Packet& packet = fabric->shard(0).packets()[index];
    packet = Packet{};
    packet.bytes = next_.bytes;
    packet.path = path_;
    packet.ingress = source_;
    packet.kind = PacketKind::data;
    packet.set_priority(kDataPriority);
    if (arrival_of_.size() <= index) arrival_of_.resize(index + 1);
    arrival_of_[index] = loop.now();
    ++arrived_;
    fabric->shard(0).enqueue(ports[0], index);
    plan();
  }
  void leave(const Event& event) {
    const auto index = static_cast<std::uint32_t>(event.argument);
    const Passage passage{arrival_of_[index], loop.now(), fabric->shard(0).packets()[index].bytes};
    fabric->shard(0).packets().release(index);
    ++left_;
    observer_(passage);
  }

  Arrivals arrivals_;
  Observer observer_;
  ConfigNode node_;
  Origin origin_{(1U << 24) - 1};
  PortId source_ = 0;
  std::uint32_t path_ = 0;
  Arrival next_{};
  std::vector<Time> arrival_of_;  // by packet
  std::uint64_t arrived_ = 0, left_ = 0;
};

}  // namespace netsim::test
