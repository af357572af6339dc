// Do collectives over real packets take what their closed forms say, to the picosecond? One-packet chunks on
// a star of idle 100 Gb/s links, no library latencies.
//
// A step: the data crosses two links, D = 2 (t_data + delay). The receiver acknowledges before it sends its
// next chunk, on the same port: every step but the first starts t_ack later. So n steps take n D + (n - 1)
// t_ack.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/execution/executor.h"
#include "sim/core/registry.h"
#include "tests/collectives/fake_endpoint.h"
#include "tests/scenarios/star_reference.h"
#include "tests/support/packet_fixture.h"

namespace netsim::collectives_exact_test {
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
  void communication_done(GpuId, const CommunicationRequest&, Time) override {
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

  test::PacketFixture fixture;
  std::unique_ptr<Executor> executor;
  std::vector<GpuId> members;
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
        const auto plan = Registry<CollectiveAlgorithm>::instance().create(algorithm)->plan(kind, {p, 0});
        test::StarReference reference(*plan, chunk, 100 * kGbps, kMicrosecond);
        EXPECT_EQ(Collective(p, algorithm, kind, chunk).end, reference.run())
            << algorithm << " of " << p << " ranks, " << chunk << " B";
      }
    }
  }
}

// ---- Serial sends (Plan::serial_sends()): MPI's algorithms send to one rank at a time (Thakur,
// Rabenseifner, Gropp 2005, section 4; Hoefler & Moor 2014, section 3)

// One message a step, however large.
Time time_of(const std::string& algorithm, CollectiveKind kind, std::uint32_t ranks, Bytes bytes) {
  test::PacketFixture fixture("topology: {kind: star, hosts: " + std::to_string(ranks) +
                              ", rate: 100 Gbps, delay: 1 us}\ntransport: {congestion_control: none}\n");
  const auto executor = Executor::create(
      fixture.loop.loop(), *fixture.network,
      parse_config(std::string(to_string(kind)) + ": " + algorithm +
                       "\nbase_latency_ring: 0\nbase_latency_tree: 0\nhop_latency_net_ring: 0\n"
                       "hop_latency_net_tree: 0\nscale_out_channels: 1\nslots: 0\nslices_per_chunk: 1\n"
                       "slice: 1 GiB\n",
                   "collectives"),
      static_cast<std::uint32_t>(fixture.cluster.graph.port_count()));
  Completions done(fixture.loop.loop());
  executor->set_listener(&done);
  const std::vector<GpuId> members = everyone(ranks);
  start_all(*executor, kind, members, bytes);
  fixture.loop.run();
  EXPECT_EQ(done.done.size(), ranks);
  return done.last();
}

constexpr Time kAck = 6'880;  // 66 B and 20 B of preamble and gap at 100 Gb/s
Time packet_time(Bytes payload, bool first) {
  return transmission_time(payload + 62 + (first ? 16 : 0) + 20, 100 * kGbps);
}
// How long the sender's link is busy with a message.
Time on_link(Bytes bytes) {
  Time sum = 0;
  for (Bytes sent = 0; sent < bytes; sent += 4096)
    sum += packet_time(std::min<Bytes>(4096, bytes - sent), sent == 0);
  return sum;
}
// Until the receiver has it: the second link begins with the first packet, which is the longest.
Time message(Bytes bytes) {
  return on_link(bytes) + packet_time(std::min<Bytes>(4096, bytes), true) + 2 * kMicrosecond;
}
// Messages of such sizes that follow from each other.
Time in_a_row(const std::vector<Bytes>& sizes) {
  Time sum = static_cast<Time>(sizes.size() - 1) * kAck;
  for (const Bytes size : sizes) sum += message(size);
  return sum;
}
std::vector<Bytes> halves(Bytes bytes, std::uint32_t levels) {
  std::vector<Bytes> sizes;
  for (std::uint32_t i = 0; i < levels; ++i) sizes.push_back(bytes /= 2);
  return sizes;
}

