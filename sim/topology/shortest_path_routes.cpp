// Next hops of any fabric, by a breadth-first search from a switch with NICs at the first request for a route
// to it. The memory is destination switches x switches x equal-cost ports. For large regular topologies,
// routes by arithmetic are better.
#include <memory>

#include "sim/core/errors.h"
#include "sim/topology/columns_on_demand.h"
#include "sim/topology/topology.h"

namespace netsim {

namespace {

class ShortestPathRoutes final : public Routes {
 public:
  ShortestPathRoutes(const Graph& graph, std::span<const HostPort> nics, const std::vector<bool>& down)
      : down_ports_(down), access_(graph.node_count(), {kNoId, kNoId}) {
    index_switches(graph);
    for (NodeId id = 0; id < graph.node_count(); ++id) ports_.push_back(graph.ports_of(id));
    for (PortId id = 0; id < graph.port_count(); ++id) peer_.push_back(graph.port(id).peer_node);
    for (const HostPort& port : nics) attach(graph, port.nic);
    columns_.resize(access_switches_.size());
  }

  std::span<const PortId> next_hops(NodeId at, NodeId destination) const override {
    if (row_[at] == kNoId) return {&access_[at].port, 1};
    const Access& target = access_[destination];
    if (switches_[row_[at]] == access_switches_[target.column]) return {&down_[destination], 1};
    const Column& column = column_of(target.column);
    return {column.hops.data() + column.begin[row_[at]], column.begin[row_[at] + 1] - column.begin[row_[at]]};
  }

 private:
  // A NIC's port into the fabric, and the column of the switch at its other end.
  struct Access {
    PortId port;
    std::uint32_t column;
  };
  // The next hops of all switches towards one switch.
  struct Column {
    std::vector<std::uint32_t> begin{0};  // by row: start of its range of `hops`
    std::vector<PortId> hops;
  };

  void index_switches(const Graph& graph) {
    row_.assign(graph.node_count(), kNoId);
    down_.assign(graph.node_count(), kNoId);
    for (NodeId id = 0; id < graph.node_count(); ++id) {
      if (graph.node(id).kind != NodeKind::fabric_switch) continue;
      row_[id] = static_cast<std::uint32_t>(switches_.size());
      switches_.push_back(id);
    }
    column_.assign(switches_.size(), kNoId);
  }

  void attach(const Graph& graph, NodeId nic) {
    for (PortId port : graph.ports_of(nic)) {
      const std::uint32_t row = row_[graph.port(port).peer_node];
      if (row == kNoId) continue;
      if (column_[row] == kNoId) {
        column_[row] = static_cast<std::uint32_t>(access_switches_.size());
        access_switches_.push_back(switches_[row]);
      }
      access_[nic] = {port, column_[row]};
      down_[nic] = port ^ 1;
      return;
    }
    NETSIM_CHECK(false, graph.node(nic).name + " is not joined to the fabric");
  }

  bool usable(PortId port) const { return down_ports_.empty() || !down_ports_[port]; }

  // Returns the number of links between each switch and `target` over links that are up; kNoId: there is no
  // route.
  std::vector<std::uint32_t> distances(NodeId target) const {
    std::vector<std::uint32_t> distance(ports_.size(), kNoId);
    std::vector<NodeId> reached{target};
    distance[target] = 0;
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (PortId port : ports_[reached[i]]) {
        const NodeId from = peer_[port];
        if (row_[from] == kNoId || distance[from] != kNoId || !usable(port ^ 1U)) continue;
        distance[from] = distance[reached[i]] + 1;
        reached.push_back(from);
      }
    }
    return distance;
  }

  const Column& column_of(std::uint32_t column) const {
    return columns_.get(column, [&] { return search(access_switches_[column]); });
  }

  // Returns the next hops of every switch towards `target`: the ports to neighbours that are one link nearer.
  Column search(NodeId target) const {
    const std::vector<std::uint32_t> distance = distances(target);
    Column column;
    for (NodeId at : switches_) {
      for (PortId port : ports_[at]) {
        if (!usable(port)) continue;
        const std::uint32_t peer_distance = distance[peer_[port]];
        if (peer_distance != kNoId && peer_distance + 1 == distance[at]) column.hops.push_back(port);
      }
      column.begin.push_back(static_cast<std::uint32_t>(column.hops.size()));
    }
    return column;
  }

  // By node and by port. The graph may be moved, but its lists of ports stay where they are.
  std::vector<std::span<const PortId>> ports_;
  std::vector<NodeId> peer_;
  std::vector<bool> down_ports_;
  std::vector<NodeId> switches_;         // row -> node
  std::vector<std::uint32_t> row_;       // node -> row; kNoId for nodes that are not fabric switches
  std::vector<std::uint32_t> column_;    // row -> column; kNoId for switches without NICs
  std::vector<NodeId> access_switches_;  // column -> node
  std::vector<Access> access_;           // by node
  std::vector<PortId> down_;             // by node: the port from the switch to the NIC
  mutable ColumnsOnDemand<Column> columns_;
};

}  // namespace

std::unique_ptr<Routes> shortest_path_routes(const Graph& graph, std::span<const HostPort> nics,
                                             const std::vector<bool>& down) {
  return std::make_unique<ShortestPathRoutes>(graph, nics, down);
}

}  // namespace netsim
