// Positions of the switches of direct networks in drawings (Graph::draw_at).
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>

#include "sim/topology/graph.h"

namespace netsim {

// Sets `place` for a switch of a grid whose first coordinate varies fastest. The first two dimensions are a
// plane; further ones put planes beside and below each other. Returns false for a single dimension, because
// it is drawn as a cycle.
inline bool place_on_grid(std::uint32_t number, std::span<const std::uint32_t> sizes, DrawnAt& place) {
  if (sizes.size() < 2) return false;
  double unit[2] = {1, 1};
  place = {};
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    (d % 2 == 0 ? place.x : place.y) += unit[d % 2] * (number % sizes[d]);
    unit[d % 2] *= sizes[d];
    unit[d % 2] += 1;
    number /= sizes[d];
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
