// Plans by what a command line names: an algorithm, or the file of a program.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/collectives/plan.h"

namespace netsim {

// Most ranks that an algorithm is asked for, as of a program.
inline constexpr std::uint32_t kMostNamedRanks = 1 << 16;

struct PlanName {
  // An algorithm as the section `collectives` has it (ring; {kind: multi_ring, rings: 4}), or else a path.
  std::string text;
  // PATH=VALUE: further parameters of the algorithm.
  std::vector<std::string> assignments;
  // For an algorithm only, because a file says these. Without a kind: the first one that the algorithm does.
  std::string kind;
  std::optional<std::uint32_t> ranks, root;
};

// ConfigError for what is neither an algorithm nor a file, wrong parameters, and a kind, a number of ranks or
// a root that is missing or cannot be; InputError for a wrong program, and an algorithm that does not suit
// the number of ranks.
std::unique_ptr<Plan> plan_named(const PlanName& name);

// The same plan as the text of a program of MSCCL, InputError where it cannot be proved or has more than
// kMostScheduledSteps. A program keeps what its file says besides its steps.
std::string program_named(const PlanName& name);

}  // namespace netsim
