#include "sim/topology/joined_routes.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "sim/core/text.h"

namespace netsim {
namespace {

// Routes of several fabrics: each destination or switch has the routes of its own fabric. A number common
// to all fabrics is the greatest of theirs, and each fabric reduces it to its own.
class JoinedRoutes final : public Routes {
 public:
  JoinedRoutes(const Cluster& cluster, std::vector<std::unique_ptr<Routes>> routes)
      : routes_(std::move(routes)), fabric_of_(cluster.graph.node_count(), 0) {
    for (const ClusterFabric& fabric : cluster.fabrics) names_.push_back(fabric.name);
    adaptive_ = common_adaptive_channel();
    for (std::size_t i = 0; i < cluster.fabrics.size(); ++i) {
      const ClusterFabric& fabric = cluster.fabrics[i];
      for (const HostPort& port : fabric.ports) fabric_of_[port.nic] = static_cast<std::uint8_t>(i);
      for (NodeId id = fabric.first_switch; id < fabric.end_switch; ++id)
        fabric_of_[id] = static_cast<std::uint8_t>(i);
    }
  }
  std::span<const PortId> next_hops(NodeId at, NodeId destination) const override {
    return of(destination).next_hops(at, destination);
  }
  std::uint32_t channels(RoutingFreedom freedom) const override {
    return greatest([&](const Routes& routes) { return routes.channels(freedom); });
  }
  void add_hops(const Waypoint& packet, std::vector<Hop>& hops) const override {
    if (in_one(packet)) of(packet.at).add_hops(own(packet), hops);
  }
  // Returns the adaptive channel. It is common to all fabrics: there is none if fabrics differ in it, or if
  // one uses that channel otherwise.
  std::uint32_t adaptive_channel() const override { return adaptive_; }
  void add_adaptive_hops(const Waypoint& packet, std::vector<Hop>& hops) const override {
    if (in_one(packet) && adaptive_ != kNoId) of(packet.at).add_adaptive_hops(own(packet), hops);
  }
  // Returns the least common multiple. A draw below it, modulo a fabric's own number, equals that fabric's
  // own draw.
  std::uint32_t choices() const override {
    std::uint32_t common = 1;
    for (const auto& routes : routes_) common = std::lcm(common, routes->choices());
    return common;
  }
  std::uint32_t intermediates() const override {
    return greatest([](const Routes& routes) { return routes.intermediates(); });
  }
  bool passes(NodeId node, std::uint32_t via) const override {
    const Routes& routes = of(node);
    return routes.intermediates() == 0 || routes.passes(node, via % routes.intermediates());
  }
  const char* free_of_cycles() const override {
    const auto free = [](const auto& routes) { return *routes->free_of_cycles() != '\0'; };
    return std::all_of(routes_.begin(), routes_.end(), free) ? "each fabric is" : "";
  }
  std::string channels_in_words() const override {
    std::string text;
    for (std::size_t i = 0; i < routes_.size(); ++i) {
      const std::string own = routes_[i]->channels_in_words();
      if (!own.empty()) append_item(text, names_[i] + ": " + own, "; ");
    }
    return text;
  }
  std::unique_ptr<Routes> without(const Graph& graph, std::span<const HostPort> nics,
                                  const std::vector<bool>& down, std::uint32_t channels) const override {
    std::vector<std::unique_ptr<Routes>> rest;
    for (const auto& routes : routes_) rest.push_back(routes->without(graph, nics, down, channels));
    return std::unique_ptr<Routes>(new JoinedRoutes(*this, std::move(rest)));
  }

 private:
  // Creates the same fabrics with other routes.
  JoinedRoutes(const JoinedRoutes& other, std::vector<std::unique_ptr<Routes>> routes)
      : routes_(std::move(routes)),
        fabric_of_(other.fabric_of_),
        names_(other.names_),
        adaptive_(common_adaptive_channel()) {}

  std::uint32_t common_adaptive_channel() const {
    std::uint32_t channel = kNoId;
    for (const auto& routes : routes_) channel = std::min(channel, routes->adaptive_channel());
    const auto leaves_it = [&](const auto& routes) {
      const std::uint32_t own = routes->adaptive_channel();
      return own == kNoId ? routes->channels(RoutingFreedom::adaptive) <= channel : own == channel;
    };
    return std::all_of(routes_.begin(), routes_.end(), leaves_it) ? channel : kNoId;
  }

  const Routes& of(NodeId node) const { return *routes_[fabric_of_[node]]; }
  // Returns whether the packet stays in its fabric, because no route leads from one fabric to another. A
  // packet without a destination goes to an intermediate.
  bool in_one(const Waypoint& packet) const {
    return packet.destination == kNoId || fabric_of_[packet.destination] == fabric_of_[packet.at];
  }
  Waypoint own(Waypoint packet) const {
    const Routes& routes = of(packet.at);
    packet.choice %= routes.choices();
    if (packet.via != kNoId) packet.via %= std::max(routes.intermediates(), 1U);
    return packet;
  }
  template <class Number>
  std::uint32_t greatest(Number number) const {
    std::uint32_t most = 0;
    for (const auto& routes : routes_) most = std::max(most, number(*routes));
    return most;
  }

  std::vector<std::unique_ptr<Routes>> routes_;
  std::vector<std::uint8_t> fabric_of_;  // by node: fabric of a switch, or fabric that a NIC is joined to
  std::vector<std::string> names_;       // names of the fabrics
  std::uint32_t adaptive_ = kNoId;
};

}  // namespace

std::unique_ptr<Routes> join_routes(const Cluster& cluster, std::vector<std::unique_ptr<Routes>> routes) {
  if (routes.size() == 1) return std::move(routes.front());
  return std::make_unique<JoinedRoutes>(cluster, std::move(routes));
}

}  // namespace netsim
