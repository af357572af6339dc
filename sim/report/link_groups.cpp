#include "sim/report/link_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace netsim {
namespace {

const char* part_name(NodeKind kind) {
  switch (kind) {
    case NodeKind::gpu:
      return "GPU";
    case NodeKind::nic:
      return "NIC";
    case NodeKind::scale_up_switch:
      return "NVSwitch";
    case NodeKind::pcie_switch:
      return "PCIe";
    case NodeKind::cpu:
      return "CPU";
    case NodeKind::fabric_switch:
      return "switch";
  }
  return "?";
}

std::string end_name(const Node& node) {
  return node.kind == NodeKind::fabric_switch ? fmt::format("tier {}", node.tier) : "hosts";
}

// Places of a tier in the order of the table: within hosts, then by the lower end, upward before downward.
using TierKey = std::tuple<int, int, int, std::string>;

TierKey key_of(const Node& from, const Node& to) {
  const auto level = [](const Node& node) { return node.kind == NodeKind::fabric_switch ? node.tier : -1; };
  const int low = std::min(level(from), level(to)), high = std::max(level(from), level(to));
  if (high < 0 && from.atom == to.atom)
    return {-2, 0, 0, fmt::format("{} -> {}", part_name(from.kind), part_name(to.kind))};
  if (low == high) return {low, high, 0, high < 0 ? "hosts -> hosts" : "within " + end_name(from)};
  return {low, high, level(from) < level(to) ? 0 : 1, end_name(from) + " -> " + end_name(to)};
}

// Adds a link to the counters of its tier. `index` is its place in Results::links.
void add_link(TierOfLinks& tier, const Results& results, std::size_t index) {
  const LinkResult& link = results.links[index];
  const double busy = utilisation(link, results.simulated);
  const bool first = tier.links++ == 0;
  tier.least_rate = first ? link.rate : std::min(tier.least_rate, link.rate);
  tier.most_rate = std::max(tier.most_rate, link.rate);
  tier.mean_utilisation += busy;  // the sum, until all links are added
  if (first || busy > tier.most_utilisation) {
    tier.most_utilisation = busy;
    tier.busiest = index;
  }
  if (first || link.counters.max_queue > results.links[tier.longest_queue].counters.max_queue)
    tier.longest_queue = index;
  add_counters(port_counters(), tier.sum, link.counters);
}

}  // namespace

LinkTiers link_tiers(const Graph& graph) {
  const auto key = [&graph](PortId port) {
    return key_of(graph.node(graph.port(port).node), graph.node(graph.port(port).peer_node));
  };
  std::map<TierKey, std::uint32_t> numbers;
  for (PortId port = 0; port < graph.port_count(); ++port) numbers[key(port)] = 0;
  LinkTiers tiers;
  for (auto& [place, number] : numbers) {
    number = static_cast<std::uint32_t>(tiers.names.size());
    tiers.names.push_back(std::get<3>(place));
  }
  tiers.of_port.reserve(graph.port_count());
  for (PortId port = 0; port < graph.port_count(); ++port) tiers.of_port.push_back(numbers.at(key(port)));
  return tiers;
}

std::vector<TierOfLinks> tiers_of_links(const Results& results) {
  std::map<std::pair<std::uint32_t, LinkKind>, TierOfLinks> tiers;
  for (std::size_t i = 0; i < results.links.size(); ++i) {
    const LinkResult& link = results.links[i];
    TierOfLinks& tier = tiers[{link.tier, link.kind}];
    tier.tier = link.tier;
    tier.kind = link.kind;
    add_link(tier, results, i);
  }
  std::vector<TierOfLinks> used;
  for (auto& [key, tier] : tiers) {
    if (tier.sum.wire_bytes == 0) continue;
    tier.mean_utilisation /= static_cast<double>(tier.links);
    used.push_back(tier);
  }
  return used;
}

std::string tier_name(const Results& results, const TierOfLinks& tier) {
  return tier.tier < results.link_tiers.size() ? results.link_tiers[tier.tier] : to_string(tier.kind);
}

}  // namespace netsim
