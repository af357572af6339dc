#include "sim/topology/host_routes.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "sim/topology/topology.h"

namespace netsim {
namespace {

// The criteria by which routes are compared; less is better. A NIC forwards PCIe traffic only where nothing
// else does.
struct Cost {
  std::uint32_t crossings = 0;  // from CPU to CPU
  std::uint32_t links = 0;
  BitRate narrowest = std::numeric_limits<BitRate>::max();

  auto key() const { return std::tuple(crossings, links, -narrowest); }
  bool operator<(const Cost& other) const { return key() < other.key(); }
  bool operator==(const Cost& other) const { return key() == other.key(); }
};

// Computes the routes from one node of a host to all others over links of one kind, by Dijkstra's algorithm.
// A host has few nodes.
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
  std::vector<Cost> costs_;  // by node, counted from the first
  std::vector<PortId> by_;   // by node: the last port of its route
  std::vector<bool> done_;
  std::vector<NodeId> reached_;
};

std::vector<Search> searches(const Graph& graph, const HostBuild& host, NodeId first_node, LinkKind kind) {
  std::vector<Search> result;
  for (const NodeId gpu : host.gpus) result.emplace_back(graph, first_node, gpu, kind);
  return result;
}

// Returns the GPU that forwards between two GPUs which NVLink does not join otherwise; kNoId: there is none.
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

std::vector<PortId> joined_ports(std::vector<PortId> first, const std::vector<PortId>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<PortId> counted_from(std::vector<PortId> ports, PortId first) {
  for (PortId& port : ports) port -= first;
  return ports;
}

HostRoutes::GpuRoute gpu_way(const std::vector<Search>& nvlink, const std::vector<Search>& pcie,
                             const HostBuild& host, std::uint32_t from, std::uint32_t to) {
  const NodeId a = host.gpus[from], b = host.gpus[to];
  if (nvlink[from].reaches(b)) return {HostWayKind::nvlink, nvlink[from].way(a, b)};
  if (const std::uint32_t via = forwarder(nvlink, host, from, to); via != kNoId) {
    const NodeId middle = host.gpus[via];
    return {HostWayKind::nvlink, joined_ports(nvlink[from].way(a, middle), nvlink[via].way(middle, b))};
  }
  if (pcie[from].reaches(b)) return {HostWayKind::pcie, pcie[from].way(a, b)};
  return {};
}

// Returns the route to the nearest CPU.
HostRoutes::GpuRoute cpu_way(const Graph& graph, const Search& pcie, NodeId gpu, NodeId first_node) {
  NodeId nearest = kNoId;
  for (auto node = first_node; node < graph.node_count(); ++node) {
    if (graph.node(node).kind != NodeKind::cpu || !pcie.reaches(node)) continue;
    if (nearest == kNoId || pcie.cost(node) < pcie.cost(nearest)) nearest = node;
  }
  if (nearest == kNoId) return {};
  return {HostWayKind::pcie, pcie.way(gpu, nearest)};
}

// A route from a GPU to a host port that its PCIe reaches. Less is nearer; the order of the kinds is NCCL's
// (PATH_PXB, PATH_PXN, PATH_PHB).
struct NicChoice {
  enum class Kind : std::uint8_t { pcie, by_gpu, over_cpu };
  NodeId node = 0;
  Kind kind = Kind::pcie;
  Cost cost = {};
  std::vector<PortId> ports = {}, back = {};

  bool operator<(const NicChoice& other) const {
    return std::tuple(kind, cost.key()) < std::tuple(other.kind, other.cost.key());
  }
  bool as_near_as(const NicChoice& other) const { return kind == other.kind && cost == other.cost; }
};

// Finds the routes to host ports from the searches of all GPUs of a host.
class NicSearch {
 public:
  NicSearch(const Graph& graph, const HostBuild& host, const std::vector<Search>& nvlink,
            const std::vector<Search>& pcie)
      : graph_(graph), host_(host), nvlink_(nvlink), pcie_(pcie) {}

  // Returns the fabric's host ports that the GPU's PCIe reaches, the nearest first. A GPU that is a host port
  // itself serves no other GPU.
  std::vector<NicChoice> choices(std::uint32_t gpu, std::uint32_t fabric) const {
    std::vector<NicChoice> choices;
    for (const NodeId node : host_.ports[fabric]) {
      if (node == host_.gpus[gpu]) {
        choices.push_back({.node = node});
      } else if (!is_gpu(node) && pcie_[gpu].reaches(node)) {
        choices.push_back(choice(gpu, node));
      }
    }
    std::stable_sort(choices.begin(), choices.end());
    return choices;
  }

 private:
  bool is_gpu(NodeId node) const {
    return std::find(host_.gpus.begin(), host_.gpus.end(), node) != host_.gpus.end();
  }
  bool passes_cpu(const std::vector<PortId>& ports) const {
    return std::any_of(ports.begin(), ports.end(), [this](PortId port) {
      return graph_.node(graph_.port(port).peer_node).kind == NodeKind::cpu;
    });
  }

  NicChoice choice(std::uint32_t gpu, NodeId nic) const {
    NicChoice direct{.node = nic, .cost = pcie_[gpu].cost(nic), .back = pcie_[gpu].way(host_.gpus[gpu], nic)};
    direct.ports = direct.back;
    if (passes_cpu(direct.ports)) direct.kind = NicChoice::Kind::over_cpu;
    const std::uint32_t by = relay(gpu, direct);
    if (by == kNoId) return direct;
    const Cost nvlink = nvlink_[gpu].cost(host_.gpus[by]), pcie = pcie_[by].cost(nic);
    return {.node = nic,
            .kind = NicChoice::Kind::by_gpu,
            .cost = {pcie.crossings, nvlink.links + pcie.links, std::min(nvlink.narrowest, pcie.narrowest)},
            .ports = joined_ports(nvlink_[gpu].way(host_.gpus[gpu], host_.gpus[by]),
                                  pcie_[by].way(host_.gpus[by], nic)),
            .back = direct.back};
  }

  // Returns the GPU nearest to the NIC, if NVLink joins it and its route is better than the direct one. That
  // holds if its route passes no CPU, while the direct one passes a CPU or is narrower. kNoId: there is none.
  std::uint32_t relay(std::uint32_t gpu, const NicChoice& direct) const {
    std::uint32_t nearest = kNoId;
    for (std::uint32_t other = 0; other < host_.gpus.size(); ++other) {
      if (other == gpu || !nvlink_[gpu].reaches(host_.gpus[other]) || !pcie_[other].reaches(direct.node))
        continue;
      if (nearest == kNoId || pcie_[other].cost(direct.node) < pcie_[nearest].cost(direct.node))
        nearest = other;
    }
    if (nearest == kNoId || passes_cpu(pcie_[nearest].way(host_.gpus[nearest], direct.node))) return kNoId;
    const bool wider = pcie_[nearest].cost(direct.node).narrowest > direct.cost.narrowest;
    return direct.kind == NicChoice::Kind::over_cpu || wider ? nearest : kNoId;
  }

  const Graph& graph_;
  const HostBuild& host_;
  const std::vector<Search>&nvlink_, &pcie_;
};

// Returns the routes to the host ports that the GPU's PCIe does not reach, over NVLink to the GPU nearest to
// each.
std::vector<HostRoutes::NicRoute> ways_by_others(const std::vector<Search>& nvlink,
                                                 const std::vector<Search>& pcie, const HostBuild& host,
                                                 std::uint32_t gpu, std::uint32_t fabric) {
  std::vector<HostRoutes::NicRoute> ways;
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
    ways.push_back(
        {node, joined_ports(nvlink[gpu].way(host.gpus[gpu], middle), pcie[nearest].way(middle, node)), {}});
  }
  std::stable_sort(ways.begin(), ways.end(),
                   [](const HostRoutes::NicRoute& a, const HostRoutes::NicRoute& b) {
                     return a.ports.size() < b.ports.size();
                   });
  return ways;
}

// Returns how many of the routes, in ascending order of their links, are as short as the first.
std::uint32_t equally_short(const std::vector<HostRoutes::NicRoute>& ways) {
  const auto as_first = [&](const HostRoutes::NicRoute& way) {
    return way.ports.size() == ways.front().ports.size();
  };
  return static_cast<std::uint32_t>(std::count_if(ways.begin(), ways.end(), as_first));
}

std::uint32_t equally_near(const std::vector<NicChoice>& choices) {
  const auto as_first = [&](const NicChoice& one) { return one.as_near_as(choices.front()); };
  return static_cast<std::uint32_t>(std::count_if(choices.begin(), choices.end(), as_first));
}

}  // namespace

