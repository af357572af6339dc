#include "sim/collectives/execution/communicator_layout.h"

#include <algorithm>

namespace netsim {
namespace {

// The members that are in one domain.
struct Domain {
  std::vector<std::uint32_t> places;                         // in the group
  std::map<std::uint32_t, std::vector<std::uint32_t>> near;  // places by the NIC that they are nearest to
  BitRate local_rate = 0;                                    // the least of its members
  BitRate nic_rate = 0;                                      // of all those NICs
};

Reach farthest_of(const std::vector<std::uint32_t>& members, const Endpoint& endpoint) {
  Reach farthest = Reach::scale_up;
  for (std::size_t i = 1; i < members.size(); ++i)
    farthest = std::max(farthest, endpoint.reach(members[0], members[i]));
  return farthest;
}

// Hosts in the order of their first members; hosts behind each other that NVLink joins are one domain.
std::vector<Domain> domains_of(const std::vector<std::uint32_t>& members, const Endpoint& endpoint) {
  std::vector<Domain> domains;
  std::map<std::uint32_t, std::size_t> of_host;
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
    for (const std::uint32_t nic : site.nics) {
      std::vector<std::uint32_t>& near = domain.near[nic];
      if (near.empty()) domain.nic_rate += site.nic_rate;
      near.push_back(place);
    }
  }
  return domains;
}

// Those near the NIC that is number `index` of the domain's; all of them where no NIC is near.
const std::vector<std::uint32_t>& near_nic(const Domain& domain, std::size_t index) {
  if (domain.near.empty()) return domain.places;
  return std::next(domain.near.begin(), static_cast<std::ptrdiff_t>(index))->second;
}

// The domain's places from this one on, in turns.
std::vector<std::uint32_t> places_from(const Domain& domain, std::uint32_t first) {
  const auto at = std::find(domain.places.begin(), domain.places.end(), first);
  std::vector<std::uint32_t> places(at, domain.places.end());
  places.insert(places.end(), domain.places.begin(), at);
  return places;
}

// Appends the domain's places, from one near the NIC `in` to another one near `out`, and those between in the
// order of the group.
void visit(const Domain& domain, std::size_t in, std::size_t out, std::vector<std::uint32_t>& ring) {
  const std::uint32_t first = near_nic(domain, in).front();
  std::uint32_t last = near_nic(domain, out).back();
  const std::vector<std::uint32_t> places = places_from(domain, first);
  if (last == first) last = places.back();
  for (const std::uint32_t place : places) {
    if (place != last || place == first) ring.push_back(place);
  }
  if (last != first) ring.push_back(last);
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

std::vector<std::vector<std::uint32_t>> rings_of(const std::vector<Domain>& domains) {
  std::vector<std::vector<std::uint32_t>> all(rings_over(domains));
  for (std::size_t c = 0; c < all.size(); ++c) {
    const std::size_t neighbour = all.size() % 2 == 0 ? c ^ 1 : (c + 1) % all.size();
    for (std::size_t i = 0; i < domains.size(); ++i)
      visit(domains[i], i % 2 == 0 ? c : neighbour, i % 2 == 0 ? neighbour : c, all[c]);
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

// The place among the domains of a position in the second of two trees (double_binary_tree.h).
std::size_t in_second_tree(std::size_t domains, std::size_t position) {
  return domains % 2 == 0 ? domains - 1 - position : (position + 1) % domains;
}

std::vector<std::vector<std::uint32_t>> chains_of(const std::vector<Domain>& domains) {
  const std::size_t count = rings_over(domains);
  const bool alike = sizes_of(domains).size() == 1;
  std::vector<std::vector<std::uint32_t>> all(2 * count);
  for (std::size_t c = 0; c < all.size(); ++c) {
    for (std::size_t i = 0; i < domains.size(); ++i) {
      const Domain& domain = domains[c >= count && alike ? in_second_tree(domains.size(), i) : i];
      const std::vector<std::uint32_t> chain = places_from(domain, near_nic(domain, c % count).front());
      all[c].insert(all[c].end(), chain.begin(), chain.end());
    }
  }
  return all;
}

}  // namespace

std::uint32_t rank_at(std::span<const std::uint32_t> order, std::uint32_t place) {
  if (order.empty()) return place;
  return static_cast<std::uint32_t>(std::find(order.begin(), order.end(), place) - order.begin());
}

ChannelOrders::ChannelOrders(const CommunicatorLayout& layout, RankOrder order, std::uint32_t channels) {
  if (order == RankOrder::rings) orders_ = layout.rings;
  if (order == RankOrder::chains) orders_ = layout.chains;
  if (orders_.empty()) return;
  each_ = static_cast<std::uint32_t>(orders_.size());
  if (order == RankOrder::chains) {
    each_ /= 2;
    half_ = (channels + 1) / 2;
  }
  channels_each_ = (std::min(channels, half_) + each_ - 1) / each_;
}

std::vector<ChannelOrders::Channels> ChannelOrders::sets(std::uint32_t channels) const {
  if (orders_.empty()) return {{0, 1, channels, {}}};
  std::vector<Channels> sets;
  for (std::uint32_t i = 0; i < orders_.size(); ++i) {
    const bool second = i >= each_;
    Channels set{second ? half_ + i - each_ : i, each_, 0, orders_[i]};
    const std::uint32_t end = second ? channels : std::min(channels, half_);
    if (set.first < end) set.count = (end - set.first + each_ - 1) / each_;
    if (set.count > 0) sets.push_back(set);
  }
  return sets;
}

CommunicatorLayout lay_out(const std::vector<std::uint32_t>& members, const Endpoint& endpoint) {
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
  layout.sizes = sizes_of(domains);
  if (domains.size() == 1) return layout;
  layout.chains = chains_of(domains);
  if (domains.size() < members.size()) layout.rings = rings_of(domains);
  return layout;
}

const CommunicatorLayout& LayoutCache::get(const std::vector<std::uint32_t>& members) {
  const std::lock_guard lock(mutex_);
  const auto known = layouts_.find(members);
  return known != layouts_.end() ? known->second
                                 : layouts_.emplace(members, lay_out(members, endpoint_)).first->second;
}

}  // namespace netsim
