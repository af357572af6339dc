// LaunchPlan: what a task scheduler decides about a job before it begins.
#pragma once

#include <cstdint>
#include <vector>

namespace netsim {

// LaunchPlan: decisions about the communications of one iteration, the same at all ranks. Communications are
// named by their index in JobProfile.
struct LaunchPlan {
  // Hold: the communication is a candidate only when the task of the same iteration has ended. It acts at the
  // rank of the task, if that rank takes part in the communication and decides about it.
  struct Hold {
    std::uint32_t communication = 0;
    std::uint32_t task = 0;  // index in JobProfile::tasks
    bool operator==(const Hold&) const = default;
  };
  // Order of need by communication: 0 is needed first. Equal numbers are served in program order. Empty: the
  // order of the program.
  std::vector<std::uint32_t> order;
  // Number of the links that a communication takes, by communication (Candidate::links). Empty: 0 for all.
  std::vector<std::uint8_t> links;
  // Communications that are launched as one, with the sum of their bytes. They must be collectives of one
  // kind and group. A bucket is launched when the last of them is ready.
  std::vector<std::vector<std::uint32_t>> fused;
  // Communications that are launched in this order, each after the one before it. A bucket is named by its
  // first one. A communication is a candidate only when it is next in its sequence. Each must be `orderable`.
  std::vector<std::vector<std::uint32_t>> sequences;
  std::vector<Hold> holds;  // in any order
};

}  // namespace netsim
