// Tests that the chunks of Themis visit dimensions in the order of ASTRA-sim's rule. A replay of that rule
// has its own units. The loads of dimensions are balanced.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/collectives/algorithms/algorithm_cases.h"

namespace netsim::themis_test {
namespace {

using Sizes = std::vector<std::uint32_t>;

struct Grid {
  Sizes sizes;
  std::vector<double> rates;
  std::string list(const char* name) const {
    std::string text;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      text += (i > 0 ? ", " : "") +
              std::to_string(name[0] == 'r' ? static_cast<std::uint32_t>(rates[i]) : sizes[i]);
    }
    return std::string(", ") + name + ": [" + text + "]";
  }
  std::uint32_t ranks() const {
    std::uint32_t product = 1;
    for (const std::uint32_t size : sizes) product *= size;
    return product;
  }
};

// Sent: the cells that rank 0 sends in each dimension in an all-reduce.
struct Sent {
  std::vector<double> by_dimension;
  std::vector<std::size_t> first;  // the first dimension that each slice visits
};
Sent sent_by(const Plan& plan, const Grid& grid) {
  Sent sent{std::vector<double>(grid.sizes.size(), 0), {}};
  for (std::uint32_t block = 0; block < plan.blocks(0); ++block) {
    bool first = true;
    for (std::uint32_t i = 0; i < plan.steps(0, block); ++i) {
      const Step step = plan.step(0, block, i);
      if (!sends(step.kind)) continue;
      std::uint32_t peer = step.to.rank;
      std::size_t dimension = 0;
      while (peer % grid.sizes[dimension] == 0) peer /= grid.sizes[dimension++];
      if (first) sent.first.push_back(dimension);
      first = false;
      sent.by_dimension[dimension] += step.count;
    }
  }
  return sent;
}

// Replay of the rule in ASTRA-sim's units: MiB at the rate of dimension 0. Returns the elapsed times.
struct Replay {
  std::vector<double> elapsed;
  std::vector<std::size_t> first;
};
Replay replay(const Grid& grid, int chunks) {
  const std::size_t count = grid.sizes.size();
  Replay result{std::vector<double>(count, 0), {}};
  const double chunk_size = 16;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    std::vector<std::size_t> order;
    for (std::size_t d = 0; d < count; ++d) {
      const auto later = [&](std::size_t other) { return result.elapsed[d] < result.elapsed[other]; };
      order.insert(std::find_if(order.begin(), order.end(), later), d);
    }
    const std::size_t least = order.front();
    const double moved = 1 - 1.0 / grid.sizes[least];
    const double gap = result.elapsed[order.back()] - result.elapsed[least];
    if (gap * grid.rates[least] / grid.rates[0] / moved < chunk_size / 16)
      std::sort(order.begin(), order.end());
    double left = chunk_size;
    for (const std::size_t d : order) {
      const double kept = left / grid.sizes[d];
      result.elapsed[d] += (left - kept) / (grid.rates[d] / grid.rates[0]);
      left = kept;
    }
    result.first.push_back(order.front());
  }
  return result;
}

std::vector<Grid> grids() {
  return {{{4, 4}, {1, 1}},       {{4, 4, 4}, {1, 1, 1}}, {{8, 2, 4}, {1, 1, 1}}, {{4, 8}, {4, 1}},
          {{2, 8, 4}, {8, 2, 1}}, {{16, 4}, {1, 2}},      {{4, 4, 2}, {2, 4, 1}}};
}

TEST(Themis, LoadsAreThoseOfTheReplayedRule) {
  for (const Grid& grid : grids()) {
    for (const int chunks : {1, 4, 64}) {
      const std::string text =
          "{kind: themis, directions: 1, in_flight: 64, chunks: " + std::to_string(chunks) +
          grid.list("dimensions") + grid.list("rates") + "}";
      SCOPED_TRACE(text);
      const auto plan = test::make_plan(text, CollectiveKind::all_reduce, grid.ranks());
      const Sent sent = sent_by(*plan, grid);
      const Replay expected = replay(grid, chunks);
      EXPECT_EQ(sent.first, expected.first);
      for (std::size_t d = 0; d < grid.sizes.size(); ++d) {
        // An all-reduce sends as much in the all-gathers; a slice has as many cells as there are ranks.
        const double elapsed = sent.by_dimension[d] / 2 / grid.ranks() * 16 / (grid.rates[d] / grid.rates[0]);
        EXPECT_NEAR(elapsed, expected.elapsed[d], 1e-9 * chunks);
      }
    }
  }
}

// With 64 chunks every dimension is busy all the time. With one order, dimension 0 carries nearly all.
TEST(Themis, DimensionsAreBalancedWhereTheyCanBe) {
  for (const Grid& grid : {Grid{{4, 4, 4}, {1, 1, 1}}, Grid{{4, 4}, {1, 1}}, Grid{{4, 8}, {2, 1}}}) {
    const Replay balanced = replay(grid, 64), fixed = replay(grid, 1);
    const auto spread = [](const std::vector<double>& loads) {
      return *std::max_element(loads.begin(), loads.end()) / *std::min_element(loads.begin(), loads.end());
    };
    EXPECT_LT(spread(balanced.elapsed), 1.03);
    EXPECT_GT(spread(fixed.elapsed), 1.5);
  }
}

TEST(Themis, RefusesRatesThatAreNotThoseOfItsDimensions) {
  EXPECT_THAT([] { test::make_algorithm("{kind: themis, dimensions: [4, 4], rates: [1]}"); },
              ::testing::ThrowsMessage<ConfigError>(
                  ::testing::HasSubstr("a list of 2 rates is expected, one for each dimension")));
  EXPECT_THAT([] { test::make_algorithm("{kind: themis, dimensions: [4, 4], rates: [1, 0]}"); },
              ::testing::ThrowsMessage<ConfigError>(::testing::HasSubstr("1e-6")));
}

}  // namespace
}  // namespace netsim::themis_test
