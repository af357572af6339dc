// PathPlacement: spreads flows over their paths by load (rules/hedera.h). Private to sim/scheduling/flow.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sim/core/ids.h"
#include "sim/scheduling/flow/flow_scheduler.h"

namespace netsim {

class PathPlacement {
 public:
  // Only the first `most_paths` paths of a flow are looked at.
  explicit PathPlacement(std::uint32_t most_paths) : most_paths_(most_paths) {}

  // Returns the path hint of each flow of `flows`, which have the rates `demand`. All are flows of the view,
  // by index.
  std::vector<std::uint32_t> place(const FlowsView& view, std::span<const std::size_t> flows,
                                   std::span<const BitRate> demand);
  // Adds the load of a flow on the path that it has, before place().
  void add_load(const FlowsView& view, const FlowView& flow, std::uint32_t hint, BitRate demand);

 private:
  std::vector<std::uint32_t> links_of(const FlowsView& view, const std::vector<PortId>& ports);

  std::uint32_t most_paths_;
  std::map<PortId, std::uint32_t> numbers_;  // of links, by port
  std::vector<BitRate> capacity_, load_;     // by number of the link
};

// Returns the rate that each flow would have if only the first link of its path limited it (Hedera's
// estimate).
std::vector<BitRate> demands_of(const FlowsView& view);

}  // namespace netsim
