// Plans named on a command line, by an algorithm or by the file of a program.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/collectives/plan.h"

namespace netsim {

// Largest number of ranks for a named algorithm, as for a program.
inline constexpr std::uint32_t kMostNamedRanks = 1 << 16;

struct PlanName {
  // An algorithm as in the section `collectives` (ring; {kind: multi_ring, rings: 4}), or else a path.
  std::string text;
  // Further parameters of the algorithm, each PATH=VALUE.
  std::vector<std::string> assignments;
  // For an algorithm only, because a file contains these. Without a kind it is the first one that the
  // algorithm supports.
  std::string kind;
  std::optional<std::uint32_t> ranks, root;
};

// Makes the plan. Throws ConfigError for a text that is neither an algorithm nor a file, and for wrong
// parameters. It also throws for a missing or invalid kind, number of ranks or root. Throws InputError for a
// wrong program, or an algorithm that does not support the number of ranks.
std::unique_ptr<Plan> plan_named(const PlanName& name);

// Returns the plan as the text of an MSCCL program. A program keeps what its file contains besides its steps.
// Throws InputError where the plan cannot be proved or has more than kMostScheduledSteps steps.
std::string program_named(const PlanName& name);

}  // namespace netsim
