// The inside of a host of a described cluster: described_host() of described_cluster.h.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "sim/core/config_entries.h"
#include "sim/core/text.h"
#include "sim/topology/files/described_links.h"

namespace netsim {
namespace {

class DescribedHost final : public Host {
 public:
  DescribedHost(DescribedCluster cluster, DescribedHosts host, const DescribedHostParameters& p)
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
  using Link = DescribedCluster::Link;
  using Port = DescribedHosts::Port;

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
        const std::uint32_t peer = DescribedLinks::peer(*link, first_ + node) - first_;
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
               return in_host(*link) && !dead_[DescribedLinks::peer(*link, at) - first_];
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
  DescribedLinks links_;
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
    return std::make_unique<DescribedHost>(std::move(cluster), std::move(host), p);
  }
  std::string kinds;
  for (const DescribedHosts& host : hosts) append_item(kinds, in_words(cluster, host), "; ");
  const bool none = found == hosts.end();
  const ConfigNode& at = none ? entry_or_self(where, p.instance.empty() ? "device" : "instance") : where;
  at.fail(std::string(none ? "no such host" : "there are several kinds of hosts") + " in " + cluster.file +
          "; `hosts` takes a group of each, in this order: " + kinds);
}

}  // namespace netsim
