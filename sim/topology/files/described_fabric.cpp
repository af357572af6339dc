// The fabric between the hosts of a described cluster: described_fabric() of described_cluster.h.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "sim/core/errors.h"
#include "sim/topology/files/described_links.h"

namespace netsim {
namespace {

class DescribedFabric final : public Topology {
 public:
  DescribedFabric(LinkList list, const ChannelParameters& channels, std::vector<std::int64_t> ranks)
      : list_(std::move(list)), channels_(channels), ranks_(std::move(ranks)) {}
  std::uint32_t host_ports() const override { return list_.host_ports; }
  std::vector<std::int64_t> gpu_ranks() const override { return ranks_; }
  std::unique_ptr<Routes> build(Graph& graph, std::span<const HostPort> nics) const override {
    return list_.build(graph, nics, channels_);
  }

 private:
  LinkList list_;
  ChannelParameters channels_;
  std::vector<std::int64_t> ranks_;
};

// Returns the ranks of the xpus in the order in which hosts and their xpus are numbered; empty: the file
// assigns none.
std::vector<std::int64_t> ranks_of(const DescribedCluster& cluster) {
  std::vector<std::int64_t> ranks;
  for (const DescribedHosts& kind : hosts_of(cluster)) {
    for (const std::uint32_t unit : kind.units) {
      for (const std::uint32_t xpu : kind.xpus)
        ranks.push_back(cluster.nodes[cluster.units[unit].first + xpu].rank);
    }
  }
  const auto none = [](std::int64_t rank) { return rank < 0; };
  return std::all_of(ranks.begin(), ranks.end(), none) ? std::vector<std::int64_t>() : ranks;
}

// FabricLister: lists the links between units, and those inside of hosts whose xpus forward packets.
class FabricLister {
 public:
  FabricLister(const DescribedCluster& cluster, const LinkSpec& absent)
      : cluster_(cluster), links_(cluster), absent_(absent), ends_(cluster.nodes.size()) {
    const std::vector<DescribedHosts> hosts = hosts_of(cluster);
    is_host_.assign(cluster.units.size(), false);
    for (const DescribedHosts& kind : hosts) {
      for (const std::uint32_t unit : kind.units) number_ports(kind, unit);
    }
    number_switches();
    for (const DescribedHosts& kind : hosts) {
      for (const std::uint32_t unit : kind.units) {
        if (kind.routers) add_inner_links(unit, kind.xpus.front());
      }
    }
    for (const Link& link : cluster.links) {
      if (links_.leaves(link)) add_link(link);
    }
    join_routers();
    find_tiers();
    check_joined();
  }
  LinkList take() { return std::move(list_); }

 private:
  using Link = DescribedCluster::Link;
  using Port = DescribedHosts::Port;

  LinkSpec spec(const Link& link) const {
    LinkSpec result = absent_;
    result.rate = links_.nvlink_rate(link).value_or(absent_.rate);
    result.delay = link.delay.value_or(absent_.delay);
    return result;
  }

  // The ends of a node's links between units: host ports, or the switch of a router.
  struct Ends {
    bool router = false;
    std::uint32_t first = kNoId;  // host port of its first link
    std::uint32_t taken = 0;      // number of links assigned so far
    std::uint32_t router_switch = kNoId;
    BitRate rate = 0;  // total rate of a router's links
  };

  void number_ports(const DescribedHosts& kind, std::uint32_t unit) {
    is_host_[unit] = true;
    for (const Port& port : kind.ports) {
      const std::uint32_t node = cluster_.units[unit].first + port.node;
      Ends& ends = ends_[node];
      if (port.number == 0) ends.first = list_.host_ports;
      unit_of_port_.push_back(unit);
      if (kind.routers && links_.is_xpu(node)) {
        ends.router = true;
        ends.router_switch = add_switch(cluster_.nodes[node].name, list_.host_ports);
      }
      ++list_.host_ports;
    }
  }

