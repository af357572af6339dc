// Does every worker receive every sum exactly once, whatever the links lose? Switches and windows repair
// losses by SwitchML's and ATP's rules, in trees of one and of two levels. Each sum that arrives is checked
// in the run: it has the packet of every worker once.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <string>

#include "sim/core/random.h"
#include "tests/support/run_in_sets.h"
#include "tests/support/test_size.h"

namespace netsim::aggregation_losses_test {
namespace {

constexpr const char* kLosses[] = {"0", "1e-4", "1e-2"};

// A star, or two racks below a spine, in which all links lose packets.
struct Racks {
  std::uint32_t hosts = 0;
  bool star = true;
  std::string text;
};

Racks racks(RandomStream& draws, const std::string& loss, const std::string& switches) {
  Racks racks;
  racks.star = draws.below(2) == 0;
  racks.hosts = racks.star ? static_cast<std::uint32_t>(2 + draws.below(7)) : 8;
  const std::string faults =
      racks.star ? fmt::format("{{switch: switch0, loss: {}}}", loss)
                 : fmt::format("{{switch: leaf0, loss: {}}}, {{switch: leaf1, loss: {}}}", loss, loss);
  racks.text = fmt::format(
      "topology: {{kind: {}, rate: 100 Gbps, delay: {} ns}}\nhost: single_nic\n"
      "network: {{switch: {{aggregation: true{}}}, faults: [{}]}}\n"
      "transport: {{congestion_control: none}}\n",
      racks.star ? fmt::format("star, hosts: {}", racks.hosts)
                 : "leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 4",
      100 + 100 * draws.below(10), switches, loss == "0" ? "" : faults);
  return racks;
}

std::string all_reduce(std::uint64_t bytes) {
  return fmt::format("{{kind: collective, collective: all_reduce, bytes: {} B}}\n", bytes);
}

AggregationCounters counters_of(const Results& results) {
  AggregationCounters sum;
  for (const AggregationResult& one : results.aggregation) sum += one.use.counters;
  return sum;
}

// Tells what became of the runs with one loss rate.
struct Outcomes {
  std::uint64_t lost = 0, sent_again = 0;
};

void count(Outcomes& outcomes, const Results& results) {
  outcomes.lost += results.network.lost;
  outcomes.sent_again += results.network.retransmissions;
}

void expect_losses(const std::string& loss, const Outcomes& outcomes) {
  if (loss == "0") {
    EXPECT_EQ(outcomes.lost, 0U);
  } else if (loss == "1e-2" || test::full_size()) {
    EXPECT_GT(outcomes.lost, 0U) << loss;
    EXPECT_GT(outcomes.sent_again, 0U) << loss;
  }
}

std::uint64_t seeds() { return test::by_size<std::uint64_t>(100, 8, 8); }

TEST(AggregationLosses, SwitchMlGivesEveryWorkerEverySumOnce) {
  for (const std::string loss : kLosses) {
    Outcomes outcomes;
    for (std::uint64_t seed = 0; seed < seeds(); ++seed) {
      RandomStream draws(seed, "losses of switchml");
      const Racks fabric = racks(draws, loss, "");
      const std::uint64_t packets = 100 + draws.below(400), bytes = 256 * packets - draws.below(256);
      const std::string text =
          fabric.text +
          fmt::format("collectives: {{all_reduce: {{kind: switchml, slots: {}, timeout: {} us}}}}\n",
                      1U << draws.below(8), 30 + draws.below(100));
      SCOPED_TRACE(fmt::format("seed {}, {} packets\n{}", seed, packets, text));
      const Results results = test::run_in_sets(text, all_reduce(bytes), 1, 1, seed);
      ASSERT_EQ(results.outcome, Outcome::done);
      EXPECT_EQ(results.network.bytes_delivered, static_cast<Bytes>(fabric.hosts * bytes));
      EXPECT_EQ(results.network.packets, fabric.hosts * packets);
      // The switch of the hosts adds their packets, and the spine the sums of two switches.
      const AggregationCounters added = counters_of(results);
      EXPECT_EQ(added.packets, (fabric.hosts + (fabric.star ? 0U : 2U)) * packets);
      EXPECT_EQ(added.sums, (fabric.star ? 1U : 3U) * packets);
      count(outcomes, results);
    }
    expect_losses(loss, outcomes);
    if (loss == "0") {
      EXPECT_EQ(outcomes.sent_again, 0U);
    }
  }
}

TEST(AggregationLosses, AtpGivesEveryWorkerEveryResultOnce) {
  for (const std::string loss : kLosses) {
    Outcomes outcomes;
    std::uint64_t collided = 0;
    for (std::uint64_t seed = 0; seed < seeds(); ++seed) {
      RandomStream draws(seed, "losses of atp");
      const std::uint64_t window = 1 + draws.below(60);
      const Racks fabric = racks(draws, loss, fmt::format(", aggregators: {}", draws.below(2 * window)));
      const std::uint64_t packets = 100 + draws.below(400), bytes = 248 * packets - draws.below(248);
      const std::string text =
          fabric.text +
          fmt::format("collectives: {{all_reduce: {{kind: atp, window: {}, server: {}, timeout: {} us}}}}\n",
                      window, draws.below(fabric.hosts), 50 + draws.below(100));
      SCOPED_TRACE(fmt::format("seed {}, {} packets\n{}", seed, packets, text));
      const Results results = test::run_in_sets(text, all_reduce(bytes), 1, 1, seed);
      ASSERT_EQ(results.outcome, Outcome::done);
      EXPECT_EQ(results.network.bytes_delivered, static_cast<Bytes>(fabric.hosts * bytes));
      EXPECT_EQ(results.network.packets, fabric.hosts * packets);
      collided += counters_of(results).collided;
      count(outcomes, results);
    }
    expect_losses(loss, outcomes);
    EXPECT_GT(collided, 0U);
  }
}

}  // namespace
}  // namespace netsim::aggregation_losses_test