HostRoutes::HostRoutes(const Graph& graph, const HostBuild& host, NodeId first_node, PortId first_port)
    : gpus_(static_cast<std::uint32_t>(host.gpus.size())),
      fabrics_(static_cast<std::uint32_t>(host.ports.size())) {
  const std::vector<Search> nvlink = searches(graph, host, first_node, LinkKind::nvlink);
  const std::vector<Search> pcie = searches(graph, host, first_node, LinkKind::pcie);
  for (std::uint32_t from = 0; from < gpus_; ++from) {
    for (std::uint32_t to = 0; to < gpus_; ++to) {
      GpuRoute way = from == to ? cpu_way(graph, pcie[from], host.gpus[from], first_node)
                                : gpu_way(nvlink, pcie, host, from, to);
      for (const PortId port : way.ports) way.delay += graph.port(port).link.delay;
      way.ports = counted_from(std::move(way.ports), first_port);
      gpu_ways_.push_back(std::move(way));
    }
  }
  const NicSearch nics(graph, host, nvlink, pcie);
  std::vector<std::uint32_t> turns(fabrics_ * (graph.node_count() - first_node), 0);
  for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) {
    for (std::uint32_t fabric = 0; fabric < fabrics_; ++fabric) {
      std::vector<NicChoice> near = nics.choices(gpu, fabric);
      const std::uint32_t equal = equally_near(near);
      if (equal > 1) {
        std::uint32_t& turn = turns[fabric + fabrics_ * (near.front().node - first_node)];
        std::rotate(near.begin(), near.begin() + turn++ % equal, near.begin() + equal);
      }
      std::vector<NicRoute>& ways = nic_ways_.emplace_back();
      for (NicChoice& one : near) {
        ways.push_back({one.node - first_node, counted_from(std::move(one.ports), first_port),
                        counted_from(std::move(one.back), first_port)});
      }
      for (const HostRoutes::NicRoute& way : ways_by_others(nvlink, pcie, host, gpu, fabric))
        ways.push_back(
            {way.nic - first_node, counted_from(way.ports, first_port), counted_from(way.ports, first_port)});
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
