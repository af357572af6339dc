// Tests expert parallelism, by any router and any product with the other strategies. Covers the data sent to
// experts and back, the computation of ranks, and the groups that reduce gradients of experts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <numeric>

#include "sim/collectives/execution/executor.h"
#include "sim/core/errors.h"
#include "sim/core/output.h"
#include "sim/core/registry.h"
#include "sim/workload/program/program_file.h"
#include "sim/workload/program/role_program_source.h"
#include "sim/workload/routing/token_counts.h"
#include "tests/collectives/fake_endpoint.h"
#include "tests/collectives/packet_collectives.h"
#include "tests/support/paths.h"
#include "tests/support/task_bodies.h"
#include "tests/support/tasks_of.h"
#include "tests/support/test_size.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::expert_parallel_test {
namespace {

using netsim::test::parse_workload;
using netsim::test::TaskPlayer;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kLayers = 4, kHidden = 64, kInner = 96, kTokens = 16, kExperts = 8, kTopK = 2;
constexpr std::int64_t kRow = 2 * kHidden;  // bytes of a token

std::string yaml(const std::string& more, const std::string& experts = "count: 8, top_k: 2") {
  return "{kind: ptdp, model: {kind: llama, layers: 4, hidden: 64, heads: 4, groups: 4, inner: 96, sequence: "
         "16, "
         "vocabulary: 128, experts: {" +
         experts + "}}, " + more + "}";
}
std::unique_ptr<TaskSource> job(const std::string& more, const std::string& experts = "count: 8, top_k: 2") {
  return parse_workload(yaml(more, experts))->tasks(64);
}

struct Tally {
  std::int64_t tasks = 0;
  Bytes bytes = 0;
  std::uint32_t group = 0;
};
std::map<std::string, Tally> tally(const TaskSource& source, std::uint32_t rank) {
  std::map<std::string, Tally> result;
  for (const Task& task : test::tasks_of(source, rank)) {
    if (task.kind() != TaskKind::collective) continue;
    Tally& entry =
        result[std::string(to_string(task.collective().collective)) + " " + source.names()[task.name]];
    ++entry.tasks;
    entry.bytes += task.bytes();
    entry.group = task.group();
  }
  return result;
}

std::vector<Task> named(const TaskSource& source, std::uint32_t rank, const std::string& name) {
  std::vector<Task> tasks;
  for (const Task& task : test::tasks_of(source, rank)) {
    if (source.names()[task.name] == name) tasks.push_back(task);
  }
  return tasks;
}

// Returns the rows of a rank's kernel that its batches have together, in all its tasks.
std::vector<std::int64_t> rows_of(const TaskSource& source, std::uint32_t rank, const std::string& kernel) {
  std::vector<std::int64_t> rows;
  for (const Task& task : test::tasks_of(source, rank)) {
    if (task.kind() != TaskKind::compute) continue;
    for (const Kernel& k : source.works()[task.work()].kernels) {
      if (k.name == kernel) rows.push_back(k.m * k.batch);
    }
  }
  return rows;
}

constexpr const char* kExchanges[] = {"dispatch_forward", "combine_forward", "combine_backward",
                                      "dispatch_backward"};

// A layer, microbatch and direction moves T k h elements, of which (ep - 1) / ep leave the rank (an
// all-to-all's bytes are the whole buffer). That occurs twice forward and twice backward.
TEST(ExpertParallel, MovesEveryCopyOfATokenThereAndBack) {
  const auto source = job("parallel: {data: 4, expert: 4}, microbatches: 3, recompute: none");
  ASSERT_EQ(source->ranks(), 4U);
  for (const char* exchange : kExchanges) {
    const Tally moved = tally(*source, 1).at(std::string("all_to_all ep_") + exchange);
    EXPECT_EQ(moved.tasks, kLayers * 3) << exchange;
    EXPECT_EQ(moved.bytes, moved.tasks * kTokens * kTopK * kRow) << exchange;
    EXPECT_THAT(source->group(moved.group), ElementsAre(0, 1, 2, 3));
  }
  const Tally numbers = tally(*source, 1).at("all_gather ep_numbers_forward");
  EXPECT_EQ(numbers.tasks, kLayers * 3);
  EXPECT_EQ(numbers.bytes, numbers.tasks * 4 * kExperts * 8);
  const auto again = job("parallel: {data: 4, expert: 4}, microbatches: 3, recompute: full");
  EXPECT_EQ(tally(*again, 0).at("all_to_all ep_dispatch_recompute").tasks, kLayers * 3);
  const auto alone = tally(*job("parallel: {data: 4}"), 0);
  EXPECT_TRUE(std::none_of(alone.begin(), alone.end(),
                           [](const auto& entry) { return entry.first.find("ep_") != std::string::npos; }));
}

// Only every other layer but the first has experts: two of six.
TEST(ExpertParallel, OnlySomeLayersExchange) {
  const auto source =
      parse_workload(
          "{kind: ptdp, model: {kind: llama, layers: 6, hidden: 64, heads: 4, groups: 4, inner: 96, "
          "sequence: 16, vocabulary: 128, experts: {count: 8, every: 2, first_dense: 1}}, "
          "parallel: {data: 2, expert: 2}}")
          ->tasks(2);
  EXPECT_EQ(tally(*source, 0).at("all_to_all ep_combine_forward").tasks, 2);
  EXPECT_EQ(rows_of(*source, 0, "mlp_up_gemm").size(), 4U * 2);  // recomputed
}

// Each tensor-parallel rank sends the copies of its part of the tokens. Divided experts gather those of all
// ranks that divide them, and scatter the sums.
TEST(ExpertParallel, DividedExpertsGatherTokens) {
  const std::string parallel = "parallel: {tensor: 2, data: 4, expert: 4, sequence: true";
  const auto divided = job(parallel + "}, recompute: none");
  const auto tasks = tally(*divided, 0);
  const Bytes exchanged = kLayers * kTokens / 2 * kTopK * kRow;
  EXPECT_EQ(tasks.at("all_to_all ep_dispatch_forward").bytes, exchanged);
  EXPECT_EQ(tasks.at("all_gather etp_gather_forward").bytes, 2 * exchanged);
  EXPECT_EQ(tasks.at("reduce_scatter etp_forward").bytes, 2 * exchanged);
  EXPECT_EQ(tasks.at("all_gather etp_gather_backward").bytes, 2 * exchanged);
  EXPECT_EQ(tasks.at("reduce_scatter etp_backward").bytes, 2 * exchanged);
  EXPECT_THAT(divided->group(tasks.at("all_to_all ep_dispatch_forward").group), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(divided->group(tasks.at("reduce_scatter etp_forward").group), ElementsAre(0, 1));
  EXPECT_EQ(rows_of(*divided, 0, "expert_up_gemm").front(), kTokens * kTopK);

  const auto folded = job(parallel + ", expert_tensor: 1}, recompute: none");
  const auto others = tally(*folded, 0);
  EXPECT_EQ(others.at("all_to_all ep_dispatch_forward").bytes, exchanged);
  EXPECT_EQ(others.count("all_gather etp_gather_forward"), 0U);
  EXPECT_EQ(others.count("reduce_scatter etp_forward"), 0U);
  // Over tp first, then dp.
  EXPECT_THAT(folded->group(others.at("all_to_all ep_dispatch_forward").group), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(folded->group(others.at("all_reduce edp_gradients").group), ElementsAre(0, 4));
  EXPECT_EQ(rows_of(*folded, 0, "expert_up_gemm").front(), kTokens * kTopK / 2);
  EXPECT_EQ(tasks.at("reduce_scatter tp_forward").bytes, others.at("reduce_scatter tp_forward").bytes);
}

// Parameters of a layer: two norms and the last one, attention, and a router; then experts.
constexpr std::int64_t kCommon =
    kLayers * (2 * kHidden + 4 * kHidden * kHidden + kExperts * kHidden) + 2 * 128 * kHidden + kHidden;
constexpr std::int64_t kOfExperts = kLayers * kExperts * 3 * kHidden * kInner;

TEST(ExpertParallel, GradientsOfExpertsAreReducedAmongTheirCopies) {
  for (const char* more : {"", ", gradient: {bucket: 100 kB, overlap: true}"}) {
    const auto source = job(std::string("parallel: {data: 8, expert: 4}") + more);
    const auto tasks = tally(*source, 5);
    EXPECT_EQ(tasks.at("all_reduce dp_gradients").bytes, 2 * kCommon);
    EXPECT_EQ(tasks.at("all_reduce edp_gradients").bytes, 2 * kOfExperts / 4);
    EXPECT_THAT(source->group(tasks.at("all_reduce edp_gradients").group), ElementsAre(1, 5));
  }
  const auto whole = tally(*job("parallel: {data: 8}"), 5);
  EXPECT_EQ(whole.at("all_reduce dp_gradients").bytes, 2 * (kCommon + kOfExperts));
  EXPECT_EQ(whole.count("all_reduce edp_gradients"), 0U);
  EXPECT_EQ(tally(*job("parallel: {data: 8, expert: 8}"), 5).count("all_reduce edp_gradients"), 0U);
}

TEST(ExpertParallel, ADividedOptimizerHasItsPartOfBoth) {
  for (const char* more :
       {"", ", gradient: {bucket: 100 kB, overlap: true}, overlap_parameter_gather: true"}) {
    const auto source = job(
        std::string("parallel: {data: 8, expert: 4}, microbatches: 2, optimizer: distributed_adam") + more);
    const auto tasks = tally(*source, 5);
    EXPECT_EQ(tasks.at("reduce_scatter dp_gradients").bytes, 2 * kCommon);
    EXPECT_EQ(tasks.at("all_gather dp_parameters").bytes, 2 * kCommon);
    EXPECT_EQ(tasks.at("reduce_scatter edp_gradients").bytes, 2 * kOfExperts / 4);
    EXPECT_EQ(tasks.at("all_gather edp_parameters").bytes, 2 * kOfExperts / 4);
    const Task adam = named(*source, 5, "optimizer").front();
    EXPECT_EQ(source->works()[adam.work()].kernels[4].bytes, 28 * (kCommon / 8 + kOfExperts / 4 / 2));
  }
}

// ---- Routers

RoutingShape shape_of(std::uint32_t sources, std::uint32_t tokens, std::uint32_t experts, std::uint32_t top_k,
                      std::uint32_t groups = 1, std::uint32_t limit = 1) {
  return {sources, tokens, experts, top_k, groups, limit};
}
std::unique_ptr<Router> router(const std::string& text) {
  return Registry<Router>::instance().create(
      parse_config(text, source_directory() + "/configs/workloads/test.yaml"), "uniform");
}
std::vector<std::int64_t> popularity(const Router& of, const RoutingShape& shape, std::uint32_t layer,
                                     std::uint32_t iteration) {
  std::vector<std::int64_t> tokens(shape.experts, 0);
  for (std::uint32_t source = 0; source < shape.sources; ++source) {
    for (const std::uint32_t expert : of.route(shape, layer, iteration, source)) ++tokens[expert];
  }
  return tokens;
}

// Every token goes to top_k different experts, in no more groups than it may.
void expect_sound(const std::vector<std::uint32_t>& chosen, const RoutingShape& shape) {
  ASSERT_EQ(chosen.size(), shape.tokens * shape.top_k);
  for (std::uint32_t token = 0; token < shape.tokens; ++token) {
    std::vector<std::uint32_t> experts(chosen.begin() + token * shape.top_k,
                                       chosen.begin() + (token + 1) * shape.top_k);
    std::vector<std::uint32_t> groups;
    for (const std::uint32_t expert : experts) {
      ASSERT_LT(expert, shape.experts);
      groups.push_back(expert / (shape.experts / shape.groups));
    }
    for (std::vector<std::uint32_t>* list : {&experts, &groups}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    ASSERT_EQ(experts.size(), shape.top_k);
    ASSERT_LE(groups.size(), std::max(shape.group_limit, shape.groups == 1 ? 1U : shape.group_limit));
  }
}

TEST(ExpertRouters, SendATokenToDifferentExpertsWithinItsGroups) {
  for (const char* kind : {"uniform", "{kind: zipf, exponent: 1.2}", "{kind: zipf, exponent: 5}", "drift"}) {
    SCOPED_TRACE(kind);
    const auto of = router(kind);
    for (const RoutingShape& shape :
         {shape_of(4, 100, 16, 4), shape_of(2, 100, 32, 6, 8, 3), shape_of(1, 50, 8, 8),
          shape_of(2, 64, 256, 8, 8, 4), shape_of(2, 30, 8, 2, 4, 1)}) {
      expect_sound(of->route(shape, 2, 1, shape.sources - 1), shape);
      EXPECT_EQ(of->route(shape, 2, 1, 0), of->route(shape, 2, 1, 0));
    }
  }
}

TEST(ExpertRouters, ZipfIsItsLaw) {
  const RoutingShape shape = shape_of(64, 1000, 8, 1);
  std::vector<std::int64_t> tokens = popularity(*router("{kind: zipf, exponent: 1}"), shape, 0, 0);
  std::sort(tokens.rbegin(), tokens.rend());
  const double harmonic = 761.0 / 280;
  for (int i = 0; i < 8; ++i)
    EXPECT_NEAR(static_cast<double>(tokens[static_cast<std::size_t>(i)]), 64'000 / harmonic / (i + 1), 400)
        << i;
  // The favourites of layers differ, those of iterations do not.
  const auto zipf = router("{kind: zipf, exponent: 2}");
  const auto favourite = [&](std::uint32_t layer) {
    const auto all = popularity(*zipf, shape, layer, 0);
    return std::max_element(all.begin(), all.end()) - all.begin();
  };
  EXPECT_FALSE(favourite(0) == favourite(1) && favourite(1) == favourite(2) && favourite(2) == favourite(3));
  EXPECT_EQ(popularity(*zipf, shape, 1, 0), popularity(*zipf, shape, 1, 7));
  for (const std::int64_t of_expert : popularity(*router("{kind: zipf, exponent: 0}"), shape, 0, 0))
    EXPECT_NEAR(static_cast<double>(of_expert), 8000, 400);
}

// The closer two iterations, the more alike; the seed makes it another configuration.
TEST(ExpertRouters, PopularityDrifts) {
  const RoutingShape shape = shape_of(16, 1000, 16, 2);
  const auto drift = router("{kind: drift, spread: 1, memory: 0.95}");
  EXPECT_TRUE(drift->changes());
  const auto distance = [&](std::uint32_t from, std::uint32_t to) {
    double sum = 0;
    for (std::uint32_t layer = 0; layer < 8; ++layer) {
      const auto a = popularity(*drift, shape, layer, from), b = popularity(*drift, shape, layer, to);
      for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(std::abs(a[i] - b[i]));
    }
    return sum;
  };
  EXPECT_GT(distance(10, 11), 0);
  EXPECT_LT(distance(10, 11) * 1.5, distance(10, 30));
  EXPECT_NE(popularity(*drift, shape, 0, 0),
            popularity(*router("{kind: drift, spread: 1, memory: 0.95, seed: 2}"), shape, 0, 0));
}

TEST(ExpertRouters, ATraceIsDealtOutExactly) {
  const auto counts = router("{kind: counts, file: expert_counts.csv}");
  const RoutingShape shape = shape_of(4, 64, 8, 2);
  EXPECT_TRUE(counts->changes());
  counts->check(shape, 2);
  for (std::uint32_t source = 0; source < 4; ++source)
    expect_sound(counts->route(shape, 1, 1, source), shape);
  // 512 copies by shares of 1024: half of each; an expert cannot get a token twice, so at most 256.
  EXPECT_THAT(popularity(*counts, shape, 0, 0), ElementsAre(128, 100, 80, 64, 56, 40, 28, 16));
  EXPECT_THAT(popularity(*counts, shape, 1, 1), ElementsAre(256, 128, 64, 32, 16, 8, 4, 4));
  EXPECT_EQ(popularity(*counts, shape, 0, 2), popularity(*counts, shape, 0, 0));
}

std::string refused_trace(const std::string& text, const RoutingShape& shape, std::uint32_t layers) {
  const std::string path = ::testing::TempDir() + "expert_counts_of_test.csv";
  std::ofstream(path) << text;
  try {
    router("{kind: counts, file: " + path + "}")->check(shape, layers);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ExpertRouters, RefuseTracesOfOtherJobs) {
  const RoutingShape shape = shape_of(4, 64, 8, 2);
  const std::string good = "expert,tokens\n0,1\n7,1\n";
  EXPECT_EQ(refused_trace(good, shape, 3), "accepted");
  EXPECT_THAT(refused_trace("expert,tokens\n0,1\n8,1\n", shape, 3),
              HasSubstr("has tokens of expert 8; the model has 8 experts"));
  EXPECT_THAT(refused_trace("layer,expert,tokens\n0,0,1\n0,1,1\n", shape, 3),
              HasSubstr("has counts of 1 layers"));
  EXPECT_THAT(refused_trace("expert,tokens\n0,1\n0,1\n", shape, 3),
              AllOf(HasSubstr("of_test.csv:3"), HasSubstr("a second row for expert 0")));
  EXPECT_THAT(refused_trace("expert,tokens\n0,1\n1,0\n", shape, 3), HasSubstr("gives tokens to 1 experts"));
  EXPECT_THAT(refused_trace("iteration,expert,tokens\n0,0,1\n0,1,1\n2,0,1\n2,1,1\n", shape, 3),
              HasSubstr("gives tokens to 0 experts in layer 0 of iteration 1"));
  EXPECT_THAT(refused_trace("expert,tokens\n0,-1\n", shape, 3), HasSubstr("of_test.csv:2"));
  EXPECT_THAT(refused_trace("expert,tokens\n", shape, 3), HasSubstr("no rows"));
  EXPECT_THAT(refused_trace("expert,token\n0,1\n", shape, 3), HasSubstr("of_test.csv"));
  EXPECT_THAT(refused_trace(good, shape_of(4, 64, 8, 2, 4, 2), 3), HasSubstr("group_limit"));
}

TEST(ExpertRouters, ExponentialsAreTheSameEverywhere) {
  EXPECT_EQ(portable_exp(0), 1);
  for (const double x : {-30.0, -3.25, -0.5, 0.1, 1.0, 2.5, 40.0})
    EXPECT_NEAR(portable_exp(x) / std::exp(x), 1, 1e-14) << x;
}

// ---- What routers make of a job

std::int64_t sum_of(const BlockCounts& counts) {
  return std::accumulate(counts.rows().begin(), counts.rows().end(), std::int64_t{0});
}
bool transposed(const BlockCounts& a, const BlockCounts& b) {
  for (std::uint32_t s = 0; s < a.members(); ++s) {
    for (std::uint32_t d = 0; d < a.members(); ++d) {
      if (a.of(s, d) != b.of(d, s)) return false;
    }
  }
  return true;
}

// Every copy that goes to an expert is computed there and comes back.
TEST(ExpertParallel, CountedTokensComeBackAndAreComputedWhereTheyGo) {
  const auto source = job(
      "parallel: {data: 8, expert: 4, pipeline: 2}, microbatches: 2, recompute: none, router: {kind: zipf}");
  for (std::uint32_t rank = 0; rank < source->ranks(); ++rank) {
    const auto there = named(*source, rank, "ep_dispatch_forward"),
               back = named(*source, rank, "ep_combine_forward");
    const auto gradient = named(*source, rank, "ep_combine_backward");
    const auto gradient_back = named(*source, rank, "ep_dispatch_backward");
    const std::vector<std::int64_t> up = rows_of(*source, rank, "expert_up_gemm");
    const std::vector<std::int64_t> down = rows_of(*source, rank, "expert_down_gemm_dgrad");
    ASSERT_EQ(there.size(), 4U);  // two layers, two microbatches
    ASSERT_EQ(up.size(), there.size());
    for (std::size_t i = 0; i < there.size(); ++i) {
      ASSERT_EQ(there[i].collective().collective, CollectiveKind::all_to_all_v);
      const BlockCounts& counts = *there[i].collective().counts;
      EXPECT_EQ(sum_of(counts), 4 * kTokens * kTopK * kRow);
      EXPECT_TRUE(transposed(counts, *back[i].collective().counts));
      const std::vector<RankId>& group = source->group(there[i].group());
      const auto member =
          static_cast<std::uint32_t>(std::find(group.begin(), group.end(), rank) - group.begin());
      std::int64_t rows = 0;
      for (std::uint32_t s = 0; s < 4; ++s) rows += counts.of(s, member) / kRow;
      EXPECT_EQ(up[i], std::max<std::int64_t>(2, (rows + 1) / 2 * 2));  // two experts, as many rows each
    }
    // The backward comes to the layers the other way round.
    EXPECT_EQ(*gradient[0].collective().counts, *there[1].collective().counts);
    EXPECT_EQ(*gradient_back[0].collective().counts, *back[1].collective().counts);
    EXPECT_EQ(down[0], up[1]);
  }
  EXPECT_NE(*named(*source, 0, "ep_dispatch_forward")[0].collective().counts,
            *named(*source, 0, "ep_dispatch_forward")[1].collective().counts);
}

TEST(ExpertParallel, DriftChangesWithTheIteration) {
  const auto source = job("parallel: {data: 4, expert: 4}, recompute: none, iterations: 3, router: drift");
  const auto there = named(*source, 2, "ep_dispatch_forward");
  const auto rows = rows_of(*source, 2, "expert_up_gemm");
  ASSERT_EQ(there.size(), 3U * kLayers);
  EXPECT_NE(*there[0].collective().counts, *there[kLayers].collective().counts);
  for (std::size_t i = 0; i < there.size(); ++i) {
    std::int64_t received = 0;
    for (std::uint32_t s = 0; s < 4; ++s) received += there[i].collective().counts->of(s, 2) / kRow;
    EXPECT_EQ(rows[i], std::max<std::int64_t>(2, (received + 1) / 2 * 2));
  }
  TaskPlayer player(*source, 3);
  player.run();
  EXPECT_TRUE(player.all_done());
  EXPECT_FALSE(player.mismatched);
}

// Ranks that divide experts get what all of them get, by their counts, too.
TEST(ExpertParallel, DividedExpertsGatherWhatWasCounted) {
  const auto source =
      job("parallel: {tensor: 2, data: 4, expert: 4, sequence: true}, recompute: none, router: {kind: zipf, "
          "exponent: 2}");
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    const auto there = named(*source, rank, "ep_dispatch_forward"),
               gathers = named(*source, rank, "etp_gather_forward");
    const auto sums = named(*source, rank, "etp_forward");
    ASSERT_EQ(gathers.size(), there.size());
    for (std::size_t i = 0; i < there.size(); ++i) {
      std::int64_t received = 0;
      for (std::uint32_t s = 0; s < 4; ++s) received += there[i].collective().counts->of(s, rank / 2);
      EXPECT_EQ(gathers[i].bytes(), std::max(2 * received, kRow));
      EXPECT_EQ(sums[i].bytes(), gathers[i].bytes());
    }
  }
}

// ceil(1.25 x 16 x 2 / 8) = 5 copies of a rank's tokens for an expert, whatever the router wants.
TEST(ExpertParallel, CapacityDropsWhatIsBeyondIt) {
  const std::string parallel =
      "parallel: {data: 4, expert: 4}, recompute: none, router: {kind: zipf, exponent: 2}";
  const auto source = job(parallel, "count: 8, top_k: 2, capacity: 1.25");
  const BlockCounts& counts = *named(*source, 0, "ep_dispatch_forward").front().collective().counts;
  EXPECT_LT(sum_of(counts), 4 * kTokens * kTopK * kRow);
  const auto zipf = router("{kind: zipf, exponent: 2}");
  for (std::uint32_t s = 0; s < 4; ++s) {
    std::vector<std::int64_t> wanted(8, 0);
    for (const std::uint32_t expert : zipf->route(shape_of(4, 16, 8, 2), 0, 0, s)) ++wanted[expert];
    for (std::uint32_t d = 0; d < 4; ++d) {
      const std::int64_t first = std::min<std::int64_t>(5, wanted[std::size_t{2} * d]);
      const std::int64_t second = std::min<std::int64_t>(5, wanted[std::size_t{2} * d + 1]);
      EXPECT_EQ(counts.of(s, d), (first + second) * kRow);
    }
  }
  // Padded, each rank has 8 x 5 rows for 32 copies: 1.25 times as much.
  const auto padded = job(parallel, "count: 8, top_k: 2, capacity: 1.25, padded: true");
  EXPECT_EQ(tally(*padded, 0).at("all_to_all ep_dispatch_forward").bytes, kLayers * kExperts * 5 * kRow);
  EXPECT_EQ(rows_of(*padded, 0, "expert_up_gemm").front(), kExperts * 5);
  EXPECT_EQ(tally(*padded, 0).count("all_gather ep_numbers_forward"), 0U);  // all know
  // Shares of one and less, evenly.
  const auto half =
      job("parallel: {data: 4, expert: 4}, recompute: none", "count: 8, top_k: 2, capacity: 0.5");
  EXPECT_EQ(tally(*half, 0).at("all_to_all ep_dispatch_forward").bytes, kLayers * kTokens * kTopK * kRow / 2);
}

// ---- By dispatch and combine

const char* const kDispatch = ", expert_exchange: dispatch}, recompute: none, dispatch: {ranks_per_host: ";

// Eight groups of experts are on as many hosts of two ranks. A token has experts on at most three. The counts
// of one operation hold the cost to reach each host once, and each of its experts' ranks. The collective
// library uses the one that its algorithm sends.
TEST(ExpertParallel, DispatchesAndCombines) {
  for (const char* of : {"uniform", "{kind: zipf, exponent: 0}"}) {
    SCOPED_TRACE(of);
    const auto source = job(std::string("parallel: {data: 16, expert: 16") + kDispatch + "2}, router: " + of,
                            "count: 32, top_k: 6, groups: 8, group_limit: 3");
    const std::vector<Task> there = named(*source, 3, "ep_dispatch_forward"),
                            back = named(*source, 3, "ep_combine_forward");
    ASSERT_EQ(there.size(), static_cast<std::size_t>(kLayers));
    ASSERT_EQ(back.size(), there.size());
    for (std::size_t i = 0; i < there.size(); ++i) {
      EXPECT_EQ(there[i].collective().collective, CollectiveKind::dispatch);
      EXPECT_EQ(back[i].collective().collective, CollectiveKind::combine);
      EXPECT_EQ(*there[i].collective().counts, *back[i].collective().counts);  // both in half precision
      const TokenCounts counts =
          count_tokens(*router(of), shape_of(16, kTokens, 32, 6, 8, 3), 2, static_cast<std::uint32_t>(i), 0);
      EXPECT_EQ(*there[i].collective().counts, once_each(counts, kRow));
      EXPECT_LE(there[i].collective().counts->busiest(), kTokens * 3 * kRow);
      EXPECT_EQ(there[i].bytes(), there[i].collective().counts->busiest());
    }
    for (const Task& task : named(*source, 3, "ep_combine_backward"))
      EXPECT_EQ(task.collective().collective, CollectiveKind::dispatch);
    for (const Task& task : named(*source, 3, "ep_dispatch_backward"))
      EXPECT_EQ(task.collective().collective, CollectiveKind::combine);
    EXPECT_THAT(source->group(there[0].group()), ::testing::SizeIs(16));
    EXPECT_EQ(tally(*source, 3).count("all_gather ep_numbers_forward"), 0U);  // its kernels' own business
    // The experts' computation does not depend on how tokens came.
    EXPECT_EQ(rows_of(*source, 3, "expert_up_gemm"),
              rows_of(*job(std::string("parallel: {data: 16, expert: 16}, recompute: none, router: ") + of,
                           "count: 32, top_k: 6, groups: 8, group_limit: 3"),
                      3, "expert_up_gemm"));
  }
  const auto half = job(std::string("parallel: {data: 4, expert: 4") + kDispatch + "8}",
                        "count: 8, top_k: 2, capacity: 0.5");
  EXPECT_EQ(named(*half, 0, "ep_dispatch_forward")[0].collective().counts->copies(0, 0),
            kTokens * kTopK / 2 / 4 * kRow);
}

// The formulas of even routing are the counts of a router that is even.
TEST(ExpertParallel, EvenVolumesAreThoseOfTheUniformRouter) {
  const auto uniform = router("uniform");
  const RoutingShape shape = shape_of(16, 64, 32, 6, 8, 3);
  const TokenCounts counts = count_tokens(*uniform, shape, 2, 0, 0);
  for (std::uint32_t source = 0; source < 16; ++source) {
    std::int64_t copies = 0, hosts = 0;
    for (std::uint32_t member = 0; member < 16; ++member) {
      EXPECT_EQ(counts.copies(source, member), 64 * 6 / 16);
      copies += counts.tokens(source, member);
    }
    for (std::uint32_t host = 0; host < 8; ++host) hosts += counts.to_host(source, host);
    EXPECT_EQ(hosts, 64 * 3);
    EXPECT_EQ(copies, 64 * 6);  // two experts of a token in a group are on both ranks
  }
  EXPECT_EQ(counts.received(5), 64 * 6);
  EXPECT_EQ(counts.sent(5), 64 * 6);
}

// ---- By fetching experts

// On 16 ranks on four hosts, each gets the experts of ranks with its local number, and then those of its
// host.
TEST(ExpertParallel, FetchesExpertsAndSumsTheirGradients) {
  const std::string parallel =
      "parallel: {data: 16, expert: 16, expert_exchange: fetch}, microbatches: 3, recompute: none, gradient: "
      "{dtype: fp32}, ";
  const auto source = job(parallel + "dispatch: {ranks_per_host: 4}", "count: 32, top_k: 6");
  const auto tasks = tally(*source, 5);
  for (const auto& [name, one] : tasks) EXPECT_EQ(name.find("ep_dispatch"), std::string::npos) << name;
  const Bytes own = 2 * 3 * kHidden * kInner;  // parameters of two experts
  const Tally across = tasks.at("all_gather ep_across_experts"),
              within = tasks.at("all_gather ep_within_experts");
  EXPECT_EQ(across.tasks, 3 * kLayers);
  EXPECT_EQ(across.bytes, across.tasks * own * 2 * 4);
  EXPECT_EQ(within.bytes, within.tasks * own * 2 * 16);
  EXPECT_THAT(source->group(across.group), ElementsAre(1, 5, 9, 13));
  EXPECT_THAT(source->group(within.group), ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(tasks.at("reduce_scatter ep_within_gradients").bytes, within.tasks * own * 4 * 16);
  EXPECT_EQ(tasks.at("reduce_scatter ep_across_gradients").bytes, across.tasks * own * 4 * 4);
  // Each rank computes its own tokens, of all experts; and updates its own experts.
  for (const std::int64_t rows : rows_of(*source, 5, "expert_up_gemm"))
    EXPECT_EQ(rows, 32 * kTokens * 6 / 32);
  const Task update = named(*source, 5, "optimizer").front();
  const auto elsewhere = job("parallel: {data: 16, expert: 16}, recompute: none, gradient: {dtype: fp32}",
                             "count: 32, top_k: 6");
  const Task same = named(*elsewhere, 5, "optimizer").front();
  EXPECT_EQ(source->works()[update.work()].kernels[4].bytes,
            elsewhere->works()[same.work()].kernels[4].bytes);
  // A layer's experts arrive before they are computed. The second fetch moves as much.
  TaskPlayer player(*source, 3);
  player.run();
  EXPECT_TRUE(player.all_done());
  EXPECT_FALSE(player.mismatched);
  const auto again =
      tally(*job(parallel + "dispatch: {ranks_per_host: 4, again: true}", "count: 32, top_k: 6"), 5);
  EXPECT_EQ(again.at("all_gather ep_across_experts").bytes, 2 * across.bytes);
  // On one host nothing crosses hosts.
  const auto one = tally(*job("parallel: {data: 8, expert: 8, expert_exchange: fetch}"), 5);
  EXPECT_EQ(one.count("all_gather ep_across_experts"), 0U);
  EXPECT_EQ(one.at("all_gather ep_within_experts").bytes, kLayers * 2 * 8 * 3 * kHidden * kInner);
}

TEST(ExpertParallel, DispatchesInFp8) {
  const auto tasks =
      tally(*job("parallel: {data: 4, expert: 4}, dispatch: {precision: fp8}, recompute: none"), 0);
  constexpr Bytes kScales = 4;  // one for up to 128 elements
  const Bytes copies = kLayers * kTokens * kTopK;
  for (const char* there : {"all_to_all ep_dispatch_forward", "all_to_all ep_combine_backward"})
    EXPECT_EQ(tasks.at(there).bytes, copies * (kHidden + kScales));
  for (const char* back : {"all_to_all ep_combine_forward", "all_to_all ep_dispatch_backward"})
    EXPECT_EQ(tasks.at(back).bytes, copies * kRow);
}

// ---- Janus (Liu et al., SIGCOMM'23)

struct JanusModel {
  const char* name;
  std::int64_t batch, sequence, top_k, hidden, layers, every;
};
constexpr JanusModel kJanusModels[] = {{"BERT", 256, 128, 2, 768, 12, 3},
                                       {"GPT", 256, 64, 4, 768, 12, 12},
                                       {"Transformer-XL", 64, 512, 2, 256, 12, 1}};
std::string janus_job(const JanusModel& model, std::int64_t batch, std::int64_t hosts, const char* exchange) {
  const auto text = [](std::int64_t value) { return std::to_string(value); };
  return "{kind: ptdp, model: {kind: llama, layers: " + text(model.layers) +
         ", hidden: " + text(model.hidden) +
         ", heads: 4, groups: 4, gated: false, inner: " + text(4 * model.hidden) +
         ", sequence: " + text(model.sequence) + ", vocabulary: 1024, experts: {count: " + text(8 * hosts) +
         ", top_k: " + text(model.top_k) + ", every: " + text(model.every) +
         "}}, microbatch: " + text(batch) + ", parallel: {data: " + text(8 * hosts) +
         ", expert: " + text(8 * hosts) + ", expert_exchange: " + exchange + "}, recompute: none}";
}

// Bytes that the first host sends to others in the operations of these names, counted message by message as
// the collective library sends them.
Bytes sent_by_a_host(const TaskSource& source, const std::vector<std::string>& names) {
  EventLoop loop;
  FakeEndpoint endpoint(loop, source.ranks(), 8, {}, {});
  Completions done(loop);
  const auto executor =
      Executor::create(loop, endpoint, parse_config("all_to_all: direct\n", "test.yaml"), 1'000'000);
  executor->set_listener(&done);
  std::map<std::string, std::vector<std::vector<Task>>> tasks;  // by name and rank
  for (std::uint32_t rank = 0; rank < source.ranks(); ++rank) {
    for (const std::string& name : names) tasks[name].push_back(named(source, rank, name));
  }
  std::map<GroupId, std::vector<GpuId>> groups;  // the executor keeps their addresses
  std::uint64_t number = 0;
  for (const std::string& name : names) {
    for (std::size_t i = 0; i < tasks[name][0].size(); ++i) {
      for (std::uint32_t rank = 0; rank < source.ranks(); ++rank) {
        const Task& task = tasks[name][rank][i];
        const std::vector<RankId>& members = source.group(task.group());
        std::vector<GpuId>& group = groups[task.group()];
        group.clear();
        for (const RankId member : members) group.push_back(static_cast<std::uint32_t>(member));
        CommunicationRequest request = test::request_of(task.collective().collective, group, task.bytes());
        request.communication = number + group.front();
        request.index =
            static_cast<std::uint32_t>(std::find(group.begin(), group.end(), rank) - group.begin());
        executor->start(rank, request);
      }
      loop.run();
      number += source.ranks();
    }
  }
  Bytes out = 0;
  for (const auto& [message, time] : endpoint.sent) {
    const bool leaves = message.source < 8 && message.destination >= 8;
    out += leaves && !message.credit ? message.bytes : 0;
  }
  return out;
}

// The paper's table of traffic: GiB that a machine of eight GPUs sends to others in the forward of an
// iteration. It counts fp32; half precision is used here, so counts are doubled. Tokens travel to experts and
// back, or experts travel, and a machine gets each once. A GPU has one expert a layer, and B is the batch of
// a GPU. Batches are counted at an eighth of their size, as tokens are linear in it.
TEST(ExpertParallel, JanusTable) {
  struct Row {
    std::int64_t hosts;
    double tokens[3], experts[3];
  };
  constexpr double kGiB = 1 << 30;
  constexpr std::int64_t kPart = 8;
  const std::vector<Row> rows{{2, {6, 1.5, 6}, {0.56, 0.14, 0.19}}, {4, {9, 2.25, 9}, {1.69, 0.42, 0.56}}};
  for (const Row& row : test::share_of(rows, 2, 2)) {
    for (std::size_t i = 0; i < std::size(kJanusModels); ++i) {
      const JanusModel& model = kJanusModels[i];
      SCOPED_TRACE(model.name);
      const auto tokens =
          parse_workload(janus_job(model, model.batch / kPart, row.hosts, "all_to_all"))->tasks(64);
      const Bytes moved = sent_by_a_host(*tokens, {"ep_dispatch_forward", "ep_combine_forward"});
      EXPECT_DOUBLE_EQ(2.0 * static_cast<double>(moved * kPart) / kGiB, row.tokens[i]);
      const auto experts = parse_workload(janus_job(model, 1, row.hosts, "fetch"))->tasks(64);
      const Bytes fetched = sent_by_a_host(*experts, {"ep_across_experts"});
      const std::int64_t remote = 8 * (row.hosts - 1), layers = model.layers / model.every;
      EXPECT_EQ(fetched, layers * remote * 8 * model.hidden * model.hidden * 2);
      EXPECT_NEAR(2.0 * static_cast<double>(fetched) / kGiB, row.experts[i], 0.005);
      EXPECT_EQ(sent_by_a_host(*experts, {"ep_within_experts"}), 0);
    }
  }
}

std::string random_job() {
  const auto pick = [](std::vector<int> choices) {
    return choices[static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(choices.size())))];
  };
  const auto flag = [&] { return pick({0, 1}) == 1; };
  const auto text = [](bool value) { return std::string(value ? "true" : "false"); };
  const int tensor = pick({1, 2, 4}), stages = pick({1, 2}), chunks = stages > 1 ? pick({1, 2}) : 1;
  const int inner = flag() ? tensor : 1, expert = pick({1, 2, 4, 8});
  int data = pick({1, 2, 4});
  while (tensor * data % (inner * expert) != 0) data *= 2;
  const bool sharded = flag();
  const char* exchanges[] = {"all_to_all", "dispatch", "fetch"};
  const int exchange = pick({0, 1, 2});
  const bool fetch = exchange == 2;
  const char* routers[] = {"uniform", "{kind: zipf, exponent: 0.5}", "drift"};
  // Many tokens, so that some always leave.
  return "{kind: ptdp, model: {kind: llama, layers: 4, hidden: 64, heads: 4, groups: 4, inner: 96, sequence: "
         "256, "
         "vocabulary: 128, " +
         std::string(flag() ? "multi_token: true, " : "") +
         (flag() ? "latent: {key_value: 16, query: 24, plain: 8, rotary: 8, value: 8}, " : "") +
         "experts: {count: 16, top_k: 4, shared: " + std::to_string(pick({0, 1})) +
         ", groups: 4, group_limit: 2, first_dense: " + std::to_string(pick({0, 1})) +
         (flag() ? ", capacity: 1.1" : "") + "}}, parallel: {tensor: " + std::to_string(tensor) +
         ", pipeline: " + std::to_string(stages) + ", data: " + std::to_string(data) +
         ", virtual_stages: " + std::to_string(chunks) + ", sequence: " + text(tensor > 1) +
         ", expert: " + std::to_string(expert) + ", expert_tensor: " + std::to_string(inner) +
         ", expert_exchange: " + exchanges[exchange] +
         "}, dispatch: {ranks_per_host: " + std::to_string(std::min(pick({1, 2}), expert)) +
         ", ahead: " + std::to_string(pick({0, 1, 3})) + ", again: " + text(flag()) +
         ", precision: " + (flag() ? "fp8" : "half") + "}, router: " + routers[pick({0, 1, 2})] +
         ", microbatches: " + std::to_string(stages * pick({1, 2})) +
         ", precision: " + (flag() ? "fp8" : "half") +
         ", optimizer: " + (sharded ? "distributed_adam" : "adam") +
         ", overlap_parameter_gather: " + text(sharded && !fetch && flag()) +
         ", recompute: " + (flag() ? "full" : "none") +
         ", gradient: {bucket: 60 kB, overlap: " + text(!fetch && flag()) +
         "}, iterations: " + std::to_string(pick({1, 2})) + "}";
}

TEST(ExpertParallel, EveryProductOfStrategiesEnds) {
  EXPECT_TRUE(rc::check([] {
    const std::string text = random_job();
    RC_LOG(text);
    const auto workload = parse_workload(text);
    const auto source = workload->tasks(64);
    TaskPlayer player(*source, *rc::gen::arbitrary<std::uint64_t>());
    player.run();
    RC_ASSERT(player.all_done());
    RC_ASSERT(!player.mismatched);
    // A file of it is the same job.
    const auto read = make_role_program_source(parse_program(workload->compile(), "job.pb"), "job.pb");
    for (std::uint32_t rank = 0; rank < read->ranks(); ++rank) {
      const std::vector<Task> one = test::tasks_of(*source, rank), other = test::tasks_of(*read, rank);
      RC_ASSERT(one.size() == other.size());
      for (std::size_t i = 0; i < one.size(); ++i) {
        RC_ASSERT(test::same_body(one[i], other[i]));
      }
    }
  }));
}

// The layer of the prediction exchanges, too, and is routed for itself; the embedding is summed between the
// stages.
TEST(ExpertParallel, APredictionOfATokenMoreIsALayerMore) {
  for (const char* router : {"uniform", "zipf"}) {
    const auto source =
        parse_workload(
            "{kind: ptdp, model: {kind: llama, layers: 4, hidden: 64, heads: 4, groups: 4, inner: 96, "
            "sequence: 16, vocabulary: 128, multi_token: true, experts: {count: 8}}, parallel: {data: 4, "
            "expert: 4, pipeline: 2}, microbatches: 3, recompute: none, router: " +
            std::string(router) + "}")
            ->tasks(8);
    EXPECT_EQ(named(*source, 0, "ep_dispatch_forward").size(), 2U * 3);
    EXPECT_EQ(named(*source, 4, "ep_dispatch_forward").size(), 3U * 3);
    EXPECT_EQ(named(*source, 4, "logits_forward").size(), 2U * 3);
    EXPECT_EQ(tally(*source, 0).at("all_reduce pp_embedding_gradients").bytes, 2 * 128 * kHidden);
    if (std::string(router) != "uniform") {
      const auto dispatches = named(*source, 4, "ep_dispatch_forward");
      EXPECT_NE(*dispatches[2].collective().counts, *dispatches[1].collective().counts);
    }
    TaskPlayer player(*source, 5);
    player.run();
    EXPECT_TRUE(player.all_done());
    EXPECT_FALSE(player.mismatched);
  }
}

// Bidirectional and split schedules exchange as much.
TEST(ExpertParallel, EverySchedule) {
  for (const char* schedule : {"zb_h1", "dual_pipe", "gpipe"}) {
    SCOPED_TRACE(schedule);
    const auto source = job(std::string("parallel: {data: 4, pipeline: 2, expert: 2, schedule: ") + schedule +
                            "}, microbatches: 8, recompute: none, optimizer: distributed_adam, router: zipf");
    std::int64_t exchanges = 0;
    for (std::uint32_t rank = 0; rank < source->ranks(); ++rank)
      exchanges += static_cast<std::int64_t>(named(*source, rank, "ep_combine_backward").size());
    EXPECT_EQ(exchanges, 8 * kLayers * 4);
    TaskPlayer player(*source, 5);
    player.run();
    EXPECT_TRUE(player.all_done());
    EXPECT_FALSE(player.mismatched);
  }
}

// Only pairs multiply beside kernels that hold multiprocessors.
TEST(ExpertParallel, DispatchHoldsMultiprocessorsInPairs) {
  const std::string pipeline =
      "{data: 4, pipeline: 2, expert: 2, schedule: dual_pipe, expert_exchange: dispatch}";
  const auto source =
      job("parallel: " + pipeline + ", microbatches: 8, recompute: none, dispatch: {multiprocessors: 20}");
  std::map<std::int64_t, int> held;
  for (const Task& task : test::tasks_of(*source, 0)) {
    if (task.kind() != TaskKind::compute) continue;
    for (const Kernel& k : source->works()[task.work()].kernels)
      if (k.name == "expert_up_gemm" || k.name == "expert_up_gemm_wgrad") ++held[k.held_multiprocessors];
  }
  const auto pairs = held[20], others = held[0];
  EXPECT_EQ(held.size(), 2U);
  EXPECT_EQ(pairs + others, 2 * 8 * kLayers / 2);  // a forward and a backward of half of the layers
  EXPECT_GT(pairs, others);
  EXPECT_GT(others, 0);
}

// In the shipped job ranks differ by the tokens of their experts.
TEST(ExpertParallel, TheShippedJobIsPlayed) {
  const auto source = load_workload(source_directory() + "/configs/workloads/small_moe_ptdp.yaml", 16);
  TaskPlayer player(*source, 4);
  player.run();
  EXPECT_TRUE(player.all_done());
  EXPECT_NE(rows_of(*source, 0, "expert_up_gemm"), rows_of(*source, 3, "expert_up_gemm"));
}

std::string refusal(const std::string& text) {
  try {
    parse_workload(text)->tasks(1);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ExpertParallel, RefusesWhatDoesNotDivide) {
  EXPECT_THAT(refusal("kind: ptdp\nmodel: {kind: llama, experts: {count: 8}}\nparallel:\n  expert: 3\n"),
              AllOf(HasSubstr("test.yaml:4:"), HasSubstr("model.experts.count (8) cannot be divided by 3")));
  EXPECT_THAT(refusal(yaml("parallel: {data: 2, expert: 4}")),
              HasSubstr("tensor x context x data (2) cannot be divided by 4"));
  EXPECT_THAT(refusal(yaml("parallel: {tensor: 2, data: 2, expert: 2}")),
              HasSubstr("sequence has to be true"));
  EXPECT_THAT(refusal(yaml("parallel: {tensor: 2, sequence: true, expert_tensor: 4}")),
              HasSubstr("tensor (2) cannot be divided by 4"));
  EXPECT_THAT(refusal("{kind: ptdp, parallel: {expert: 2, data: 2}}"),
              HasSubstr("no layer of the model has routed"));
  EXPECT_THAT(refusal("{kind: ptdp, router: zipf}"), HasSubstr("no layer of the model has routed"));
  const std::string fetch = "parallel: {data: 4, expert: 4, expert_exchange: fetch}";
  EXPECT_THAT(refusal(yaml(fetch + ", dispatch: {ranks_per_host: 3}")), HasSubstr("into hosts of 3"));
  EXPECT_THAT(refusal(yaml(fetch + ", gradient: {bucket: 1 MB, overlap: true}")),
              HasSubstr("for each microbatch"));
  EXPECT_THAT(refusal(yaml("parallel: {data: 4, expert: 4, expert_exchange: dispatch}",
                           "count: 8, capacity: 1, padded: true")),
              HasSubstr("not filled up"));
  EXPECT_THAT(refusal(yaml("parallel: {tensor: 4, sequence: true, data: 9, expert: 6, expert_tensor: 1}",
                           "count: 6")),
              HasSubstr("have to divide each other"));
  EXPECT_THAT(
      refusal(
          yaml("parallel: {data: 4, expert: 4, expert_exchange: dispatch}, dispatch: {multiprocessors: 20}")),
      HasSubstr("no forward overlaps a backward"));
  EXPECT_THAT(refusal(yaml("router: zip")), HasSubstr("did you mean 'zipf'"));
  EXPECT_THAT(refusal(yaml("microbatches: 1", "count: 4, top_k: 5")),
              HasSubstr("cannot go to 5 of 4 experts"));
  EXPECT_THAT(refusal(yaml("microbatches: 1", "count: 8, groups: 3")), HasSubstr("into 3 groups"));
  EXPECT_THAT(refusal(yaml("microbatches: 1", "count: 8, top_k: 4, groups: 4, group_limit: 1")),
              HasSubstr("hold the 4 experts of a token"));
  EXPECT_THAT(refusal(yaml("microbatches: 1", "count: 8, padded: true")),
              HasSubstr("padded needs a capacity"));
}

}  // namespace
}  // namespace netsim::expert_parallel_test
