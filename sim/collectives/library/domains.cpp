#include "sim/collectives/library/domains.h"

#include <algorithm>
#include <iterator>

namespace netsim {
namespace {

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

// Returns the NICs of a host that are near any of its GPUs, in rising order. `gpu` is one of them.
std::vector<std::uint32_t> nics_of_host(GpuId gpu, const Endpoint& endpoint) {
  const HostId host = endpoint.site(gpu).host;
  std::vector<std::uint32_t> nics;
  for (std::uint32_t other = gpu - device_number(endpoint, gpu);
       other < endpoint.gpu_count() && endpoint.site(other).host == host; ++other) {
    const GpuSite site = endpoint.site(other);
    nics.insert(nics.end(), site.nics.begin(), site.nics.end());
  }
  std::sort(nics.begin(), nics.end());
  nics.erase(std::unique(nics.begin(), nics.end()), nics.end());
  return nics;
}

}  // namespace

std::vector<Domain> domains_of(const std::vector<GpuId>& members, const Endpoint& endpoint) {
  std::vector<Domain> domains;
  std::map<HostId, std::size_t> of_host;
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

const std::vector<std::uint32_t>& near_nic(const Domain& domain, std::size_t index) {
  if (domain.near.empty()) return domain.places;
  return std::next(domain.near.begin(), static_cast<std::ptrdiff_t>(index))->second;
}

std::vector<std::uint32_t> nets_near(const Domain& domain, std::uint32_t place) {
  std::vector<std::uint32_t> nets;
  std::uint32_t net = 0;
  for (const auto& [nic, places] : domain.users) {
    if (std::find(places.begin(), places.end(), place) != places.end()) nets.push_back(net);
    ++net;
  }
  return nets;
}

Reach farthest_of(const std::vector<GpuId>& members, const Endpoint& endpoint) {
  Reach farthest = Reach::scale_up;
  for (std::size_t i = 1; i < members.size(); ++i)
    farthest = std::max(farthest, endpoint.reach(members[0], members[i]));
  return farthest;
}

Reach nearest_of(const std::vector<Domain>& domains, const std::vector<GpuId>& members,
                 const Endpoint& endpoint) {
  for (const Domain& domain : domains) {
    if (domain.places.size() > 1) return endpoint.reach(members[domain.places[0]], members[domain.places[1]]);
  }
  return endpoint.reach(members[0], members[1]);
}

DomainSizes sizes_of(const std::vector<Domain>& domains) {
  DomainSizes sizes;
  for (const Domain& domain : domains) sizes.push_back(static_cast<std::uint32_t>(domain.places.size()));
  if (std::all_of(sizes.begin(), sizes.end(), [&](std::uint32_t size) { return size == sizes.front(); }))
    sizes.resize(1);
  return sizes;
}

bool follow_each_other(const std::vector<Domain>& domains) {
  return std::all_of(domains.begin(), domains.end(), [](const Domain& domain) {
    return domain.places.back() - domain.places.front() + 1 == domain.places.size();
  });
}

std::vector<RankSite> sites_of(const std::vector<GpuId>& members, const Endpoint& endpoint) {
  struct Host {
    std::uint32_t number;
    std::vector<std::uint32_t> nics;
  };
  std::map<HostId, Host> hosts;
  std::vector<RankSite> sites;
  sites.reserve(members.size());
  for (const GpuId gpu : members) {
    const GpuSite site = endpoint.site(gpu);
    const auto [known, fresh] =
        hosts.try_emplace(site.host, Host{static_cast<std::uint32_t>(hosts.size()), {}});
    Host& host = known->second;
    if (fresh) host.nics = nics_of_host(gpu, endpoint);
    RankSite& added = sites.emplace_back();
    added.host = host.number;
    if (site.nics.empty()) continue;
    const auto at = std::lower_bound(host.nics.begin(), host.nics.end(), site.nics.front());
    added.rail = static_cast<std::uint32_t>(at - host.nics.begin());
  }
  return sites;
}

std::uint32_t device_number(const Endpoint& endpoint, GpuId gpu) {
  const HostId host = endpoint.site(gpu).host;
  std::uint32_t first = gpu;
  while (first > 0 && endpoint.site(first - 1).host == host) --first;
  return gpu - first;
}

}  // namespace netsim
