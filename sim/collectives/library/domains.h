// Domains: the hosts or racks in which the members of a group are, and the NICs near them.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/core/ids.h"
#include "sim/transport/endpoint.h"

namespace netsim {

// Domain: the members of a group that are in one domain.
struct Domain {
  std::vector<std::uint32_t> places;  // indices in the group
  // For each NIC, the members whose messages it carries (`users`), and those of them by which rings and trees
  // enter and leave (`near`).
  std::map<std::uint32_t, std::vector<std::uint32_t>> users, near;
  BitRate local_rate = 0;  // least rate of its members
  BitRate nic_rate = 0;    // rate of all those NICs together
};

// Returns the domains in the order of their first members. Consecutive hosts that NVLink joins are one
// domain.
std::vector<Domain> domains_of(const std::vector<GpuId>& members, const Endpoint& endpoint);

// Returns the members near NIC number `index` of the domain; all members where no NIC is near.
const std::vector<std::uint32_t>& near_nic(const Domain& domain, std::size_t index);
// Returns the numbers, from 0, of the domain's NICs that carry a member's messages.
std::vector<std::uint32_t> nets_near(const Domain& domain, std::uint32_t place);

// Returns the reach from the first member to the farthest one, and between neighbours in a domain.
Reach farthest_of(const std::vector<GpuId>& members, const Endpoint& endpoint);
Reach nearest_of(const std::vector<Domain>& domains, const std::vector<GpuId>& members,
                 const Endpoint& endpoint);
// Returns the number of members of each domain; a single number where all have as many.
DomainSizes sizes_of(const std::vector<Domain>& domains);
// Returns whether the members of each domain are consecutive in the group.
bool follow_each_other(const std::vector<Domain>& domains);
// Returns the host and the rail of each member.
std::vector<RankSite> sites_of(const std::vector<GpuId>& members, const Endpoint& endpoint);
// Returns the number of a GPU among the GPUs of its host.
std::uint32_t device_number(const Endpoint& endpoint, GpuId gpu);

}  // namespace netsim
