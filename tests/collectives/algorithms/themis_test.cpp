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
  std::vector<std::size_t> first;  // by slice, the dimension in which it sends most cells at once
};
Sent sent_by(const Plan& plan, const Grid& grid, std::size_t slices) {
  Sent sent{std::vector<double>(grid.sizes.size(), 0), std::vector<std::size_t>(slices)};
  std::vector<std::uint32_t> most(slices, 0);
  for (std::uint32_t block = 0; block < plan.blocks(0); ++block) {
    for (std::uint32_t i = 0; i < plan.steps(0, block); ++i) {
      const Step step = plan.step(0, block, i);
      if (!sends(step.kind)) continue;
      std::uint32_t peer = step.to.rank;
      std::size_t dimension = 0;
      while (peer % grid.sizes[dimension] == 0) peer /= grid.sizes[dimension++];
      const std::size_t slice = step.source.chunk / grid.ranks();
      if (step.count > most[slice]) {
        most[slice] = step.count;
        sent.first[slice] = dimension;
      }
      sent.by_dimension[dimension] += step.count;
    }
  }
  return sent;
}

// Replay of the rule in ASTRA-sim's units: MiB at the rate of dimension 0. Returns the elapsed times.
struct Replay {
  std::vector<double> elapsed;
  std::vector<std::size_t> first;
  std::vector<std::vector<std::size_t>> orders;
};
Replay replay(const Grid& grid, int chunks) {
  const std::size_t count = grid.sizes.size();
  Replay result{std::vector<double>(count, 0), {}, {}};
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
    result.orders.push_back(order);
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
      const Sent sent = sent_by(*plan, grid, static_cast<std::size_t>(chunks));
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

// Sending: what a dimension sends next, in a replay that looks at all chunks whenever a dimension is free.
struct Sending {
  std::vector<std::vector<std::pair<std::size_t, std::uint32_t>>> by_dimension;  // chunk and its cells
  double end = 0;
};
Sending play_queues(const Grid& grid, const std::vector<std::vector<std::size_t>>& orders, bool smallest) {
  struct Moving {
    std::vector<std::size_t> path;  // dimensions, in and back
    std::size_t at = 0;
    double ready = 0;
  };
  std::vector<Moving> chunks;
  for (const std::vector<std::size_t>& order : orders) {
    Moving moving{order};
    moving.path.insert(moving.path.end(), order.rbegin() + 1, order.rend());
    chunks.push_back(moving);
  }
  const auto cells = [&](const Moving& moving) {  // of a ring's chunk
    std::uint32_t count = grid.ranks();
    const std::size_t depth = std::min(moving.at, moving.path.size() - 1 - moving.at);
    for (std::size_t i = 0; i <= depth; ++i) count /= grid.sizes[moving.path[i]];
    return count;
  };
  std::vector<double> free(grid.sizes.size(), 0);
  Sending sending;
  sending.by_dimension.resize(grid.sizes.size());
  for (double now = 0;;) {
    bool began = true;
    while (began) {
      began = false;
      for (std::size_t d = 0; d < free.size(); ++d) {
        if (free[d] > now) continue;
        Moving* next = nullptr;
        for (Moving& one : chunks) {
          if (one.at == one.path.size() || one.path[one.at] != d || one.ready > now) continue;
          if (next == nullptr) next = &one;
          const bool less =
              smallest && cells(one) != cells(*next) ? cells(one) < cells(*next) : one.ready < next->ready;
          if (less) next = &one;
        }
        if (next == nullptr) continue;
        const bool inner = 2 * next->at + 1 == next->path.size();
        const double time = (inner ? 2.0 : 1.0) * cells(*next) * (grid.sizes[d] - 1) / grid.rates[d];
        sending.by_dimension[d].emplace_back(next - chunks.data(), cells(*next));
        free[d] = next->ready = now + time;
        sending.end = std::max(sending.end, free[d]);
        ++next->at;
        began = true;
      }
    }
    double soonest = 1e300;
    for (const double one : free) soonest = one > now ? std::min(soonest, one) : soonest;
    if (soonest == 1e300) return sending;
    now = soonest;
  }
}

// The orders of a plan's chunks and, by dimension, what it sends: chunks with the cells of their rings.
Sending sending_of(const Plan& plan, const Grid& grid) {
  Sending sending;
  sending.by_dimension.resize(grid.sizes.size());
  for (std::uint32_t block = 0; block < plan.blocks(0); ++block) {
    for (std::uint32_t i = 0; i < plan.steps(0, block); ++i) {
      const Step step = plan.step(0, block, i);
      if (step.kind != Step::Kind::send) continue;  // the first step of a ring
      std::uint32_t peer = step.to.rank;
      std::size_t dimension = 0;
      while (peer % grid.sizes[dimension] == 0) peer /= grid.sizes[dimension++];
      sending.by_dimension[dimension].emplace_back(step.source.chunk / grid.ranks(), step.count);
    }
  }
  return sending;
}

// Orders of three dimensions whose chunks have no equal ends, so that the replay has no ties to break.
TEST(Themis, DimensionsSendTheSmallestChunkFirst) {
  const Grid grid{{4, 2, 8}, {3.7, 2.3, 1.1}};
  const auto plan = test::make_plan(
      "{kind: themis, directions: 1, chunks: 24, dimensions: [4, 2, 8], rates: [3.7, 2.3, 1.1]}",
      CollectiveKind::all_reduce, grid.ranks());
  const Replay rule = replay(grid, 24);
  EXPECT_EQ(sending_of(*plan, grid).by_dimension, play_queues(grid, rule.orders, true).by_dimension);
}

// The paper has 95 % of the rate with the smallest first. All dimensions together send 2 (p - 1)/p of each
// chunk.
TEST(Themis, SmallestFirstKeepsDimensionsBusy) {
  const Grid grid{{4, 4, 4}, {4, 2, 1}};
  const auto share = [&](int chunks, bool smallest) {
    return 2.0 * chunks * (grid.ranks() - 1) / 7 /
           play_queues(grid, replay(grid, chunks).orders, smallest).end;
  };
  EXPECT_GT(share(64, true), 0.99);
  EXPECT_GT(share(16, true), 0.97);
  EXPECT_LT(share(16, false), 0.9);
}

TEST(Themis, AFixedOrderIsThatOfTheDimensions) {
  const Grid grid{{4, 4, 4}, {1, 2, 4}};
  const auto plan =
      test::make_plan("{kind: themis, directions: 1, chunks: 8, order: fixed, dimensions: [4, 4, 4]}",
                      CollectiveKind::all_reduce, grid.ranks());
  EXPECT_EQ(sent_by(*plan, grid, 8).first, std::vector<std::size_t>(8, 0));
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
