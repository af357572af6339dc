#include "sim/topology/files/described_links.h"

#include <algorithm>

namespace netsim {

DescribedLinks::DescribedLinks(const DescribedCluster& cluster)
    : cluster_(cluster), of_(cluster.nodes.size()) {
  for (const Link& link : cluster.links) {
    of_[link.a].push_back(&link);
    of_[link.b].push_back(&link);
  }
}

std::uint32_t DescribedLinks::leaving(std::uint32_t node) const {
  return static_cast<std::uint32_t>(
      std::count_if(of_[node].begin(), of_[node].end(), [this](const Link* link) { return leaves(*link); }));
}

bool DescribedLinks::is_nvswitch(std::uint32_t node) const {
  if (cluster_.nodes[node].kind != DescribedCluster::Kind::network_switch) return false;
  const auto inner = [this](const Link* link) { return link->scale_up && !leaves(*link); };
  return std::any_of(of_[node].begin(), of_[node].end(), inner);
}

std::optional<BitRate> DescribedLinks::nvlink_rate(const Link& link) const {
  if (link.rate || !link.together) return link.rate;
  return share(link, *link.together);
}

BitRate DescribedLinks::share(const Link& link, BitRate together) const {
  std::size_t sharing = 1;
  for (const std::uint32_t node : {link.a, link.b}) {
    if (!is_xpu(node)) continue;
    const auto shares = std::count_if(of_[node].begin(), of_[node].end(), [this](const Link* other) {
      return other->scale_up && !other->rate && !leaves(*other);
    });
    sharing = std::max(sharing, static_cast<std::size_t>(shares));
  }
  return std::max<BitRate>(together / static_cast<BitRate>(sharing), 1);
}

std::set<std::uint32_t> DescribedLinks::near(std::uint32_t xpu) const {
  std::set<std::uint32_t> found{xpu};
  std::vector<std::uint32_t> reached{xpu};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (reached[i] != xpu && is_xpu(reached[i])) continue;
    for (const Link* link : of_[reached[i]]) {
      if (!link->scale_up || leaves(*link)) continue;
      if (found.insert(peer(*link, reached[i])).second) reached.push_back(peer(*link, reached[i]));
    }
  }
  std::erase_if(found, [this](std::uint32_t node) { return !is_xpu(node); });
  return found;
}

}  // namespace netsim
