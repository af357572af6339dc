#include "sim/topology/graph.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <utility>

#include "sim/topology/link_names.h"

namespace netsim {

namespace {

using Adjacency = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

// Returns the number of links from `from` to every vertex; kNoId: it cannot be reached.
std::vector<std::uint32_t> search(const Adjacency& adjacency, NodeId from) {
  std::vector<std::uint32_t> distance(boost::num_vertices(adjacency), kNoId);
  distance[from] = 0;
  const auto record = boost::record_distances(distance.data(), boost::on_tree_edge());
  boost::breadth_first_search(adjacency, from, boost::visitor(boost::make_bfs_visitor(record)));
  return distance;
}

}  // namespace

const char* to_string(LinkKind kind) {
  switch (kind) {
    case LinkKind::ethernet:
      return "ethernet";
    case LinkKind::infiniband:
      return "infiniband";
    case LinkKind::pcie:
      return "pcie";
    case LinkKind::nvlink:
      return "nvlink";
  }
  return "?";
}

NodeId Graph::add_node(NodeKind kind, AtomId atom, const std::string& name, int tier) {
  const auto id = static_cast<NodeId>(nodes_.size());
  nodes_.push_back({kind, atom, prefix_ + name, tier});
  node_ports_.emplace_back();
  return id;
}

PortId Graph::add_link(NodeId a, NodeId b, const LinkSpec& forward, const LinkSpec& backward) {
  const auto id = static_cast<PortId>(ports_.size());
  ports_.push_back({a, b, forward});
  ports_.push_back({b, a, backward});
  node_ports_[a].push_back(id);
  node_ports_[b].push_back(id ^ 1);
  return id;
}

NodeId Graph::add_box(NodeId at, const std::string& name, int tier, const LinkSpec& link) {
  std::vector<PortId> ports = node_ports_[at];
  ports.reserve(ports.size() + 1);
  std::swap(ports, node_ports_[at]);
  replaced_.push_back(std::move(ports));
  const NodeId box = add_node(NodeKind::fabric_switch, add_atom(), name, tier);
  nodes_[box].name = name;  // that of the switch has the prefix
  nodes_[box].box = true;
  add_link(at, box, link);
  return box;
}

std::string Graph::port_name(PortId id) const {
  const std::uint32_t number = cable_number(*this, id);
  return bundle_name(*this, id) + (number == 0 ? "" : "#" + std::to_string(number));
}

std::vector<bool> Graph::circuits_down(bool avoided_only) const {
  std::vector<bool> down;
  if (!optical_.empty()) down.resize(ports_.size());
  for (const OpticalSwitch& one : optical_) {
    if (avoided_only && one.waits) continue;
    const auto mark = [&](const OpticalSwitch::Configuration& configuration, bool value) {
      for (const PortId port : configuration.circuits) down[port] = down[port ^ 1U] = value;
    };
    for (const OpticalSwitch::Configuration& configuration : one.configurations) mark(configuration, true);
    mark(one.configurations.front(), false);
  }
  return down;
}

std::vector<std::uint32_t> Graph::distances(NodeId from) const {
  Adjacency adjacency(nodes_.size());
  for (const PortSpec& port : ports_) boost::add_edge(port.node, port.peer_node, adjacency);
  return search(adjacency, from);
}

std::vector<std::uint32_t> Graph::fabric_distances(NodeId from) const {
  const auto in_fabric = [this](NodeId id) { return nodes_[id].kind == NodeKind::fabric_switch; };
  Adjacency adjacency(nodes_.size());
  for (const PortSpec& port : ports_) {
    if (in_fabric(port.node) && in_fabric(port.peer_node))
      boost::add_edge(port.node, port.peer_node, adjacency);
  }
  return search(adjacency, from);
}

}  // namespace netsim
