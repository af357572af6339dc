// Tests collectives of 8,192 ranks over packets: their memory, and that they end.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdint>
#include <string>

#include "tests/collectives/packet_collectives.h"
#include "tests/support/resident.h"
#include "tests/support/sanitizers.h"

namespace netsim::many_ranks_test {
namespace {

using test::every;
using test::PacketCollectives;
using test::request_of;

constexpr std::uint32_t kRanks = 8192;

std::string cluster(const std::string& algorithm, std::uint32_t channels) {
  return "topology: {kind: fat_tree, k: 32, rate: 100 Gbps}\nhost: single_nic\ntransport: {acknowledge: "
         "{every: "
         "16}}\ncollectives: {all_reduce: " +
         algorithm + ", slices_per_chunk: 1, scale_out_channels: " + std::to_string(channels) + "}\n";
}

// Returns freed memory to the system before it measures.
std::int64_t resident() {
  malloc_trim(0);
  return test::resident_bytes();
}

// A ring's plan would have 134 million steps, and there are 67 million pairs of ranks. Memory holds only a
// rank's state on a channel: its queue pairs, messages and thread block. The proof's tables are already
// freed.
TEST(LongManyRanks, ARingHasMemoryOfRanksTimesChannels) {
  if (test::sanitized()) GTEST_SKIP() << "under a sanitizer";
  for (const std::uint32_t channels : {1U, 4U}) {
    PacketCollectives hosts(cluster("ring", channels));
    const auto members = every(1, kRanks);
    CommunicationRequest request = request_of(CollectiveKind::all_reduce, members, 32 * kMebibyte);
    const std::int64_t before = resident();
    for (request.index = 0; request.index < kRanks; ++request.index)
      hosts.executor->start(request.index, request);
    hosts.packets.loop.run(2 * kMillisecond);
    EXPECT_EQ(hosts.executor->waiting(1).size(), 1U);
    EXPECT_GT(hosts.packets.network->counters().flows_done, 10 * kRanks);
    hosts.packets.flows.clear();  // the test's own record of them
    hosts.packets.flows.shrink_to_fit();
    const std::int64_t each = (resident() - before) / (kRanks * channels);
    EXPECT_LT(each, 16'000) << channels;
  }
}

// 26 steps, of 2 (p - 1) / p of the buffer, and a credit for each message.
TEST(LongManyRanks, HalveAndDouble) {
  PacketCollectives hosts(cluster("halving_doubling", 1));
  const auto members = every(1, kRanks);
  constexpr Bytes kPart = 16, kCredit = 64;
  hosts.run(request_of(CollectiveKind::all_reduce, members, kRanks * kPart));
  EXPECT_EQ(hosts.packets.network->counters().bytes_delivered,
            kRanks * (2 * (kRanks - 1) * kPart + 26 * kCredit));
}

}  // namespace
}  // namespace netsim::many_ranks_test
