// Finds the hosts of a described cluster and groups them by kind: hosts_of() of described_cluster.h.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "sim/core/errors.h"
#include "sim/topology/files/described_links.h"

namespace netsim {
namespace {

class HostFinder {
 public:
  explicit HostFinder(const DescribedCluster& cluster) : cluster_(cluster), links_(cluster) {}

  std::vector<DescribedHosts> find() {
    for (const std::uint32_t unit : units_in_order()) add(unit);
    return std::move(hosts_);
  }

 private:
  using Link = DescribedCluster::Link;
  using Port = DescribedHosts::Port;

  template <class Predicate>
  bool any_node(std::uint32_t unit, Predicate predicate) const {
    const DescribedCluster::Unit& u = cluster_.units[unit];
    for (std::uint32_t node = u.first; node < u.first + u.nodes; ++node) {
      if (predicate(node)) return true;
    }
    return false;
  }
  bool is_host(std::uint32_t unit) const {
    return any_node(unit, [this](std::uint32_t node) { return links_.is_xpu(node); });
  }
  bool is_joined(std::uint32_t unit) const {
    return any_node(unit, [this](std::uint32_t node) { return links_.leaving(node) != 0; });
  }

  std::vector<std::uint32_t> units_in_order() const {
    std::vector<std::uint32_t> hosts;
    for (std::uint32_t unit = 0; unit < cluster_.units.size(); ++unit) {
      if (is_host(unit)) hosts.push_back(unit);
    }
    if (hosts.empty())
      throw InputError(Place{cluster_.file, 0, 0, ""}, "no device here has an xpu, so there is no host");
    const auto joined = [this](std::uint32_t unit) { return is_joined(unit); };
    if (std::any_of(hosts.begin(), hosts.end(), joined))
      std::erase_if(hosts, [&](std::uint32_t unit) { return !joined(unit); });
    std::stable_sort(hosts.begin(), hosts.end(),
                     [this](std::uint32_t a, std::uint32_t b) { return lowest_rank(a) < lowest_rank(b); });
    return hosts;
  }

  std::int64_t lowest_rank(std::uint32_t unit) const {
    std::int64_t lowest = INT64_MAX;
    any_node(unit, [&](std::uint32_t node) {
      if (cluster_.nodes[node].rank >= 0) lowest = std::min(lowest, cluster_.nodes[node].rank);
      return false;
    });
    return lowest;
  }

  bool passes_on(std::uint32_t unit) const {
    std::map<std::uint32_t, std::set<std::uint32_t>> near;
    const bool away = any_node(unit, [&](std::uint32_t node) {
      if (!links_.is_xpu(node)) return false;
      near.emplace(node, links_.near(node));
      const auto leads_away = [this](const Link* link) {
        return links_.leaves(*link) && links_.joins_xpus(*link);
      };
      const auto& own = links_.of(node);
      return std::any_of(own.begin(), own.end(), leads_away);
    });
    if (away) return true;
    // Checks whether some xpus are joined only over two or more others.
    return std::any_of(near.begin(), near.end(), [&](const auto& xpu) {
      std::set<std::uint32_t> within_two;
      for (const std::uint32_t next : xpu.second) within_two.insert(near[next].begin(), near[next].end());
      return std::any_of(within_two.begin(), within_two.end(), [&](std::uint32_t other) {
        return !std::includes(within_two.begin(), within_two.end(), near[other].begin(), near[other].end());
      });
    });
  }

  void add(std::uint32_t unit) {
    const DescribedCluster::Unit& u = cluster_.units[unit];
    DescribedHosts host;
    host.units = {unit};
    host.routers = passes_on(unit);
    for (std::uint32_t node = u.first; node < u.first + u.nodes; ++node) {
      if (links_.is_xpu(node)) host.xpus.push_back(node - u.first);
    }
    std::stable_sort(host.xpus.begin(), host.xpus.end(), [&](std::uint32_t a, std::uint32_t b) {
      return rank_of(u.first + a) < rank_of(u.first + b);
    });
    if (host.routers) {
      for (const std::uint32_t xpu : host.xpus) host.ports.push_back({xpu, 0});
    }
    for (std::uint32_t node = 0; node < u.nodes; ++node) {
      if (host.routers && (links_.is_xpu(u.first + node) || links_.is_nvswitch(u.first + node))) continue;
      for (std::uint32_t i = 0; i < links_.leaving(u.first + node); ++i) host.ports.push_back({node, i});
    }
    const auto [known, made] = kinds_.emplace(signature(host, u), hosts_.size());
    if (made) return hosts_.push_back(std::move(host));
    hosts_[known->second].units.push_back(unit);
  }

  std::uint64_t rank_of(std::uint32_t node) const {  // xpus without a rank come last
    return static_cast<std::uint64_t>(cluster_.nodes[node].rank);
  }

  // The properties in which two hosts of one kind agree.
  using Signature = std::tuple<std::string, bool, std::vector<std::uint32_t>, std::vector<Port>,
                               std::vector<std::tuple<std::uint32_t, std::uint32_t, bool, BitRate, Time>>,
                               std::vector<std::pair<std::int64_t, BitRate>>>;
  Signature signature(const DescribedHosts& host, const DescribedCluster::Unit& u) const {
    Signature result{u.kind, host.routers, host.xpus, host.ports, {}, {}};
    for (std::uint32_t node = u.first; node < u.first + u.nodes; ++node) {
      std::get<5>(result).emplace_back(cluster_.nodes[node].compute_capability,
                                       cluster_.nodes[node].nic_rate);
      for (const Link* link : links_.of(node)) {
        if (link->a != node || links_.leaves(*link)) continue;
        std::get<4>(result).emplace_back(node - u.first, link->b - u.first, link->scale_up,
                                         link->rate.value_or(0), link->delay.value_or(0));
      }
    }
    return result;
  }

  const DescribedCluster& cluster_;
  DescribedLinks links_;
  std::vector<DescribedHosts> hosts_;
  std::map<Signature, std::size_t> kinds_;
};

}  // namespace

std::vector<DescribedHosts> hosts_of(const DescribedCluster& cluster) { return HostFinder(cluster).find(); }

}  // namespace netsim
