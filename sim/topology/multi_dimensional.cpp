#include "sim/topology/multi_dimensional.h"

#include <string>
#include <utility>

#include "sim/topology/drawn_places.h"
#include "sim/topology/ethernet.h"

namespace netsim {
namespace {

using Shape = GridDimension::Shape;

class Grid {
 public:
  explicit Grid(std::vector<GridDimension> dimensions) : dimensions_(std::move(dimensions)) {
    for (const GridDimension& dimension : dimensions_) {
      strides_.push_back(nodes_);
      nodes_ *= dimension.size;
    }
  }

  std::size_t dimensions() const { return dimensions_.size(); }
  const GridDimension& dimension(std::size_t d) const { return dimensions_[d]; }
  std::uint32_t nodes() const { return nodes_; }
  std::uint32_t coordinate(std::uint32_t node, std::size_t d) const {
    return node / strides_[d] % dimensions_[d].size;
  }
  // Returns the node that differs in one coordinate.
  std::uint32_t moved(std::uint32_t node, std::size_t d, std::uint32_t coordinate_there) const {
    return node + (coordinate_there - coordinate(node, d)) * strides_[d];
  }
  // Returns the group of a node. Nodes that differ in this dimension only are a group; groups are numbered by
  // their first nodes.
  std::uint32_t group(std::uint32_t node, std::size_t d) const {
    return node / (strides_[d] * dimensions_[d].size) * strides_[d] + node % strides_[d];
  }
  std::uint32_t groups(std::size_t d) const { return nodes_ / dimensions_[d].size; }
  std::uint32_t stride(std::size_t d) const { return strides_[d]; }

 private:
  std::vector<GridDimension> dimensions_;
  std::vector<std::uint32_t> strides_;
  std::uint32_t nodes_ = 1;
};

// Returns whether the route along a ring from `at` to `to` goes upward. It takes the shorter side, and for
// equal ones goes upward from even coordinates.
bool goes_up(std::uint32_t at, std::uint32_t to, std::uint32_t size) {
  const std::uint32_t up = (to + size - at) % size;
  return 2 * up < size || (2 * up == size && at % 2 == 0);
}

class GridRoutes final : public Routes {
 public:
  GridRoutes(const Grid& grid, NodeId first_router, std::size_t nodes)
      : grid_(grid),
        first_router_(first_router),
        number_(nodes, kNoId),
        up_(nodes, kNoId),
        down_(grid.nodes(), kNoId) {
    for (std::size_t d = 0; d < grid.dimensions(); ++d) {
      const GridDimension& dimension = grid.dimension(d);
      const std::size_t ways = dimension.shape == Shape::ring        ? 2
                               : dimension.shape == Shape::full_mesh ? dimension.size
                                                                     : 1;
      ways_.push_back(ways);
      ports_.emplace_back(grid.nodes() * ways, kNoId);
      back_.emplace_back(dimension.shape == Shape::star ? grid.nodes() : 0, kNoId);
    }
  }

  void join_nic(NodeId nic, std::uint32_t node, PortId up) {
    number_[nic] = node;
    up_[nic] = up;
    down_[node] = up ^ 1U;
  }
  // Sets port `way` of a node along d. In a ring 0 is down and 1 up; in a full mesh it is the peer's
  // coordinate; 0 leads to a switch.
  void add(std::size_t d, std::uint32_t node, std::size_t way, PortId port) {
    ports_[d][node * ways_[d] + way] = port;
  }
  void add_switch(std::size_t d, std::uint32_t node, PortId up) {
    add(d, node, 0, up);
    back_[d][node] = up ^ 1U;
  }
  void set_switches(std::size_t d, NodeId first) { switches_.emplace_back(first, d); }

  std::span<const PortId> next_hops(NodeId at, NodeId destination) const override {
    const std::uint32_t to = number_[destination];
    if (at < number_.size() && number_[at] != kNoId) return {&up_[at], 1};
    if (at >= first_router_ + grid_.nodes()) return from_switch(at, to);
    const std::uint32_t node = at - first_router_;
    const std::size_t d = first_difference(node, to);
    if (d == grid_.dimensions()) return {&down_[to], 1};
    return {&ports_[d][node * ways_[d] + way(d, node, to)], 1};
  }

