#include "sim/topology/files/described_cluster.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "sim/core/config_entries.h"
#include "sim/core/errors.h"

namespace netsim {
namespace {

using Link = DescribedCluster::Link;
using Port = DescribedHosts::Port;

// The links of each node, with queries about them.
class Links {
 public:
  explicit Links(const DescribedCluster& cluster) : cluster_(cluster), of_(cluster.nodes.size()) {
    for (const Link& link : cluster.links) {
      of_[link.a].push_back(&link);
      of_[link.b].push_back(&link);
    }
  }
  const std::vector<const Link*>& of(std::uint32_t node) const { return of_[node]; }
  static std::uint32_t peer(const Link& link, std::uint32_t node) { return link.a == node ? link.b : link.a; }
  bool leaves(const Link& link) const { return cluster_.nodes[link.a].unit != cluster_.nodes[link.b].unit; }
  std::uint32_t leaving(std::uint32_t node) const {
    return static_cast<std::uint32_t>(std::count_if(of_[node].begin(), of_[node].end(),
                                                    [this](const Link* link) { return leaves(*link); }));
  }
  bool is_xpu(std::uint32_t node) const { return cluster_.nodes[node].kind == DescribedCluster::Kind::xpu; }
  bool joins_xpus(const Link& link) const { return is_xpu(link.a) && is_xpu(link.b); }
  // Returns whether the node is a switch of a host with NVLinks.
  bool is_nvswitch(std::uint32_t node) const {
    if (cluster_.nodes[node].kind != DescribedCluster::Kind::network_switch) return false;
    const auto inner = [this](const Link* link) { return link->scale_up && !leaves(*link); };
    return std::any_of(of_[node].begin(), of_[node].end(), inner);
  }
  // Returns the rate of an NVLink where the file gives it: its own rate, or its share of the total rate of
  // the xpu's links.
  std::optional<BitRate> nvlink_rate(const Link& link) const {
    if (link.rate || !link.together) return link.rate;
    return share(link, *link.together);
  }
  BitRate share(const Link& link, BitRate together) const {
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

  // Returns the xpus of its unit that NVLinks join to this one, directly or over switches, and the xpu
  // itself.
  std::set<std::uint32_t> near(std::uint32_t xpu) const {
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

 private:
  const DescribedCluster& cluster_;
  std::vector<std::vector<const Link*>> of_;  // by node
};

// ---- Hosts

class HostFinder {
 public:
  explicit HostFinder(const DescribedCluster& cluster) : cluster_(cluster), links_(cluster) {}

  std::vector<DescribedHosts> find() {
    for (const std::uint32_t unit : units_in_order()) add(unit);
    return std::move(hosts_);
  }

 private:
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
  Links links_;
  std::vector<DescribedHosts> hosts_;
  std::map<Signature, std::size_t> kinds_;
};

// ---- The fabric

class Fabric final : public Topology {
 public:
  Fabric(LinkList list, const ChannelParameters& channels, std::vector<std::int64_t> ranks)
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
  Links links_;
  LinkSpec absent_;
  LinkList list_;
  std::vector<Ends> ends_;                     // by node
  std::vector<bool> is_host_;                  // by unit
  std::vector<std::uint32_t> switch_of_unit_;  // by unit; kNoId: a host, or a unit that nothing joins
  std::vector<std::uint32_t> unit_of_port_;
};

// ---- The inside of a host

class FileHost final : public Host {
 public:
  FileHost(DescribedCluster cluster, DescribedHosts host, const DescribedHostParameters& p)
      : cluster_(std::move(cluster)),
        links_(cluster_),
        host_(std::move(host)),
        first_(cluster_.units[host_.units.front()].first),
        nodes_(cluster_.units[host_.units.front()].nodes),
        p_(p) {
    if (bare()) return;
    find_stages();
    find_dead_ends();
  }

  std::uint32_t gpus() const override { return static_cast<std::uint32_t>(host_.xpus.size()); }
  std::vector<HostFabric> fabrics() const override {
    return {{kScaleOut, static_cast<std::uint32_t>(host_.ports.size())}};
  }
  std::int64_t acknowledge_every() const override { return host_.routers ? 1 : kConnectXAcknowledgeEvery; }
  std::string gpu_model() const override { return {}; }
  std::int64_t compute_capability() const override {
    std::int64_t least = INT64_MAX;
    for (const std::uint32_t xpu : host_.xpus)
      least = std::min(least, cluster_.nodes[first_ + xpu].compute_capability);
    return least;
  }

  HostBuild build(Graph& graph, std::uint32_t host_index,
                  std::span<const std::uint32_t> numbers) const override {
    const std::string host = host_name(host_index);
    const AtomId atom = graph.add_atom();
    HostBuild result;
    std::vector<NodeId> nodes(nodes_, kNoId);
    const NodeKind kind = bare() ? NodeKind::nic : NodeKind::gpu;
    for (const std::uint32_t xpu : host_.xpus) {
      nodes[xpu] = graph.add_node(kind, atom, host + "/gpu" + std::to_string(result.gpus.size()));
      result.gpus.push_back(nodes[xpu]);
    }
    if (bare()) {
      result.ports = {result.gpus};
      return result;
    }
    result.ports = {add_ports(graph, atom, host, numbers, nodes)};
    for (const Port& port : host_.ports)
      result.nic_rates.push_back(cluster_.nodes[first_ + port.node].nic_rate);
    for (std::uint32_t node = 0; node < nodes_; ++node) add_node(graph, atom, host, node, nodes);
    join_nics(graph, result.ports[0], nodes);
    add_links(graph, nodes);
    return result;
  }

 private:
  DescribedCluster::Kind kind(std::uint32_t node) const { return cluster_.nodes[first_ + node].kind; }
  bool inside(const Link& link) const { return !links_.leaves(link); }
  // Returns whether the link belongs to the host. NVLinks between xpus that forward packets belong to the
  // fabric.
  bool in_host(const Link& link) const { return inside(link) && !(host_.routers && link.scale_up); }
  // Returns whether the host consists of its xpus only: they forward packets, and there are no NICs.
  bool bare() const { return host_.routers && host_.ports.size() == host_.xpus.size(); }

  // Groups the switches with NVLinks by the xpus that they are joined to. The first switch of a group
  // represents its stage.
  void find_stages() {
    stage_.assign(nodes_, kNoId);
    std::map<std::set<std::uint32_t>, std::uint32_t> known;
    for (std::uint32_t node = 0; node < nodes_; ++node) {
      if (kind(node) != DescribedCluster::Kind::network_switch) continue;
      std::set<std::uint32_t> xpus;
      bool carries = false;
      for (const Link* link : links_.of(first_ + node)) {
        if (!link->scale_up || !inside(*link)) continue;
        carries = true;
        const std::uint32_t peer = Links::peer(*link, first_ + node) - first_;
        if (kind(peer) == DescribedCluster::Kind::xpu) xpus.insert(peer);
      }
      if (carries) stage_[node] = known.emplace(xpus, node).first->second;
    }
  }

  // Finds the nodes that lead nowhere: empty ports and slots, NICs without links, management.
  void find_dead_ends() {
    dead_.assign(nodes_, false);
    const auto is_end = [this](std::uint32_t node) {
      const std::uint32_t at = first_ + node;
      if (kind(node) == DescribedCluster::Kind::xpu || kind(node) == DescribedCluster::Kind::cpu ||
          links_.leaving(at) != 0)
        return false;
      const auto& own = links_.of(at);
      return std::count_if(own.begin(), own.end(), [&](const Link* link) {
               return in_host(*link) && !dead_[Links::peer(*link, at) - first_];
             }) <= 1;
    };
    for (bool more = true; more;) {
      more = false;
      for (std::uint32_t node = 0; node < nodes_; ++node) {
        if (dead_[node] || !is_end(node)) continue;
        dead_[node] = more = true;
      }
    }
  }

  // Returns whether the node is a NIC itself: it has one link to other units, and is not an xpu.
  bool is_nic(std::uint32_t node) const {
    return links_.leaving(first_ + node) == 1 && kind(node) != DescribedCluster::Kind::xpu;
  }

  // Adds the host ports. Xpus that forward packets are host ports themselves.
  std::vector<NodeId> add_ports(Graph& graph, AtomId atom, const std::string& host,
                                std::span<const std::uint32_t> numbers, std::vector<NodeId>& nodes) const {
    std::vector<NodeId> ports;
    std::size_t nics = 0;
    for (const Port& port : host_.ports) {
      if (host_.routers && kind(port.node) == DescribedCluster::Kind::xpu) {
        ports.push_back(nodes[port.node]);
        continue;
      }
      ports.push_back(graph.add_node(NodeKind::nic, atom, nic_name(host, nics++, numbers)));
      if (is_nic(port.node)) nodes[port.node] = ports.back();
    }
    return ports;
  }

  // Returns "host0/pciesw.1", with the node's name within its unit.
  std::string inner_name(const std::string& host, std::uint32_t node) const {
    const std::string& name = cluster_.nodes[first_ + node].name;
    const std::string& unit = cluster_.units[host_.units.front()].name;
    return host + "/" + (name.starts_with(unit + ".") ? name.substr(unit.size() + 1) : name);
  }

  void add_node(Graph& graph, AtomId atom, const std::string& host, std::uint32_t node,
                std::vector<NodeId>& nodes) const {
    if (nodes[node] != kNoId || dead_[node]) return;
    if (host_.routers && stage_[node] != kNoId) return;  // it belongs to the fabric
    if (stage_[node] != kNoId && stage_[node] != node) {
      nodes[node] = nodes[stage_[node]];
      if (nodes[node] != kNoId) return;
    }
    const NodeKind as = stage_[node] != kNoId                       ? NodeKind::scale_up_switch
                        : kind(node) == DescribedCluster::Kind::cpu ? NodeKind::cpu
                                                                    : NodeKind::pcie_switch;
    nodes[node] = graph.add_node(as, atom, inner_name(host, node));
    if (as == NodeKind::scale_up_switch)
      graph.set_combining(nodes[node], {nvls_efficiency_of(compute_capability()), p_.nvls_piece});
  }

  // Joins the NICs to the nodes whose links they have. Behind an xpu the link takes no time.
  void join_nics(Graph& graph, const std::vector<NodeId>& nics, const std::vector<NodeId>& nodes) const {
    for (std::size_t i = 0; i < nics.size(); ++i) {
      const Port& port = host_.ports[i];
      if (is_nic(port.node) || nics[i] == nodes[port.node]) continue;
      LinkSpec link = p_.pcie_link();
      if (kind(port.node) == DescribedCluster::Kind::xpu) {
        link.rate = std::max(link.rate, 2 * leaving_rate(port));
        link.delay = 0;
      }
      graph.add_link(nodes[port.node], nics[i], link);
    }
  }

  BitRate leaving_rate(const Port& port) const {
    std::uint32_t number = 0;
    for (const Link* link : links_.of(first_ + port.node)) {
      if (links_.leaves(*link) && number++ == port.number)
        return std::min(link->rate.value_or(0), kLinkRates.maximum / 2);
    }
    return 0;
  }

  // Adds the links. Several NVLinks between the same two nodes are one link.
  void add_links(Graph& graph, const std::vector<NodeId>& nodes) const {
    std::map<std::pair<NodeId, NodeId>, std::size_t> known;
    std::vector<NvlinkSum> nvlinks;
    std::map<NodeId, BitRate> widest;
    for (std::uint32_t node = 0; node < nodes_; ++node) {
      for (const Link* link : links_.of(first_ + node)) {
        if (link->a != first_ + node || !in_host(*link)) continue;
        const NodeId a = nodes[node], b = nodes[link->b - first_];
        if (a == kNoId || b == kNoId || a == b) continue;
        if (!link->scale_up) {
          graph.add_link(a, b, pcie(*link));
          continue;
        }
        const auto place = known.emplace(std::minmax(a, b), nvlinks.size()).first;
        if (place->second == nvlinks.size()) nvlinks.push_back({a, b, 0, link->delay});
        nvlinks[place->second].rate +=
            links_.nvlink_rate(*link).value_or(links_.share(*link, p_.nvlink_rate));
      }
    }
    for (const NvlinkSum& sum : nvlinks) {
      for (const NodeId end : {sum.a, sum.b}) widest[end] = std::max(widest[end], sum.rate);
    }
    for (const NvlinkSum& sum : nvlinks)
      graph.add_link(sum.a, sum.b, nvlink(graph, sum, sum.b, widest), nvlink(graph, sum, sum.a, widest));
  }

  struct NvlinkSum {
    NodeId a, b;
    BitRate rate;
    std::optional<Time> delay;
  };

  // Returns the NVLink in the direction of `to`. A slower port into a switch must not be cut-through, because
  // a faster egress link would transmit bytes that have not arrived yet.
  LinkSpec nvlink(const Graph& graph, const NvlinkSum& sum, NodeId to,
                  const std::map<NodeId, BitRate>& widest) const {
    const bool into_switch = graph.node(to).kind == NodeKind::scale_up_switch;
    LinkSpec link = into_switch ? p_.into_nvswitch() : p_.nvlink();
    link.rate = sum.rate;
    link.delay = sum.delay.value_or(p_.nvlink_delay) + (into_switch ? p_.nvswitch_latency : 0);
    link.cut_through = into_switch && sum.rate == widest.at(to);
    return link;
  }

  LinkSpec pcie(const Link& link) const {
    const auto is_cpu = [this](std::uint32_t node) {
      return cluster_.nodes[node].kind == DescribedCluster::Kind::cpu;
    };
    LinkSpec result = is_cpu(link.a) && is_cpu(link.b) ? p_.cpu_link() : p_.pcie_link();
    result.rate = link.rate.value_or(result.rate);
    result.delay = link.delay.value_or(result.delay);
    return result;
  }

  DescribedCluster cluster_;
  Links links_;
  DescribedHosts host_;
  std::uint32_t first_, nodes_;       // of the unit that represents all
  std::vector<std::uint32_t> stage_;  // by node: the switch that represents its stage; kNoId: no NVLinks
  std::vector<bool> dead_;            // by node
  DescribedHostParameters p_;
};

// Returns a description such as "{device: server, instance: host.0, count: 2} of 8 xpus and 8 ports".
std::string in_words(const DescribedCluster& cluster, const DescribedHosts& host) {
  const DescribedCluster::Unit& unit = cluster.units[host.units.front()];
  return "{device: " + unit.kind + ", instance: " + unit.name +
         ", count: " + std::to_string(host.units.size()) + "} of " + std::to_string(host.xpus.size()) +
         " xpus and " + std::to_string(host.ports.size()) + " ports";
}

}  // namespace

std::vector<DescribedHosts> hosts_of(const DescribedCluster& cluster) { return HostFinder(cluster).find(); }

std::unique_ptr<Topology> described_fabric(const DescribedCluster& cluster, const LinkSpec& absent,
                                           const ChannelParameters& channels, const ConfigNode& where) {
  LinkList list = FabricLister(cluster, absent).take();
  check_channels(channels, list.switches.size(), where);
  return std::make_unique<Fabric>(std::move(list), channels, ranks_of(cluster));
}

std::unique_ptr<Host> described_host(DescribedCluster cluster, const DescribedHostParameters& p,
                                     const ConfigNode& where) {
  const std::vector<DescribedHosts> hosts = hosts_of(cluster);
  const auto fits = [&](const DescribedHosts& host) {
    const auto named = [&](std::uint32_t unit) { return cluster.units[unit].name == p.instance; };
    return (p.device.empty() || cluster.units[host.units.front()].kind == p.device) &&
           (p.instance.empty() || std::any_of(host.units.begin(), host.units.end(), named));
  };
  const auto found = std::find_if(hosts.begin(), hosts.end(), fits);
  if (found != hosts.end() && std::find_if(found + 1, hosts.end(), fits) == hosts.end()) {
    DescribedHosts host = *found;
    return std::make_unique<FileHost>(std::move(cluster), std::move(host), p);
  }
  std::string kinds;
  for (const DescribedHosts& host : hosts) kinds += (kinds.empty() ? "" : "; ") + in_words(cluster, host);
  const bool none = found == hosts.end();
  const ConfigNode& at = none ? entry_or_self(where, p.instance.empty() ? "device" : "instance") : where;
  at.fail(std::string(none ? "no such host" : "there are several kinds of hosts") + " in " + cluster.file +
          "; `hosts` takes a group of each, in this order: " + kinds);
}

}  // namespace netsim
