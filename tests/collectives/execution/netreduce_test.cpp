// Tests all-reduces by NetReduce with losses at many seeds, and on fabrics of random shape. The network
// checks every sum that arrives, so the tests check that all ends well.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

#include "sim/core/errors.h"
#include "tests/collectives/packet_collectives.h"
#include "tests/support/test_size.h"

namespace netsim::netreduce_test {
namespace {

using test::PacketCollectives;
using test::run_twice;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string fabric(const std::string& topology, const std::string& algorithm, const std::string& faults = "",
                   const std::string& of_switch = "") {
  return "topology: {" + topology +
         ", rate: 100 Gbps, delay: 500 ns}\nhost: single_nic\nnetwork:\n  switch: {aggregation: true" +
         of_switch + "}\n" + (faults.empty() ? "" : "  faults: [" + faults + "]\n") +
         "transport: {congestion_control: none, mtu: 1024 B, retransmission_timeout: 100 us}\n"
         "collectives:\n  all_reduce: {kind: netreduce" +
         algorithm + "}\n";
}

class NetReduceLosses : public ::testing::TestWithParam<const char*> {};

TEST_P(NetReduceLosses, EveryHostGetsEverySumOnce) {
  const std::string loss = GetParam();
  const auto seeds = test::by_size<std::uint64_t>(100, 100, 10);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const std::string faults =
        loss == "0" ? "" : "{switch: leaf0, loss: " + loss + "}, {switch: spine0, loss: " + loss + "}";
    PacketCollectives cluster(fabric("kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 3",
                                     ", window: 4, message: 8", faults),
                              seed);
    const Bytes bytes = 1024 * 300 + 3;
    run_twice(cluster, 6, bytes);
    const NetworkCounters counters = cluster.packets.network->counters();
    EXPECT_EQ(counters.bytes_delivered, 2 * 6 * bytes);
    EXPECT_EQ(counters.flows_started, counters.flows_done);
    EXPECT_EQ(counters.retransmissions > 0, counters.lost > 0);
    if (loss == "1e-2") {
      EXPECT_GT(counters.lost, 0U);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Rates, NetReduceLosses, ::testing::Values("0", "1e-4", "1e-2"));

// On fabrics of random shape, with any subset of switches that add up, any window and losses.
TEST(NetReduce, EndsOnAnyFabric) {
  EXPECT_TRUE(rc::check("all hosts get all sums", [] {
    const int leaves = *rc::gen::inRange(1, 4), spines = *rc::gen::inRange(1, 3);
    const int each = *rc::gen::inRange(2, 4);
    std::string adding;
    for (int i = 0; i < leaves; ++i) {
      if (*rc::gen::arbitrary<bool>()) adding += "leaf" + std::to_string(i) + ", ";
    }
    adding += "spine" + std::to_string(*rc::gen::inRange(0, spines));
    const std::string topology = "kind: leaf_spine, leaves: " + std::to_string(leaves) +
                                 ", spines: " + std::to_string(spines) +
                                 ", hosts_per_leaf: " + std::to_string(each);
    const std::string loss = *rc::gen::element<std::string>("0", "1e-3", "3e-2");
    const std::string windows = ", window: " + std::to_string(1 << *rc::gen::inRange(0, 4)) +
                                ", message: " + std::to_string(1 << *rc::gen::inRange(0, 5));
    PacketCollectives cluster(fabric(topology, windows,
                                     loss == "0" ? "" : "{switch: leaf0, loss: " + loss + "}",
                                     ", aggregation_switches: [" + adding + "]"));
    const auto hosts = static_cast<std::uint32_t>(leaves * each);
    const auto bytes = *rc::gen::inRange<Bytes>(1, 64 * kKibibyte);
    run_twice(cluster, hosts, bytes);
    RC_ASSERT(cluster.packets.network->counters().bytes_delivered == 2 * hosts * bytes);
  }));
}

TEST(NetReduce, TakesTwoCopiesOfItsWindow) {
  const auto run = [](const std::string& memory) {
    PacketCollectives cluster(
        fabric("kind: star, hosts: 4", ", window: 4, message: 8", "", ", aggregation_memory: " + memory));
    run_twice(cluster, 4, 100'000);
  };
  run("65536 B");
  EXPECT_THAT([&] { run("65535 B"); },
              ThrowsMessage<InputError>(HasSubstr("two copies of 32 slots of 1024 B take 65536 B")));
}

}  // namespace
}  // namespace netsim::netreduce_test