  std::uint32_t channels(RoutingFreedom) const override {
    for (std::size_t d = 0; d < grid_.dimensions(); ++d) {
      if (grid_.dimension(d).shape == Shape::ring && grid_.dimension(d).size > 3) return 2;
    }
    return 1;
  }

  void add_hops(const Waypoint& packet, std::vector<Hop>& hops) const override {
    const PortId port = next_hops(packet.at, packet.destination)[0];
    hops.push_back({port, channel(packet.at, number_[packet.destination])});
  }

 private:
  std::size_t first_difference(std::uint32_t node, std::uint32_t to) const {
    std::size_t d = 0;
    while (d < grid_.dimensions() && grid_.coordinate(node, d) == grid_.coordinate(to, d)) ++d;
    return d;
  }
  std::size_t way(std::size_t d, std::uint32_t node, std::uint32_t to) const {
    const GridDimension& dimension = grid_.dimension(d);
    if (dimension.shape == Shape::star) return 0;
    const std::uint32_t there = grid_.coordinate(to, d);
    if (dimension.shape == Shape::full_mesh) return there;
    return goes_up(grid_.coordinate(node, d), there, dimension.size) ? 1 : 0;
  }
  std::span<const PortId> from_switch(NodeId at, std::uint32_t to) const {
    std::size_t i = switches_.size() - 1;
    while (at < switches_[i].first) --i;
    const auto& [first, d] = switches_[i];
    const std::uint32_t group = at - first, stride = grid_.stride(d);
    const std::uint32_t start = group / stride * stride * grid_.dimension(d).size + group % stride;
    return {&back_[d][grid_.moved(start, d, grid_.coordinate(to, d))], 1};
  }
  // Returns 0 before the dateline of a ring and on the link across it, and 1 where the route need not cross
  // it any more.
  std::uint32_t channel(NodeId at, std::uint32_t to) const {
    if (at < first_router_ || at >= first_router_ + grid_.nodes()) return 0;
    const std::uint32_t node = at - first_router_;
    const std::size_t d = first_difference(node, to);
    if (d == grid_.dimensions() || grid_.dimension(d).shape != Shape::ring || grid_.dimension(d).size <= 3)
      return 0;
    const std::uint32_t here = grid_.coordinate(node, d), there = grid_.coordinate(to, d);
    const bool crosses = goes_up(here, there, grid_.dimension(d).size) ? there < here : there > here;
    return crosses ? 0 : 1;
  }

  Grid grid_;
  NodeId first_router_;
  std::vector<std::uint32_t> number_;       // by node of a NIC: its router's number
  std::vector<PortId> up_;                  // by node of a NIC: its port to the router
  std::vector<PortId> down_;                // by router's number: its port to the NIC
  std::vector<std::size_t> ways_;           // by dimension: number of ports of a node along it
  std::vector<std::vector<PortId>> ports_;  // by dimension, then node x ways
  std::vector<std::vector<PortId>> back_;   // by dimension, then node: port from the switch to the node
  std::vector<std::pair<NodeId, std::size_t>> switches_;  // first switch of a dimension, and the dimension
};

class MultiDimensional final : public Topology {
 public:
  explicit MultiDimensional(Grid grid) : grid_(std::move(grid)) {}
  std::uint32_t host_ports() const override { return grid_.nodes(); }

  std::unique_ptr<Routes> build(Graph& graph, std::span<const HostPort> nics) const override {
    const auto first = static_cast<NodeId>(graph.node_count());
    std::vector<std::uint32_t> sizes;
    bool has_switches = false;  // switches are drawn above the grid
    for (std::size_t d = 0; d < grid_.dimensions(); ++d) {
      sizes.push_back(grid_.dimension(d).size);
      has_switches = has_switches || grid_.dimension(d).shape == Shape::star;
    }
    for (std::uint32_t i = 0; i < grid_.nodes(); ++i) {
      const AtomId atom = i < nics.size() ? graph.node(nics[i].nic).atom : graph.add_atom();
      graph.add_node(NodeKind::fabric_switch, atom, "router" + std::to_string(i));
      if (DrawnAt place; !has_switches && place_on_grid(i, sizes, place)) graph.draw_at(first + i, place);
    }
    auto routes = std::make_unique<GridRoutes>(grid_, first, first);
    for (std::uint32_t i = 0; i < nics.size(); ++i)
      routes->join_nic(nics[i].nic, i, graph.add_link(nics[i].nic, first + i, inner_link()));
    for (std::size_t d = 0; d < grid_.dimensions(); ++d) join(graph, *routes, first, d);
    return routes;
  }

