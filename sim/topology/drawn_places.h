// Positions of the switches of direct networks in drawings (Graph::draw_at).
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>

#include "sim/topology/graph.h"

namespace netsim {

// Sets `place` for a switch of a grid whose first coordinate varies fastest. The first two dimensions are a
// plane, and the third is a slanted stack in each of its places, so that links are beside all switches.
// Further ones put copies beside and below each other. Returns false for a single dimension, which is a
// cycle.
inline bool place_on_grid(std::uint32_t number, std::span<const std::uint32_t> sizes, DrawnAt& place) {
  if (sizes.size() < 2) return false;
  constexpr DrawnAt kSlant{0.5, 0.27}, kBetween{0.1, 0.35};
  const bool deep = sizes.size() > 2;
  double unit[2] = {deep ? kSlant.x * sizes[2] + kBetween.x : 1, deep ? kSlant.y * sizes[2] + kBetween.y : 1};
  place = {};
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    const std::uint32_t at = number % sizes[d];
    number /= sizes[d];
    if (d == 2) {
      place = {place.x + kSlant.x * at, place.y + kSlant.y * at};
      continue;
    }
    const std::size_t axis = d < 2 ? d : 1 - d % 2;
    (axis == 0 ? place.x : place.y) += unit[axis] * at;
    unit[axis] *= sizes[d];
    unit[axis] += 1;
  }
  return true;
}

// Returns the position of a member of a group. Groups are on a cycle, and each group is a cycle itself.
inline DrawnAt place_in_group(std::uint32_t group, std::uint32_t groups, std::uint32_t member,
                              std::uint32_t members) {
  const auto turn = [](std::uint32_t i, std::uint32_t n) { return 2 * std::numbers::pi * i / n; };
  const double own = members < 2 ? 0 : members / (2 * std::numbers::pi) * 1.3;
  const double all = groups < 2 ? 0 : groups * (2 * own + 2) / (2 * std::numbers::pi);
  const double outer = turn(group, groups), inner = outer + turn(member, members);
  return {all * std::sin(outer) + own * std::sin(inner), -all * std::cos(outer) - own * std::cos(inner)};
}

}  // namespace netsim
