#include "sim/topology/switch_graph.h"

#include <algorithm>
#include <string>

#include "sim/topology/files/link_list.h"

namespace netsim {
namespace {

LinkList link_list(const SwitchGraph& graph, const SwitchGraphParameters& parameters) {
  LinkList list;
  list.host_ports = graph.switches * graph.hosts_per_switch;
  for (std::uint32_t i = 0; i < graph.switches; ++i)
    list.switches.push_back({"switch" + std::to_string(i), 0});
  const LinkSpec to_host = parameters.link();
  const LinkSpec between = parameters.link(parameters.switch_rate.value_or(parameters.rate));
  for (std::uint32_t host = 0; host < list.host_ports; ++host)
    list.links.push_back({{false, host / graph.hosts_per_switch}, {true, host}, to_host, to_host, {}});
  for (const auto& [a, b] : graph.links) list.links.push_back({{false, a}, {false, b}, between, between, {}});
  return list;
}

class SwitchGraphTopology final : public Topology {
 public:
  SwitchGraphTopology(LinkList list, const ChannelParameters& channels, std::uint32_t diameter)
      : list_(std::move(list)), channels_(channels), diameter_(diameter) {}
  std::uint32_t host_ports() const override { return list_.host_ports; }
  std::unique_ptr<Routes> build(Graph& graph, std::span<const HostPort> nics) const override {
    return list_.build(graph, nics, channels_, std::max(diameter_, 1U));
  }

 private:
  LinkList list_;
  ChannelParameters channels_;
  std::uint32_t diameter_;
};

std::vector<std::vector<std::uint32_t>> neighbours_of(const SwitchGraph& graph) {
  std::vector<std::vector<std::uint32_t>> neighbours(graph.switches);
  for (const auto& [a, b] : graph.links) {
    neighbours[a].push_back(b);
    neighbours[b].push_back(a);
  }
  return neighbours;
}

// Returns the number of links from one switch to all others; kNoId: it cannot be reached.
std::vector<std::uint32_t> distances(const std::vector<std::vector<std::uint32_t>>& neighbours,
                                     std::uint32_t from) {
  std::vector<std::uint32_t> distance(neighbours.size(), kNoId), reached{from};
  distance[from] = 0;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const std::uint32_t next : neighbours[reached[i]]) {
      if (distance[next] != kNoId) continue;
      distance[next] = distance[reached[i]] + 1;
      reached.push_back(next);
    }
  }
  return distance;
}

}  // namespace

void SwitchGraph::tidy() {
  for (auto& [a, b] : links) {
    if (a > b) std::swap(a, b);
  }
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  std::erase_if(links, [](const auto& link) { return link.first == link.second; });
}

bool SwitchGraph::is_connected() const {
  const std::vector<std::uint32_t> distance = distances(neighbours_of(*this), 0);
  return std::find(distance.begin(), distance.end(), kNoId) == distance.end();
}

std::uint32_t SwitchGraph::diameter() const {
  const auto neighbours = neighbours_of(*this);
  std::uint32_t longest = 0;
  for (std::uint32_t from = 0; from < switches; ++from) {
    const std::vector<std::uint32_t> distance = distances(neighbours, from);
    longest = std::max(longest, *std::max_element(distance.begin(), distance.end()));
  }
  return longest;
}

std::unique_ptr<Topology> switch_graph(SwitchGraph graph, const SwitchGraphParameters& parameters,
                                       const ConfigNode& where) {
  const std::int64_t host_ports = std::int64_t{graph.switches} * graph.hosts_per_switch;
  if (host_ports > kMaxHostPorts) {
    where.fail("a fabric of " + std::to_string(host_ports) + " host ports; at most " +
               std::to_string(kMaxHostPorts) + " are allowed");
  }
  graph.tidy();
  if (!graph.is_connected()) where.fail("the switches are not all joined: more links are needed");
  check_channels(parameters, graph.switches, where);
  return std::make_unique<SwitchGraphTopology>(link_list(graph, parameters), parameters, graph.diameter());
}

}  // namespace netsim
