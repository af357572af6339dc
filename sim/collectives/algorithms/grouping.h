// The parameter `group` of algorithms that see the ranks as groups of neighbours, such as the GPUs of a host.
#pragma once

#include <cstdint>
#include <string>

#include "sim/collectives/algorithms/regular_plan.h"
#include "sim/core/parameters.h"

namespace netsim {

struct GroupParameters {
  std::int64_t group = 8;
};
inline Parameters<GroupParameters> group_parameters() {
  return Parameters<GroupParameters>().integer(
      "group", &GroupParameters::group, {1, 1 << 20},
      "ranks of a group: the GPUs of a host; the number of ranks is a multiple of it, or less");
}
// Ranks of a group where there are `ranks` in all: all of them where they are fewer. InputError where the
// groups would not be of one size.
inline std::uint32_t group_of(const GroupParameters& parameters, const char* algorithm, CollectiveKind kind,
                              std::uint32_t ranks) {
  const auto group = static_cast<std::uint32_t>(parameters.group);
  if (ranks <= group) return ranks;
  if (ranks % group != 0)
    refuse(algorithm, kind, ranks, "needs a multiple of its group, " + std::to_string(group));
  return group;
}

}  // namespace netsim
