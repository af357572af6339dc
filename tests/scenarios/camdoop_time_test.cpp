// Does a reduce of Camdoop take the time of the paper, whatever the number of servers? 1 GB over six links of
// 1 Gb/s takes 1.333 s. The closed form below tells what netsim has more.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/run_in_sets.h"
#include "tests/support/test_size.h"

namespace netsim::camdoop_time_test {
namespace {

constexpr Bytes kSlice = 65536, kPayload = 8192, kHeader = 62, kFirst = 16, kAck = 66, kCredit = 64;

Time at_1_gbps(Bytes bytes) { return bytes * 8 * kNanosecond; }

// A link carries the slices of one tree. For another tree it carries answers: the credit of a slice, and the
// acknowledgements of its last packet and of a credit. The first slice passes the links of the longest path
// one after the other.
Time expected(Bytes bytes, Bytes side) {
  const Bytes slices = (bytes / 6 + kSlice - 1) / kSlice;
  const Bytes slice = kSlice / kPayload * (kPayload + kHeader) + kFirst;
  const Bytes answers = kCredit + kHeader + kFirst + 2 * kAck;
  const Bytes links = 3 * (side - 1) + 1;
  return at_1_gbps(slices * (slice + answers)) + at_1_gbps(links * slice);
}

Results reduce(Bytes bytes, Bytes side) {
  return test::run_in_sets(
      fmt::format(
          "topology: {{kind: torus, sizes: [{0}, {0}, {0}], rate: 1 Gbps, delay: 1 us, overhead: 0}}\n"
          "host: single_nic\n"
          "network: {{switch: {{marker: none}}}}\n"
          "transport: {{congestion_control: none, mtu: 8192 B, acknowledge: {{every: 16}}}}\n"
          "collectives: {{library: as_configured, reduce: camdoop, slice: 64 KiB, slots: 64, "
          "slices_per_chunk: 1, scale_out_channels: 1, base_latency_ring: 0, hop_latency_net_ring: 0}}\n",
          side),
      fmt::format("{{kind: collective, collective: reduce, bytes: {} B}}\n", bytes));
}

TEST(CamdoopTime, IsThatOfSixLinksForAnyNumberOfServers) {
  const Bytes bytes = test::by_size<Bytes>(1'000'000'000, 100'000'000, 20'000'000);
  for (const Bytes side : test::by_size<std::vector<Bytes>>({3, 4, 5}, {3}, {3})) {
    const auto time = static_cast<double>(reduce(bytes, side).simulated);
    const auto form = static_cast<double>(expected(bytes, side));
    EXPECT_NEAR(time, form, static_cast<double>(2 * at_1_gbps(kSlice))) << side << ", but for two slices";
    if (!test::full_size()) continue;
    const auto paper = static_cast<double>(at_1_gbps(bytes / 6));
    EXPECT_GT(time, paper) << side;
    EXPECT_LT(time, 1.02 * paper) << side;
  }
}

}  // namespace
}  // namespace netsim::camdoop_time_test
