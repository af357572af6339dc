#include "sim/training/strategy/pipeline_placement.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace netsim {
namespace {

std::vector<std::uint32_t> rising(std::uint32_t stages) {
  std::vector<std::uint32_t> route(stages);
  std::iota(route.begin(), route.end(), 0U);
  return route;
}

}  // namespace

PipelinePlacement PipelinePlacement::looped(std::uint32_t stages, std::uint32_t chunks) {
  std::vector<std::uint32_t> route;
  for (std::uint32_t part = 0; part < stages * chunks; ++part) route.push_back(part % stages);
  return {stages, {std::move(route)}};
}

PipelinePlacement PipelinePlacement::v_shaped(std::uint32_t stages) {
  std::vector<std::uint32_t> route = rising(stages);
  for (std::uint32_t stage = stages; stage-- > 0;) route.push_back(stage);
  return {stages, {std::move(route)}};
}

PipelinePlacement PipelinePlacement::bidirectional(std::uint32_t stages) {
  const std::vector<std::uint32_t> down = rising(stages);
  return {stages, {down, {down.rbegin(), down.rend()}}};
}

std::vector<std::uint32_t> PipelinePlacement::holders(std::uint32_t part) const {
  std::vector<std::uint32_t> stages;
  for (const std::vector<Spot>& route : spots_) stages.push_back(route[part].stage);
  std::sort(stages.begin(), stages.end());
  stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
  return stages;
}

PipelinePlacement::PipelinePlacement(std::uint32_t stages, std::vector<std::vector<std::uint32_t>> routes)
    : spots_(routes.size()), held_(stages) {
  for (std::uint32_t route = 0; route < routes.size(); ++route) {
    for (const std::uint32_t stage : routes[route]) {
      const auto part = static_cast<std::uint32_t>(spots_[route].size());
      spots_[route].push_back({stage, chunks(stage)});
      held_[stage].push_back({route, part});
    }
  }
}

}  // namespace netsim
