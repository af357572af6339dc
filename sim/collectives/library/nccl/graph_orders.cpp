#include "sim/collectives/library/nccl/graph_orders.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "sim/collectives/library/domains.h"
#include "sim/core/errors.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

using Orders = LinkOrders::Orders;

// Sites: the members of a group and the network that joins them.
struct Sites {
  const std::vector<GpuId>& members;
  const Endpoint& endpoint;
};

// ---- Orders from a file

// Returns the device of each member of a domain. Hosts are numbered in the order of their first members.
std::vector<NcclGraph::Device> devices_of(const Domain& domain, const Sites& sites) {
  std::vector<NcclGraph::Device> devices;
  devices.reserve(domain.places.size());
  std::map<std::uint32_t, std::uint32_t> hosts;
  for (const std::uint32_t place : domain.places) {
    const GpuId gpu = sites.members[place];
    const auto host = hosts.try_emplace(sites.endpoint.site(gpu).host, hosts.size()).first->second;
    devices.push_back({host, device_number(sites.endpoint, gpu)});
  }
  return devices;
}

// Given: the orders of a graph file through the domains of a group.
class Given {
 public:
  Given(const std::vector<Domain>& domains, const Sites& sites, const NcclGraph& file)
      : domains_(domains), file_(file) {
    for (const Domain& domain : domains) {
      std::map<NcclGraph::Device, std::uint32_t>& places = places_.emplace_back();
      const std::vector<NcclGraph::Device> devices = devices_of(domain, sites);
      for (std::size_t i = 0; i < devices.size(); ++i) places.emplace(devices[i], domain.places[i]);
    }
  }

  // Returns the graph; null if there is none, or if its GPUs are not exactly those of each domain.
  const NcclGraph::Graph* find(std::uint32_t id) const {
    const NcclGraph::Graph* graph = file_.find(id);
    if (graph == nullptr) return nullptr;
    const std::vector<NcclGraph::Device>& gpus = graph->channels.front().gpus;
    for (const auto& places : places_) {
      const bool all = std::all_of(gpus.begin(), gpus.end(),
                                   [&](const NcclGraph::Device& gpu) { return places.contains(gpu); });
      if (!all || gpus.size() != places.size()) return nullptr;
    }
    return graph;
  }

  Orders rings(const NcclGraph::Graph& graph) const {
    Orders all(graph.channels.size());
    for (std::size_t c = 0; c < all.size(); ++c) {
      for (std::size_t i = 0; i < domains_.size(); ++i) {
        const NcclGraph::Channel& channel = graph.channel(c, i);
        const std::vector<std::uint32_t> way = way_of(channel, i);
        if (domains_.size() > 1) check_nets(channel, i, way);
        all[c].insert(all[c].end(), way.begin(), way.end());
      }
    }
    return all;
  }
  // Both trees use the same orders.
  Orders chains(const NcclGraph::Graph& graph) const {
    std::vector<Orders> of_domain;
    for (std::size_t i = 0; i < domains_.size(); ++i) {
      Orders& ways = of_domain.emplace_back();
      for (std::size_t c = 0; c < 2 * graph.channels.size(); ++c)
        ways.push_back(way_of(graph.channel(c % graph.channels.size(), i), i));
    }
    return joined_chains(of_domain, sizes_of(domains_).size() == 1);
  }

 private:
  std::vector<std::uint32_t> way_of(const NcclGraph::Channel& channel, std::size_t domain) const {
    std::vector<std::uint32_t> way;
    way.reserve(channel.gpus.size());
    for (const NcclGraph::Device& gpu : channel.gpus) way.push_back(places_[domain].at(gpu));
    return way;
  }

  // Checks that a GPU's messages leave by the NICs that are nearest to it.
  void check_nets(const NcclGraph::Channel& channel, std::size_t domain,
                  const std::vector<std::uint32_t>& way) const {
    for (std::size_t end = 0; end < channel.nets.size(); ++end) {
      const std::vector<std::uint32_t> near =
          nets_near(domains_[domain], end == 0 ? way.front() : way.back());
      if (near.empty() || std::find(near.begin(), near.end(), channel.nets[end]) != near.end()) continue;
      std::string allowed;
      for (const std::uint32_t net : near) append_item(allowed, std::to_string(net));
      throw InputError(
          channel.place,
          std::string(end == 0 ? "it begins" : "it ends") + " with net " + std::to_string(channel.nets[end]) +
              ", which is not nearest to the GPU beside it; a GPU uses the nearest (here " + allowed + ")");
    }
  }

  const std::vector<Domain>& domains_;
  const NcclGraph& file_;
  std::vector<std::map<NcclGraph::Device, std::uint32_t>> places_;  // indices in the group, by domain
};

