// PathPlacement: spreads flows over their paths by load (rules/hedera.h). Private to sim/scheduling/flow.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sim/core/ids.h"
#include "sim/scheduling/flow/flow_scheduler.h"

namespace netsim {

// LoadSource: where the load of a link comes from before flows are placed.
enum class LoadSource : std::uint8_t {
  demands,  // add_load()
  loads,    // what its port has transmitted (NetworkView::loads)
  queues    // bytes that wait at its port (NetworkView::queues), as the rate that sends them in an interval
};

class PathPlacement {
 public:
  // Only the first `most_paths` paths of a flow are looked at.
  explicit PathPlacement(std::uint32_t most_paths, LoadSource source = LoadSource::demands)
      : most_paths_(most_paths), source_(source) {}

  // Returns the path hint of each flow of `flows`, which have the rates `demand`. All are flows of the view,
  // by index. Paths over links that are down (NetworkView::down) are left out where a flow has others.
  std::vector<std::uint32_t> place(const FlowsView& view, std::span<const std::size_t> flows,
                                   std::span<const BitRate> demand);
  // Adds a flow that keeps its path to the load of that path. It is called before place(), which chooses the
  // paths of other flows.
  void add_load(const FlowsView& view, const FlowView& flow, std::uint32_t hint, BitRate demand);

 private:
  BitRate load_of(const FlowsView& view, PortId port) const;
  std::vector<std::uint32_t> links_of(const FlowsView& view, const std::vector<PortId>& ports);

  // Returns the path hints of a flow that are looked at.
  std::vector<std::uint32_t> hints_of(const FlowsView& view, const FlowView& flow) const;

  std::uint32_t most_paths_;
  LoadSource source_;
  std::map<PortId, std::uint32_t> numbers_;  // of links, by port
  std::vector<BitRate> capacity_, load_;     // by number of the link
};

// Returns the rate that each flow would have if only the first link of its path limited it (Hedera's
// estimate).
std::vector<BitRate> demands_of(const FlowsView& view);

}  // namespace netsim
