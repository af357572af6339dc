// LaunchPlan: what a task scheduler decides about a job before it begins.
#pragma once

#include <cstdint>
#include <vector>

namespace netsim {

// LaunchPlan: decisions about the communications of one iteration, the same at all ranks. Communications are
// named by their index in JobProfile.
struct LaunchPlan {
  // Order of need by communication: 0 is needed first. Equal numbers are served in program order. Empty: the
  // order of the program.
  std::vector<std::uint32_t> order;
  // Communications that are launched as one, with the sum of their bytes. They must be collectives of one
  // kind and group. A bucket is launched when the last of them is ready.
  std::vector<std::vector<std::uint32_t>> fused;
  // Communications that are launched in this order, each after the one before it. Of a bucket the first one
  // is named. A communication is a candidate only when it is next in its sequence.
  std::vector<std::vector<std::uint32_t>> sequences;
};

}  // namespace netsim
