// Groups of links for people: the tiers that links join.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/units.h"
#include "sim/report/results.h"
#include "sim/topology/graph.h"

namespace netsim {

// LinkTiers: the tier of each direction of a link. Links of fabrics are named by the tiers of their switches
// ("hosts -> tier 0"). Links within hosts are named by the parts that they join ("GPU -> NIC").
struct LinkTiers {
  std::vector<std::string> names;      // by number of the tier: within hosts first, then upward
  std::vector<std::uint32_t> of_port;  // by port
};
LinkTiers link_tiers(const Graph& graph);

// TierOfLinks: the counters of all links of a tier and kind.
struct TierOfLinks {
  std::uint32_t tier = 0;  // index in Results::link_tiers
  LinkKind kind = LinkKind::ethernet;
  std::uint64_t links = 0;  // directions of links
  BitRate least_rate = 0, most_rate = 0;
  double mean_utilisation = 0;  // over all links of the tier, idle ones included
  double most_utilisation = 0;
  std::size_t busiest = 0;        // index in Results::links, here and below; the first one of equals
  std::size_t longest_queue = 0;  // the link with the largest PortCounters::max_queue
  PortCounters sum;               // CounterSum says which counters are added up
};
// Returns the tiers over which anything was sent, in the order of Results::link_tiers.
std::vector<TierOfLinks> tiers_of_links(const Results& results);
// Returns the name of a tier, or the kind of its links where the results have no tiers.
std::string tier_name(const Results& results, const TierOfLinks& tier);

}  // namespace netsim
