#include "sim/topology/host_ways.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "sim/topology/topology.h"

namespace netsim {
namespace {

// What a way is judged by, less is better. A NIC passes PCIe traffic on only where nothing else does.
struct Cost {
  std::uint32_t crossings = 0;  // from CPU to CPU
  std::uint32_t links = 0;
  BitRate narrowest = std::numeric_limits<BitRate>::max();

  auto key() const { return std::tuple(crossings, links, -narrowest); }
  bool operator<(const Cost& other) const { return key() < other.key(); }
  bool operator==(const Cost& other) const { return key() == other.key(); }
};

// Ways from one node of a host to all others over links of one kind, by Dijkstra's algorithm; a host has few
// nodes.
class Search {
 public:
  Search(const Graph& graph, NodeId first_node, NodeId from, LinkKind kind)
      : graph_(graph),
        first_node_(first_node),
        kind_(kind),
        costs_(graph.node_count() - first_node),
        by_(costs_.size(), kNoId),
        done_(costs_.size(), false) {
    reached_.push_back(from);
    while (!reached_.empty()) leave(take_nearest(), from);
  }

  bool reaches(NodeId node) const { return by_[node - first_node_] != kNoId; }
  const Cost& cost(NodeId node) const { return costs_[node - first_node_]; }
  std::vector<PortId> way(NodeId from, NodeId to) const {
    std::vector<PortId> ports;
    for (NodeId at = to; at != from; at = graph_.port(ports.back()).node)
      ports.push_back(by_[at - first_node_]);
    std::reverse(ports.begin(), ports.end());
    return ports;
  }

 private:
  NodeId take_nearest() {
    const auto nearest = std::min_element(reached_.begin(), reached_.end(), [this](NodeId a, NodeId b) {
      return std::tuple(cost(a).key(), a) < std::tuple(cost(b).key(), b);
    });
    const NodeId node = *nearest;
    reached_.erase(nearest);
    done_[node - first_node_] = true;
    return node;
  }

  bool passes(NodeId node) const {
    const NodeKind kind = graph_.node(node).kind;
    if (kind_ == LinkKind::nvlink) return kind == NodeKind::scale_up_switch;
    return kind != NodeKind::gpu;
  }

  void leave(NodeId at, NodeId from) {
    if (at != from && !passes(at)) return;
    for (const PortId port : graph_.ports_of(at)) {
      const PortSpec& spec = graph_.port(port);
      if (spec.link.kind != kind_ || spec.peer_node < first_node_ || spec.peer_node == from) continue;
      offer(spec.peer_node, port, next_cost(at, from, spec));
    }
  }

  Cost next_cost(NodeId at, NodeId from, const PortSpec& port) const {
    constexpr std::uint32_t kThroughNic = 1000;
    const auto is = [this](NodeId node, NodeKind kind) { return graph_.node(node).kind == kind; };
    Cost cost = costs_[at - first_node_];
    if (is(at, NodeKind::cpu) && is(port.peer_node, NodeKind::cpu)) ++cost.crossings;
    if (at != from && is(at, NodeKind::nic)) cost.crossings += kThroughNic;
    ++cost.links;
    cost.narrowest = std::min(cost.narrowest, port.link.rate);
    return cost;
  }

  void offer(NodeId node, PortId port, const Cost& cost) {
    const std::size_t index = node - first_node_;
    if (done_[index] || (by_[index] != kNoId && !(cost < costs_[index]))) return;
    if (by_[index] == kNoId) reached_.push_back(node);
    by_[index] = port;
    costs_[index] = cost;
  }

