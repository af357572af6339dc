// Tests all-reduces by SwitchML: with losses at many seeds, on fabrics of random shape, and after each other.
// Every sum that arrives is checked by the network itself, so the tests check that all ends well.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "tests/collectives/packet_collectives.h"
#include "tests/support/test_size.h"

namespace netsim::switchml_test {
namespace {

using test::every;
using test::PacketCollectives;
using test::request_of;
using test::run_twice;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string fabric(const std::string& topology, const std::string& algorithm, const std::string& faults = "",
                   const std::string& of_switch = "", const std::string& host = "single_nic") {
  return "topology: {" + topology + ", rate: 100 Gbps, delay: 500 ns}\nhost: " + host +
         "\nnetwork:\n  switch: {aggregation: true" + (of_switch.empty() ? "" : ", " + of_switch) + "}\n" +
         (faults.empty() ? "" : "  faults: [" + faults + "]\n") +
         "transport: {congestion_control: none}\ncollectives:\n  all_reduce: {kind: switchml" +
         (algorithm.empty() ? "" : ", " + algorithm) + "}\n";
}

class SwitchMlLosses : public ::testing::TestWithParam<const char*> {};

TEST_P(SwitchMlLosses, EveryWorkerGetsEverySumOnce) {
  const std::string loss = GetParam();
  const auto seeds = test::by_size<std::uint64_t>(100, 100, 10);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const std::string faults =
        loss == "0" ? "" : "{switch: leaf0, loss: " + loss + "}, {switch: spine0, loss: " + loss + "}";
    PacketCollectives cluster(fabric("kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 3",
                                     "slots: 64, timeout: 50 us", faults),
                              seed);
    const Bytes bytes = 256 * 500 + 3;
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
INSTANTIATE_TEST_SUITE_P(Rates, SwitchMlLosses, ::testing::Values("0", "1e-4", "1e-2"));

// On fabrics of random shape, with any subset of switches that add up, pools of any size and losses.
TEST(SwitchMl, EndsOnAnyFabric) {
  EXPECT_TRUE(rc::check("all workers get all sums", [] {
    const auto number = [](int low, int high) { return std::to_string(*rc::gen::inRange(low, high + 1)); };
    const int leaves = *rc::gen::inRange(1, 4), spines = *rc::gen::inRange(1, 3);
    const int each = *rc::gen::inRange(2, 4);
    std::string adding;
    for (int i = 0; i < leaves; ++i) {
      if (*rc::gen::arbitrary<bool>()) adding += "leaf" + std::to_string(i) + ", ";
    }
    adding += "spine" + number(0, spines - 1);
    const std::string topology = "kind: leaf_spine, leaves: " + std::to_string(leaves) +
                                 ", spines: " + std::to_string(spines) +
                                 ", hosts_per_leaf: " + std::to_string(each);
    const std::string loss = *rc::gen::element<std::string>("0", "1e-3", "3e-2");
    PacketCollectives cluster(fabric(
        topology, "timeout: 100 us, slots: " + std::to_string(1 << *rc::gen::inRange(0, 9)),
        loss == "0" ? "" : "{switch: leaf0, loss: " + loss + "}", "aggregation_switches: [" + adding + "]"));
    const auto workers = static_cast<std::uint32_t>(leaves * each);
    const auto bytes = *rc::gen::inRange<Bytes>(1, 64 * kKibibyte);
    run_twice(cluster, workers, bytes);
    RC_ASSERT(cluster.packets.network->counters().bytes_delivered == 2 * workers * bytes);
  }));
}

TEST(SwitchMl, HostsAddUpTheirRanksFirst) {
  PacketCollectives cluster(fabric("kind: star, hosts: 16", "chunk: 64 KiB", "", "", "dgx_a100"));
  const auto members = every(1, 16);
  cluster.run(request_of(CollectiveKind::all_reduce, members, 1 << 20));
  // Each of 8 ranks sends its eighth into a pool.
  EXPECT_EQ(cluster.packets.network->counters().bytes_delivered, 2 << 20);
}

// Two groups begin at once over one switch. Without limits neither slows down the other, because their links
// differ. Where the switch holds one pool at a time, the second waits for the first.
TEST(SwitchMl, GroupsShareTheMemoryOfASwitch) {
  const std::vector<GpuId> some{0, 1}, others{2, 3};
  const auto time_with = [&](const std::string& limit) {
    PacketCollectives cluster(fabric("kind: star, hosts: 4", "", "", limit));
    for (const std::vector<GpuId>* members : {&some, &others}) {
      CommunicationRequest request = request_of(CollectiveKind::all_reduce, *members, 100'000);
      request.communication = members == &some ? 5 : 6;
      for (request.index = 0; request.index < 2; ++request.index)
        cluster.executor->start((*members)[request.index], request);
    }
    cluster.packets.loop.run();
    EXPECT_EQ(cluster.recorder.done.size(), 4U);
    std::string notes;
    for (const std::string& note : cluster.packets.network->notes()) notes += note;
    EXPECT_EQ(notes.find("2 messages into aggregation trees waited") != std::string::npos, !limit.empty());
    return cluster.recorder.last();
  };
  const Time alone = time_with("");
  EXPECT_EQ(time_with("aggregation_groups: 1"), 2 * alone);
  EXPECT_EQ(time_with("aggregation_memory: 200 KiB"), 2 * alone) << "a pool takes 128 KiB";
}

TEST(SwitchMl, IdlePoolsGiveBackTheirMemory) {
  const std::string memory = "aggregation_groups: 1";
  PacketCollectives cluster(fabric("kind: star, hosts: 4", "", "", memory));
  const std::vector<GpuId> some{0, 1}, others{2, 3};
  cluster.run(request_of(CollectiveKind::all_reduce, some, 10'000));
  cluster.run(request_of(CollectiveKind::all_reduce, others, 10'000));
  CommunicationRequest again = request_of(CollectiveKind::all_reduce, some, 10'000);
  again.communication = 7;
  cluster.run(again);
}

TEST(SwitchMl, PacketsMustFitTheFabric) {
  const auto members = every(1, 4);
  PacketCollectives cluster(fabric("kind: star, hosts: 4", "payload: 8192 B"));
  EXPECT_THAT([&] { cluster.run(request_of(CollectiveKind::all_reduce, members, 10'000)); },
              ThrowsMessage<InputError>(HasSubstr("exceed the fabric's largest packet")));
}

}  // namespace
}  // namespace netsim::switchml_test