CommunicatorLayout::Given given_of(const NcclGraph::Graph& graph, std::size_t domains) {
  const auto channels = static_cast<std::uint32_t>(graph.channels.size());
  return {channels, channels * (domains <= 2 ? graph.speed_intra : graph.speed_inter), graph.speed_intra};
}

// Reduces equal orders on all channels to one, and to none if it is the order of the group.
Orders without_copies(Orders orders) {
  if (std::any_of(orders.begin(), orders.end(), [&](const auto& order) { return order != orders.front(); }))
    return orders;
  orders.resize(1);
  if (std::is_sorted(orders.front().begin(), orders.front().end())) orders.clear();
  return orders;
}

void take_given(const Given& file, std::size_t domains, CommunicatorLayout& layout) {
  if (const NcclGraph::Graph* rings = file.find(NcclGraph::kRing)) {
    layout.given_rings = given_of(*rings, domains);
    layout.rings = file.rings(*rings);
    if (domains == 1) layout.rings = without_copies(std::move(layout.rings));
  }
  if (const NcclGraph::Graph* trees = file.find(NcclGraph::kTree)) {
    layout.given_trees = given_of(*trees, domains);
    layout.trees = trees->tree_pattern();
    layout.chains = file.chains(*trees);
    if (domains == 1 && without_copies(layout.chains).empty()) layout.chains.clear();
  }
}

// ---- Layout as a graph

// Returns the first domain's part of an order; without orders, its members as they are in the group.
std::vector<std::uint32_t> first_part(const Domain& domain, const Orders& orders, std::size_t index) {
  if (orders.empty()) return domain.places;
  const std::vector<std::uint32_t>& order = orders[index];
  return {order.begin(), order.begin() + static_cast<std::ptrdiff_t>(domain.places.size())};
}

NcclGraph::Graph graph_along(const Domain& domain, const Sites& sites, const Orders& orders,
                             std::size_t channels, bool several) {
  NcclGraph::Graph graph;
  const std::vector<NcclGraph::Device> devices = devices_of(domain, sites);
  const auto at = [&](std::uint32_t place) {
    return static_cast<std::size_t>(std::find(domain.places.begin(), domain.places.end(), place) -
                                    domain.places.begin());
  };
  for (std::size_t c = 0; c < channels; ++c) {
    const std::vector<std::uint32_t> way = first_part(domain, orders, c);
    NcclGraph::Channel& channel = graph.channels.emplace_back();
    for (const std::uint32_t place : way) channel.gpus.push_back(devices[at(place)]);
    for (const std::uint32_t place : {way.front(), way.back()}) {
      const std::vector<std::uint32_t> near = nets_near(domain, place);
      if (several && !near.empty()) channel.nets.push_back(near[c % near.size()]);
    }
  }
  graph.same_channels = std::all_of(
      graph.channels.begin(), graph.channels.end(),
      [&](const NcclGraph::Channel& channel) { return channel.gpus == graph.channels.front().gpus; });
  return graph;
}

}  // namespace

void take_orders(const NcclGraph& graph, const std::vector<GpuId>& members, const Endpoint& endpoint,
                 CommunicatorLayout& layout) {
  const std::vector<Domain> domains = domains_of(members, endpoint);
  take_given(Given(domains, {members, endpoint}, graph), domains.size(), layout);
}

NcclGraph graph_of(const std::vector<GpuId>& members, const Endpoint& endpoint,
                   const CommunicatorLayout& layout, std::uint32_t inside) {
  const Sites sites{members, endpoint};
  const Domain first = domains_of(members, endpoint).front();
  const bool several = layout.domains > 1;
  const std::size_t alone = several ? 1 : std::max(1U, inside / 2);
  NcclGraph graph;
  NcclGraph::Graph& rings = graph.graphs.emplace_back(
      graph_along(first, sites, layout.rings, layout.rings.empty() ? alone : layout.rings.size(), several));
  if (several && layout.rings.size() % 2 == 0 && !layout.rings.empty()) rings.cross_nic = 2;
  NcclGraph::Graph& trees = graph.graphs.emplace_back(graph_along(
      first, sites, layout.chains, layout.chains.empty() ? alone : layout.chains.size() / 2, several));
  trees.id = NcclGraph::kTree;
  trees.pattern = layout.trees == TreePattern::split ? 2 : layout.trees == TreePattern::plain ? 3 : 1;
  for (NcclGraph::Graph& one : graph.graphs) one.type_intra = layout.nearest == Reach::pcie ? "PHB" : "NVL";
  return graph;
}

}  // namespace netsim