  std::uint32_t add_switch(const std::string& name, std::uint32_t router_of = kNoId) {
    list_.switches.push_back({name, 0, router_of});
    return static_cast<std::uint32_t>(list_.switches.size() - 1);
  }

  void number_switches() {
    switch_of_unit_.assign(cluster_.units.size(), kNoId);
    for (const Link& link : cluster_.links) {
      if (!links_.leaves(link)) continue;
      for (const std::uint32_t node : {link.a, link.b}) {
        const std::uint32_t unit = cluster_.nodes[node].unit;
        if (!is_host_[unit]) switch_of_unit_[unit] = 0;
      }
    }
    for (std::uint32_t unit = 0; unit < cluster_.units.size(); ++unit) {
      if (switch_of_unit_[unit] != kNoId) switch_of_unit_[unit] = add_switch(cluster_.units[unit].name);
    }
  }

  LinkEnd end(std::uint32_t node) {
    if (const std::uint32_t at = switch_of_unit_[cluster_.nodes[node].unit]; at != kNoId) return {false, at};
    Ends& ends = ends_[node];
    if (ends.router) return {false, ends.router_switch};
    return {true, ends.first + ends.taken++};
  }

  // Adds the NVLinks and NVSwitches of a host whose xpus forward packets. `xpu` is any of its xpus.
  void add_inner_links(std::uint32_t unit, std::uint32_t xpu) {
    const DescribedCluster::Unit& u = cluster_.units[unit];
    const std::uint32_t port = ends_[u.first + xpu].first;
    for (std::uint32_t node = u.first; node < u.first + u.nodes; ++node) {
      if (!links_.is_nvswitch(node)) continue;
      ends_[node].router = true;
      ends_[node].router_switch = add_switch(cluster_.nodes[node].name, port);
    }
    for (std::uint32_t node = u.first; node < u.first + u.nodes; ++node) {
      for (const Link* link : links_.of(node)) {
        if (link->a == node && link->scale_up && !links_.leaves(*link)) add_link(*link);
      }
    }
  }

  // Adds a link. A cable from NIC to NIC passes a switch that is a part of the first one's host.
  void add_link(const Link& link) {
    const LinkSpec between = spec(link);
    LinkEnd a = end(link.a);
    const LinkEnd b = end(link.b);
    for (const std::uint32_t node : {link.a, link.b}) ends_[node].rate += between.rate;
    if (a.host && b.host) {
      const LinkEnd middle{false, add_switch(cluster_.nodes[link.a].name + "/cable", a.index)};
      join_inside(a, middle, 2 * between.rate, between);
      a = middle;
    }
    list_.links.push_back({a, b, between, between, link.place});
  }

  // Joins a node and its own router, which is a part of it. The link takes no time and never limits the rate.
  void join_inside(LinkEnd host, LinkEnd router, BitRate rate, LinkSpec link) {
    link.rate = std::min(rate, kLinkRates.maximum);
    link.delay = 0;
    link.cut_through = true;
    list_.links.push_back({host, router, link, link, {}});
  }

  void join_routers() {
    for (const Ends& ends : ends_) {
      if (!ends.router || ends.first == kNoId) continue;
      join_inside({true, ends.first}, {false, ends.router_switch}, std::max(ends.rate, absent_.rate),
                  absent_);
    }
  }

  // Sets the tiers of the switches. A switch's tier is its distance from the hosts.
  void find_tiers() {
    std::vector<std::vector<std::uint32_t>> neighbours(list_.switches.size());
    std::vector<std::uint32_t> reached;
    std::vector<bool> seen(list_.switches.size(), false);
    const auto reach = [&](std::uint32_t at, int tier) {
      if (seen[at]) return;
      seen[at] = true;
      list_.switches[at].tier = tier;
      reached.push_back(at);
    };
    for (const ListedLink& link : list_.links) {
      if (link.a.host) reach(link.b.index, 0);
      if (link.b.host) reach(link.a.index, 0);
      if (link.a.host || link.b.host) continue;
      neighbours[link.a.index].push_back(link.b.index);
      neighbours[link.b.index].push_back(link.a.index);
    }
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (const std::uint32_t next : neighbours[reached[i]])
        reach(next, list_.switches[reached[i]].tier + 1);
    }
  }

