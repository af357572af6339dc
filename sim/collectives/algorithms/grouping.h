// The parameter `group` of algorithms that see the ranks as groups of neighbours, such as the GPUs of a host:
// given, or as the hosts of each group of ranks are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/regular_plan.h"
#include "sim/core/parameters.h"

namespace netsim {

inline constexpr std::uint32_t kUsualGroup = 8;

struct GroupParameters {
  std::int64_t group = kUsualGroup;
};
inline Parameters<GroupParameters> group_parameters() {
  return Parameters<GroupParameters>().integer(
      "group", &GroupParameters::group, {1, 1 << 20},
      "ranks of a group: the GPUs of a host; the number of ranks is a multiple of it, or less");
}
// Ranks of a group where there are `ranks` in all: all of them where they are fewer. InputError where the
// groups would not be of one size.
inline std::uint32_t group_of(std::uint32_t group, const char* algorithm, CollectiveKind kind,
                              std::uint32_t ranks) {
  if (ranks <= group) return ranks;
  if (ranks % group != 0)
    refuse(algorithm, kind, ranks, "needs a multiple of its group, " + std::to_string(group));
  return group;
}
inline std::uint32_t group_of(const GroupParameters& parameters, const char* algorithm, CollectiveKind kind,
                              std::uint32_t ranks) {
  return group_of(static_cast<std::uint32_t>(parameters.group), algorithm, kind, ranks);
}

// The same of algorithms whose groups are the hosts unless a number is given.
struct HostGroupParameters {
  std::int64_t group = 0;  // 0: as the hosts are
  // What the parameter's documentation says of the number 0.
  static constexpr const char* kZeroMeans = "; 0: as the hosts are, and 8 where no hosts are known";

  // Ranks of a group, which may be more than there are in all: where no hosts are known...
  std::uint32_t group_size() const { return group == 0 ? kUsualGroup : static_cast<std::uint32_t>(group); }
  // ... and where they are. InputError where they have not as many ranks each.
  std::uint32_t group_size(const GroupShape& shape, const char* algorithm, CollectiveKind kind,
                           std::uint32_t ranks) const {
    if (group != 0) return static_cast<std::uint32_t>(group);
    if (shape.sizes.size() > 1) refuse(algorithm, kind, ranks, "needs as many of them in each host");
    return shape.sizes.front();
  }
  // Of a load's ranks those of one group.
  std::uint32_t group_size(const CollectiveAlgorithm::Load& load) const {
    return group == 0 ? load.ranks / load.domains : std::min(static_cast<std::uint32_t>(group), load.ranks);
  }
};

}  // namespace netsim
