// torus: a grid of routers, one at each host, in one to four dimensions. `wrap` closes dimensions to rings,
// so that ring, mesh and torus are one kind. Twisted tori shift the other coordinates where the short
// dimensions wrap. (Camara, Moreto, Vallejo, Beivide, Miguel-Alonso, Martinez, Navaridas, Twisted Torus
// Topologies for Enhanced Interconnection Networks, IEEE TPDS 2010.) (TPU v4: Jouppi et al., ISCA 2023.)
//
// Routes go in the order of the dimensions, the short ones first in a twisted torus. A dimension that
// wraps has a dateline, the link that closes it. Packets that still have to cross it are in channel 0, others
// in channel 1. So neither channel's packets form a cycle (Dally and Seitz, 1987). Routes to an intermediate
// use the same channels, and from there on two more. Adaptive routes take any shortest route in one further
// channel, and escape into the channels of dimension order.
//
// All next hops are computed by arithmetic: a shortest route depends only on the displacement, the number of
// links along each dimension. In a twisted torus the displacement is looked up by the difference of two
// positions, which is the same for all pairs so far apart.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "sim/core/registry.h"
#include "sim/topology/drawn_places.h"
#include "sim/topology/ethernet.h"
#include "sim/topology/fabrics/torus_shape.h"
#include "sim/topology/topology.h"

namespace netsim {
namespace {

constexpr std::int64_t kLargestTorusSize = 4096;

struct TorusParameters : EthernetParameters {
  ConfigNode sizes;
  ConfigNode wrap;
  bool twist = false;
  std::int64_t cube = 0;
  std::optional<Time> optical_delay;
  std::int64_t channels = 0;
};

const Parameters<TorusParameters>& torus_parameters() {
  using P = TorusParameters;
  static const auto p = with_ethernet(
      Parameters<P>()
          .list("sizes", &P::sizes, "routers along each dimension, one to four of them: [4, 4, 8]; required")
          .required()
          .list("wrap", &P::wrap,
                "dimensions that are closed to rings: true or false for all, or a list with a value for "
                "each; default true. A dimension of one or two routers has nothing to close")
          .flag(
              "twist", &P::twist,
              "where a dimension of k routers wraps, those of 2 k shift by k: sizes k and 2 k only, both of "
              "them (k x k x 2k, k x 2k x 2k, k x 2k), all closed, k at least 3")
          .integer(
              "cube", &P::cube, {0, kLargestTorusSize},
              "routers along each edge of the cubes that optical switches join to the torus, one switch for "
              "each place on a face and dimension (TPU v4: 4, so 48 switches); 0: all links are electrical")
          .time("optical_delay", &P::optical_delay, kFabricDelays, "the same as delay",
                "cube: delay of a link from one cube to another, or to its own opposite face")
          .integer(
              "channels", &P::channels, {0, 6},
              "virtual channels of each link; 0: as many as the routing needs: 2 where a dimension wraps, "
              "else 1; twice as many for valiant and ugal, one more for adaptive and spray"));
  return p;
}

class TorusRoutes final : public Routes {
 public:
  // `first_router` and the nodes after it are the routers, in order.
  TorusRoutes(const Graph& graph, TorusShape shape, NodeId first_router, std::span<const HostPort> nics,
              std::uint32_t given_channels)
      : shape_(std::move(shape)),
        first_(first_router),
        given_(given_channels),
        per_phase_(shape_.wraps() ? 2 : 1),
        links_(2 * shape_.dimensions() * shape_.routers(), kNoId),
        down_(shape_.routers(), kNoId),
        up_(first_router, kNoId),
        router_of_(first_router, kNoId) {
    for (std::uint32_t i = 0; i < nics.size(); ++i) {
      router_of_[nics[i].nic] = i;
      for (const PortId port : graph.ports_of(nics[i].nic)) {
        if (graph.port(port).peer_node == first_ + i) up_[nics[i].nic] = port;
      }
      down_[i] = up_[nics[i].nic] ^ 1U;
    }
  }
  // Sets the link that leads forward in a dimension from `router` to `far`.
  void add_link(std::uint32_t router, std::uint32_t far, std::size_t dimension, PortId port) {
    links_[index(router, dimension, true)] = port;
    links_[index(far, dimension, false)] = port ^ 1U;
  }

  std::span<const PortId> next_hops(NodeId at, NodeId destination) const override {
    if (at < first_) return {&up_[at], 1};
    const std::uint32_t router = at - first_, to = router_of_[destination];
    if (router == to) return {&down_[router], 1};
    const Displacement way = shape_.shortest(router, to, 0);
    const std::size_t d = shape_.first_dimension(way);
    const std::uint32_t both = shape_.directions(router, to) >> 2 * d & 3U;
    if (both == 3 && balanced(router, to, d)) return {&links_[index(router, d, false)], 2};
    return {&links_[index(router, d, way[d] > 0)], 1};
  }

  std::uint32_t channels(RoutingFreedom freedom) const override {
    if (given_ != 0) return given_;
    if (freedom == RoutingFreedom::detours) return 2 * per_phase_;
    return freedom == RoutingFreedom::adaptive ? per_phase_ + 1 : per_phase_;
  }
  std::uint32_t choices() const override { return shape_.choices(); }

