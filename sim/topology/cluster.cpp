// Questions about a whole cluster: the routes between its GPUs, their NICs and rates (topology.h).
#include <algorithm>
#include <string>

#include "sim/core/errors.h"
#include "sim/topology/topology.h"

namespace netsim {
namespace {

// Returns the total rate of the node's links whose kind counts.
BitRate rate_of_links(const Graph& graph, NodeId node, bool (*counts)(LinkKind)) {
  BitRate sum = 0;
  for (const PortId port : graph.ports_of(node)) {
    if (counts(graph.port(port).link.kind)) sum += graph.port(port).link.rate;
  }
  return sum;
}

}  // namespace

HostRouteKind Cluster::way(std::uint32_t from, std::uint32_t to) const {
  if (from == to) return HostRouteKind::pcie;
  const Gpu &a = gpus[from], &b = gpus[to];
  const HostWayKind inside =
      a.host == b.host ? group_of(from).ways.between(a.local, b.local).kind : HostWayKind::none;
  if (inside == HostWayKind::nvlink) return HostRouteKind::nvlink;
  if (a.domain != kNoId && a.domain == b.domain) return HostRouteKind::nvlink_fabric;
  if (inside != HostWayKind::pcie) return HostRouteKind::packets;
  return is_port(from) && is_port(to) && joins(a.node, b.node) ? HostRouteKind::packets : HostRouteKind::pcie;
}

bool Cluster::is_port(std::uint32_t gpu) const {
  const auto ways = first_nic_ways(gpu).first;
  return !ways.empty() && ways.front().ports.empty();
}

std::vector<PortId> Cluster::way_inside(std::uint32_t from, std::uint32_t to) const {
  std::vector<PortId> ports = group_of(from).ways.between(gpus[from].local, gpus[to].local).ports;
  for (PortId& port : ports) port += hosts[gpus[from].host].first_port;
  return ports;
}

std::uint32_t Cluster::packet_fabric(std::uint32_t from, std::uint32_t to) const {
  const std::vector<std::uint32_t>& theirs = group_of(std::max(from, to)).fabrics;
  for (const std::uint32_t fabric : group_of(std::min(from, to)).fabrics) {
    if (!fabrics[fabric].scale_up && std::find(theirs.begin(), theirs.end(), fabric) != theirs.end())
      return fabric;
  }
  not_joined(from, to);
}

void Cluster::not_joined(std::uint32_t from, std::uint32_t to) const {
  const auto in_words = [this](std::uint32_t gpu) {
    std::string text = "GPU " + std::to_string(gpu) + " (" + graph.node(gpus[gpu].node).name;
    for (const std::uint32_t fabric : group_of(gpu).fabrics) text += ", in fabric " + fabrics[fabric].name;
    return text + ")";
  };
  throw ConfigError("a message from " + in_words(from) + " to " + in_words(to) +
                    ": no fabric joins them; ranks that send to each other need GPUs that one fabric joins");
}

std::vector<std::string> Cluster::packet_fabric_names() const {
  std::vector<std::string> names;
  for (const ClusterFabric& fabric : fabrics) {
    if (!fabric.scale_up) names.push_back(fabric.name);
  }
  return names;
}

std::pair<std::span<const HostRoutes::NicRoute>, std::uint32_t> Cluster::nic_ways(
    std::uint32_t gpu, std::uint32_t fabric) const {
  const HostGroup& group = group_of(gpu);
  const auto at = std::find(group.fabrics.begin(), group.fabrics.end(), fabric);
  const auto index = static_cast<std::uint32_t>(at - group.fabrics.begin());
  return {group.ways.nics(gpus[gpu].local, index), group.ways.nearest(gpus[gpu].local, index)};
}

Cluster::NicEnd Cluster::sending_end(std::uint32_t gpu, const HostRoutes::NicRoute& way) const {
  return nic_end(gpu, way.nic, way.ports);
}

Cluster::NicEnd Cluster::receiving_end(std::uint32_t gpu, const HostRoutes::NicRoute& way) const {
  return nic_end(gpu, way.nic, way.back);
}

Cluster::NicEnd Cluster::nic_end(std::uint32_t gpu, NodeId nic, const std::vector<PortId>& ports) const {
  const HostPlace& place = hosts[gpus[gpu].host];
  NicEnd end{place.first_node + nic, ports};
  for (PortId& port : end.ports) port += place.first_port;
  return end;
}

// Returns whether the fabric has a route between two NICs while all links are up.
bool Cluster::joins(NodeId from, NodeId to) const {
  const auto hops = routes->next_hops(from, to);
  if (hops.empty()) return false;
  const NodeId next = graph.port(hops.front()).peer_node;
  return next == to || !routes->next_hops(next, to).empty();
}

std::pair<std::span<const HostRoutes::NicRoute>, std::uint32_t> Cluster::first_nic_ways(
    std::uint32_t gpu) const {
  const std::vector<std::uint32_t>& joined = group_of(gpu).fabrics;
  const auto first = std::find_if(joined.begin(), joined.end(),
                                  [this](std::uint32_t fabric) { return !fabrics[fabric].scale_up; });
  return first == joined.end() ? std::pair(std::span<const HostRoutes::NicRoute>(), 0U)
                               : nic_ways(gpu, *first);
}

std::vector<NodeId> Cluster::nearest_nics(std::uint32_t gpu) const {
  const auto [ways, nearest] = first_nic_ways(gpu);
  std::vector<NodeId> found;
  for (std::uint32_t i = 0; i < nearest; ++i) found.push_back(hosts[gpus[gpu].host].first_node + ways[i].nic);
  return found;
}

std::uint32_t Cluster::links_to_nic(std::uint32_t gpu) const {
  const auto [ways, nearest] = first_nic_ways(gpu);
  return nearest == 0 ? 0 : static_cast<std::uint32_t>(ways.front().ports.size());
}

BitRate Cluster::local_rate(std::uint32_t gpu) const {
  const NodeId node = gpus[gpu].node;
  const BitRate nvlink = rate_of_links(graph, node, [](LinkKind kind) { return kind == LinkKind::nvlink; });
  return nvlink > 0 ? nvlink
                    : rate_of_links(graph, node, [](LinkKind kind) { return kind == LinkKind::pcie; });
}

bool Cluster::is_beside_cpu(std::uint32_t gpu) const {
  const auto ports = graph.ports_of(gpus[gpu].node);
  return std::any_of(ports.begin(), ports.end(), [this](PortId port) {
    return graph.node(graph.port(port).peer_node).kind == NodeKind::cpu;
  });
}

BitRate Cluster::direct_rate(std::uint32_t from, std::uint32_t to) const {
  if (!same_host(from, to)) return 0;
  const HostRoutes::GpuRoute& way = group_of(from).ways.between(gpus[from].local, gpus[to].local);
  if (way.kind != HostWayKind::nvlink || way.ports.size() != 1) return 0;
  return graph.port(hosts[gpus[from].host].first_port + way.ports[0]).link.rate;
}

Time Cluster::delay_inside(std::uint32_t from, std::uint32_t to) const {
  if (way(from, to) != HostRouteKind::nvlink_fabric)
    return group_of(from).ways.between(gpus[from].local, gpus[to].local).delay;
  const auto leads_out = [this](PortId port) {
    const NodeId peer = graph.port(port).peer_node;
    return std::any_of(fabrics.begin(), fabrics.end(), [peer](const ClusterFabric& fabric) {
      return fabric.scale_up && peer >= fabric.first_switch && peer < fabric.end_switch;
    });
  };
  const auto out_of = [&](std::uint32_t gpu) {
    const auto ports = graph.ports_of(gpus[gpu].node);
    return *std::find_if(ports.begin(), ports.end(), leads_out);
  };
  return graph.port(out_of(from)).link.delay + graph.port(out_of(to) ^ 1U).link.delay;
}

BitRate Cluster::nic_rate(NodeId nic) const { return rate_of_links(graph, nic, is_packet_link); }

// Returns the ends where the sender is not joined to the network of the receiver's nearest NICs. That network
// may join the receiver's own GPUs only. The receiver takes its nearest NIC, by the number of links, that a
// NIC of the sender is joined to. The sender takes the nearest of its NICs that are joined to that one.
Cluster::NicEnds Cluster::ends_elsewhere(std::uint32_t from, std::uint32_t to, std::uint32_t fabric,
                                         std::uint32_t lane) const {
  const auto here = nic_ways(from, fabric).first, there = nic_ways(to, fabric).first;
  const auto nic = [this](std::uint32_t gpu, const HostRoutes::NicRoute& way) {
    return hosts[gpus[gpu].host].first_node + way.nic;
  };
  // Returns the `lane`-th way, cyclically, of those that `fits` accepts and that have as few links as the
  // first of these. Null: there is none.
  const auto nearest = [&](std::span<const HostRoutes::NicRoute> ways, auto fits) {
    std::vector<const HostRoutes::NicRoute*> near;
    for (const HostRoutes::NicRoute& way : ways) {
      if (fits(way) && (near.empty() || way.ports.size() == near.front()->ports.size())) near.push_back(&way);
    }
    return near.empty() ? nullptr : near[lane % near.size()];
  };
  const auto* end = nearest(there, [&](const HostRoutes::NicRoute& far) {
    return std::any_of(here.begin(), here.end(), [&](const HostRoutes::NicRoute& near) {
      return joins(nic(from, near), nic(to, far));
    });
  });
  if (end == nullptr) not_joined(from, to);
  const auto* begin =
      nearest(here, [&](const HostRoutes::NicRoute& near) { return joins(nic(from, near), nic(to, *end)); });
  return {sending_end(from, *begin), receiving_end(to, *end)};
}

std::uint32_t Cluster::nic_choices(std::uint32_t from, std::uint32_t to) const {
  return static_cast<std::uint32_t>(nic_ways(from, packet_fabric(from, to)).first.size());
}

// Returns the ends of a lane that chooses the sender's NIC.
Cluster::NicEnds Cluster::ends_of_choice(std::uint32_t from, std::uint32_t to, std::uint32_t fabric,
                                         std::uint32_t lane) const {
  const auto here = nic_ways(from, fabric).first;
  const auto [there, equal_there] = nic_ways(to, fabric);
  const HostRoutes::NicRoute& begin = here[((lane & ~kFirstChosenLane) >> kChosenBits) % here.size()];
  const HostRoutes::NicRoute* end = &there[lane % equal_there];
  if (hosts[gpus[from].host].group == hosts[gpus[to].host].group) {
    const auto same = std::find_if(there.begin(), there.end(),
                                   [&](const HostRoutes::NicRoute& way) { return way.nic == begin.nic; });
    if (same != there.end()) end = &*same;
  }
  return {sending_end(from, begin), receiving_end(to, *end)};
}

Cluster::NicEnds Cluster::nic_ends(std::uint32_t from, std::uint32_t to, std::uint32_t lane) const {
  const std::uint32_t fabric = packet_fabric(from, to);
  if (lane >= kFirstChosenLane) {
    NicEnds chosen = ends_of_choice(from, to, fabric, lane);
    if (joins(chosen.from.nic, chosen.to.nic)) return chosen;
  }
  const auto [there, equal_there] = nic_ways(to, fabric);
  const auto [here, equal_here] = nic_ways(from, fabric);
  NicEnds ends{sending_end(from, here[lane % equal_here]), receiving_end(to, there[lane % equal_there])};
  if (joins(ends.from.nic, ends.to.nic)) return ends;
  for (const HostRoutes::NicRoute& way : here) {
    ends.from = sending_end(from, way);
    if (joins(ends.from.nic, ends.to.nic)) return ends;
  }
  return ends_elsewhere(from, to, fabric, lane);
}

}  // namespace netsim
