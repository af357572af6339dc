#include "sim/report/cluster_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/report/timeline.h"

namespace netsim {

ClusterParts::ClusterParts(const Cluster& cluster) : cluster_(cluster) {
  find_hosts();
  find_switches();
  find_rails();
  find_classes();
  find_pods();
}

std::string ClusterParts::host_name(std::uint32_t host) const {
  return host_and_part(graph().node(nodes_of_host_[host].front()).name).host;
}

std::vector<NodeId> ClusterParts::first_switches(std::size_t most, std::vector<std::string>& notes) const {
  if (switches_.size() <= most) return switches_;
  notes.push_back(fmt::format("The first {} of {} switches are drawn.", most, switches_.size()));
  return {switches_.begin(), switches_.begin() + static_cast<std::ptrdiff_t>(most)};
}

bool ClusterParts::is_inside_host(PortId port) const {
  const NodeId a = graph().port(port).node, b = graph().port(port).peer_node;
  return host_of(a) != kNoId && host_of(a) == host_of(b) && !(is_switch(graph(), a) && is_switch(graph(), b));
}

std::map<NodeId, std::vector<std::uint32_t>> ClusterParts::hosts_by_switch() const {
  std::map<NodeId, std::vector<std::uint32_t>> hosts;
  for (std::uint32_t host = 0; host < cluster_.host_count; ++host) {
    if (!has_router(host) && !joined_[host].empty()) hosts[joined_[host].front()].push_back(host);
  }
  return hosts;
}

ClusterParts::Layout ClusterParts::layout() const {
  const auto is_placed = [this](NodeId id) { return graph().drawn_at(id) != nullptr; };
  if (!switches_.empty() && std::all_of(switches_.begin(), switches_.end(), is_placed)) return Layout::places;
  std::set<std::pair<std::size_t, int>> tiers;
  for (const NodeId id : switches_) tiers.emplace(fabric_of(id), graph().node(id).tier);
  return tiers.size() == 1 && switches_.size() > 2 ? Layout::cycle : Layout::tiers;
}

void ClusterParts::find_hosts() {
  host_of_atom_.assign(graph().atom_count(), kNoId);
  for (const Gpu& gpu : cluster_.gpus) host_of_atom_[graph().node(gpu.node).atom] = gpu.host;
  nodes_of_host_.resize(cluster_.host_count);
  joined_.resize(cluster_.host_count);
  has_router_.resize(cluster_.host_count);
  for (NodeId id = 0; id < graph().node_count(); ++id) {
    const std::uint32_t host = host_of(id);
    if (host == kNoId) continue;
    nodes_of_host_[host].push_back(id);
    if (is_switch(graph(), id)) has_router_[host] = true;
  }
  for (const ClusterFabric& fabric : cluster_.fabrics) {
    for (const HostPort& port : fabric.ports) {
      for (const PortId id : graph().ports_of(port.nic)) {
        const NodeId peer = graph().port(id).peer_node;
        if (host_of(peer) == kNoId) joined_[port.host].push_back(peer);
      }
    }
  }
  for (std::vector<NodeId>& switches : joined_) {
    std::sort(switches.begin(), switches.end());
    switches.erase(std::unique(switches.begin(), switches.end()), switches.end());
  }
}

void ClusterParts::find_switches() {
  std::vector<NodeId> all;
  for (NodeId id = 0; id < graph().node_count(); ++id) {
    const bool outside = graph().node(id).kind == NodeKind::scale_up_switch && host_of(id) == kNoId;
    if (!is_switch(graph(), id) && !outside) continue;
    all.push_back(id);
    const auto holds = [id](const ClusterFabric& fabric) {
      return id >= fabric.first_switch && id < fabric.end_switch;
    };
    const auto fabric = std::find_if(cluster_.fabrics.begin(), cluster_.fabrics.end(), holds);
    const auto number = static_cast<std::size_t>(fabric - cluster_.fabrics.begin());
    const bool scale_up = fabric != cluster_.fabrics.end() && fabric->scale_up;
    fabric_of_[id] = number + (scale_up ? cluster_.fabrics.size() : 0);
  }
  std::set<std::size_t> used;
  for (const auto& [id, fabric] : fabric_of_) used.insert(fabric);
  for (auto& [id, fabric] : fabric_of_)
    fabric = static_cast<std::size_t>(std::distance(used.begin(), used.find(fabric)));
  leave_out_unused(all);
}

void ClusterParts::leave_out_unused(const std::vector<NodeId>& all) {
  std::set<NodeId> used;
  for (const NodeId id : all) {
    if (host_of(id) != kNoId) used.insert(id);
  }
  for (const std::vector<NodeId>& switches : joined_) used.insert(switches.begin(), switches.end());
  const std::set<NodeId> beside_hosts = used;
  std::vector<NodeId> queue(used.begin(), used.end());
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const PortId port : graph().ports_of(queue[i])) {
      const NodeId peer = graph().port(port).peer_node;
      const bool up = graph().node(peer).tier >= graph().node(queue[i]).tier;
      if (fabric_of_.contains(peer) && up && used.insert(peer).second) queue.push_back(peer);
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const NodeId id : all) {
      if (!used.contains(id) || beside_hosts.contains(id)) continue;
      std::set<NodeId> peers;
      for (const PortId port : graph().ports_of(id)) {
        if (used.contains(graph().port(port).peer_node)) peers.insert(graph().port(port).peer_node);
      }
      if (peers.size() < 2) changed = used.erase(id) > 0;
    }
  }
  switches_.assign(used.begin(), used.end());
  unused_ = all.size() - used.size();
}