  void add_hops(const Waypoint& packet, std::vector<Hop>& hops) const override {
    const std::uint32_t router = packet.at - first_;
    const std::uint32_t to = packet.via != kNoId ? packet.via : router_of_[packet.destination];
    if (router == to) {
      hops.push_back({down_[router], 0});
      return;
    }
    const Displacement way = shape_.shortest(router, to, packet.choice);
    const std::size_t d = shape_.first_dimension(way);
    const std::uint32_t phase =
        packet.reached_intermediate || packet.came.channel >= per_phase_ ? per_phase_ : 0;
    const std::uint32_t beyond = per_phase_ == 2 && !shape_.crosses(router, d, way[d]) ? 1 : 0;
    const std::uint32_t channel = phase + beyond;
    hops.push_back(
        {links_[index(router, d, way[d] > 0)], given_ == 0 ? channel : std::min(channel, given_ - 1)});
  }

  std::uint32_t adaptive_channel() const override {
    return given_ != 0 && given_ <= per_phase_ ? kNoId : per_phase_;
  }
  void add_adaptive_hops(const Waypoint& packet, std::vector<Hop>& hops) const override {
    const std::uint32_t router = packet.at - first_, to = router_of_[packet.destination];
    if (adaptive_channel() == kNoId) return;
    const std::uint32_t mask = shape_.directions(router, to);
    for (std::size_t direction = 0; direction < 2 * shape_.dimensions(); ++direction) {
      if ((mask >> direction & 1) != 0)
        hops.push_back({links_[2 * shape_.dimensions() * router + direction], per_phase_});
    }
  }

  std::uint32_t intermediates() const override { return shape_.routers(); }
  bool passes(NodeId node, std::uint32_t via) const override {
    return (node < first_ ? router_of_[node] : node - first_) == via;
  }

 private:
  std::size_t index(std::uint32_t router, std::size_t dimension, bool on) const {
    return 2 * (shape_.dimensions() * router + dimension) + (on ? 1 : 0);
  }
  // Returns whether both directions of the dimension may be taken next, independently of later choices.
  bool balanced(std::uint32_t router, std::uint32_t to, std::size_t d) const {
    const Displacement one = shape_.shortest(router, to, 0);
    const Displacement other = shape_.shortest(router, to, 1U << d);
    return one[d] == -other[d];
  }

  TorusShape shape_;
  NodeId first_;
  std::uint32_t given_, per_phase_;
  std::vector<PortId> links_;             // by router, dimension and direction (backward, forward)
  std::vector<PortId> down_;              // by router: its port to the NIC
  std::vector<PortId> up_;                // by node of a NIC: its port to the router
  std::vector<std::uint32_t> router_of_;  // by node of a NIC
};

class Torus final : public Topology {
 public:
  Torus(const TorusParameters& p, TorusShape shape)
      : shape_(std::move(shape)),
        link_(p.link()),
        optical_delay_(p.optical_delay.value_or(p.delay)),
        cube_(static_cast<std::int32_t>(p.cube)),
        channels_(static_cast<std::uint32_t>(p.channels)) {}

  std::uint32_t host_ports() const override { return shape_.routers(); }

  std::unique_ptr<Routes> build(Graph& graph, std::span<const HostPort> nics) const override {
    const auto first = static_cast<NodeId>(graph.node_count());
    std::vector<std::uint32_t> sizes;
    for (std::size_t d = 0; d < shape_.dimensions(); ++d)
      sizes.push_back(static_cast<std::uint32_t>(shape_.size(d)));
    for (std::uint32_t i = 0; i < shape_.routers(); ++i) {
      const AtomId atom = i < nics.size() ? graph.node(nics[i].nic).atom : graph.add_atom();
      graph.add_node(NodeKind::fabric_switch, atom, name(i));
      if (DrawnAt place; place_on_grid(i, sizes, place)) graph.draw_at(first + i, place);
    }
    for (std::uint32_t i = 0; i < nics.size(); ++i) graph.add_link(nics[i].nic, first + i, inner_link());
    auto routes = std::make_unique<TorusRoutes>(graph, shape_, first, nics, channels_);
    std::map<std::string, std::vector<PortId>> circuits;  // by name of the optical switch that makes them
    for (std::uint32_t i = 0; i < shape_.routers(); ++i) {
      for (std::size_t d = 0; d < shape_.dimensions(); ++d) join(graph, *routes, first, i, d, circuits);
    }
    for (auto& [switch_name, ports] : circuits) {
      graph.add_optical_switch(
          {.name = switch_name, .configurations = {{.name = "slice", .circuits = std::move(ports)}}});
    }
    return routes;
  }

