// Do collectives over real packets take what their closed forms say, to the picosecond? One-packet chunks on
// a star of idle 100 Gb/s links, no library latencies.
//
// A step: the data crosses two links, D = 2 (t_data + delay). The receiver acknowledges before it sends its
// next chunk, on the same port: every step but the first starts t_ack later. So n steps take n D + (n - 1)
// t_ack.
#include <gtest/gtest.h>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/execution/executor.h"
#include "sim/core/registry.h"
#include "tests/scenarios/star_reference.h"
#include "tests/support/packet_fixture.h"

namespace netsim {
namespace {

class Collective : public CommunicationListener {
 public:
  Collective(std::uint32_t ranks, const std::string& algorithm, CollectiveKind kind, Bytes chunk)
      : fixture("topology: {kind: star, hosts: " + std::to_string(ranks) +
                ", rate: 100 Gbps, delay: 1 us}\ntransport: {congestion_control: none}\n"),
        executor(Executor::create(fixture.loop.loop(), *fixture.network,
                                  parse_config(settings(algorithm), "collectives"),
                                  static_cast<std::uint32_t>(fixture.cluster.graph.port_count()))) {
    executor->set_listener(this);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) members.push_back(rank);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      CommunicationRequest request;
      request.kind = kind;
      request.members = &members;
      request.index = rank;
      request.bytes = chunk * divisions(algorithm, ranks);
      request.communication = 1;
      executor->start(rank, request);
    }
    fixture.loop.run();
  }
  void communication_done(std::uint32_t, const CommunicationRequest&, Time) override {
    ++done;
    end = fixture.loop.now();
  }
  static Bytes divisions(const std::string& algorithm, std::uint32_t ranks) {
    return algorithm == "chain" ? 1 : algorithm == "double_binary_tree" ? 2 : ranks;
  }
  static std::string settings(const std::string& algorithm) {
    return (algorithm == "double_binary_tree" ? std::string("all_reduce: double_binary_tree\n")
                                              : std::string()) +
           "base_latency_ring: 0\nbase_latency_tree: 0\nhop_latency_net_ring: 0\nhop_latency_net_tree: 0\n"
           "scale_out_channels: 1\nslots: 0\n";
  }

  testing::PacketFixture fixture;
  std::unique_ptr<Executor> executor;
  std::vector<std::uint32_t> members;
  std::uint32_t done = 0;
  Time end = 0;
};

Time steps(std::uint32_t count, Bytes chunk) {
  const Time data = 2 * (transmission_time(chunk + 62 + 16 + 20, 100 * kGbps) + kMicrosecond);
  return count * data + (count - 1) * transmission_time(66 + 20, 100 * kGbps);
}

class Sizes : public ::testing::TestWithParam<std::tuple<std::uint32_t, Bytes>> {};

TEST_P(Sizes, RingAllReduceTakesTwiceRanksMinusOneSteps) {
  const auto [p, chunk] = GetParam();
  const Collective c(p, "ring", CollectiveKind::all_reduce, chunk);
  EXPECT_EQ(c.done, p);
  EXPECT_EQ(c.end, steps(2 * (p - 1), chunk));
}
TEST_P(Sizes, RingAllGatherTakesRanksMinusOneSteps) {
  const auto [p, chunk] = GetParam();
  EXPECT_EQ(Collective(p, "ring", CollectiveKind::all_gather, chunk).end, steps(p - 1, chunk));
}
TEST_P(Sizes, RingReduceScatterTakesRanksMinusOneSteps) {
  const auto [p, chunk] = GetParam();
  EXPECT_EQ(Collective(p, "ring", CollectiveKind::reduce_scatter, chunk).end, steps(p - 1, chunk));
}
TEST_P(Sizes, PairwiseAllToAllTakesRanksMinusOneSteps) {
  const auto [p, chunk] = GetParam();
  EXPECT_EQ(Collective(p, "pairwise", CollectiveKind::all_to_all, chunk).end, steps(p - 1, chunk));
}

TEST_P(Sizes, ChainsTakeRanksMinusOneSteps) {
  const auto [p, chunk] = GetParam();
  EXPECT_EQ(Collective(p, "chain", CollectiveKind::broadcast, chunk).end, steps(p - 1, chunk));
  EXPECT_EQ(Collective(p, "chain", CollectiveKind::reduce, chunk).end, steps(p - 1, chunk));
}

INSTANTIATE_TEST_SUITE_P(Exact, Sizes,
                         ::testing::Combine(::testing::Values(2U, 3U, 4U, 8U, 17U),
                                            ::testing::Values(1, 1000, 4096)));

// Two ranks: each is the root of one of the two trees, so both send their leaf's chunk up at once and back
// down.
TEST(Exact, DoubleBinaryTreeOfTwoRanksGoesUpAndDown) {
  for (const Bytes chunk : {1, 1000, 4096}) {
    EXPECT_EQ(Collective(2, "double_binary_tree", CollectiveKind::all_reduce, chunk).end, steps(2, chunk));
  }
}

// More ranks have no closed form (the two trees and the acknowledgements share ports): an independent model
// says when.
TEST(Exact, EveryAlgorithmEndsWhenTheReferenceModelSays) {
  const std::vector<std::pair<const char*, CollectiveKind>> algorithms = {
      {"double_binary_tree", CollectiveKind::all_reduce},
      {"ring", CollectiveKind::all_reduce},
      {"pairwise", CollectiveKind::all_to_all},
      {"chain", CollectiveKind::broadcast},
      {"chain", CollectiveKind::reduce}};
  for (const auto& [algorithm, kind] : algorithms) {
    for (const std::uint32_t p : {2U, 3U, 4U, 5U, 7U, 8U, 16U, 23U, 32U}) {
      for (const Bytes chunk : {1, 1000, 4096}) {
        const auto plan = Registry<CollectiveAlgorithm>::instance().create(algorithm)->plan(kind, p, 0);
        testing::StarReference reference(*plan, chunk, 100 * kGbps, kMicrosecond);
        EXPECT_EQ(Collective(p, algorithm, kind, chunk).end, reference.run())
            << algorithm << " of " << p << " ranks, " << chunk << " B";
      }
    }
  }
}

}  // namespace
}  // namespace netsim
