// hyperx: switches in a grid of any dimensions, each joined to all others of its row in every dimension.
// (Ahn, Binkert, Davis, McLaren, Schreiber, HyperX: Topology, Routing, and Packaging of Efficient Large-Scale
// Networks, SC 2009.) One dimension is a full mesh, and a grid with all sizes 2 is a hypercube. Two or more
// dimensions of one size are a flattened butterfly (Kim, Dally, Abts, ISCA 2007).
//
// Routes go in the order of the dimensions, one hop in each, and need one virtual channel. From an
// intermediate on they use a second one. Adaptive routes take the dimensions in any order in a second
// channel, and escape into the first.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "sim/core/registry.h"
#include "sim/topology/drawn_places.h"
#include "sim/topology/ethernet.h"
#include "sim/topology/ranked_routes.h"
#include "sim/topology/topology.h"

namespace netsim {
namespace {

constexpr std::size_t kMostHyperxDimensions = 16;
constexpr std::int64_t kLargestHyperxSize = 256;
constexpr std::int64_t kMostSwitches = 1 << 20;

struct HyperxParameters : EthernetParameters {
  ConfigNode sizes;
  std::int64_t hosts_per_switch = 1;
  std::int64_t links = 1;
  std::int64_t channels = 0;
};

const Parameters<HyperxParameters>& hyperx_parameters() {
  using P = HyperxParameters;
  static const auto p = with_ethernet(
      Parameters<P>()
          .list("sizes", &P::sizes,
                "switches along each dimension: [8] is a full mesh, [2, 2, 2] a cube; required")
          .required()
          .integer("hosts_per_switch", &P::hosts_per_switch, {1, 1024}, "host ports of each switch")
          .integer("links", &P::links, {1, 64}, "links between each two switches of a row")
          .integer("channels", &P::channels, {0, 6},
                   "virtual channels of each link; 0: as many as the routing needs: 1; 2 for valiant, ugal, "
                   "adaptive and spray"));
  return p;
}

struct HyperxShape {
  std::vector<std::uint32_t> sizes;
  std::uint32_t hosts_per_switch;
  std::uint32_t links;

  std::uint32_t switches() const {
    std::uint32_t count = 1;
    for (const std::uint32_t size : sizes) count *= size;
    return count;
  }
  // Returns the number of links of a switch to other switches.
  std::uint32_t degree() const {
    std::uint32_t count = 0;
    for (const std::uint32_t size : sizes) count += (size - 1) * links;
    return count;
  }
};

class HyperxRoutes final : public RankedRoutes {
 public:
  // `ports` holds the ports of each switch by dimension, by the other switch of the row, and by parallel
  // link.
  HyperxRoutes(const Graph& graph, const HyperxShape& shape, NodeId first_switch,
               std::span<const HostPort> nics, std::vector<PortId> ports, std::vector<std::uint8_t> ranks,
               std::uint32_t channels)
      : RankedRoutes(graph, first_switch, nics, std::move(ranks), channels),
        shape_(shape),
        first_switch_(first_switch),
        ports_(std::move(ports)) {}

  std::uint32_t channels(RoutingFreedom freedom) const override {
    if (given_channels() != 0) return given_channels();
    return freedom == RoutingFreedom::none ? 1 : 2;
  }
  std::uint32_t adaptive_channel() const override { return given_channels() == 1 ? kNoId : 1; }
  void add_adaptive_hops(const Waypoint& packet, std::vector<Hop>& hops) const override {
    if (adaptive_channel() == kNoId) return;
    std::uint32_t at = packet.at - first_switch_, to = switch_of(packet.destination);
    std::size_t base = std::size_t{at} * shape_.degree();
    for (const std::uint32_t size : shape_.sizes) {
      if (at % size != to % size) {
        for (const PortId port : to_column(base, at % size, to % size)) hops.push_back({port, 1});
      }
      base += std::size_t{size - 1} * shape_.links;
      at /= size;
      to /= size;
    }
  }
  std::uint32_t intermediates() const override { return shape_.switches(); }
  bool passes(NodeId node, std::uint32_t via) const override { return switch_of(node) == via; }

 protected:
  std::span<const PortId> hops_to(std::uint32_t at, std::uint32_t to) const override {
    std::size_t base = std::size_t{at} * shape_.degree();
    for (const std::uint32_t size : shape_.sizes) {
      if (at % size != to % size) return to_column(base, at % size, to % size);
      base += std::size_t{size - 1} * shape_.links;
      at /= size;
      to /= size;
    }
    return {};
  }
  std::span<const PortId> hops_to_via(std::uint32_t at, std::uint32_t via) const override {
    return hops_to(at, via);
  }

