// These tests take what thread blocks of NCCL's kernels do within one host from differences of two times.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/collectives/packet_collectives.h"

namespace netsim::one_host_test {
namespace {

constexpr BitRate kBytes = 8;

std::string one_host(const std::string& host, const std::string& collectives) {
  return "topology: {kind: star, hosts: 8, rate: 400 Gbps}\nhosts: 1\nhost: " + host +
         "\ncollectives: {all_to_all: nccl_p2p, " + collectives + "}\n";
}

Time time_of(const std::string& host, const std::string& collectives, CollectiveKind kind,
             std::uint32_t ranks, Bytes bytes) {
  test::PacketCollectives cluster(one_host(host, collectives));
  const auto members = test::every(1, ranks);
  return cluster.run(test::request_of(kind, members, bytes));
}

double microseconds(Time time) { return static_cast<double>(time) / static_cast<double>(kMicrosecond); }

// Returns how much longer an operation takes out of place.
Time out_of_place(CollectiveKind kind, Bytes bytes, const std::string& host = "dgx_h100") {
  return time_of(host, "in_place: false", kind, 2, bytes) - time_of(host, "in_place: true", kind, 2, bytes);
}

// In the first round a thread block also stores its own block, which is half of a copy. Each of its two
// slices takes 0.7 us more. Links hide what they take longer than the thread block. In later rounds other
// channels hide the rest. So 192 MiB take as much more as 96 MiB, the first round of two ranks.
TEST(OneHost, AGatherOutOfPlaceStoresItsOwnBlock) {
  const Bytes own = 8 * kMebibyte;
  const Time link = transmission_time(own, BitRate{2'966'400} * kGbps / 1000);
  const Time block = transmission_time(own, 24 * BitRate{19'350'000'000} * kBytes) +
                     transmission_time(own, 24 * BitRate{29'000'000'000} * kBytes) / 2;
  ASSERT_GT(block, link);
  const double expected = microseconds(block - link + 2 * 700 * kNanosecond);
  const double measured = microseconds(out_of_place(CollectiveKind::all_gather, 2 * own));
  EXPECT_GT(measured, 0.5 * expected);
  EXPECT_LT(measured, 1.5 * expected);
  EXPECT_NEAR(microseconds(out_of_place(CollectiveKind::all_gather, 96 * kMebibyte)),
              microseconds(out_of_place(CollectiveKind::all_gather, 192 * kMebibyte)), 0.5);
  EXPECT_EQ(out_of_place(CollectiveKind::reduce_scatter, 2 * own), 0);
  EXPECT_EQ(out_of_place(CollectiveKind::all_reduce, 2 * own), 0);
}

// An A100's receiver reads from the sender's memory. So no link hides the sender's second store, which is
// half of a copy, in any round. In the second round other channels hide 0.18 of it, as of all copies.
TEST(OneHost, AGatherOfA100StoresItsOwnBlockInEachRound) {
  const double half_of_copy = 48 * 1.048576e6 / 24 / 18.6e3 / 2;
  const auto extra = [](Bytes bytes) {
    return microseconds(out_of_place(CollectiveKind::all_gather, bytes, "dgx_a100"));
  };
  EXPECT_NEAR(extra(96 * kMebibyte), half_of_copy + 2 * 0.7, 1.5);
  EXPECT_NEAR(extra(192 * kMebibyte) - extra(96 * kMebibyte), 0.82 * half_of_copy, 1);
}

// In the first round each slice takes a thread block its own time in the step that sends and in the one that
// receives. Where slices are large, no other latency is added to the time of the links and of the copies.
TEST(OneHost, ALastStepTakesTheTimeOfItsSlicesToo) {
  const double sent = 16 * 1.048576e6;
  const auto gather = [](const std::string& host) {
    return microseconds(time_of(host, "in_place: true", CollectiveKind::all_gather, 2, 32 * kMebibyte));
  };
  EXPECT_NEAR(gather("dgx_a100"), 8.4 + sent / 240e3 + sent / (24 * 18.6e3) + 4 * 4.0, 0.5);
  EXPECT_NEAR(gather("dgx_h100"), 8.4 + sent / 370.8e3 + sent / (24 * 29e3) + 4 * 1.3, 0.5);
}

// Between two ranks a message has 16 thread blocks. Each takes its bytes at its rate and the time of a slice
// for every chunk of 512 KiB.
TEST(OneHost, AChunkOfASendTakesItsThreadBlockTheTimeOfASlice) {
  const auto chunk = [](const std::string& host) {
    const auto time = [&](Bytes bytes) { return time_of(host, "", CollectiveKind::all_to_all, 2, bytes); };
    return microseconds(time(128 * kMebibyte) - time(64 * kMebibyte)) / 4;
  };
  EXPECT_NEAR(chunk("dgx_a100"), 524.288 / 11.8 + 4.7, 0.05);
  EXPECT_NEAR(chunk("dgx_h100"), 524.288 / 19.35 + 1.3, 0.05);
  EXPECT_NEAR(chunk("dgx_b200"), 524.288 / 21.4 + 0.5, 0.05);
}

// With several receivers links or thread blocks limit a rank. On H100 it gets 0.9 of 370.8 GB/s. On B200 its
// 28 thread blocks leave links idle.
TEST(OneHost, RanksThatSendToSeveralGetNineTenthsOfTheirLinks) {
  const auto rate = [](const std::string& host, std::uint32_t ranks) {
    const auto time = [&](Bytes bytes) {
      return time_of(host, "", CollectiveKind::all_to_all, ranks, bytes);
    };
    const double sent = 64 * 1.048576e6 * (ranks - 1) / ranks;
    return sent / microseconds(time(128 * kMebibyte) - time(64 * kMebibyte)) / 1e3;
  };
  EXPECT_NEAR(rate("dgx_h100", 8), 0.9 * 370.8, 4);
  EXPECT_NEAR(rate("dgx_h100", 4), 0.9 * 370.8, 4);
  EXPECT_NEAR(rate("dgx_b200", 8), 28 * 524.288 / (524.288 / 21.4 + 0.5), 8);
}

// By LL a thread block of two ranks sends at 12 GB/s of data on A100 and copies what has arrived at 5.7.
TEST(OneHost, AThreadBlockCopiesMoreSlowlyByLl) {
  const auto time = [](Bytes bytes) {
    return time_of("dgx_a100", "protocol: ll, scale_up_channels: 4", CollectiveKind::all_gather, 2, bytes);
  };
  const double each = 0.5 * 65.536 / 4;  // further kilobytes of a thread block
  EXPECT_NEAR(microseconds(time(128 * kKibibyte) - time(64 * kKibibyte)), each / 12 + each / 5.7, 0.2);
}

}  // namespace
}  // namespace netsim::one_host_test
