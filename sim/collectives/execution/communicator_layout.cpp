#include "sim/collectives/execution/communicator_layout.h"

#include <algorithm>

namespace netsim {
namespace {

// The members that are in one domain.
struct Domain {
  std::vector<std::uint32_t> places;                         // in the group
  std::map<std::uint32_t, std::vector<std::uint32_t>> near;  // places by the NIC that they are nearest to
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
    domain.places.push_back(place);
    for (const std::uint32_t nic : site.nics) domain.near[nic].push_back(place);
  }
  return domains;
}

// Those near the NIC that is number `index` of the domain's; all of them where no NIC is near.
const std::vector<std::uint32_t>& near_nic(const Domain& domain, std::size_t index) {
  if (domain.near.empty()) return domain.places;
  return std::next(domain.near.begin(), static_cast<std::ptrdiff_t>(index))->second;
}

// Appends the domain's places, from one near the NIC `in` to another one near `out`, and those between in the
// order of the group.
void visit(const Domain& domain, std::size_t in, std::size_t out, std::vector<std::uint32_t>& ring) {
  const std::uint32_t first = near_nic(domain, in).front();
  std::uint32_t last = near_nic(domain, out).back();
  const auto at = std::find(domain.places.begin(), domain.places.end(), first);
  std::vector<std::uint32_t> rest(at + 1, domain.places.end());
  rest.insert(rest.end(), domain.places.begin(), at);
  if (last == first && !rest.empty()) last = rest.back();
  ring.push_back(first);
  for (const std::uint32_t place : rest) {
    if (place != last) ring.push_back(place);
  }
  if (last != first) ring.push_back(last);
}

std::size_t rings_over(const std::vector<Domain>& domains) {
  std::size_t rings = kMaxRings;
  for (const Domain& domain : domains)
    rings = std::min({rings, std::max<std::size_t>(1, domain.near.size()), domain.places.size()});
  return rings;
}

}  // namespace

CommunicatorLayout lay_out(const std::vector<std::uint32_t>& members, const Endpoint& endpoint) {
  CommunicatorLayout layout;
  layout.farthest = farthest_of(members, endpoint);
  if (layout.farthest != Reach::scale_out) return layout;
  const std::vector<Domain> domains = domains_of(members, endpoint);
  if (domains.size() == members.size()) return layout;
  const std::size_t rings = rings_over(domains);
  for (std::size_t c = 0; c < rings; ++c) {
    const std::size_t neighbour = rings % 2 == 0 ? c ^ 1 : (c + 1) % rings;
    std::vector<std::uint32_t>& ring = layout.rings.emplace_back();
    for (std::size_t i = 0; i < domains.size(); ++i)
      visit(domains[i], i % 2 == 0 ? c : neighbour, i % 2 == 0 ? neighbour : c, ring);
  }
  return layout;
}

const CommunicatorLayout& LayoutCache::get(const std::vector<std::uint32_t>& members) {
  const std::lock_guard lock(mutex_);
  const auto known = layouts_.find(members);
  return known != layouts_.end() ? known->second
                                 : layouts_.emplace(members, lay_out(members, endpoint_)).first->second;
}

const CommunicatorLayout& LayoutLookup::get(const std::vector<std::uint32_t>& members) {
  const auto known = known_.find(members);
  return *(known != known_.end() ? known->second
                                 : known_.emplace(members, &cache_.get(members)).first->second);
}

}  // namespace netsim
