#include "sim/topology/boxes.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/text.h"
#include "sim/topology/ethernet.h"
#include "sim/topology/topology.h"

namespace netsim {
namespace {

struct BoxParameters {
  std::int64_t count = 0;
  std::optional<BitRate> rate;
  std::optional<Time> delay;
  ConfigNode tiers;
};

const Parameters<BoxParameters>& box_parameters() {
  using P = BoxParameters;
  static const auto parameters =
      Parameters<P>()
          .integer("count", &P::count, {0, 64},
                   "servers at each switch that add up what it sends them (NetAgg; algorithm netagg and "
                   "others, with network.switch.aggregation). They are called leaf0.box0, leaf0.box1 and so "
                   "on. Trees take those of a switch in turn")
          .rate("rate", &P::rate, kLinkRates, "that of the fastest link of its switch",
                "rate of the link between a switch and a box, each way")
          .time("delay", &P::delay, kFabricDelays, "that of the fastest link of its switch",
                "delay of that link")
          .list("tiers", &P::tiers,
                "tiers of the switches that have boxes, 0 next to the hosts; left out: all");
  return parameters;
}

std::vector<int> read_tiers(const ConfigNode& list) {
  std::vector<int> tiers;
  if (list.is_null()) return tiers;
  if (!list.is_sequence() || list.items().empty()) list.fail("a list of tiers is expected: [0]");
  tiers.reserve(list.items().size());
  for (const ConfigNode& item : list.items()) {
    const std::int64_t tier = read_integer(item);
    if (tier < 0 || tier > 255) out_of_range(item, "0", "255");
    tiers.push_back(static_cast<int>(tier));
  }
  return tiers;
}

// BoxRoutes: the routes of a fabric whose switches have boxes. No packet is routed from a box, because trees
// have paths of their own.
class BoxRoutes final : public Routes {
 public:
  // Boxes are the nodes from `first` to `end` - 1.
  BoxRoutes(std::unique_ptr<Routes> routes, NodeId first, NodeId end)
      : routes_(std::move(routes)), first_(first), end_(end) {}
  std::span<const PortId> next_hops(NodeId at, NodeId destination) const override {
    return is_box(at) ? std::span<const PortId>() : routes_->next_hops(at, destination);
  }
  std::uint32_t channels(RoutingFreedom freedom) const override { return routes_->channels(freedom); }
  void add_hops(const Waypoint& packet, std::vector<Hop>& hops) const override {
    if (!is_box(packet.at)) routes_->add_hops(packet, hops);
  }
  void add_adaptive_hops(const Waypoint& packet, std::vector<Hop>& hops) const override {
    if (!is_box(packet.at)) routes_->add_adaptive_hops(packet, hops);
  }
  std::uint32_t adaptive_channel() const override { return routes_->adaptive_channel(); }
  std::uint32_t choices() const override { return routes_->choices(); }
  std::uint32_t intermediates() const override { return routes_->intermediates(); }
  bool passes(NodeId node, std::uint32_t via) const override {
    return is_box(node) || routes_->passes(node, via);
  }
  const char* free_of_cycles() const override { return routes_->free_of_cycles(); }
  std::string channels_in_words() const override { return routes_->channels_in_words(); }
  std::unique_ptr<Routes> without(const Graph& graph, std::span<const HostPort> nics,
                                  const std::vector<bool>& down, std::uint32_t channels) const override {
    return std::make_unique<BoxRoutes>(routes_->without(graph, nics, down, channels), first_, end_);
  }

 private:
  bool is_box(NodeId node) const { return node >= first_ && node < end_; }

  std::unique_ptr<Routes> routes_;
  NodeId first_, end_;
};

// Returns the link of a box at the switch, which has links.
LinkSpec box_link(const Graph& graph, NodeId node, const BoxParameters& p) {
  const auto ports = graph.ports_of(node);
  const PortId fastest = *std::max_element(ports.begin(), ports.end(), [&](PortId a, PortId b) {
    return graph.port(a).link.rate < graph.port(b).link.rate;
  });
  LinkSpec link = graph.port(fastest).link;
  link.rate = p.rate.value_or(link.rate);
  link.delay = p.delay.value_or(link.delay);
  return link;
}

// Throws ConfigError if no switch has one of the tiers.
void check_tiers(const ConfigNode& list, const std::vector<int>& tiers, const Graph& graph, NodeId first,
                 NodeId end) {
  int highest = 0;
  for (NodeId node = first; node < end; ++node) highest = std::max(highest, graph.node(node).tier);
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    if (tiers[i] > highest) out_of_range(list.items()[i], "0", std::to_string(highest));
  }
}

}  // namespace

const ParameterTable& box_parameter_table() { return box_parameters().table(); }

std::unique_ptr<Routes> with_boxes(const ConfigNode& section, Graph& graph, NodeId first, NodeId end,
                                   std::unique_ptr<Routes> routes) {
  if (section.is_null()) return routes;
  const BoxParameters p = box_parameters().parse(section);
  const std::vector<int> tiers = read_tiers(p.tiers);
  check_tiers(p.tiers, tiers, graph, first, end);
  if (p.count == 0) return routes;
  const auto has_boxes = [&](NodeId node) {
    return is_switch(graph, node) && !graph.ports_of(node).empty() &&
           (tiers.empty() || std::find(tiers.begin(), tiers.end(), graph.node(node).tier) != tiers.end());
  };
  for (NodeId node = first; node < end; ++node) {
    if (!has_boxes(node)) continue;
    const LinkSpec link = box_link(graph, node, p);
    const std::string name = graph.node(node).name;
    const int tier = graph.node(node).tier;
    for (std::int64_t i = 0; i < p.count; ++i)
      graph.add_box(node, name + ".box" + std::to_string(i), tier, link);
  }
  return std::make_unique<BoxRoutes>(std::move(routes), end, static_cast<NodeId>(graph.node_count()));
}

}  // namespace netsim