 private:
  // Returns the link between a node and its own router, which is a part of it. The link takes no time and
  // never limits the rate.
  LinkSpec inner_link() const {
    LinkSpec link = grid_.dimension(0).link;
    link.rate = 0;
    for (std::size_t d = 0; d < grid_.dimensions(); ++d) {
      const GridDimension& dimension = grid_.dimension(d);
      const std::uint32_t links = dimension.shape == Shape::ring   ? 2
                                  : dimension.shape == Shape::star ? 1
                                                                   : dimension.size;
      link.rate += dimension.link.rate * links;
    }
    link.delay = 0;
    link.cut_through = true;
    return link;
  }

  void join(Graph& graph, GridRoutes& routes, NodeId first, std::size_t d) const {
    switch (grid_.dimension(d).shape) {
      case Shape::ring:
        return join_ring(graph, routes, first, d);
      case Shape::full_mesh:
        return join_mesh(graph, routes, first, d);
      case Shape::star:
        return join_switches(graph, routes, first, d);
    }
  }

  // Joins the rings of a dimension. A ring of two nodes has one link.
  void join_ring(Graph& graph, GridRoutes& routes, NodeId first, std::size_t d) const {
    const GridDimension& dimension = grid_.dimension(d);
    for (std::uint32_t node = 0; node < grid_.nodes(); ++node) {
      const std::uint32_t at = grid_.coordinate(node, d);
      if (dimension.size == 1 || (dimension.size == 2 && at == 1)) continue;
      const std::uint32_t next = grid_.moved(node, d, (at + 1) % dimension.size);
      const PortId port = graph.add_link(first + node, first + next, dimension.link);
      routes.add(d, node, 1, port);
      routes.add(d, next, 0, port ^ 1U);
      if (dimension.size > 2) continue;
      routes.add(d, node, 0, port);
      routes.add(d, next, 1, port ^ 1U);
    }
  }

  void join_mesh(Graph& graph, GridRoutes& routes, NodeId first, std::size_t d) const {
    const GridDimension& dimension = grid_.dimension(d);
    for (std::uint32_t node = 0; node < grid_.nodes(); ++node) {
      const std::uint32_t at = grid_.coordinate(node, d);
      for (std::uint32_t there = at + 1; there < dimension.size; ++there) {
        const std::uint32_t far = grid_.moved(node, d, there);
        const PortId port = graph.add_link(first + node, first + far, dimension.link);
        routes.add(d, node, there, port);
        routes.add(d, far, at, port ^ 1U);
      }
    }
  }

  void join_switches(Graph& graph, GridRoutes& routes, NodeId first, std::size_t d) const {
    const auto first_switch = static_cast<NodeId>(graph.node_count());
    routes.set_switches(d, first_switch);
    for (std::uint32_t group = 0; group < grid_.groups(d); ++group) {
      graph.add_node(NodeKind::fabric_switch, graph.add_atom(),
                     "switch" + std::to_string(d) + "_" + std::to_string(group), 1);
    }
    for (std::uint32_t node = 0; node < grid_.nodes(); ++node) {
      const NodeId at = first_switch + grid_.group(node, d);
      routes.add_switch(d, node, graph.add_link(first + node, at, grid_.dimension(d).link));
    }
  }

  Grid grid_;
};

}  // namespace

std::unique_ptr<Topology> multi_dimensional(std::vector<GridDimension> dimensions, const ConfigNode& where) {
  std::int64_t nodes = 1;
  for (const GridDimension& dimension : dimensions) {
    nodes *= dimension.size;
    if (nodes > kMaxHostPorts) {
      where.fail("a fabric of " + std::to_string(nodes) + " host ports; at most " +
                 std::to_string(kMaxHostPorts) + " are allowed");
    }
  }
  return std::make_unique<MultiDimensional>(Grid(std::move(dimensions)));
}

}  // namespace netsim
