#include "sim/report/page/rank_groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/core/text.h"

namespace netsim {
namespace {

constexpr const char* kPipelineAxis = "pp";

// StageAxis: the axis of pipeline stages in the grid of ranks.
struct StageAxis {
  std::uint32_t stride = 1, stages = 1;  // a rank's stage is rank / stride % stages
};

StageAxis stage_axis(const std::vector<RankAxis>& axes, std::uint32_t ranks) {
  StageAxis found;
  std::uint32_t stride = 1;
  for (const RankAxis& axis : axes) {
    if (axis.name == kPipelineAxis) found = {stride, axis.size};
    stride *= axis.size;
  }
  return stride == ranks ? found : StageAxis{};  // a grid of other ranks says nothing
}

std::uint32_t ceiling(std::uint32_t all, std::uint32_t parts) { return (all + parts - 1) / parts; }

RankGroups stages_of(const StageAxis& axis, std::uint32_t ranks) {
  const std::uint32_t each = ceiling(axis.stages, kMostStages), count = ceiling(axis.stages, each);
  RankGroups all{RankGroups::Unit::stage, std::vector<RankGroups::Group>(count)};
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    all.groups[rank / axis.stride % axis.stages / each].ranks.push_back(rank);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t first = i * each, last = std::min(first + each, axis.stages) - 1;
    const std::string stages =
        first == last ? fmt::format("stage {}", first) : fmt::format("stages {} to {}", first, last);
    all.groups[i].label = fmt::format("{} ({})", stages, counted(all.groups[i].ranks.size(), "rank"));
  }
  return all;
}

}  // namespace

RankGroups rank_groups(const WorkloadDescription& workload, std::uint32_t ranks, std::uint32_t most) {
  if (ranks > most) {
    const StageAxis axis = stage_axis(workload.axes(), ranks);
    if (axis.stages > 1) return stages_of(axis, ranks);
  }
  RankGroups all{ranks > most ? RankGroups::Unit::ranks : RankGroups::Unit::rank, {}};
  const std::uint32_t each = std::max(1U, ceiling(ranks, most));
  for (std::uint32_t first = 0; first < ranks; first += each) {
    RankGroups::Group group;
    const std::uint32_t end = std::min(first + each, ranks);
    for (std::uint32_t rank = first; rank < end; ++rank) group.ranks.push_back(rank);
    group.label =
        end - first == 1 ? fmt::format("rank {}", first) : fmt::format("ranks {} to {}", first, end - 1);
    all.groups.push_back(std::move(group));
  }
  return all;
}

}  // namespace netsim
