// dragonfly: groups of switches, joined to each other by global cables; within a group every switch is joined
// to every other. (Kim, Dally, Scott, Abts, Technology-Driven, Highly-Scalable Dragonfly Topology, ISCA
// 2008.) dragonfly_plus: a group has leaves below spines, which hold the global cables. (Shpiner, Haramaty,
// Eliad, Zdornov, Gafni, Zahavi, Dragonfly+: Low Cost Topology for Scaling Datacenters, HiPINEB 2017;
// Megafly: Flajslik, Borch, Parker, ISC 2018.)
//
// Cable n of a group to the group d places further on is at its global port n (groups - 1) + d - 1. Ports are
// counted switch by switch (the circulant arrangement).
//
// Direct routes go to a switch that holds a cable to the destination's group, over the cable, and to the
// destination's switch. Other routes visit a third group first, which is the intermediate. Ranks of links
// give the virtual channels. In a dragonfly they are 0 within a group and 1 for global cables: two channels,
// three with an intermediate. In a dragonfly+ they are 0 up, 1 global, 2 down: one channel, two with an
// intermediate.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "sim/core/registry.h"
#include "sim/topology/drawn_places.h"
#include "sim/topology/ethernet.h"
#include "sim/topology/ranked_routes.h"
#include "sim/topology/topology.h"

namespace netsim {
namespace {

struct DragonflyParameters : EthernetParameters {
  std::int64_t p = 2, a = 4, h = 2, g = 9;
  std::int64_t links = 0;
  BitRate global_rate = 0;
  std::optional<Time> global_delay;
  std::int64_t channels = 0;
};
struct DragonflyPlusParameters : DragonflyParameters {
  std::int64_t leaves = 4, spines = 4;
};

template <class P>
Parameters<P>&& with_groups(Parameters<P>&& parameters) {
  parameters.integer("p", static_cast<std::int64_t P::*>(&P::p), {1, 1024},
                     "host ports of a switch (of a leaf)");
  parameters.integer("h", static_cast<std::int64_t P::*>(&P::h), {1, 1024},
                     "ports for global cables of a switch (of a spine)");
  parameters.integer("g", static_cast<std::int64_t P::*>(&P::g), {1, 65536}, "groups");
  parameters.integer("links", static_cast<std::int64_t P::*>(&P::links), {0, 1024},
                     "global cables between each two groups; 0: as many as the ports allow");
  parameters.rate("global_rate", static_cast<BitRate P::*>(&P::global_rate), {0, kLinkRates.maximum},
                  "rate of the global cables; 0: the same as rate");
  parameters.time("global_delay", static_cast<std::optional<Time> P::*>(&P::global_delay), kFabricDelays,
                  "the same as delay", "delay of the global cables");
  parameters.integer("channels", static_cast<std::int64_t P::*>(&P::channels), {0, 6},
                     "virtual channels of each link; 0: as many as the routing needs");
  return with_ethernet(std::move(parameters));
}

const Parameters<DragonflyParameters>& dragonfly_parameters() {
  using P = DragonflyParameters;
  static const auto p = with_groups(
      Parameters<P>().integer("a", &P::a, {1, 1024}, "switches of a group, each joined to all others"));
  return p;
}

const Parameters<DragonflyPlusParameters>& plus_parameters() {
  using P = DragonflyPlusParameters;
  static const auto p = with_groups(
      Parameters<P>()
          .integer("leaves", &P::leaves, {1, 1024}, "leaves of a group, which have the hosts")
          .integer("spines", &P::spines, {1, 1024}, "spines of a group, which have the global cables"));
  return p;
}

struct DragonflyShape {
  std::uint32_t hosts;   // host ports of a switch that has hosts
  std::uint32_t lower;   // switches of a group that have hosts
  std::uint32_t spines;  // of a group; 0: the switches with hosts hold the global cables
  std::uint32_t global;  // global ports of a switch that holds cables
  std::uint32_t groups;
  std::uint32_t links;  // cables between two groups

  std::uint32_t per_group() const { return lower + spines; }
  std::uint32_t switches() const { return per_group() * groups; }
  std::uint32_t holders() const { return spines != 0 ? spines : lower; }
  // Returns the switch of a group that holds its global port `port`.
  std::uint32_t holder(std::uint32_t port) const { return (spines != 0 ? lower : 0) + port / global; }
  // Returns the global port of cable `cable` to the group `places` further on.
  std::uint32_t port(std::uint32_t cable, std::uint32_t places) const {
    return cable * (groups - 1) + places - 1;
  }
  std::uint32_t places(std::uint32_t from, std::uint32_t to) const { return (to + groups - from) % groups; }
};

class DragonflyRoutes final : public RankedRoutes {
 public:
  // `within` holds ports by switch and by the other switch's number in the group. `cables` holds ports by
  // group and global port.
  DragonflyRoutes(const Graph& graph, const DragonflyShape& shape, NodeId first_switch,
                  std::span<const HostPort> nics, std::vector<PortId> within, std::vector<PortId> cables,
                  std::vector<std::uint8_t> ranks, std::uint32_t channels)
      : RankedRoutes(graph, first_switch, nics, std::move(ranks), channels),
        shape_(shape),
        within_(std::move(within)),
        cables_(std::move(cables)) {
    for (std::uint32_t at = 0; at < shape.switches(); ++at) add_ways_out(at);
    begin_.push_back(ways_.size());
  }

