#include "sim/topology/files/link_list.h"

#include <numeric>
#include <utility>

namespace netsim {
namespace {

// Disjoint sets of switches.
class Groups {
 public:
  explicit Groups(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0U); }
  std::uint32_t find(std::uint32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::uint32_t a, std::uint32_t b) { parent_[find(a)] = find(b); }

 private:
  std::vector<std::uint32_t> parent_;
};

}  // namespace

std::string LinkList::name(LinkEnd end) const {
  if (!end.host) return switches[end.index].name;
  return "host" + std::to_string(host_numbers.empty() ? end.index : host_numbers[end.index]);
}

std::vector<std::uint32_t> LinkList::numbers() const {
  if (!host_numbers.empty()) return host_numbers;
  std::vector<std::uint32_t> result(host_ports);
  std::iota(result.begin(), result.end(), 0U);
  return result;
}

std::string LinkList::problem(std::size_t& link) const {
  std::vector<std::uint32_t> switch_of(host_ports, kNoId);
  Groups groups(switches.size());
  for (link = 0; link < links.size(); ++link) {
    const auto& [a, b, forward, backward, place] = links[link];
    if (a == b) return name(a) + " is joined to itself";
    if (a.host && b.host) {
      return name(a) + " is joined to " + name(b) +
             ": hosts are joined to switches only. For accelerators with links to each other take the "
             "topology "
             "`torus` or a host with NVLinks (`dgx_1v`, `full_mesh`), or describe them as InfraGraph";
    }
    if (!a.host && !b.host) groups.join(a.index, b.index);
    for (const auto& [host, other] : {std::pair{a, b}, std::pair{b, a}}) {
      if (!host.host) continue;
      if (switch_of[host.index] != kNoId) {
        return name(host) + " has a second link; a host port has one";
      }
      switch_of[host.index] = other.index;
    }
  }
  if (host_ports == 0) return "no link leads to a host";
  for (std::uint32_t host = 0; host < host_ports; ++host) {
    const LinkEnd end{true, host};
    if (switch_of[host] == kNoId) return name(end) + " has no link";
    if (groups.find(switch_of[host]) != groups.find(switch_of[0])) {
      return "there is no path from " + name({true, 0}) + " to " + name(end);
    }
  }
  return {};
}

std::unique_ptr<Routes> LinkList::build(Graph& graph, std::span<const HostPort> nics,
                                        const ChannelParameters& channels, std::uint32_t longest) const {
  const auto first = static_cast<NodeId>(graph.node_count());
  for (const Switch& one : switches) {
    const bool router = one.router_of < nics.size();
    const AtomId atom = router ? graph.node(nics[one.router_of].nic).atom : graph.add_atom();
    graph.add_node(NodeKind::fabric_switch, atom, one.name, one.tier);
  }
  const auto absent = [&](LinkEnd end) { return end.host && end.index >= nics.size(); };
  const auto node = [&](LinkEnd end) { return end.host ? nics[end.index].nic : first + end.index; };
  for (const ListedLink& link : links) {
    if (absent(link.a) || absent(link.b)) continue;
    if (link.a.host) {  // the switch comes first, as in all topologies
      graph.add_link(node(link.b), node(link.a), link.backward, link.forward);
    } else {
      graph.add_link(node(link.a), node(link.b), link.forward, link.backward);
    }
  }
  return ordered_routes(graph, nics, channels, longest);
}

}  // namespace netsim
