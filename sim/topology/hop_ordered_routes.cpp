#include "sim/topology/hop_ordered_routes.h"

#include <algorithm>
#include <string>
#include <utility>

namespace netsim {
namespace {

class HopOrderedRoutes final : public Routes {
 public:
  HopOrderedRoutes(const Graph& graph, std::unique_ptr<Routes> routes, std::uint32_t channels)
      : routes_(std::move(routes)), channels_(channels) {
    for (PortId port = 0; port < graph.port_count(); ++port)
      between_.push_back(is_switch(graph, graph.port(port).node) &&
                         is_switch(graph, graph.port(port).peer_node));
  }

  std::span<const PortId> next_hops(NodeId at, NodeId destination) const override {
    return routes_->next_hops(at, destination);
  }
  std::uint32_t channels(RoutingFreedom) const override { return channels_; }
  void add_hops(const Waypoint& packet, std::vector<Hop>& hops) const override {
    const bool entered = packet.came.port == kNoId || !between_[packet.came.port];
    const std::uint32_t channel = entered ? 0 : std::min(packet.came.channel + 1, channels_ - 1);
    for (const PortId port : next_hops(packet.at, packet.destination))
      hops.push_back({port, between_[port] ? channel : 0});
  }
  const char* free_of_cycles() const override { return routes_->free_of_cycles(); }
  std::string channels_in_words() const override {
    return std::to_string(channels_) +
           ", by hops: a packet takes the next one with every hop, up to the last";
  }

 private:
  std::unique_ptr<Routes> routes_;
  std::uint32_t channels_;
  std::vector<bool> between_;  // by port: whether its link joins two switches
};

}  // namespace

std::unique_ptr<Routes> hop_ordered_routes(const Graph& graph, std::unique_ptr<Routes> routes,
                                           std::uint32_t channels) {
  if (channels == 1) return routes;
  return std::make_unique<HopOrderedRoutes>(graph, std::move(routes), channels);
}

}  // namespace netsim
