// Tests all-reduces by SwitchAgg on fabrics of random shape with tables of any size. The network checks every
// sum that arrives, and hosts wait until all parts of each are there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <string>

#include "sim/core/errors.h"
#include "tests/collectives/packet_collectives.h"

namespace netsim::switchagg_test {
namespace {

using test::every;
using test::PacketCollectives;
using test::request_of;
using test::run_twice;

std::string fabric(const std::string& topology, const std::string& algorithm) {
  return "topology: {" + topology +
         "}\nhost: single_nic\nnetwork:\n  switch: {aggregation: true}\n"
         "transport: {congestion_control: none}\ncollectives:\n  all_reduce: {kind: switchagg, payload: 256 "
         "B, " +
         algorithm + "}\n";
}

TEST(SwitchAgg, EndsOnAnyFabric) {
  EXPECT_TRUE(rc::check("all hosts get all sums", [] {
    const auto number = [](int low, int high) { return std::to_string(*rc::gen::inRange(low, high + 1)); };
    const int leaves = *rc::gen::inRange(1, 4), each = *rc::gen::inRange(2, 4);
    const std::string topology =
        "kind: leaf_spine, rate: 100 Gbps, delay: 500 ns, leaves: " + std::to_string(leaves) +
        ", spines: " + number(1, 2) + ", hosts_per_leaf: " + std::to_string(each);
    PacketCollectives cluster(
        fabric(topology, "front: " + std::to_string(64 * *rc::gen::inRange(0, 8)) +
                             ", back: " + std::to_string(64 * *rc::gen::inRange(0, 8)) +
                             ", window: " + std::to_string(1 << *rc::gen::inRange(0, 8))));
    const auto hosts = static_cast<std::uint32_t>(leaves * each);
    const auto bytes = *rc::gen::inRange<Bytes>(1, 64 * kKibibyte);
    run_twice(cluster, hosts, bytes);
    RC_ASSERT(cluster.packets.network->counters().bytes_delivered == 2 * hosts * bytes);
  }));
}

// Hosts at different distances need places for the packets between them. More places never take longer.
TEST(SwitchAgg, MorePlacesTakeNoLonger) {
  Time before = 0;
  for (const int places : {0, 1, 2, 4, 8, 16, 32, 64, 128, 256}) {
    PacketCollectives cluster(fabric(
        "kind: custom, rate: 100 Gbps, delay: 1 us, switches: [s], links: [{from: host0, to: s}, {from: "
        "host1, to: s}, {from: host2, to: s, delay: 2 us}, {from: host3, to: s, delay: 4 us}]",
        "window: 256, back: 0, front: " + std::to_string(64 * places)));
    run_twice(cluster, 4, 256'000);
    const Time now = cluster.packets.loop.now();
    if (before != 0) {
      EXPECT_LE(now, before) << places;
    }
    before = now;
  }
}

TEST(SwitchAgg, HostsAddUpTheirRanksFirst) {
  PacketCollectives cluster(
      "topology: {kind: star, hosts: 16, rate: 100 Gbps, delay: 500 ns}\nhost: dgx_a100\n"
      "network: {switch: {aggregation: true}}\ntransport: {congestion_control: none}\n"
      "collectives:\n  all_reduce: {kind: switchagg, front: 0, back: 0, chunk: 64 KiB}\n");
  const auto members = every(1, 16);
  cluster.run(request_of(CollectiveKind::all_reduce, members, 1 << 20));
  EXPECT_EQ(cluster.packets.network->counters().bytes_delivered, 2 << 20);
}

}  // namespace
}  // namespace netsim::switchagg_test