  std::uint32_t channels(RoutingFreedom freedom) const override {
    if (given_channels() != 0) return given_channels();
    const std::uint32_t straight = shape_.spines == 0 && shape_.groups > 1 ? 2 : 1;
    return freedom == RoutingFreedom::detours ? straight + 1 : straight;
  }
  std::uint32_t intermediates() const override { return shape_.groups > 2 ? shape_.groups : 0; }
  bool passes(NodeId node, std::uint32_t via) const override { return group(switch_of(node)) == via; }

 protected:
  std::span<const PortId> hops_to(std::uint32_t at, std::uint32_t to) const override {
    if (group(at) != group(to)) return hops_to_via(at, group(to));
    if (shape_.spines == 0 || is_spine(at)) return {&within(at, to % shape_.per_group()), 1};
    return {&within(at, shape_.lower), shape_.spines};
  }
  std::span<const PortId> hops_to_via(std::uint32_t at, std::uint32_t via) const override {
    const std::size_t entry = std::size_t{at} * (shape_.groups - 1) + shape_.places(group(at), via) - 1;
    return {ways_.data() + begin_[entry], begin_[entry + 1] - begin_[entry]};
  }

 private:
  std::uint32_t group(std::uint32_t number) const { return number / shape_.per_group(); }
  bool is_spine(std::uint32_t number) const {
    return shape_.spines != 0 && number % shape_.per_group() >= shape_.lower;
  }
  const PortId& within(std::uint32_t at, std::uint32_t other) const {
    return within_[std::size_t{at} * shape_.per_group() + other];
  }

  // Adds the next hops towards each other group, the nearest first: 1, 2, ... places further on. They are the
  // switch's own cables, or the ports to switches that hold one. A spine without a cable may take any leaf.
  void add_ways_out(std::uint32_t at) {
    const std::uint32_t own = at % shape_.per_group();
    for (std::uint32_t places = 1; places < shape_.groups; ++places) {
      begin_.push_back(ways_.size());
      for (std::uint32_t cable = 0; cable < shape_.links; ++cable) {
        const std::uint32_t port = shape_.port(cable, places);
        if (shape_.holder(port) == own) ways_.push_back(cables_[cable_index(at, port)]);
      }
      if (ways_.size() > begin_.back()) continue;
      if (is_spine(at)) {
        for (std::uint32_t leaf = 0; leaf < shape_.lower; ++leaf) ways_.push_back(within(at, leaf));
        continue;
      }
      for (std::uint32_t cable = 0; cable < shape_.links; ++cable) {
        const PortId way = within(at, shape_.holder(shape_.port(cable, places)));
        if (std::find(ways_.begin() + static_cast<std::ptrdiff_t>(begin_.back()), ways_.end(), way) ==
            ways_.end())
          ways_.push_back(way);
      }
    }
  }
  std::size_t cable_index(std::uint32_t at, std::uint32_t port) const {
    return std::size_t{group(at)} * shape_.links * (shape_.groups - 1) + port;
  }

  DragonflyShape shape_;
  std::vector<PortId> within_, cables_;
  std::vector<std::size_t> begin_;  // by switch, then by places further on: start of its range of ways_
  std::vector<PortId> ways_;
};

class Dragonfly final : public Topology {
 public:
  Dragonfly(const DragonflyParameters& p, const DragonflyShape& shape)
      : shape_(shape),
        link_(p.link()),
        cable_(p.link(p.global_rate == 0 ? p.rate : p.global_rate)),
        channels_(static_cast<std::uint32_t>(p.channels)) {
    cable_.delay = p.global_delay.value_or(p.delay);
  }

  std::uint32_t host_ports() const override { return shape_.groups * shape_.lower * shape_.hosts; }

  std::unique_ptr<Routes> build(Graph& graph, std::span<const HostPort> nics) const override {
    const auto first = static_cast<NodeId>(graph.node_count());
    for (std::uint32_t i = 0; i < shape_.switches(); ++i) add_switch(graph, i);
    for (std::uint32_t i = 0; i < nics.size(); ++i)
      graph.add_link(first + host_switch(i / shape_.hosts), nics[i].nic, link_);
    std::vector<PortId> within(std::size_t{shape_.switches()} * shape_.per_group(), kNoId);
    std::vector<PortId> cables(std::size_t{shape_.groups} * shape_.links * (shape_.groups - 1), kNoId);
    std::vector<std::uint8_t> ranks;
    for (std::uint32_t group = 0; group < shape_.groups; ++group)
      join_group(graph, first, group, within, ranks);
    for (std::uint32_t group = 0; group < shape_.groups; ++group)
      join_groups(graph, first, group, cables, ranks);
    return std::make_unique<DragonflyRoutes>(graph, shape_, first, nics, std::move(within), std::move(cables),
                                             std::move(ranks), channels_);
  }

