// Do rings take the links of a fabric that joins the ranks directly? Does an all-reduce on d links of rate B
// come near to a bus bandwidth of d B?
#include "sim/collectives/library/link_jumps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/topology/linked_gpus.h"
#include "tests/collectives/packet_collectives.h"
#include "tests/support/test_size.h"

namespace netsim::link_jumps_test {
namespace {

using test::every;
using test::PacketCollectives;
using test::request_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::uint32_t> jumps_of(const std::string& topology, const std::vector<GpuId>& members) {
  const Cluster cluster = build_cluster(parse_config("topology: " + topology + "\n", "test.yaml"));
  return link_jumps(linked_gpus(cluster), members);
}

TEST(LinkJumps, AreThoseOfTheLinksBothWays) {
  // Numbers without a divisor in common with 16, about geometric (TotientPerms of TopoOpt): 1 and 3.
  EXPECT_THAT(jumps_of("{kind: topoopt, servers: 16, degree: 4}", every(1, 16)), ElementsAre(1, 15, 3, 13));
  EXPECT_THAT(jumps_of("{kind: topoopt, servers: 16, degree: 2}", every(1, 16)), ElementsAre(1, 15));
  EXPECT_THAT(jumps_of("{kind: torus, sizes: [7]}", every(1, 7)), ElementsAre(1, 6));
  EXPECT_THAT(jumps_of("{kind: hyperx, sizes: [5]}", every(1, 5)), ElementsAre(1, 4, 2, 3));
}

TEST(LinkJumps, ThereAreNoneWithoutALinkFromEveryMember) {
  EXPECT_THAT(jumps_of("{kind: topoopt, servers: 16, degree: 4}", {0, 2, 4, 6}), IsEmpty());
  EXPECT_THAT(jumps_of("{kind: topoopt, servers: 16, degree: 4}", {0, 2, 1, 3, 4, 5, 6, 7}), IsEmpty());
  EXPECT_THAT(jumps_of("{kind: fat_tree, k: 4}", every(1, 16)), IsEmpty());
  EXPECT_THAT(jumps_of("{kind: star, hosts: 8}", every(1, 8)), IsEmpty());
}

// Wang et al., TopoOpt, NSDI 2023: with a degree of d, all-reduces on d rings, each over its own links, use
// all d B. Headers and the latencies of the steps make the difference.
TEST(Topoopt, AnAllReduceOnRingsAlongItsLinksReachesAllOfThem) {
  for (const int degree : test::by_size<std::vector<int>>({2, 4, 6}, {4}, {4})) {
    for (const std::string& rings : {std::string(), ", rings: " + std::to_string(degree)}) {
      PacketCollectives servers(
          "topology: {kind: topoopt, servers: 16, degree: " + std::to_string(degree) +
          ", rate: 100 Gbps, delay: 500 ns}\nhost: single_nic\n"
          "network: {deadlock_check: off, switch: {marker: none}}\ntransport: {congestion_control: none}\n"
          "collectives: {all_reduce: {kind: multi_ring" +
          rings + "}}\n");
      const auto members = every(1, 16);
      const Bytes bytes = test::by_size<Bytes>(256, 128, 128) * kMegabyte;
      const Time end = servers.run(request_of(CollectiveKind::all_reduce, members, bytes));
      const double bus = 2 * 15. / 16 * static_cast<double>(bytes) / static_cast<double>(end) * 1e3;  // GB/s
      EXPECT_LT(bus, 12.5 * degree) << rings;
      EXPECT_GT(bus, 0.9 * 12.5 * degree) << rings;
    }
  }
}

}  // namespace
}  // namespace netsim::link_jumps_test