void ClusterParts::find_rails() {
  for (const ClusterFabric& fabric : cluster_.fabrics) {
    std::map<NodeId, std::uint32_t> rails;
    std::set<std::uint32_t> numbers;
    bool mixed = false;
    for (const HostPort& port : fabric.ports) {
      for (const PortId id : graph().ports_of(port.nic)) {
        const NodeId peer = graph().port(id).peer_node;
        if (host_of(peer) != kNoId) continue;
        mixed = mixed || rails.try_emplace(peer, port.rail).first->second != port.rail;
        numbers.insert(port.rail);
      }
    }
    if (mixed || numbers.size() < 2) continue;
    rails_ = std::max(rails_, *numbers.rbegin() + 1);
    rail_of_.insert(rails.begin(), rails.end());
    for (const HostPort& port : fabric.ports) rail_of_[port.nic] = port.rail;
  }
  std::vector<NodeId> by_tier = switches_;
  std::stable_sort(by_tier.begin(), by_tier.end(),
                   [this](NodeId a, NodeId b) { return graph().node(a).tier < graph().node(b).tier; });
  if (rails_ > 0) find_rails_above(by_tier);
}

void ClusterParts::find_rails_above(const std::vector<NodeId>& by_tier) {
  for (const NodeId id : by_tier) {
    std::set<std::uint32_t> below;
    for (const PortId port : graph().ports_of(id)) {
      const NodeId peer = graph().port(port).peer_node;
      if (graph().node(peer).tier < graph().node(id).tier) below.insert(rail_of(peer));
    }
    if (below.size() == 1 && *below.begin() != kNoId) rail_of_.try_emplace(id, *below.begin());
  }
}

LinkClass ClusterParts::link_class(PortId port) const {
  const LinkSpec &there = graph().port(port).link, &back = graph().port(port ^ 1U).link;
  return {there.kind, std::max(there.rate, back.rate)};
}

void ClusterParts::find_classes() {
  std::set<LinkClass> classes;
  for (PortId id = 0; id < graph().port_count(); ++id) {
    // Links between a chip and its own router are not drawn.
    const bool own = is_inside_host(id) && is_switch(graph(), graph().port(id).node) !=
                                               is_switch(graph(), graph().port(id).peer_node);
    if (!own) classes.insert(link_class(id));
  }
  classes_.assign(classes.begin(), classes.end());
}

std::size_t ClusterParts::class_of(PortId port) const {
  const auto found = std::lower_bound(classes_.begin(), classes_.end(), link_class(port));
  return static_cast<std::size_t>(found - classes_.begin());
}

void ClusterParts::find_pods() {
  int top = 0;
  for (const NodeId id : switches_) {
    if (fabric_of(id) == 0) top = std::max(top, graph().node(id).tier);
  }
  std::map<std::size_t, std::map<int, std::size_t>> sizes;  // by pod and tier
  for (const NodeId first : switches_) {
    if (fabric_of(first) != 0 || graph().node(first).tier == top || pod_of_.contains(first)) continue;
    const std::size_t pod = pods_++;
    std::vector<NodeId> queue{first};
    pod_of_[first] = pod;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      ++sizes[pod][graph().node(queue[i]).tier];
      for (const PortId port : graph().ports_of(queue[i])) {
        const NodeId peer = graph().port(port).peer_node;
        if (!std::binary_search(switches_.begin(), switches_.end(), peer) || fabric_of(peer) != 0) continue;
        if (graph().node(peer).tier != top && pod_of_.try_emplace(peer, pod).second) queue.push_back(peer);
      }
    }
  }
  const auto unequal = [&](const auto& pod) { return pod.second != sizes.begin()->second; };
  if (pods_ > 1 && std::none_of(sizes.begin(), sizes.end(), unequal)) return;
  pods_ = 0;
  pod_of_.clear();
}

void BoxIndex::add_switch(NodeId id, std::size_t box) {
  of_switch_[id] = box;
  if (parts_.host_of(id) != kNoId) of_host_.try_emplace(parts_.host_of(id), box);
}

std::optional<std::size_t> BoxIndex::box_of(NodeId id) const {
  if (const auto box = of_switch_.find(id); box != of_switch_.end()) return box->second;
  const auto host = of_host_.find(parts_.host_of(id));
  return host != of_host_.end() ? std::optional(host->second) : std::nullopt;
}

}  // namespace netsim
