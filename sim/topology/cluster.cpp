#include <algorithm>
#include <numeric>
#include <string>

#include "sim/core/errors.h"
#include "sim/core/parameters.h"
#include "sim/core/registry.h"
#include "sim/topology/topology.h"

namespace netsim {

namespace {

const ConfigNode* given(const ConfigNode& root, const char* key) {
  const ConfigNode* node = root.find(key);
  return node != nullptr && !node->is_null() ? node : nullptr;
}

void refuse_nothing(const ConfigNode* node, const std::string& type, const std::string& absent) {
  ParameterInfo info;
  info.type = type;
  info.default_text = absent;
  if (node != nullptr) refuse_empty(info, *node);
}

std::string in_words(std::uint32_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// A fabric of the configuration, and how many of its host ports are taken, while hosts are assigned to it.
struct FabricPlan {
  std::string name;
  std::unique_ptr<Topology> topology;
  std::uint32_t taken = 0;  // host ports
  std::uint32_t left() const { return topology->host_ports() - taken; }
  // Returns "the topology has 16 host ports" or "fabric rack has 8 of its 72 host ports left".
  std::string room(bool only) const {
    const std::string ports = in_words(topology->host_ports(), "host port");
    const std::string who = only ? "the topology" : "fabric " + name;
    if (taken == 0) return who + " has " + ports;
    return who + " has " + std::to_string(left()) + " of its " + ports + " left";
  }
};

class ClusterBuilder {
 public:
  explicit ClusterBuilder(const ConfigNode& root) : root_(root) {}

  Cluster build() {
    plan_fabrics();
    for (const FabricPlan& plan : plans_)
      cluster_.fabrics.push_back({.name = plan.name, .scale_up = plan.topology->scale_up(), .ports = {}});
    const auto packets = std::find_if(plans_.begin(), plans_.end(),
                                      [](const FabricPlan& plan) { return !plan.topology->scale_up(); });
    if (packets != plans_.end()) numbered_ = &*packets;
    if (numbered_ != nullptr) {
      cluster_.host_numbers = numbered_->topology->host_numbers();
      cluster_.gpu_ranks = numbered_->topology->gpu_ranks();
    }
    add_hosts();
    build_fabrics();
    limit_nics();
    find_islands();
    check_joined();
    return std::move(cluster_);
  }

 private:
  // ---- Fabrics

  void plan_fabrics() {
    const ConfigNode* several = given(root_, "fabrics");
    const ConfigNode* one = given(root_, "topology");
    if (several == nullptr) {
      if (one == nullptr) missing_topology();
      plans_.push_back({kScaleOut, Registry<Topology>::instance().create(*one, ""), 0});
      return;
    }
    if (one != nullptr) {
      throw ConfigError(one->key_place(),
                        "'topology' is the short form of 'fabrics: {scale_out: ...}': give one of them");
    }
    if (!several->is_map() || several->entries().empty())
      several->fail("expected fabrics by name, {scale_out: {kind: ..., its parameters}, ...}");
    constexpr std::size_t kMostFabrics = 200;  // the number of a fabric is stored in one byte
    if (several->entries().size() > kMostFabrics) {
      several->fail(std::to_string(several->entries().size()) + " fabrics; allowed: 1 to " +
                    std::to_string(kMostFabrics));
    }
    for (const auto& [name, node] : several->entries())
      plans_.push_back({name, Registry<Topology>::instance().create(node, ""), 0});
  }

  [[noreturn]] void missing_topology() const {
    std::string known;
    for (const std::string& name : Registry<Topology>::instance().names()) {
      known += (known.empty() ? "" : ", ") + name;
    }
    root_.fail("'topology' is missing: {kind: ..., its parameters} (known: " + known + ")");
  }

  FabricPlan* plan_of(const std::string& name) {
    const auto found =
        std::find_if(plans_.begin(), plans_.end(), [&](const FabricPlan& plan) { return plan.name == name; });
    return found == plans_.end() ? nullptr : &*found;
  }

  // ---- Hosts

  // One group of hosts of the configuration. `where` is the place of errors about it.
  struct GroupPlan {
    std::string kind;
    std::unique_ptr<Host> host;
    const ConfigNode* where;
    const ConfigNode* count;   // null: as many hosts as fit
    const ConfigNode* fabric;  // null: its fabrics have the names that the host gives
  };

  static GroupPlan group_plan(const ConfigNode& node, const ConfigNode& where, const ConfigNode* count,
                              const ConfigNode* fabric = nullptr) {
    return {Registry<Host>::instance().component_name(node, "single_nic"),
            Registry<Host>::instance().create(node, "single_nic"), &where, count, fabric};
  }

  void add_hosts() {
    const ConfigNode* hosts = root_.find("hosts");
    if (hosts != nullptr && hosts->is_sequence()) return add_groups(*hosts);
    refuse_nothing(root_.find("host"), "component", "single_nic");
    const ConfigNode absent;
    const ConfigNode* host = given(root_, "host");
    const GroupPlan group =
        group_plan(host != nullptr ? *host : absent, host != nullptr ? *host : root_, hosts);
    refuse_nothing(hosts, "integer", "as many as fit, " + std::to_string(room_for(group)));
    add_group(group);
  }

  void add_groups(const ConfigNode& list) {
    if (const ConfigNode* host = given(root_, "host"); host != nullptr) {
      throw ConfigError(host->key_place(),
                        "'host' and a list of 'hosts' exclude each other: give {kind: ..., count: ...} for "
                        "each group there");
    }
    if (list.items().empty()) list.fail("expected at least one group, {kind: ..., count: ...}");
    for (const ConfigNode& item : list.items()) {
      if (!item.is_map()) item.fail("expected a group of hosts, {kind: ..., count: ..., its parameters}");
      const ConfigNode* count = item.find("count");
      if (given(item, "count") == nullptr && &item != &list.items().back())
        item.fail(
            "'count' is missing: only the last group may leave it out and take the remaining host ports");
      add_group(group_plan(item.without("count").without("fabric"), item, count, given(item, "fabric")));
    }
  }

  // Returns the configured fabrics of a group's hosts. Throws a ConfigError where one does not exist.
  std::vector<std::pair<FabricPlan*, HostFabric>> fabrics_of(const GroupPlan& group) {
    std::vector<std::pair<FabricPlan*, HostFabric>> result;
    for (const HostFabric& fabric : group.host->fabrics()) {
      const ConfigNode* chosen = chosen_fabric(group, fabric.name);
      const std::string name = chosen != nullptr ? read_text(*chosen) : fabric.name;
      FabricPlan* plan = plan_of(name);
      if (plan == nullptr) {
        std::string known;
        for (const FabricPlan& other : plans_) known += (known.empty() ? "" : ", ") + other.name;
        (chosen != nullptr ? *chosen : *group.where)
            .fail("host " + group.kind + " has " + in_words(fabric.ports, "port") + " for a fabric '" + name +
                  "', and there is none (fabrics: " + known + ")");
      }
      result.emplace_back(plan, fabric);
    }
    return result;
  }

  // Returns the group's entry for a fabric of its hosts: `fabric: NAME` for scale_out, or `fabric: {rack:
  // NAME, ...}`. Null: there is none.
  static const ConfigNode* chosen_fabric(const GroupPlan& group, const std::string& name) {
    if (group.fabric == nullptr) return nullptr;
    const std::vector<HostFabric> own = group.host->fabrics();
    std::string known;
    for (const HostFabric& fabric : own) known += (known.empty() ? "" : ", ") + fabric.name;
    const auto has = [&](const std::string& key) {
      return std::any_of(own.begin(), own.end(),
                         [&](const HostFabric& fabric) { return fabric.name == key; });
    };
    if (!group.fabric->is_map()) {
      if (!has(kScaleOut)) {
        group.fabric->fail("hosts " + group.kind + " have no ports for " + kScaleOut +
                           (known.empty() ? "" : ", but for " + known));
      }
      return name == kScaleOut ? group.fabric : nullptr;
    }
    for (const auto& [key, node] : group.fabric->entries()) {
      if (!has(key)) node.fail("hosts " + group.kind + " have no ports for that; allowed: " + known);
    }
    return given(*group.fabric, name.c_str());
  }

  // Returns how many hosts of the group fit into the free host ports. A group without ports gets one host.
  std::uint32_t room_for(const GroupPlan& group) {
    std::uint32_t room = kNoId;
    for (const auto& [plan, fabric] : fabrics_of(group)) {
      if (fabric.ports != 0) room = std::min(room, plan->left() / fabric.ports);
    }
    return room == kNoId ? 1 : room;
  }

  // Returns in words how many hosts fit.
  std::string capacity(const GroupPlan& group, std::uint32_t room) {
    std::string text;
    for (const auto& [plan, fabric] : fabrics_of(group)) {
      if (fabric.ports != 0 && plan->left() / fabric.ports != room) continue;
      text = plan->room(plans_.size() == 1) + ", enough for " + in_words(room, "host") + " of " +
             in_words(fabric.ports, plan->topology->scale_up() ? "port" : "NIC");
      break;
    }
    return text.empty() ? "a host without NICs has to be the only one" : text;
  }

  std::uint32_t host_count(const GroupPlan& group) {
    const std::uint32_t room = room_for(group);
    if (group.count == nullptr || group.count->is_null()) {
      if (room == 0) group.where->fail("no host fits: " + capacity(group, room));
      return room;
    }
    const std::int64_t wanted = read_integer(*group.count);
    if (wanted < 1 || wanted > std::int64_t{room}) {
      group.count->fail(std::to_string(wanted) +
                        " hosts; allowed: " + (room == 0 ? "none" : "1 to " + std::to_string(room)) + " (" +
                        capacity(group, room) + ")");
    }
    return static_cast<std::uint32_t>(wanted);
  }

  void add_group(const GroupPlan& group) {
    HostGroup& made = cluster_.groups.emplace_back();
    made.kind = group.kind;
    made.role = group.host->role();
    made.gpu_model = group.host->gpu_model();
    made.compute_capability = group.host->compute_capability();
    made.acknowledge_every = group.host->acknowledge_every();
    for (const std::string& note : group.host->notes())
      cluster_.notes.push_back("host " + group.kind + ": " + note);
    made.gpus = group.host->gpus();
    made.hosts = host_count(group);
    for (const auto& [plan, fabric] : fabrics_of(group))
      made.fabrics.push_back(static_cast<std::uint32_t>(plan - plans_.data()));
    places_.push_back(group.where->place());
    for (std::uint32_t i = 0; i < made.hosts; ++i) add_host(group, made);
  }

  void add_host(const GroupPlan& group, HostGroup& made) {
    const HostPlace place{static_cast<std::uint32_t>(cluster_.groups.size() - 1),
                          static_cast<NodeId>(cluster_.graph.node_count()),
                          static_cast<PortId>(cluster_.graph.port_count())};
    const std::uint32_t host = cluster_.host_count++;
    const HostBuild built = group.host->build(cluster_.graph, host, numbers_for(group));
    if (cluster_.hosts.empty() || cluster_.hosts.back().group != place.group)
      made.ways = HostRoutes(cluster_.graph, built, place.first_node, place.first_port);
    cluster_.hosts.push_back(place);
    for (std::uint32_t local = 0; local < built.gpus.size(); ++local) {
      const NodeId node = built.gpus[local];
      cluster_.gpus.push_back(
          {.node = node, .host = host, .local = local, .nic = default_nic(group, made, place, local, node)});
    }
    for (std::size_t i = 0; i < built.ports.size(); ++i) join(made.fabrics[i], host, built.ports[i]);
    for (std::size_t i = 0; i < built.nic_rates.size(); ++i) {
      if (built.nic_rates[i] != 0) nic_rates_.push_back({built.ports[0][i], built.nic_rates[i], place.group});
    }
  }

  // Returns the numbers of the next host's ports in the file of the first packet fabric.
  std::span<const std::uint32_t> numbers_for(const GroupPlan& group) {
    if (cluster_.host_numbers.empty()) return {};
    for (const auto& [plan, fabric] : fabrics_of(group)) {
      if (plan != numbered_) continue;
      return std::span<const std::uint32_t>(cluster_.host_numbers).subspan(numbered_->taken, fabric.ports);
    }
    return {};
  }

  // Returns the GPU's nearest NIC in scale_out, or in the first packet fabric if it has none there. Without
  // NICs it is the GPU's node.
  NodeId default_nic(const GroupPlan& plan, const HostGroup& group, const HostPlace& place,
                     std::uint32_t local, NodeId gpu) const {
    NodeId nic = kNoId;
    const std::vector<HostFabric> own = plan.host->fabrics();
    for (std::uint32_t i = 0; i < group.fabrics.size(); ++i) {
      const ClusterFabric& fabric = cluster_.fabrics[group.fabrics[i]];
      const auto ways = group.ways.nics(local, i);
      if (fabric.scale_up || ways.empty() || (nic != kNoId && own[i].name != kScaleOut)) continue;
      nic = place.first_node + ways.front().nic;
    }
    return nic == kNoId ? gpu : nic;
  }

  static bool is_fabric_link(LinkKind kind) {
    return kind == LinkKind::ethernet || kind == LinkKind::infiniband;
  }

  // A NIC with a rate of its own.
  struct NicRate {
    NodeId node;
    BitRate rate;
    std::uint32_t group;
  };

  // Lowers the rate of links to NICs whose own rate is lower, because both ends of a link agree on one rate.
  // Adds one note for each group where the rates differ.
  void limit_nics() {
    std::vector<bool> told(cluster_.groups.size(), false);
    for (const NicRate& nic : nic_rates_) {
      const BitRate carried = limit(nic);
      if (carried == nic.rate || told[nic.group]) continue;
      told[nic.group] = true;
      cluster_.notes.push_back("host " + cluster_.groups[nic.group].kind + ": its file gives " +
                               cluster_.graph.node(nic.node).name + " " + format_rate(nic.rate) +
                               ", the fabric's link to it has " + format_rate(carried) +
                               ": the lower rate counts");
    }
  }

  // Returns the rate that the fabric gave the NIC. Several links share the NIC's rate; optical circuits carry
  // it in turns.
  BitRate limit(const NicRate& nic) {
    Graph& graph = cluster_.graph;
    std::vector<PortId> links;
    BitRate fastest = 0;
    for (const PortId port : graph.ports_of(nic.node)) {
      if (!is_fabric_link(graph.port(port).link.kind)) continue;
      links.push_back(port);
      fastest = std::max(fastest, graph.port(port).link.rate);
    }
    if (links.empty()) return nic.rate;
    const bool in_turns = !graph.optical_switches().empty();
    const BitRate carried = in_turns ? fastest : cluster_.nic_rate(nic.node);
    const BitRate each = in_turns ? nic.rate : nic.rate / static_cast<BitRate>(links.size());
    for (const PortId link : links) {
      if (std::min(graph.port(link).link.rate, graph.port(link ^ 1U).link.rate) > each)
        graph.set_rate(link, std::max<BitRate>(each, 1));
    }
    return carried;
  }

  void join(std::uint32_t fabric, std::uint32_t host, const std::vector<NodeId>& nodes) {
    for (std::uint32_t rail = 0; rail < nodes.size(); ++rail)
      cluster_.fabrics[fabric].ports.push_back({.nic = nodes[rail], .host = host, .rail = rail});
    plans_[fabric].taken += static_cast<std::uint32_t>(nodes.size());
  }

  // ---- Fabrics and hosts together

  // Routes of several fabrics: each destination or switch has the routes of its own fabric. A number common
  // to all fabrics is the greatest of theirs, and each fabric reduces it to its own.
  class JoinedRoutes final : public Routes {
   public:
    JoinedRoutes(const Cluster& cluster, std::vector<std::unique_ptr<Routes>> routes)
        : routes_(std::move(routes)), fabric_of_(cluster.graph.node_count(), 0) {
      for (const ClusterFabric& fabric : cluster.fabrics) names_.push_back(fabric.name);
      adaptive_ = common_adaptive_channel();
      for (std::size_t i = 0; i < cluster.fabrics.size(); ++i) {
        const ClusterFabric& fabric = cluster.fabrics[i];
        for (const HostPort& port : fabric.ports) fabric_of_[port.nic] = static_cast<std::uint8_t>(i);
        for (NodeId id = fabric.first_switch; id < fabric.end_switch; ++id)
          fabric_of_[id] = static_cast<std::uint8_t>(i);
      }
    }
    std::span<const PortId> next_hops(NodeId at, NodeId destination) const override {
      return of(destination).next_hops(at, destination);
    }
    std::uint32_t channels(RoutingFreedom freedom) const override {
      return greatest([&](const Routes& routes) { return routes.channels(freedom); });
    }
    void add_hops(const Waypoint& packet, std::vector<Hop>& hops) const override {
      if (in_one(packet)) of(packet.at).add_hops(own(packet), hops);
    }
    // Returns the adaptive channel. It is common to all fabrics: there is none if fabrics differ in it, or if
    // one uses that channel otherwise.
    std::uint32_t adaptive_channel() const override { return adaptive_; }
    void add_adaptive_hops(const Waypoint& packet, std::vector<Hop>& hops) const override {
      if (in_one(packet) && adaptive_ != kNoId) of(packet.at).add_adaptive_hops(own(packet), hops);
    }
    // Returns the least common multiple. A draw below it, modulo a fabric's own number, equals that fabric's
    // own draw.
    std::uint32_t choices() const override {
      std::uint32_t common = 1;
      for (const auto& routes : routes_) common = std::lcm(common, routes->choices());
      return common;
    }
    std::uint32_t intermediates() const override {
      return greatest([](const Routes& routes) { return routes.intermediates(); });
    }
    bool passes(NodeId node, std::uint32_t via) const override {
      const Routes& routes = of(node);
      return routes.intermediates() == 0 || routes.passes(node, via % routes.intermediates());
    }
    const char* free_of_cycles() const override {
      const auto free = [](const auto& routes) { return *routes->free_of_cycles() != '\0'; };
      return std::all_of(routes_.begin(), routes_.end(), free) ? "each fabric is" : "";
    }
    std::string channels_in_words() const override {
      std::string text;
      for (std::size_t i = 0; i < routes_.size(); ++i) {
        const std::string own = routes_[i]->channels_in_words();
        if (!own.empty()) text += (text.empty() ? "" : "; ") + names_[i] + ": " + own;
      }
      return text;
    }
    std::unique_ptr<Routes> without(const Graph& graph, std::span<const HostPort> nics,
                                    const std::vector<bool>& down, std::uint32_t channels) const override {
      std::vector<std::unique_ptr<Routes>> rest;
      for (const auto& routes : routes_) rest.push_back(routes->without(graph, nics, down, channels));
      return std::unique_ptr<Routes>(new JoinedRoutes(*this, std::move(rest)));
    }

   private:
    // Creates the same fabrics with other routes.
    JoinedRoutes(const JoinedRoutes& other, std::vector<std::unique_ptr<Routes>> routes)
        : routes_(std::move(routes)),
          fabric_of_(other.fabric_of_),
          names_(other.names_),
          adaptive_(common_adaptive_channel()) {}

    std::uint32_t common_adaptive_channel() const {
      std::uint32_t channel = kNoId;
      for (const auto& routes : routes_) channel = std::min(channel, routes->adaptive_channel());
      const auto leaves_it = [&](const auto& routes) {
        const std::uint32_t own = routes->adaptive_channel();
        return own == kNoId ? routes->channels(RoutingFreedom::adaptive) <= channel : own == channel;
      };
      return std::all_of(routes_.begin(), routes_.end(), leaves_it) ? channel : kNoId;
    }

    const Routes& of(NodeId node) const { return *routes_[fabric_of_[node]]; }
    // Returns whether the packet stays in its fabric, because no route leads from one fabric to another. A
    // packet without a destination goes to an intermediate.
    bool in_one(const Waypoint& packet) const {
      return packet.destination == kNoId || fabric_of_[packet.destination] == fabric_of_[packet.at];
    }
    Waypoint own(Waypoint packet) const {
      const Routes& routes = of(packet.at);
      packet.choice %= routes.choices();
      if (packet.via != kNoId) packet.via %= std::max(routes.intermediates(), 1U);
      return packet;
    }
    template <class Number>
    std::uint32_t greatest(Number number) const {
      std::uint32_t most = 0;
      for (const auto& routes : routes_) most = std::max(most, number(*routes));
      return most;
    }

    std::vector<std::unique_ptr<Routes>> routes_;
    std::vector<std::uint8_t> fabric_of_;  // by node: fabric of a switch, or fabric that a NIC is joined to
    std::vector<std::string> names_;       // names of the fabrics
    std::uint32_t adaptive_ = kNoId;
  };

  void build_fabrics() {
    std::vector<std::unique_ptr<Routes>> routes;
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      ClusterFabric& fabric = cluster_.fabrics[i];
      fabric.first_switch = static_cast<NodeId>(cluster_.graph.node_count());
      if (plans_.size() > 1 && fabric.name != kScaleOut) cluster_.graph.set_name_prefix(fabric.name + "/");
      routes.push_back(plans_[i].topology->build(cluster_.graph, fabric.ports));
      for (const std::string& note : plans_[i].topology->notes())
        cluster_.notes.push_back((plans_.size() > 1 ? "fabric " + fabric.name + ": " : "") + note);
      cluster_.graph.set_name_prefix("");
      fabric.end_switch = static_cast<NodeId>(cluster_.graph.node_count());
      if (fabric.scale_up) {
        find_domains(fabric, fabric.first_switch);
      } else {
        cluster_.nics.insert(cluster_.nics.end(), fabric.ports.begin(), fabric.ports.end());
      }
    }
    cluster_.routes = routes.size() == 1 ? std::move(routes.front())
                                         : std::make_unique<JoinedRoutes>(cluster_, std::move(routes));
  }

  // Sets the domain of the GPUs that the fabric joins. Its switches are the nodes from first_switch on.
  void find_domains(const ClusterFabric& fabric, NodeId first_switch) {
    std::vector<std::uint32_t> gpu_of(cluster_.graph.node_count(), kNoId);
    for (std::uint32_t gpu = 0; gpu < cluster_.gpus.size(); ++gpu) gpu_of[cluster_.gpus[gpu].node] = gpu;
    std::vector<bool> seen(cluster_.graph.node_count(), false);
    for (const HostPort& port : fabric.ports) {
      if (seen[port.nic]) continue;
      std::vector<NodeId> reached{port.nic};
      seen[port.nic] = true;
      for (std::size_t i = 0; i < reached.size(); ++i) {
        if (const std::uint32_t gpu = gpu_of[reached[i]]; gpu != kNoId) cluster_.gpus[gpu].domain = domains_;
        for (const PortId out : cluster_.graph.ports_of(reached[i])) {
          const NodeId next = cluster_.graph.port(out).peer_node;
          const bool inside = cluster_.graph.port(out).node >= first_switch || next >= first_switch;
          if (!inside || seen[next]) continue;
          seen[next] = true;
          reached.push_back(next);
        }
      }
      ++domains_;
    }
  }

  // Finds the islands. An island's number is that of its first fabric; a group without fabrics is an island
  // of its own.
  void find_islands() {
    const std::size_t fabrics = cluster_.fabrics.size(), groups = cluster_.groups.size();
    std::vector<std::uint32_t> island(fabrics + groups);  // by fabric, then by group
    std::iota(island.begin(), island.end(), 0U);
    for (bool more = true; more;) {
      more = false;
      for (std::size_t i = 0; i < groups; ++i) {
        std::uint32_t& own = island[fabrics + i];
        for (const std::uint32_t fabric : cluster_.groups[i].fabrics) own = std::min(own, island[fabric]);
        for (const std::uint32_t fabric : cluster_.groups[i].fabrics) {
          more = more || island[fabric] != own;
          island[fabric] = own;
        }
      }
    }
    cluster_.island_of_group.assign(island.begin() + static_cast<std::ptrdiff_t>(fabrics), island.end());
    const auto of_first = [&](std::uint32_t one) { return one == cluster_.island_of_group.front(); };
    if (!std::all_of(cluster_.island_of_group.begin(), cluster_.island_of_group.end(), of_first))
      number_in_islands(island);
  }

  // Numbers nodes, ports and GPUs within their islands. `island` is by fabric, then by group.
  void number_in_islands(const std::vector<std::uint32_t>& island) {
    Graph& graph = cluster_.graph;
    std::vector<std::uint32_t> of_node(graph.node_count());
    for (NodeId id = 0; id < graph.node_count(); ++id) {
      const std::vector<ClusterFabric>& fabrics = cluster_.fabrics;
      const auto fabric = std::find_if(fabrics.begin(), fabrics.end(), [id](const ClusterFabric& one) {
        return id >= one.first_switch && id < one.end_switch;
      });
      if (fabric != fabrics.end()) {
        of_node[id] = island[static_cast<std::size_t>(fabric - fabrics.begin())];
        continue;
      }
      const auto host =
          std::upper_bound(cluster_.hosts.begin(), cluster_.hosts.end(), id,
                           [](NodeId node, const HostPlace& place) { return node < place.first_node; });
      of_node[id] = cluster_.island_of_group[std::prev(host)->group];
    }
    std::vector<std::uint32_t> nodes(island.size(), 0), ports(nodes), gpus(nodes);
    std::vector<std::uint32_t> node_numbers, port_numbers;
    node_numbers.reserve(graph.node_count());
    port_numbers.reserve(graph.port_count());
    for (NodeId id = 0; id < graph.node_count(); ++id) node_numbers.push_back(nodes[of_node[id]]++);
    for (PortId id = 0; id < graph.port_count(); ++id)
      port_numbers.push_back(ports[of_node[graph.port(id).node]]++);
    for (const Gpu& gpu : cluster_.gpus) cluster_.gpu_numbers.push_back(gpus[of_node[gpu.node]]++);
    graph.set_numbers(std::move(node_numbers), std::move(port_numbers));
  }

  // Checks that every GPU has a route to every other GPU of its island, within its host or over NICs.
  void check_joined() const {
    const auto of_first = [this](const Gpu& gpu) {
      return gpu.domain != kNoId && gpu.domain == cluster_.gpus.front().domain;
    };
    if (std::all_of(cluster_.gpus.begin(), cluster_.gpus.end(), of_first)) return;
    for (std::size_t i = 0; i < cluster_.groups.size(); ++i) {
      for (std::uint32_t gpu = 0; gpu < cluster_.groups[i].gpus; ++gpu)
        check_gpu(cluster_.groups[i], places_[i], gpu);
    }
  }

  void check_gpu(const HostGroup& group, const Place& where, std::uint32_t gpu) const {
    if (has_nics(group, gpu)) return;
    const std::string name = "GPU " + std::to_string(gpu) + " of host " + group.kind;
    if (cluster_.host_count > 1)
      throw ConfigError(where, name + " has no path to a NIC, but there are other hosts");
    for (std::uint32_t other = 0; other < group.gpus; ++other) {
      if (other == gpu || group.ways.between(gpu, other).kind != HostWayKind::none) continue;
      throw ConfigError(where, name + " has no path to GPU " + std::to_string(other) +
                                   ": neither NVLink nor PCIe nor a NIC");
    }
  }

  // Returns whether the GPU has a NIC in each packet fabric of its host, at least in one.
  bool has_nics(const HostGroup& group, std::uint32_t gpu) const {
    bool any = false;
    for (std::uint32_t i = 0; i < group.fabrics.size(); ++i) {
      if (cluster_.fabrics[group.fabrics[i]].scale_up) continue;
      if (group.ways.nearest(gpu, i) == 0) return false;
      any = true;
    }
    return any;
  }

  const ConfigNode& root_;
  std::vector<FabricPlan> plans_;
  const FabricPlan* numbered_ = nullptr;  // the first packet fabric
  std::vector<Place> places_;             // by group
  std::vector<NicRate> nic_rates_;
  Cluster cluster_;
  std::uint32_t domains_ = 0;
};

}  // namespace

Cluster build_cluster(const ConfigNode& root) { return ClusterBuilder(root).build(); }

// ---- Routes

HostRouteKind Cluster::way(std::uint32_t from, std::uint32_t to) const {
  if (from == to) return HostRouteKind::pcie;
  const Gpu &a = gpus[from], &b = gpus[to];
  const HostWayKind inside =
      a.host == b.host ? group_of(from).ways.between(a.local, b.local).kind : HostWayKind::none;
  if (inside == HostWayKind::nvlink) return HostRouteKind::nvlink;
  if (a.domain != kNoId && a.domain == b.domain) return HostRouteKind::nvlink_fabric;
  if (inside != HostWayKind::pcie) return HostRouteKind::packets;
  return is_port(from) && is_port(to) && joins(a.node, b.node) ? HostRouteKind::packets : HostRouteKind::pcie;
}

bool Cluster::is_port(std::uint32_t gpu) const {
  const auto ways = first_nic_ways(gpu).first;
  return !ways.empty() && ways.front().ports.empty();
}

std::vector<PortId> Cluster::way_inside(std::uint32_t from, std::uint32_t to) const {
  std::vector<PortId> ports = group_of(from).ways.between(gpus[from].local, gpus[to].local).ports;
  for (PortId& port : ports) port += hosts[gpus[from].host].first_port;
  return ports;
}

std::uint32_t Cluster::packet_fabric(std::uint32_t from, std::uint32_t to) const {
  const std::vector<std::uint32_t>& theirs = group_of(std::max(from, to)).fabrics;
  for (const std::uint32_t fabric : group_of(std::min(from, to)).fabrics) {
    if (!fabrics[fabric].scale_up && std::find(theirs.begin(), theirs.end(), fabric) != theirs.end())
      return fabric;
  }
  not_joined(from, to);
}

void Cluster::not_joined(std::uint32_t from, std::uint32_t to) const {
  const auto in_words = [this](std::uint32_t gpu) {
    std::string text = "GPU " + std::to_string(gpu) + " (" + graph.node(gpus[gpu].node).name;
    for (const std::uint32_t fabric : group_of(gpu).fabrics) text += ", in fabric " + fabrics[fabric].name;
    return text + ")";
  };
  throw ConfigError("a message from " + in_words(from) + " to " + in_words(to) +
                    ": no fabric joins them; ranks that send to each other need GPUs that one fabric joins");
}

std::vector<std::string> Cluster::packet_fabric_names() const {
  std::vector<std::string> names;
  for (const ClusterFabric& fabric : fabrics) {
    if (!fabric.scale_up) names.push_back(fabric.name);
  }
  return names;
}

std::pair<std::span<const HostRoutes::NicRoute>, std::uint32_t> Cluster::nic_ways(
    std::uint32_t gpu, std::uint32_t fabric) const {
  const HostGroup& group = group_of(gpu);
  const auto at = std::find(group.fabrics.begin(), group.fabrics.end(), fabric);
  const auto index = static_cast<std::uint32_t>(at - group.fabrics.begin());
  return {group.ways.nics(gpus[gpu].local, index), group.ways.nearest(gpus[gpu].local, index)};
}

Cluster::NicEnd Cluster::sending_end(std::uint32_t gpu, const HostRoutes::NicRoute& way) const {
  return nic_end(gpu, way.nic, way.ports);
}

Cluster::NicEnd Cluster::receiving_end(std::uint32_t gpu, const HostRoutes::NicRoute& way) const {
  return nic_end(gpu, way.nic, way.back);
}

Cluster::NicEnd Cluster::nic_end(std::uint32_t gpu, NodeId nic, const std::vector<PortId>& ports) const {
  const HostPlace& place = hosts[gpus[gpu].host];
  NicEnd end{place.first_node + nic, ports};
  for (PortId& port : end.ports) port += place.first_port;
  return end;
}

// Returns whether the fabric has a route between two NICs while all links are up.
bool Cluster::joins(NodeId from, NodeId to) const {
  const auto hops = routes->next_hops(from, to);
  if (hops.empty()) return false;
  const NodeId next = graph.port(hops.front()).peer_node;
  return next == to || !routes->next_hops(next, to).empty();
}

std::pair<std::span<const HostRoutes::NicRoute>, std::uint32_t> Cluster::first_nic_ways(
    std::uint32_t gpu) const {
  const std::vector<std::uint32_t>& joined = group_of(gpu).fabrics;
  const auto first = std::find_if(joined.begin(), joined.end(),
                                  [this](std::uint32_t fabric) { return !fabrics[fabric].scale_up; });
  return first == joined.end() ? std::pair(std::span<const HostRoutes::NicRoute>(), 0U)
                               : nic_ways(gpu, *first);
}

std::vector<NodeId> Cluster::nearest_nics(std::uint32_t gpu) const {
  const auto [ways, nearest] = first_nic_ways(gpu);
  std::vector<NodeId> found;
  for (std::uint32_t i = 0; i < nearest; ++i) found.push_back(hosts[gpus[gpu].host].first_node + ways[i].nic);
  return found;
}

std::uint32_t Cluster::links_to_nic(std::uint32_t gpu) const {
  const auto [ways, nearest] = first_nic_ways(gpu);
  return nearest == 0 ? 0 : static_cast<std::uint32_t>(ways.front().ports.size());
}

namespace {

BitRate rate_of_links(const Graph& graph, NodeId node, bool (*counts)(LinkKind)) {
  BitRate sum = 0;
  for (const PortId port : graph.ports_of(node)) {
    if (counts(graph.port(port).link.kind)) sum += graph.port(port).link.rate;
  }
  return sum;
}

}  // namespace

BitRate Cluster::local_rate(std::uint32_t gpu) const {
  const NodeId node = gpus[gpu].node;
  const BitRate nvlink = rate_of_links(graph, node, [](LinkKind kind) { return kind == LinkKind::nvlink; });
  return nvlink > 0 ? nvlink
                    : rate_of_links(graph, node, [](LinkKind kind) { return kind == LinkKind::pcie; });
}

bool Cluster::is_beside_cpu(std::uint32_t gpu) const {
  const auto ports = graph.ports_of(gpus[gpu].node);
  return std::any_of(ports.begin(), ports.end(), [this](PortId port) {
    return graph.node(graph.port(port).peer_node).kind == NodeKind::cpu;
  });
}

BitRate Cluster::direct_rate(std::uint32_t from, std::uint32_t to) const {
  if (!same_host(from, to)) return 0;
  const HostRoutes::GpuRoute& way = group_of(from).ways.between(gpus[from].local, gpus[to].local);
  if (way.kind != HostWayKind::nvlink || way.ports.size() != 1) return 0;
  return graph.port(hosts[gpus[from].host].first_port + way.ports[0]).link.rate;
}

Time Cluster::delay_inside(std::uint32_t from, std::uint32_t to) const {
  if (way(from, to) != HostRouteKind::nvlink_fabric)
    return group_of(from).ways.between(gpus[from].local, gpus[to].local).delay;
  const auto leads_out = [this](PortId port) {
    const NodeId peer = graph.port(port).peer_node;
    return std::any_of(fabrics.begin(), fabrics.end(), [peer](const ClusterFabric& fabric) {
      return fabric.scale_up && peer >= fabric.first_switch && peer < fabric.end_switch;
    });
  };
  const auto out_of = [&](std::uint32_t gpu) {
    const auto ports = graph.ports_of(gpus[gpu].node);
    return *std::find_if(ports.begin(), ports.end(), leads_out);
  };
  return graph.port(out_of(from)).link.delay + graph.port(out_of(to) ^ 1U).link.delay;
}

BitRate Cluster::nic_rate(NodeId nic) const {
  return rate_of_links(
      graph, nic, [](LinkKind kind) { return kind == LinkKind::ethernet || kind == LinkKind::infiniband; });
}

// Returns the ends where the sender is not joined to the network of the receiver's nearest NICs. That network
// may join the receiver's own GPUs only. The receiver takes its nearest NIC, by the number of links, that a
// NIC of the sender is joined to. The sender takes the nearest of its NICs that are joined to that one.
Cluster::NicEnds Cluster::ends_elsewhere(std::uint32_t from, std::uint32_t to, std::uint32_t fabric,
                                         std::uint32_t lane) const {
  const auto here = nic_ways(from, fabric).first, there = nic_ways(to, fabric).first;
  const auto nic = [this](std::uint32_t gpu, const HostRoutes::NicRoute& way) {
    return hosts[gpus[gpu].host].first_node + way.nic;
  };
  // Returns the `lane`-th way, cyclically, of those that `fits` accepts and that have as few links as the
  // first of these. Null: there is none.
  const auto nearest = [&](std::span<const HostRoutes::NicRoute> ways, auto fits) {
    std::vector<const HostRoutes::NicRoute*> near;
    for (const HostRoutes::NicRoute& way : ways) {
      if (fits(way) && (near.empty() || way.ports.size() == near.front()->ports.size())) near.push_back(&way);
    }
    return near.empty() ? nullptr : near[lane % near.size()];
  };
  const auto* end = nearest(there, [&](const HostRoutes::NicRoute& far) {
    return std::any_of(here.begin(), here.end(), [&](const HostRoutes::NicRoute& near) {
      return joins(nic(from, near), nic(to, far));
    });
  });
  if (end == nullptr) not_joined(from, to);
  const auto* begin =
      nearest(here, [&](const HostRoutes::NicRoute& near) { return joins(nic(from, near), nic(to, *end)); });
  return {sending_end(from, *begin), receiving_end(to, *end)};
}

Cluster::NicEnds Cluster::nic_ends(std::uint32_t from, std::uint32_t to, std::uint32_t lane) const {
  const std::uint32_t fabric = packet_fabric(from, to);
  const auto [there, equal_there] = nic_ways(to, fabric);
  const auto [here, equal_here] = nic_ways(from, fabric);
  NicEnds ends{sending_end(from, here[lane % equal_here]), receiving_end(to, there[lane % equal_there])};
  if (joins(ends.from.nic, ends.to.nic)) return ends;
  for (const HostRoutes::NicRoute& way : here) {
    ends.from = sending_end(from, way);
    if (joins(ends.from.nic, ends.to.nic)) return ends;
  }
  return ends_elsewhere(from, to, fabric, lane);
}

}  // namespace netsim
