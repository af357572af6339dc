// Tests the bytes of a mixture of experts on the wire, by the network's own counters, on hosts of one GPU
// each.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "sim/core/config.h"
#include "sim/simulation/simulation.h"
#include "sim/workload/workload.h"
#include "tests/support/tasks_of.h"

namespace netsim::expert_parallel_test {
namespace {

constexpr Bytes kLayers = 2, kTokens = 64, kTopK = 2, kRanks = 8;

struct Moved {
  Bytes moved = 0;    // by the network
  Bytes counted = 0;  // by the counts of all ranks' exchanges, without the data that stays on a rank
};

Moved run(const std::string& name, int microbatches, int hidden, const std::string& exchange,
          const std::string& more) {
  // A file of the test's own: others run beside it.
  const std::string path = ::testing::TempDir() + name + "_" +
                           ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".yaml";
  std::ofstream(path) << "{kind: ptdp, model: {kind: llama, layers: 2, hidden: " << hidden
                      << ", heads: 4, groups: 4, inner: 96, "
                         "sequence: 64, vocabulary: 128, experts: {count: 16, top_k: 2}}, recompute: none, "
                         "parallel: {data: 8, expert: 8, expert_exchange: "
                      << exchange << "}, dispatch: {ranks_per_host: 1}, microbatches: " << microbatches
                      << more << "}\n";
  SimulationSetup setup;
  setup.config = parse_config("{topology: {kind: star, hosts: 8}, compute: a100_80gb}", "star.yaml");
  setup.workload = path;
  Simulation simulation(std::move(setup));
  const Results results = simulation.run({});
  EXPECT_EQ(results.outcome, Outcome::done);
  EXPECT_EQ(results.network.bytes_sent, results.network.bytes_delivered);
  Moved result{results.network.bytes_delivered, 0};
  const auto source = load_workload(path, kRanks);
  for (const Task& task : test::tasks_of(*source, 0)) {  // one communicator, of which rank 0 is a member
    if (task.kind() != TaskKind::collective || task.collective().counts == nullptr) continue;
    for (std::uint32_t s = 0; s < kRanks; ++s) {
      for (std::uint32_t d = 0; d < kRanks; ++d)
        result.counted += s == d ? 0 : task.collective().counts->of(s, d);
    }
  }
  return result;
}

// Returns the bytes of two microbatches, and of a token's second 64 elements. So gradients do not count, nor
// credits and numbers of copies, which do not grow with a token.
Moved added(const std::string& router, const std::string& exchange = "all_to_all") {
  Moved difference;
  for (const int hidden : {64, 128}) {
    const Moved three = run("experts3", 3, hidden, exchange, router),
                one = run("experts1", 1, hidden, exchange, router);
    const int sign = hidden == 128 ? 1 : -1;
    difference.moved += sign * (three.moved - one.moved);
    difference.counted += sign * (three.counted - one.counted);
  }
  return difference;
}

// T k h (e - 1) / e elements of each rank, twice forward and twice backward.
TEST(ExpertParallelOnTheWire, EvenExchangesAreTheFormula) {
  const Bytes exchange = kRanks * kTokens * kTopK * 64 * 2 * (kRanks - 1) / kRanks;
  EXPECT_EQ(added("").moved, 2 * kLayers * 4 * exchange);
}

TEST(ExpertParallelOnTheWire, CountedExchangesAreTheirCounts) {
  for (const char* router : {", router: {kind: zipf, exponent: 1}", ", router: drift"}) {
    const Moved difference = added(router);
    EXPECT_GT(difference.counted, 0);
    EXPECT_EQ(difference.moved, difference.counted);
  }
}

// By dispatch and combine a token goes once to each rank, whatever experts of its own are there.
TEST(ExpertParallelOnTheWire, DispatchedTokensAreTheirCounts) {
  for (const char* router : {"", ", router: {kind: zipf, exponent: 1}"}) {
    const Moved dispatched = added(router, "dispatch"), copies = added(router);
    EXPECT_GT(dispatched.counted, 0);
    EXPECT_EQ(dispatched.moved, dispatched.counted);
    EXPECT_LT(dispatched.moved, copies.moved + (std::string(router).empty() ? 1 : 0));
  }
}

// Two experts of a rank to each other one, and their gradients back, both in half precision.
TEST(ExpertParallelOnTheWire, FetchedExpertsAreTheFormula) {
  const Bytes own = 2 * 3 * 64 * 96 * 2;
  const Bytes all = 2 * kLayers * 2 * kRanks * (kRanks - 1) * own, moved = added("", "fetch").moved;
  EXPECT_GE(moved, all);
  EXPECT_LT(moved - all, all / 100);  // credits of the slices that larger experts are cut into
}

}  // namespace
}  // namespace netsim::expert_parallel_test