 private:
  // Returns the number of the i-th switch with hosts.
  std::uint32_t host_switch(std::uint32_t i) const {
    return i / shape_.lower * shape_.per_group() + i % shape_.lower;
  }
  void add_switch(Graph& graph, std::uint32_t i) const {
    const std::uint32_t own = i % shape_.per_group();
    const bool spine = own >= shape_.lower;
    const char* what = spine ? "spine" : shape_.spines != 0 ? "leaf" : "switch";
    const std::uint32_t group = i / shape_.per_group();
    const NodeId id =
        graph.add_node(NodeKind::fabric_switch, graph.add_atom(),
                       fmt::format("{}{}_{}", what, group, spine ? own - shape_.lower : own), spine ? 1 : 0);
    graph.draw_at(id, place_in_group(group, shape_.groups, own, shape_.per_group()));
  }
  void join_group(Graph& graph, NodeId first, std::uint32_t group, std::vector<PortId>& within,
                  std::vector<std::uint8_t>& ranks) const {
    const std::uint32_t size = shape_.per_group(), base = group * size;
    for (std::uint32_t i = 0; i < shape_.lower; ++i) {
      for (std::uint32_t j = shape_.spines != 0 ? shape_.lower : i + 1; j < size; ++j) {
        const PortId port = graph.add_link(first + base + i, first + base + j, link_);
        within[std::size_t{base + i} * size + j] = port;
        within[std::size_t{base + j} * size + i] = port ^ 1U;
        ranks.push_back(0);
        ranks.push_back(shape_.spines != 0 ? 2 : 0);
      }
    }
  }
  // Adds the cables to the groups with higher numbers.
  void join_groups(Graph& graph, NodeId first, std::uint32_t group, std::vector<PortId>& cables,
                   std::vector<std::uint8_t>& ranks) const {
    const std::size_t ports = std::size_t{shape_.links} * (shape_.groups - 1);
    for (std::uint32_t other = group + 1; other < shape_.groups; ++other) {
      for (std::uint32_t cable = 0; cable < shape_.links; ++cable) {
        const std::uint32_t here = shape_.port(cable, shape_.places(group, other));
        const std::uint32_t there = shape_.port(cable, shape_.places(other, group));
        const PortId port = graph.add_link(first + group * shape_.per_group() + shape_.holder(here),
                                           first + other * shape_.per_group() + shape_.holder(there), cable_);
        cables[group * ports + here] = port;
        cables[other * ports + there] = port ^ 1U;
        ranks.insert(ranks.end(), 2, 1);
      }
    }
  }

  DragonflyShape shape_;
  LinkSpec link_, cable_;
  std::uint32_t channels_;
};

// Checks the parameters that must agree, and creates the topology.
std::unique_ptr<Topology> make_dragonfly(const DragonflyParameters& p, std::int64_t lower,
                                         std::int64_t spines, const ConfigNode& where) {
  const std::int64_t holders = spines != 0 ? spines : lower;
  const std::int64_t ports = holders * p.h, others = std::max<std::int64_t>(p.g - 1, 1);
  const std::int64_t links = p.links != 0 ? p.links : ports / others;
  if (p.g > 1 && (links == 0 || links * others > ports)) {
    where.fail(
        fmt::format("{} groups need {} global cables of each, with {} between each two; its {} switches with "
                    "h = {} have ports for {}: allowed are fewer groups or links, or more ports",
                    p.g, std::max<std::int64_t>(links, 1) * others, std::max<std::int64_t>(links, 1), holders,
                    p.h, ports));
  }
  if (p.g * lower * p.p > kMaxHostPorts) {
    where.fail(fmt::format("a dragonfly of {} host ports; at most {} are allowed", p.g * lower * p.p,
                           kMaxHostPorts));
  }
  const auto u = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  return std::make_unique<Dragonfly>(
      p, DragonflyShape{u(p.p), u(lower), u(spines), u(p.h), u(p.g), u(p.g > 1 ? links : 0)});
}

const Registration<Topology> kDragonfly{
    "dragonfly", "groups of switches joined all to all, and the groups by global cables",
    dragonfly_parameters(),
    [](const DragonflyParameters& p, const ConfigNode& where) { return make_dragonfly(p, p.a, 0, where); }};

const Registration<Topology> kDragonflyPlus{
    "dragonfly_plus", "groups of leaves and spines, joined by global cables of the spines", plus_parameters(),
    [](const DragonflyPlusParameters& p, const ConfigNode& where) {
      return make_dragonfly(p, p.leaves, p.spines, where);
    }};

}  // namespace
}  // namespace netsim