 private:
  std::string name(std::uint32_t router) const {
    std::string text = "router";
    for (std::size_t d = 0; d < shape_.dimensions(); ++d)
      text += (d == 0 ? "" : "_") + std::to_string(shape_.coordinate(router, d));
    return text;
  }
  // Returns the link between a chip and its own router, which is a part of it. The link takes no time and
  // never limits the rate.
  LinkSpec inner_link() const {
    LinkSpec link = link_;
    link.rate = link_.rate * static_cast<BitRate>(2 * shape_.dimensions());
    link.delay = 0;
    link.cut_through = true;
    return link;
  }
  // Adds the link to the next router in a dimension.
  void join(Graph& graph, TorusRoutes& routes, NodeId first, std::uint32_t router, std::size_t d,
            std::map<std::string, std::vector<PortId>>& circuits) const {
    Displacement at = shape_.place(router);
    const bool last = at[d] + 1 == shape_.size(d);
    if (last && !shape_.wraps(d)) return;
    const bool optical = cube_ != 0 && (at[d] + 1) % cube_ == 0;
    LinkSpec link = link_;
    if (optical) link.delay = optical_delay_;
    const std::string made_by = optical ? optical_switch(at, d) : "";
    ++at[d];
    const std::uint32_t far = shape_.router(at);
    const PortId port = graph.add_link(first + router, first + far, link);
    routes.add_link(router, far, d, port);
    if (optical) circuits[made_by].push_back(port);
  }
  // Returns the name of the optical switch of a link. Opposite faces of all cubes meet in one switch for each
  // position on the face.
  std::string optical_switch(const Displacement& at, std::size_t d) const {
    std::string name = "optical" + std::to_string(d);
    for (std::size_t other = 0; other < shape_.dimensions(); ++other) {
      if (other != d) name += "_" + std::to_string(at[other] % cube_);
    }
    return name;
  }

  TorusShape shape_;
  LinkSpec link_;
  Time optical_delay_;
  std::int32_t cube_;
  std::uint32_t channels_;
};

std::vector<std::int32_t> read_sizes(const ConfigNode& node) {
  if (!node.is_sequence() || node.items().empty() || node.items().size() > kMostTorusDimensions)
    node.fail("expected a list of one to four sizes, [4, 4, 8]");
  std::vector<std::int32_t> sizes;
  std::int64_t routers = 1;
  for (const ConfigNode& item : node.items()) {
    const std::int64_t size = read_integer(item);
    if (size < 1 || size > kLargestTorusSize) out_of_range(item, "1", std::to_string(kLargestTorusSize));
    sizes.push_back(static_cast<std::int32_t>(size));
    routers *= size;
    if (routers > kMaxHostPorts)
      node.fail(fmt::format("more than {} routers were given, which is all that are allowed", kMaxHostPorts));
  }
  return sizes;
}

// Reads which dimensions wrap. A ring of two routers would be two links between the same routers, and a ring
// of one none.
std::vector<bool> read_wrap(const ConfigNode& node, const std::vector<std::int32_t>& sizes) {
  std::vector<bool> wrap(sizes.size(), true);
  if (node.is_sequence()) {
    if (node.items().size() != sizes.size())
      node.fail(fmt::format("{} entries for {} dimensions: one for each is needed", node.items().size(),
                            sizes.size()));
    for (std::size_t d = 0; d < sizes.size(); ++d) wrap[d] = read_bool(node.items()[d]);
  } else if (!node.is_null()) {
    wrap.assign(sizes.size(), read_bool(node));
  }
  for (std::size_t d = 0; d < sizes.size(); ++d) wrap[d] = wrap[d] && sizes[d] > 2;
  return wrap;
}

void check_twist(const ConfigNode& where, const std::vector<std::int32_t>& sizes,
                 const std::vector<bool>& wrap) {
  const auto [low, high] = std::minmax_element(sizes.begin(), sizes.end());
  const std::int32_t k = *low;
  const bool fits = *high == 2 * k && k >= 3 && std::all_of(sizes.begin(), sizes.end(), [k](std::int32_t s) {
    return s == k || s == 2 * k;
  });
  const bool closed = std::find(wrap.begin(), wrap.end(), false) == wrap.end();
  if (fits && closed) return;
  where.find("twist")->fail(
      "a twisted torus has sizes k and 2 k only, at least one of each, k at least 3, and wraps in all "
      "dimensions: "
      "[4, 4, 8], [4, 8, 8], [4, 8]");
}

std::unique_ptr<Topology> make_torus(const TorusParameters& p, const ConfigNode& where) {
  std::vector<std::int32_t> sizes = read_sizes(p.sizes);
  std::vector<bool> wrap = read_wrap(p.wrap, sizes);
  if (p.twist) check_twist(where, sizes, wrap);
  const auto split = [&](std::int32_t size) { return p.cube != 0 && size % p.cube != 0; };
  if (const auto bad = std::find_if(sizes.begin(), sizes.end(), split); bad != sizes.end())
    p.sizes.fail(
        fmt::format("{} routers along a dimension are no multiple of the {} of a cube", *bad, p.cube));
  return std::make_unique<Torus>(p, TorusShape(std::move(sizes), std::move(wrap), p.twist));
}

const Registration<Topology> kTorus{"torus",
                                    "a router at each host, joined to its neighbours in one to four "
                                    "dimensions: ring, mesh, torus, twisted torus",
                                    torus_parameters(), make_torus};

}  // namespace
}  // namespace netsim
