// The parameter `group` of algorithms that divide the ranks into groups of neighbours, such as the GPUs of a
// host. It is given, or follows the hosts of the ranks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/regular_plan.h"
#include "sim/collectives/library/kernel_model.h"
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
// Returns the number of ranks of a group among `ranks` ranks; `ranks` where they are fewer than a group.
// Throws InputError where the groups would have different sizes.
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

// HostGroupParameters: the parameter of algorithms whose groups are the hosts unless a number is given.
struct HostGroupParameters {
  std::int64_t group = 0;  // 0: the groups are the hosts
  // Documentation of the value 0.
  static constexpr const char* kZeroMeans = "; 0: the GPUs of a host, or 8 where no hosts are known";

  // Returns the number of ranks of a group, which may exceed the number of all ranks. Throws InputError where
  // the hosts are known and have different numbers of ranks.
  std::uint32_t group_size(const GroupShape& shape, const char* algorithm, CollectiveKind kind) const {
    if (group != 0) return static_cast<std::uint32_t>(group);
    if (shape.sizes.size() > 1) refuse(algorithm, kind, shape.ranks, "needs as many of them in each host");
    return shape.sizes.empty() ? kUsualGroup : shape.sizes.front();
  }
  // Returns the number of ranks of a group for a load.
  std::uint32_t group_size(const KernelLoad& load) const {
    return group == 0 ? load.ranks / load.domains : std::min(static_cast<std::uint32_t>(group), load.ranks);
  }
};

}  // namespace netsim
