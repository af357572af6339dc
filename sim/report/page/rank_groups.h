// RankGroups: ranks that report.html shows as one, where a job has too many to show each. They are the ranks
// of a pipeline stage, or ranks that follow each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/workload/task_source.h"

namespace netsim {

struct RankGroups {
  enum class Unit : std::uint8_t { rank, stage, ranks };
  struct Group {
    std::string label;                 // "rank 3", "stage 2 (16 ranks)", "ranks 64 to 127"
    std::vector<std::uint32_t> ranks;  // ascending, at least one
  };
  Unit unit = Unit::rank;
  std::vector<Group> groups;
};

// Returns the groups of the first `ranks` ranks of a workload. Up to `most` ranks are a group each. More are
// grouped by stage of the pipeline (the axis "pp"), or without one into at most `most` ranges. Where there
// are more than kMostStages stages, some of them that follow each other are one group.
RankGroups rank_groups(const WorkloadDescription& workload, std::uint32_t ranks, std::uint32_t most);
inline constexpr std::uint32_t kMostStages = 64;

}  // namespace netsim