  // Networks that a host has ports on. PCIe and NVLinks join its NICs to all of its xpus. An xpu that
  // forwards packets reaches only the networks of its own links.
  struct Networks {
    std::set<std::uint32_t> nics, xpus;
    auto operator<=>(const Networks&) const = default;
  };

  // Checks that every xpu reaches every xpu of the other hosts. Two hosts need a network on which both have
  // NICs, or a single network with the xpus of both.
  void check_joined() const {
    std::map<Networks, std::vector<std::uint32_t>> units;
    for (const auto& [unit, networks] : networks_by_unit()) units[networks].push_back(unit);
    const auto joined = [](const Networks& a, const Networks& b) {
      const bool nics = std::any_of(a.nics.begin(), a.nics.end(),
                                    [&](std::uint32_t network) { return b.nics.contains(network); });
      return nics || (a.xpus.size() == 1 && a.xpus == b.xpus);
    };
    for (auto a = units.begin(); a != units.end(); ++a) {
      for (auto b = a; b != units.end(); ++b) {
        const bool alone = a == b && a->second.size() == 1;
        if (alone ? a->first.xpus.size() <= 1 || !a->first.nics.empty() : joined(a->first, b->first))
          continue;
        const std::uint32_t first = a->second.front(), second = a == b ? a->second.back() : b->second.front();
        if (alone || (a == b && a->first.nics.empty()))
          throw InputError(Place{cluster_.file, 0, 0, ""}, "the xpus are not all joined with each other");
        throw InputError(Place{cluster_.file, 0, 0, ""},
                         cluster_.units[first].name + " and " + cluster_.units[second].name +
                             " have no ports on the same networks: there is no path from one to the other");
      }
    }
  }

  std::map<std::uint32_t, Networks> networks_by_unit() const {
    std::vector<std::uint32_t> network(list_.switches.size());
    std::iota(network.begin(), network.end(), 0U);
    const auto find = [&](std::uint32_t at) {
      while (network[at] != at) at = network[at] = network[network[at]];
      return at;
    };
    for (const ListedLink& link : list_.links) {
      if (!link.a.host && !link.b.host) network[find(link.a.index)] = find(link.b.index);
    }
    std::vector<bool> passes_on(list_.host_ports, false);
    for (const Ends& ends : ends_) {
      if (ends.router && ends.first != kNoId) passes_on[ends.first] = true;
    }
    std::map<std::uint32_t, Networks> result;
    for (const ListedLink& link : list_.links) {
      for (const auto& [host, other] : {std::pair{link.a, link.b}, std::pair{link.b, link.a}}) {
        if (!host.host) continue;
        Networks& of_unit = result[unit_of_port_[host.index]];
        (passes_on[host.index] ? of_unit.xpus : of_unit.nics).insert(find(other.index));
      }
    }
    return result;
  }

  const DescribedCluster& cluster_;
  DescribedLinks links_;
  LinkSpec absent_;
  LinkList list_;
  std::vector<Ends> ends_;                     // by node
  std::vector<bool> is_host_;                  // by unit
  std::vector<std::uint32_t> switch_of_unit_;  // by unit; kNoId: a host, or a unit that nothing joins
  std::vector<std::uint32_t> unit_of_port_;
};

}  // namespace

std::unique_ptr<Topology> described_fabric(const DescribedCluster& cluster, const LinkSpec& absent,
                                           const ChannelParameters& channels, const ConfigNode& where) {
  LinkList list = FabricLister(cluster, absent).take();
  check_channels(channels, list.switches.size(), where);
  return std::make_unique<DescribedFabric>(std::move(list), channels, ranks_of(cluster));
}

}  // namespace netsim