  const Graph& graph_;
  NodeId first_node_;
  LinkKind kind_;
  std::vector<Cost> costs_;  // by node, from the first
  std::vector<PortId> by_;   // the last port of the way
  std::vector<bool> done_;
  std::vector<NodeId> reached_;
};

std::vector<Search> searches(const Graph& graph, const HostBuild& host, NodeId first_node, LinkKind kind) {
  std::vector<Search> result;
  for (const NodeId gpu : host.gpus) result.emplace_back(graph, first_node, gpu, kind);
  return result;
}

// The other GPU by way of which NVLink joins two that it does not join otherwise; kNoId: there is none.
std::uint32_t forwarder(const std::vector<Search>& nvlink, const HostBuild& host, std::uint32_t from,
                        std::uint32_t to) {
  std::vector<std::uint32_t> best;
  BitRate widest = 0;
  for (std::uint32_t via = 0; via < host.gpus.size(); ++via) {
    if (via == from || via == to || !nvlink[from].reaches(host.gpus[via]) ||
        !nvlink[via].reaches(host.gpus[to])) {
      continue;
    }
    const BitRate rate =
        std::min(nvlink[from].cost(host.gpus[via]).narrowest, nvlink[via].cost(host.gpus[to]).narrowest);
    if (rate > widest) best.clear();
    widest = std::max(widest, rate);
    if (rate == widest) best.push_back(via);
  }
  return best.empty() ? kNoId : best[(from + to) % best.size()];
}

std::vector<PortId> joined(std::vector<PortId> first, const std::vector<PortId>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<PortId> counted_from(std::vector<PortId> ports, PortId first) {
  for (PortId& port : ports) port -= first;
  return ports;
}

HostWays::GpuWay gpu_way(const std::vector<Search>& nvlink, const std::vector<Search>& pcie,
                         const HostBuild& host, std::uint32_t from, std::uint32_t to) {
  const NodeId a = host.gpus[from], b = host.gpus[to];
  if (nvlink[from].reaches(b)) return {HostWayKind::nvlink, nvlink[from].way(a, b)};
  if (const std::uint32_t via = forwarder(nvlink, host, from, to); via != kNoId) {
    const NodeId middle = host.gpus[via];
    return {HostWayKind::nvlink, joined(nvlink[from].way(a, middle), nvlink[via].way(middle, b))};
  }
  if (pcie[from].reaches(b)) return {HostWayKind::pcie, pcie[from].way(a, b)};
  return {};
}

// To the nearest CPU.
HostWays::GpuWay cpu_way(const Graph& graph, const Search& pcie, NodeId gpu, NodeId first_node) {
  NodeId nearest = kNoId;
  for (auto node = first_node; node < graph.node_count(); ++node) {
    if (graph.node(node).kind != NodeKind::cpu || !pcie.reaches(node)) continue;
    if (nearest == kNoId || pcie.cost(node) < pcie.cost(nearest)) nearest = node;
  }
  if (nearest == kNoId) return {};
  return {HostWayKind::pcie, pcie.way(gpu, nearest)};
}

// Those of the fabric's host ports that the GPU has a way to, the nearest first. A port of another GPU is its
// own.
std::vector<NodeId> joined_nodes(const HostBuild& host, const Search& pcie, std::uint32_t gpu,
                                 std::uint32_t fabric) {
  const NodeId at = host.gpus[gpu];
  std::vector<NodeId> nodes;
  for (const NodeId node : host.ports[fabric]) {
    const bool of_gpu = std::find(host.gpus.begin(), host.gpus.end(), node) != host.gpus.end();
    if (node == at || (!of_gpu && pcie.reaches(node))) nodes.push_back(node);
  }
  std::stable_sort(nodes.begin(), nodes.end(),
                   [&](NodeId a, NodeId b) { return pcie.cost(a) < pcie.cost(b); });
  return nodes;
}

// Ways to the host ports that the GPU's PCIe does not reach, over NVLink to the GPU that is nearest to each.
std::vector<HostWays::NicWay> ways_by_others(const std::vector<Search>& nvlink,
                                             const std::vector<Search>& pcie, const HostBuild& host,
                                             std::uint32_t gpu, std::uint32_t fabric) {
  std::vector<HostWays::NicWay> ways;
  for (const NodeId node : host.ports[fabric]) {
    const bool of_gpu = std::find(host.gpus.begin(), host.gpus.end(), node) != host.gpus.end();
    if (of_gpu || pcie[gpu].reaches(node)) continue;
    std::uint32_t nearest = kNoId;
    for (std::uint32_t other = 0; other < host.gpus.size(); ++other) {
      if (other == gpu || !nvlink[gpu].reaches(host.gpus[other]) || !pcie[other].reaches(node)) continue;
      if (nearest == kNoId || pcie[other].cost(node) < pcie[nearest].cost(node)) nearest = other;
    }
    if (nearest == kNoId) continue;
    const NodeId middle = host.gpus[nearest];
    ways.push_back({node, joined(nvlink[gpu].way(host.gpus[gpu], middle), pcie[nearest].way(middle, node))});
  }
  std::stable_sort(ways.begin(), ways.end(), [](const HostWays::NicWay& a, const HostWays::NicWay& b) {
    return a.ports.size() < b.ports.size();
  });
  return ways;
}

// How many of the ways, which stand in the order of their links, are as short as the first.
std::uint32_t equally_short(const std::vector<HostWays::NicWay>& ways) {
  const auto as_first = [&](const HostWays::NicWay& way) {
    return way.ports.size() == ways.front().ports.size();
  };
  return static_cast<std::uint32_t>(std::count_if(ways.begin(), ways.end(), as_first));
}

std::uint32_t equally_near(const Search& pcie, const std::vector<NodeId>& nodes) {
  const auto as_first = [&](NodeId node) { return pcie.cost(node) == pcie.cost(nodes.front()); };
  return static_cast<std::uint32_t>(std::count_if(nodes.begin(), nodes.end(), as_first));
}

}  // namespace

HostWays::HostWays(const Graph& graph, const HostBuild& host, NodeId first_node, PortId first_port)
    : gpus_(static_cast<std::uint32_t>(host.gpus.size())),
      fabrics_(static_cast<std::uint32_t>(host.ports.size())) {
  const std::vector<Search> nvlink = searches(graph, host, first_node, LinkKind::nvlink);
  const std::vector<Search> pcie = searches(graph, host, first_node, LinkKind::pcie);
  for (std::uint32_t from = 0; from < gpus_; ++from) {
    for (std::uint32_t to = 0; to < gpus_; ++to) {
      GpuWay way = from == to ? cpu_way(graph, pcie[from], host.gpus[from], first_node)
                              : gpu_way(nvlink, pcie, host, from, to);
      for (const PortId port : way.ports) way.delay += graph.port(port).link.delay;
      way.ports = counted_from(std::move(way.ports), first_port);
      gpu_ways_.push_back(std::move(way));
    }
  }
  std::vector<std::uint32_t> turns(fabrics_ * (graph.node_count() - first_node), 0);
  for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) {
    for (std::uint32_t fabric = 0; fabric < fabrics_; ++fabric) {
      std::vector<NodeId> near = joined_nodes(host, pcie[gpu], gpu, fabric);
      const std::uint32_t equal = equally_near(pcie[gpu], near);
      if (equal > 1) {
        std::uint32_t& turn = turns[fabric + fabrics_ * (near.front() - first_node)];
        std::rotate(near.begin(), near.begin() + turn++ % equal, near.begin() + equal);
      }
      std::vector<NicWay>& ways = nic_ways_.emplace_back();
      for (const NodeId node : near)
        ways.push_back({node - first_node, counted_from(pcie[gpu].way(host.gpus[gpu], node), first_port)});
      for (HostWays::NicWay& way : ways_by_others(nvlink, pcie, host, gpu, fabric))
        ways.push_back({way.nic - first_node, counted_from(std::move(way.ports), first_port)});
      nearest_.push_back(equal != 0 ? equal : equally_short(ways));
    }
  }
}

std::vector<PortId> reversed(std::span<const PortId> ports) {
  std::vector<PortId> back(ports.rbegin(), ports.rend());
  for (PortId& port : back) port ^= 1U;
  return back;
}

}  // namespace netsim
