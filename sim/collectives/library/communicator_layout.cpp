#include "sim/collectives/library/communicator_layout.h"

#include <algorithm>
#include <utility>

#include "sim/collectives/library/domains.h"

namespace netsim {
namespace {

using Orders = LinkOrders::Orders;

// Sites: how the members of a group are joined.
struct Sites {
  const std::vector<GpuId>& members;
  const Endpoint& endpoint;
  LinkOrders& orders;
};

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
bool has_direct_links(const Domain& domain, const std::vector<GpuId>& members, const Endpoint& endpoint) {
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

// Returns the index among the domains of a position in the second of two trees (double_binary_tree.h).
std::size_t in_second_tree(std::size_t domains, std::size_t position) {
  return domains % 2 == 0 ? domains - 1 - position : (position + 1) % domains;
}

bool all_reduced_by_switches(const std::vector<Domain>& domains, const std::vector<GpuId>& members,
                             const Endpoint& endpoint) {
  return std::all_of(domains.begin(), domains.end(), [&](const Domain& domain) {
    if (domain.places.size() < 2) return false;
    std::vector<GpuId> joined;
    joined.reserve(domain.places.size());
    for (const std::uint32_t place : domain.places) joined.push_back(members[place]);
    return endpoint.objection({joined.front(), joined}).empty();
  });
}

// Returns whether a switch, not a direct link, joins a GPU with its neighbour in its host.
bool is_at_nvswitch(GpuId gpu, const Endpoint& endpoint) {
  const HostId host = endpoint.site(gpu).host;
  for (const std::uint32_t beside : {gpu - 1, gpu + 1}) {
    if (beside < endpoint.gpu_count() && endpoint.site(beside).host == host)
      return endpoint.reach(gpu, beside) == Reach::scale_up && endpoint.direct_rate(gpu, beside) == 0;
  }
  return false;
}

// Returns whether aggregation trees join the members with the same number in all domains. `each` is the
// number of members of a domain.
bool are_joined_by_trees(std::uint32_t each, const std::vector<GpuId>& members, const Endpoint& endpoint) {
  for (std::uint32_t first = 0; first < each; ++first) {
    std::vector<GpuId> joined;
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

}  // namespace

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

void index_rings(CommunicatorLayout& layout) {
  layout.rings_twice.clear();
  layout.ring_places.clear();
  for (const std::vector<std::uint32_t>& ring : layout.rings) {
    std::vector<std::uint32_t>& twice = layout.rings_twice.emplace_back(ring);
    twice.insert(twice.end(), ring.begin(), ring.end());
    std::vector<std::uint32_t>& places = layout.ring_places.emplace_back(ring.size());
    for (std::uint32_t rank = 0; rank < ring.size(); ++rank) places[ring[rank]] = rank;
  }
}

CommunicatorLayout lay_out(const std::vector<GpuId>& members, const Endpoint& endpoint, LinkOrders& orders) {
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
  index_rings(layout);
  return layout;
}

const CommunicatorLayout& LayoutCache::get(const std::vector<GpuId>& members) {
  const std::lock_guard lock(mutex_);
  const auto known = layouts_.find(members);
  if (known != layouts_.end()) return known->second;
  CommunicatorLayout layout = lay_out(members, endpoint_, orders_);
  if (adjust_) {
    adjust_(members, layout);
    index_rings(layout);
  }
  return layouts_.emplace(members, std::move(layout)).first->second;
}

}  // namespace netsim