 private:
  std::span<const PortId> to_column(std::size_t base, std::uint32_t own, std::uint32_t other) const {
    return {&ports_[base + std::size_t{other < own ? other : other - 1} * shape_.links], shape_.links};
  }

  HyperxShape shape_;
  NodeId first_switch_;
  std::vector<PortId> ports_;
};

class Hyperx final : public Topology {
 public:
  Hyperx(const HyperxParameters& p, HyperxShape shape)
      : shape_(std::move(shape)), link_(p.link()), channels_(static_cast<std::uint32_t>(p.channels)) {}

  std::uint32_t host_ports() const override { return shape_.switches() * shape_.hosts_per_switch; }

  std::unique_ptr<Routes> build(Graph& graph, std::span<const HostPort> nics) const override {
    const auto first = static_cast<NodeId>(graph.node_count());
    for (std::uint32_t i = 0; i < shape_.switches(); ++i) {
      graph.add_node(NodeKind::fabric_switch, graph.add_atom(), name(i));
      if (DrawnAt place; place_on_grid(i, shape_.sizes, place)) graph.draw_at(first + i, place);
    }
    for (std::uint32_t i = 0; i < nics.size(); ++i)
      graph.add_link(first + i / shape_.hosts_per_switch, nics[i].nic, link_);
    std::vector<PortId> ports(std::size_t{shape_.switches()} * shape_.degree(), kNoId);
    std::vector<std::uint8_t> ranks;
    for (std::uint32_t i = 0; i < shape_.switches(); ++i) join(graph, first, i, ports, ranks);
    return std::make_unique<HyperxRoutes>(graph, shape_, first, nics, std::move(ports), std::move(ranks),
                                          channels_);
  }

 private:
  std::string name(std::uint32_t i) const {
    std::string text = "switch";
    for (std::size_t d = 0; d < shape_.sizes.size(); ++d) {
      text += (d == 0 ? "" : "_") + std::to_string(i % shape_.sizes[d]);
      i /= shape_.sizes[d];
    }
    return text;
  }
  // Adds the links to the switches of its rows with higher numbers.
  void join(Graph& graph, NodeId first, std::uint32_t i, std::vector<PortId>& ports,
            std::vector<std::uint8_t>& ranks) const {
    std::uint32_t stride = 1;
    std::size_t offset = 0;
    for (std::size_t d = 0; d < shape_.sizes.size(); ++d) {
      const std::uint32_t size = shape_.sizes[d], own = i / stride % size;
      for (std::uint32_t other = own + 1; other < size; ++other) {
        const std::uint32_t far = i + (other - own) * stride;
        for (std::uint32_t link = 0; link < shape_.links; ++link) {
          const PortId port = graph.add_link(first + i, first + far, link_);
          ports[std::size_t{i} * shape_.degree() + offset + (other - 1) * shape_.links + link] = port;
          ports[std::size_t{far} * shape_.degree() + offset + own * shape_.links + link] = port ^ 1U;
          ranks.insert(ranks.end(), 2, static_cast<std::uint8_t>(d));
        }
      }
      offset += std::size_t{size - 1} * shape_.links;
      stride *= size;
    }
  }

  HyperxShape shape_;
  LinkSpec link_;
  std::uint32_t channels_;
};

std::unique_ptr<Topology> make_hyperx(const HyperxParameters& p, const ConfigNode&) {
  if (!p.sizes.is_sequence() || p.sizes.items().empty() || p.sizes.items().size() > kMostHyperxDimensions)
    p.sizes.fail(fmt::format("expected a list of 1 to {} sizes, [8, 8]", kMostHyperxDimensions));
  HyperxShape shape{{}, static_cast<std::uint32_t>(p.hosts_per_switch), static_cast<std::uint32_t>(p.links)};
  std::int64_t switches = 1;
  for (const ConfigNode& item : p.sizes.items()) {
    const std::int64_t size = read_integer(item);
    if (size < 1 || size > kLargestHyperxSize) out_of_range(item, "1", std::to_string(kLargestHyperxSize));
    shape.sizes.push_back(static_cast<std::uint32_t>(size));
    switches *= size;
    if (switches > kMostSwitches || switches * p.hosts_per_switch > kMaxHostPorts)
      p.sizes.fail(
          fmt::format("more than {} host ports were given, which is all that are allowed", kMaxHostPorts));
  }
  return std::make_unique<Hyperx>(p, std::move(shape));
}

const Registration<Topology> kHyperx{
    "hyperx",
    "switches in a grid, each joined to all others of its rows: full mesh, flattened butterfly, hypercube",
    hyperx_parameters(), make_hyperx};

}  // namespace
}  // namespace netsim