// 64 MiB among 16 ranks take 22.0 ms by the form. They took 54.8 ms while messages shared the link.
TEST(SerialSends, BinomialTreesTakeTheirForms) {
  using Kind = CollectiveKind;
  for (const std::uint32_t levels : {1U, 2U, 3U, 4U}) {
    const std::uint32_t p = 1U << levels;
    for (const Bytes n : {Bytes{16}, Bytes{4096}, kMebibyte}) {
      const std::string what = std::to_string(p) + " ranks, " + std::to_string(n) + " B";
      EXPECT_EQ(time_of("binomial_tree", Kind::broadcast, p, n), in_a_row(std::vector(levels, n))) << what;
      EXPECT_EQ(time_of("binomial_tree", Kind::reduce, p, n), in_a_row(std::vector(levels, n))) << what;
      EXPECT_EQ(time_of("binomial_tree", Kind::all_reduce, p, n), in_a_row(std::vector(2 * levels, n)))
          << what;
      EXPECT_EQ(time_of("binomial_tree", Kind::scatter, p, n), in_a_row(halves(n, levels))) << what;
      EXPECT_EQ(time_of("binomial_tree", Kind::gather, p, n), in_a_row(halves(n, levels))) << what;
    }
  }
}

// A complete tree: the second child's message leaves behind the first one's, at every level.
TEST(SerialSends, BinaryTreesTakeTheirForm) {
  for (const std::uint32_t levels : {1U, 2U, 3U}) {
    for (const Bytes n : {Bytes{16}, Bytes{4096}, kMebibyte}) {
      const Time form = in_a_row(std::vector(levels, n)) + levels * on_link(n);
      EXPECT_EQ(time_of("binary_tree", CollectiveKind::broadcast, (2U << levels) - 1, n), form) << n;
    }
  }
  // With four ranks the last one is below the first child.
  EXPECT_EQ(time_of("binary_tree", CollectiveKind::broadcast, 4, kMebibyte),
            in_a_row({kMebibyte, kMebibyte}));
}

// A message of a packet each, so that acknowledgements of half of an exchange do not delay the other half.
TEST(SerialSends, ExchangesTakeTheirForms) {
  using Kind = CollectiveKind;
  for (const std::uint32_t levels : {1U, 2U, 3U, 4U}) {
    const std::uint32_t p = 1U << levels;
    const Bytes n = 4096;
    const std::vector<Bytes> down = halves(n, levels);
    std::vector<Bytes> both = down;
    both.insert(both.end(), down.rbegin(), down.rend());
    EXPECT_EQ(time_of("recursive_doubling", Kind::all_reduce, p, n), in_a_row(std::vector(levels, n))) << p;
    EXPECT_EQ(time_of("recursive_doubling", Kind::all_gather, p, n), in_a_row(down)) << p;
    EXPECT_EQ(time_of("halving_doubling", Kind::all_reduce, p, n), in_a_row(both)) << p;
    EXPECT_EQ(time_of("halving_doubling", Kind::reduce_scatter, p, n), in_a_row(down)) << p;
    EXPECT_EQ(time_of("bruck", Kind::all_gather, p, n), in_a_row(down)) << p;
    EXPECT_EQ(time_of("bruck", Kind::all_to_all, p, n), in_a_row(std::vector(levels, n / 2))) << p;
  }
}

// Sends that the source has at once share the link packet by packet (Thakur et al., 4.3). They end together,
// because the last packet follows those of all others.
TEST(SerialSends, OthersShareTheLink) {
  for (const std::uint32_t p : {4U, 8U}) {
    const Bytes block = 64 * kKibibyte;
    EXPECT_EQ(time_of("direct", CollectiveKind::scatter, p, p * block),
              (p - 1) * on_link(block) + packet_time(4096, false) + 2 * kMicrosecond);
  }
}

}  // namespace
}  // namespace netsim::collectives_exact_test
