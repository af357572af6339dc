// FlowSchedulingSummary and SplitSummary: what a flow scheduler and a splitter did in a run, for the results.
#pragma once

#include <cstdint>
#include <string>

#include "sim/core/units.h"

namespace netsim {

struct FlowSchedulingSummary {
  std::string scheduler;        // kind of the scheduler; "": the run has none
  std::uint64_t flows = 0;      // flows that began
  std::uint64_t intervals = 0;  // intervals at which the scheduler decided about all flows
  std::uint64_t decisions = 0;  // decisions that changed something, those at the source's host included
  std::uint64_t late = 0;       // decisions about flows that were over when they should act
  std::uint64_t held = 0;       // times that a flow was held
  Time held_time = 0;           // sum of the times for which flows were held, ps
};

struct SplitSummary {
  std::string splitter;                 // kind of the splitter; "": the run has none
  std::uint64_t messages = 0;           // messages over the fabric
  std::uint64_t split = 0;              // of these, messages that took several ways
  Bytes own = 0, nvlink = 0, pcie = 0;  // payload of the split messages, by the way that it took
};

}  // namespace netsim
