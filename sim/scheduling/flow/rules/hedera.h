// Hedera's rules: an estimate of what flows would need, and a path for each flow by that estimate. Source:
// Al-Fares et al., "Hedera: dynamic flow scheduling for data center networks", NSDI 2010, sections 4.2
// and 4.3.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/units.h"

namespace netsim {

// HostPair: the two ends of a flow, as numbers of network interfaces.
struct HostPair {
  std::uint32_t source = 0, destination = 0;
};

// Returns the rate that each flow would have if only the interfaces limited it. `interface_rate` has the rate
// of each. Senders share equally among their flows; receivers that get too much cut the largest; and so on
// until nothing changes. Shares that are no integers are rounded down.
std::vector<BitRate> estimate_demands(std::span<const BitRate> interface_rate,
                                      std::span<const HostPair> flows);

// RoutedFlow: a flow with the paths that it may take.
struct RoutedFlow {
  std::vector<std::span<const std::uint32_t>> paths;  // links of each path; the caller keeps the numbers
  BitRate demand = 0;                                 // what it needs, as estimate_demands() says
};

// Returns the index of the path that each flow takes. The largest demand is placed first, ties by number,
// each on the path whose most loaded link has the least load after it. Load is demand per capacity. Then
// flows on the most loaded links move while that lowers the load; other flows may move out of their way.
// `load` has the demand on each link from flows that are not to move; it may be empty. A flow without paths
// gets 0.
std::vector<std::uint32_t> place_on_paths(std::span<const BitRate> capacity,
                                          std::span<const RoutedFlow> flows, std::span<const BitRate> load);

}  // namespace netsim
