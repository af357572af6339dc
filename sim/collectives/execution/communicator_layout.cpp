#include "sim/collectives/execution/communicator_layout.h"

#include <algorithm>
#include <utility>

#include "sim/core/errors.h"

namespace netsim {
namespace {

using Orders = LinkOrders::Orders;

// Sites: how the members of a group are joined.
struct Sites {
  const std::vector<std::uint32_t>& members;
  const Endpoint& endpoint;
  LinkOrders& orders;
};

// Domain: the members of a group that are in one domain.
struct Domain {
  std::vector<std::uint32_t> places;  // indices in the group
  // For each NIC, the members whose messages it carries (`users`), and those of them by which rings and trees
  // enter and leave (`near`).
  std::map<std::uint32_t, std::vector<std::uint32_t>> users, near;
  BitRate local_rate = 0;  // least rate of its members
  BitRate nic_rate = 0;    // rate of all those NICs together
};

Reach farthest_of(const std::vector<std::uint32_t>& members, const Endpoint& endpoint) {
  Reach farthest = Reach::scale_up;
  for (std::size_t i = 1; i < members.size(); ++i)
    farthest = std::max(farthest, endpoint.reach(members[0], members[i]));
  return farthest;
}

// Returns the users of each NIC that have the fewest links to it. NCCL's search begins a ring at the GPU that
// is nearest to the NIC (ncclTopoSearchRecNet in src/graph/search.cc). NICs near the same GPUs share these in
// blocks.
std::map<std::uint32_t, std::vector<std::uint32_t>> nearest_users(
    const std::map<std::uint32_t, std::vector<std::uint32_t>>& users,
    const std::map<std::uint32_t, std::uint32_t>& links_of_place) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> near = users;
  std::map<std::vector<std::uint32_t>, std::vector<std::uint32_t>> nics;  // by their nearest GPUs
  for (auto& [nic, places] : near) {
    std::uint32_t fewest = kNoIndex;
    for (const std::uint32_t place : places) fewest = std::min(fewest, links_of_place.at(place));
    std::erase_if(places, [&](std::uint32_t place) { return links_of_place.at(place) > fewest; });
    nics[places].push_back(nic);
  }
  for (const auto& group : nics) {
    const std::vector<std::uint32_t>&places = group.first, &sharing = group.second;
    if (places.size() < sharing.size()) continue;
    for (std::size_t i = 0; i < sharing.size(); ++i) {
      const auto block = [&](std::size_t at) {
        return places.begin() + static_cast<std::ptrdiff_t>(at * places.size() / sharing.size());
      };
      near[sharing[i]] = {block(i), block(i + 1)};
    }
  }
  return near;
}

// Returns the hosts in the order of their first members. Consecutive hosts that NVLink joins are one domain.
std::vector<Domain> domains_of(const std::vector<std::uint32_t>& members, const Endpoint& endpoint) {
  std::vector<Domain> domains;
  std::map<std::uint32_t, std::size_t> of_host;
  std::map<std::uint32_t, std::uint32_t> links_of_place;  // number of links to its NICs
  for (std::uint32_t place = 0; place < members.size(); ++place) {
    const GpuSite site = endpoint.site(members[place]);
    const auto [known, fresh] = of_host.try_emplace(site.host, domains.size());
    if (fresh) {
      const bool joined = !domains.empty() && endpoint.reach(members[domains.back().places.front()],
                                                             members[place]) != Reach::scale_out;
      if (joined) {
        --known->second;
      } else {
        domains.emplace_back();
      }
    }
    Domain& domain = domains[known->second];
    domain.local_rate =
        domain.places.empty() ? site.local_rate : std::min(domain.local_rate, site.local_rate);
    domain.places.push_back(place);
    links_of_place.emplace(place, site.links_to_nic);
    for (const std::uint32_t nic : site.nics) {
      std::vector<std::uint32_t>& users = domain.users[nic];
      if (users.empty()) domain.nic_rate += site.nic_rate;
      users.push_back(place);
    }
  }
  for (Domain& domain : domains) domain.near = nearest_users(domain.users, links_of_place);
  return domains;
}

// Returns the members near NIC number `index` of the domain; all members where no NIC is near.
const std::vector<std::uint32_t>& near_nic(const Domain& domain, std::size_t index) {
  if (domain.near.empty()) return domain.places;
  return std::next(domain.near.begin(), static_cast<std::ptrdiff_t>(index))->second;
}

// Returns the domain's members from `first` on, cyclically.
std::vector<std::uint32_t> places_from(const Domain& domain, std::uint32_t first) {
  const auto at = std::find(domain.places.begin(), domain.places.end(), first);
  std::vector<std::uint32_t> places(at, domain.places.end());
  places.insert(places.end(), domain.places.begin(), at);
  return places;
}

// Returns the domain's members from one near NIC `in` to another one near `out`, with the others between them
// in the order of the group.
std::vector<std::uint32_t> visit(const Domain& domain, std::size_t in, std::size_t out) {
  const std::uint32_t first = near_nic(domain, in).front();
  std::uint32_t last = near_nic(domain, out).back();
  std::vector<std::uint32_t> places = places_from(domain, first);
  if (last == first) last = places.back();
  std::rotate(std::find(places.begin(), places.end(), last),
              std::find(places.begin(), places.end(), last) + 1, places.end());
  return places;
}

std::size_t rings_over(const std::vector<Domain>& domains) {
  std::size_t rings = kMaxRings;
  for (const Domain& domain : domains)
    rings = std::min({rings, std::max<std::size_t>(1, domain.near.size()), domain.places.size()});
  return rings;
}

Reach nearest_of(const std::vector<Domain>& domains, const std::vector<std::uint32_t>& members,
                 const Endpoint& endpoint) {
  for (const Domain& domain : domains) {
    if (domain.places.size() > 1) return endpoint.reach(members[domain.places[0]], members[domain.places[1]]);
  }
  return endpoint.reach(members[0], members[1]);
}

// Returns the direct links between some members.
LinkLanes links_between(const std::vector<std::uint32_t>& places, const Sites& sites) {
  LinkLanes links{static_cast<std::uint32_t>(places.size()), {}};
  if (links.count > LinkOrders::kMostGpus) return links;
  std::vector<BitRate> rates;
  rates.reserve(places.size() * places.size());
  BitRate least = 0;
  for (const std::uint32_t from : places) {
    for (const std::uint32_t to : places) {
      const BitRate rate =
          from == to ? 0 : sites.endpoint.direct_rate(sites.members[from], sites.members[to]);
      if (rate > 0 && (least == 0 || rate < least)) least = rate;
      rates.push_back(rate);
    }
  }
  if (least == 0) return links;
  constexpr BitRate kMostLanes = 64;
  links.lanes.reserve(rates.size());
  for (const BitRate rate : rates)
    links.lanes.push_back(static_cast<std::uint32_t>(std::min(rate / least, kMostLanes)));
  return links;
}

// Returns whether NVLinks lead directly from the first GPU to another one of its domain.
bool has_direct_links(const Domain& domain, const std::vector<std::uint32_t>& members,
                      const Endpoint& endpoint) {
  return std::any_of(domain.places.begin() + 1, domain.places.end(), [&](std::uint32_t place) {
    return endpoint.direct_rate(members[domain.places.front()], members[place]) > 0;
  });
}

// Returns the least total rate of a member's direct links to all others.
BitRate least_direct_rate(const Sites& sites) {
  BitRate least = INT64_MAX;
  for (const std::uint32_t from : sites.members) {
    BitRate sum = 0;
    for (const std::uint32_t to : sites.members) {
      if (to != from) sum += sites.endpoint.direct_rate(from, to);
    }
    least = std::min(least, sum);
  }
  return least;
}

// Converts orders of numbers to orders of indices in the group.
Orders places_of(const std::vector<std::uint32_t>& places, Orders orders) {
  for (std::vector<std::uint32_t>& order : orders) {
    for (std::uint32_t& entry : order) entry = places[entry];
  }
  return orders;
}

// Returns the members of a domain in the order of each ring or chain. Where links join them directly, orders
// follow these.
Orders along_links(const Domain& domain, Orders visits, bool as_chains, const Sites& sites) {
  const LinkLanes links = links_between(domain.places, sites);
  if (links.lanes.empty()) return visits;
  const auto index = [&](std::uint32_t place) {
    const auto at = std::find(domain.places.begin(), domain.places.end(), place);
    return static_cast<std::uint32_t>(at - domain.places.begin());
  };
  std::vector<WayEnds> ends;
  ends.reserve(visits.size());
  for (const std::vector<std::uint32_t>& visit : visits)
    ends.push_back({index(visit.front()), as_chains ? kNoIndex : index(visit.back())});
  const LinkOrders::Orders& ways = sites.orders.ways(links, ends, as_chains);
  return ways.empty() ? visits : places_of(domain.places, ways);
}

Orders rings_along_links(const Domain& domain, const Sites& sites) {
  const LinkLanes links = links_between(domain.places, sites);
  if (links.lanes.empty()) return {};
  return places_of(domain.places, sites.orders.rings(links, kMaxRings));
}

Orders rings_of(const std::vector<Domain>& domains, const Sites& sites) {
  Orders all(rings_over(domains));
  for (std::size_t i = 0; i < domains.size(); ++i) {
    Orders visits;
    for (std::size_t c = 0; c < all.size(); ++c) {
      const std::size_t neighbour = all.size() % 2 == 0 ? c ^ 1 : (c + 1) % all.size();
      visits.push_back(visit(domains[i], i % 2 == 0 ? c : neighbour, i % 2 == 0 ? neighbour : c));
    }
    visits = along_links(domains[i], std::move(visits), false, sites);
    for (std::size_t c = 0; c < all.size(); ++c)
      all[c].insert(all[c].end(), visits[c].begin(), visits[c].end());
  }
  return all;
}

DomainSizes sizes_of(const std::vector<Domain>& domains) {
  DomainSizes sizes;
  for (const Domain& domain : domains) sizes.push_back(static_cast<std::uint32_t>(domain.places.size()));
  if (std::all_of(sizes.begin(), sizes.end(), [&](std::uint32_t size) { return size == sizes.front(); }))
    sizes.resize(1);
  return sizes;
}

// Returns the index among the domains of a position in the second of two trees (double_binary_tree.h).
std::size_t in_second_tree(std::size_t domains, std::size_t position) {
  return domains % 2 == 0 ? domains - 1 - position : (position + 1) % domains;
}

// Joins the chains of all domains to chains of the group. `of_domain` holds the chains of each domain.
Orders joined_chains(const std::vector<Orders>& of_domain, bool alike) {
  const std::size_t domains = of_domain.size(), count = of_domain.front().size() / 2;
  Orders all(2 * count);
  for (std::size_t c = 0; c < all.size(); ++c) {
    for (std::size_t i = 0; i < domains; ++i) {
      const std::size_t at = c >= count && alike ? in_second_tree(domains, i) : i;
      all[c].insert(all[c].end(), of_domain[at][c].begin(), of_domain[at][c].end());
    }
  }
  return all;
}

bool follow_each_other(const std::vector<Domain>& domains) {
  return std::all_of(domains.begin(), domains.end(), [](const Domain& domain) {
    return domain.places.back() - domain.places.front() + 1 == domain.places.size();
  });
}

bool all_reduced_by_switches(const std::vector<Domain>& domains, const std::vector<std::uint32_t>& members,
                             const Endpoint& endpoint) {
  return std::all_of(domains.begin(), domains.end(), [&](const Domain& domain) {
    if (domain.places.size() < 2) return false;
    std::vector<std::uint32_t> joined;
    joined.reserve(domain.places.size());
    for (const std::uint32_t place : domain.places) joined.push_back(members[place]);
    return endpoint.objection({joined.front(), joined}).empty();
  });
}

// Returns whether a switch, not a direct link, joins a GPU with its neighbour in its host.
bool is_at_nvswitch(std::uint32_t gpu, const Endpoint& endpoint) {
  const std::uint32_t host = endpoint.site(gpu).host;
  for (const std::uint32_t beside : {gpu - 1, gpu + 1}) {
    if (beside < endpoint.gpu_count() && endpoint.site(beside).host == host)
      return endpoint.reach(gpu, beside) == Reach::scale_up && endpoint.direct_rate(gpu, beside) == 0;
  }
  return false;
}

// Returns whether aggregation trees join the members with the same number in all domains. `each` is the
// number of members of a domain.
bool are_joined_by_trees(std::uint32_t each, const std::vector<std::uint32_t>& members,
                         const Endpoint& endpoint) {
  for (std::uint32_t first = 0; first < each; ++first) {
    std::vector<std::uint32_t> joined;
    for (std::size_t place = first; place < members.size(); place += each) joined.push_back(members[place]);
    if (!endpoint.objection({joined.front(), joined, true, first, joined}).empty()) return false;
  }
  return true;
}

Orders chains_of(const std::vector<Domain>& domains, const Sites& sites) {
  const std::size_t count = rings_over(domains);
  std::vector<Orders> of_domain;
  for (const Domain& domain : domains) {
    Orders visits;
    for (std::size_t c = 0; c < 2 * count; ++c)
      visits.push_back(places_from(domain, near_nic(domain, c % count).front()));
    of_domain.push_back(along_links(domain, std::move(visits), true, sites));
  }
  return joined_chains(of_domain, sizes_of(domains).size() == 1);
}

// ---- Orders from an NCCL graph file

// Returns the device of each member of a domain. Hosts are numbered in the order of their first members.
std::vector<NcclGraph::Device> devices_of(const Domain& domain, const Sites& sites) {
  std::vector<NcclGraph::Device> devices;
  devices.reserve(domain.places.size());
  std::map<std::uint32_t, std::uint32_t> hosts;
  for (const std::uint32_t place : domain.places) {
    const std::uint32_t gpu = sites.members[place];
    const auto host = hosts.try_emplace(sites.endpoint.site(gpu).host, hosts.size()).first->second;
    devices.push_back({host, device_number(sites.endpoint, gpu)});
  }
  return devices;
}

// Returns the numbers, from 0, of the domain's NICs that carry a member's messages.
std::vector<std::uint32_t> nets_near(const Domain& domain, std::uint32_t place) {
  std::vector<std::uint32_t> nets;
  std::uint32_t net = 0;
  for (const auto& [nic, places] : domain.users) {
    if (std::find(places.begin(), places.end(), place) != places.end()) nets.push_back(net);
    ++net;
  }
  return nets;
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
      for (const std::uint32_t net : near) allowed += (allowed.empty() ? "" : ", ") + std::to_string(net);
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

// ---- Layout as an NCCL graph

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

std::uint32_t device_number(const Endpoint& endpoint, std::uint32_t gpu) {
  const std::uint32_t host = endpoint.site(gpu).host;
  std::uint32_t first = gpu;
  while (first > 0 && endpoint.site(first - 1).host == host) --first;
  return gpu - first;
}

NcclGraph graph_of(const std::vector<std::uint32_t>& members, const Endpoint& endpoint,
                   const CommunicatorLayout& layout, std::uint32_t inside) {
  LinkOrders orders;
  const Sites sites{members, endpoint, orders};
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

std::uint32_t rank_at(std::span<const std::uint32_t> order, std::uint32_t place) {
  if (order.empty()) return place;
  return static_cast<std::uint32_t>(std::find(order.begin(), order.end(), place) - order.begin());
}

ChannelOrders::ChannelOrders(const CommunicatorLayout& layout, RankOrder order, std::uint32_t channels,
                             std::uint32_t first, std::uint32_t root)
    : first_(first) {
  order = layout.order(order, root != kNoIndex);
  if (order == RankOrder::rings) orders_ = layout.rings;
  if (order == RankOrder::chains) orders_ = layout.chains;
  if (orders_.empty()) return;
  each_ = static_cast<std::uint32_t>(orders_.size());
  if (order == RankOrder::chains) {
    each_ /= 2;
    half_ = (channels + 1) / 2;
  }
  channels_each_ = (std::min(channels, half_) + each_ - 1) / each_;
  if (order != RankOrder::rings || root == kNoIndex) return;
  rooted_ = &layout;
  root_ = root;
}

std::vector<ChannelOrders::Channels> ChannelOrders::sets(std::uint32_t channels) const {
  if (orders_.empty()) return {{0, 1, channels, {}}};
  std::vector<Channels> sets;
  for (std::uint32_t i = 0; i < orders_.size(); ++i) {
    const bool second = i >= each_;
    // `begin` and `end` count channels of the group.
    std::uint32_t begin = second ? half_ + i - each_ : i;
    const std::uint32_t end = second ? first_ + channels : std::min(first_ + channels, half_);
    if (begin < first_) begin += (first_ - begin + each_ - 1) / each_ * each_;
    if (begin >= end) continue;
    sets.push_back({begin - first_, each_, (end - begin + each_ - 1) / each_, this->order(i)});
  }
  return sets;
}

CommunicatorLayout lay_out(const std::vector<std::uint32_t>& members, const Endpoint& endpoint,
                           LinkOrders& orders, const NcclGraph* graph) {
  CommunicatorLayout layout;
  layout.farthest = farthest_of(members, endpoint);
  const std::vector<Domain> domains = domains_of(members, endpoint);
  layout.nearest = nearest_of(domains, members, endpoint);
  layout.domains = static_cast<std::uint32_t>(domains.size());
  layout.local_rate = domains.front().local_rate;
  layout.nic_rate = domains.front().nic_rate;
  for (const Domain& domain : domains) {
    layout.local_rate = std::min(layout.local_rate, domain.local_rate);
    layout.nic_rate = std::min(layout.nic_rate, domain.nic_rate);
  }
  const GpuSite first = endpoint.site(members[0]);
  layout.rate_of_nic = first.nic_rate;
  layout.gpu_model = first.gpu_model;
  layout.compute_capability = first.compute_capability;
  layout.nics_near = static_cast<std::uint32_t>(first.nics.size());
  layout.beside_cpu = first.beside_cpu;
  layout.direct_links = has_direct_links(domains.front(), members, endpoint);
  layout.switches_reduce = all_reduced_by_switches(domains, members, endpoint);
  layout.by_domain = follow_each_other(domains);
  layout.sizes = sizes_of(domains);
  layout.nvswitches = is_at_nvswitch(members[0], endpoint);
  layout.aggregates = endpoint.aggregates();
  if (layout.aggregates && domains.size() > 1 && layout.sizes.size() == 1 && layout.by_domain)
    layout.trees_join = are_joined_by_trees(layout.sizes.front(), members, endpoint);
  const Sites sites{members, endpoint, orders};
  if (domains.size() == 1) {
    layout.rings = rings_along_links(domains.front(), sites);
    if (!layout.rings.empty()) {
      layout.nearest = Reach::scale_up;
      layout.local_rate = least_direct_rate(sites);
    }
  } else {
    layout.chains = chains_of(domains, sites);
    if (domains.size() < members.size()) layout.rings = rings_of(domains, sites);
  }
  if (graph != nullptr) take_given(Given(domains, sites, *graph), domains.size(), layout);
  for (const std::vector<std::uint32_t>& ring : layout.rings) {
    std::vector<std::uint32_t>& twice = layout.rings_twice.emplace_back(ring);
    twice.insert(twice.end(), ring.begin(), ring.end());
    std::vector<std::uint32_t>& places = layout.ring_places.emplace_back(ring.size());
    for (std::uint32_t rank = 0; rank < ring.size(); ++rank) places[ring[rank]] = rank;
  }
  return layout;
}

const CommunicatorLayout& LayoutCache::get(const std::vector<std::uint32_t>& members) {
  const std::lock_guard lock(mutex_);
  const auto known = layouts_.find(members);
  return known != layouts_.end()
             ? known->second
             : layouts_.emplace(members, lay_out(members, endpoint_, orders_, graph_)).first->second;
}

}  // namespace netsim
