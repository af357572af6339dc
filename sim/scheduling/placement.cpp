#include "sim/scheduling/placement.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/core/errors.h"
#include "sim/core/registry.h"

namespace netsim {

std::vector<GpuId> free_gpus(const PlacementView& view) {
  std::vector<GpuId> gpus;
  for (GpuId gpu = 0; gpu < view.taken.size(); ++gpu) {
    if (!view.taken[gpu]) gpus.push_back(gpu);
  }
  return gpus;
}

std::vector<GpuId> enough_gpus(const PlacementView& view, const Place& where) {
  std::vector<GpuId> gpus = free_gpus(view);
  if (gpus.size() < view.ranks) {
    throw ConfigError(where,
                      fmt::format("job '{}' has {} ranks, but of the cluster's {} GPUs only {} are free "
                                  "(`share: true` lets it share GPUs with other jobs)",
                                  view.job, view.ranks, view.taken.size(), gpus.size()));
  }
  return gpus;
}

std::uint32_t number_in_order(const PlacementView& view, const std::vector<std::size_t>& order, RankId rank) {
  std::vector<std::uint32_t> coordinates;
  std::uint32_t left = rank;
  for (const auto& [name, size] : view.axes) {
    coordinates.push_back(left % size);
    left /= size;
  }
  std::uint32_t index = 0, stride = 1;
  for (const std::size_t axis : order) {
    index += coordinates[axis] * stride;
    stride *= view.axes[axis].second;
  }
  return index;
}

PlacedRanks place_ranks(const ConfigNode& node, const PlacementView& view, const std::vector<bool>& shared) {
  const auto placement = Registry<Placement>::instance().create(node, "packed");
  std::vector<bool> used = view.taken;
  for (std::size_t gpu = 0; gpu < used.size() && !placement->shares(); ++gpu)
    used[gpu] = used[gpu] || shared[gpu];
  const std::vector<bool> taken = used;
  const PlacementView free{view.cluster, taken, view.ranks, view.axes, view.job, view.seed};
  PlacedRanks placed{placement->place(free), placement->shares(), {}};
  for (const GpuId gpu : placed.gpus) {
    NETSIM_CHECK(gpu < used.size() && !used[gpu],
                 fmt::format("a placement puts two ranks on GPU {}, or one where another job is", gpu));
    used[gpu] = true;
  }
  NETSIM_CHECK(placed.gpus.size() == view.ranks, "a placement leaves out ranks");
  placed.idle = placement->kept_idle(free, placed.gpus);
  return placed;
}

}  // namespace netsim
