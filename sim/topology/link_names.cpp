#include "sim/topology/link_names.h"

#include <algorithm>
#include <utility>

namespace netsim {
namespace {

// Returns whether `name` is the bundle's name, or that of this cable of it.
bool means(const Graph& graph, PortId port, const std::string& bundle, const std::string& name) {
  if (!name.starts_with(bundle)) return false;
  if (name.size() == bundle.size()) return true;
  return name[bundle.size()] == '#' &&
         name.substr(bundle.size() + 1) == std::to_string(std::max(cable_number(graph, port), 1U));
}

}  // namespace

std::uint32_t cable_number(const Graph& graph, PortId port) {
  NodeId near = graph.port(port).node, far = graph.port(port).peer_node;
  if (graph.ports_of(near).size() > graph.ports_of(far).size()) std::swap(near, far);
  std::uint32_t before = 0, all = 0;
  for (const PortId other : graph.ports_of(near)) {
    if (graph.port(other).peer_node != far) continue;
    ++all;
    before += other / 2 < port / 2 ? 1 : 0;
  }
  return all == 1 ? 0 : before + 1;
}

std::string bundle_name(const Graph& graph, PortId port) {
  return graph.node(graph.port(port).node).name + "->" + graph.node(graph.port(port).peer_node).name;
}

bool means_port(const Graph& graph, PortId port, const std::string& name) {
  return means(graph, port, bundle_name(graph, port), name);
}

bool means_link(const Graph& graph, PortId port, const std::string& name) {
  const std::string both =
      graph.node(graph.port(port).node).name + "-" + graph.node(graph.port(port).peer_node).name;
  return means(graph, port, both, name);
}

PortId port_to(const Graph& graph, NodeId from, const std::string& name) {
  for (const PortId port : graph.ports_of(from)) {
    if (means(graph, port, graph.node(graph.port(port).peer_node).name, name)) return port;
  }
  return kNoId;
}

}  // namespace netsim
