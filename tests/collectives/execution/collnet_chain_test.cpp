// CollNetChain: all-reduces along a chain in each host to a NIC, from where the fabric adds up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/core/errors.h"
#include "tests/collectives/algorithms/algorithm_cases.h"
#include "tests/collectives/packet_collectives.h"

namespace netsim::collnet_chain_test {
namespace {

using test::every;
using test::PacketCollectives;
using test::request_of;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string fabric(const std::string& host, const std::string& all_reduce) {
  return "topology: {kind: rail_optimized, hosts_per_leaf: 2, units: 2, spines: 2, link: infiniband, rate: "
         "200 "
         "Gbps, delay: 500 ns}\nhost: " +
         host +
         "\nnetwork: {switch: {flow_control: pfc, marker: none, aggregation: true}}\ntransport: {framing: "
         "infiniband, congestion_control: none}\ncollectives: {all_reduce: " +
         all_reduce + "}\n";
}
constexpr Bytes kHeader = 26;  // InfiniBand

TEST(CollnetChain, IsProvedForHostsOfAllSizes) {
  for (const std::uint32_t group : {1U, 2U, 3U, 4U, 8U}) {
    for (std::uint32_t hosts = 1; hosts <= 6; ++hosts) {
      if (group * hosts < 2) continue;
      for (const std::uint32_t chains : {1U, 2U, 3U, 8U, 20U}) {
        const auto plan = test::make_plan("{kind: collnet_chain, group: " + std::to_string(group) +
                                              ", chains: " + std::to_string(chains) + "}",
                                          CollectiveKind::all_reduce, group * hosts);
        EXPECT_EQ(prove(*plan), "") << group << " x " << hosts << ", " << chains;
        const Bytes n = Bytes{120} * chains;
        Bytes sum = 0;  // each link of a chain both ways, and up the tree
        for (std::uint32_t rank = 0; rank < group; ++rank) sum += bytes_sent(*plan, rank, n);
        EXPECT_EQ(sum, 2 * (group - 1) * n + (hosts > 1 ? n : 0));
      }
    }
  }
  EXPECT_THAT([] { test::make_plan("{kind: collnet_chain, group: 4}", CollectiveKind::all_reduce, 6); },
              ThrowsMessage<InputError>(HasSubstr("needs a multiple of its group, 4")));
}

// n / 8 over each of the 8 NICs, and n once over the NVLinks of each GPU towards the NIC and back.
TEST(CollnetChain, HasAChainForEachNic) {
  PacketCollectives cluster(fabric("dgx_a100", "collnet_chain"));
  const auto members = every(1, 24);
  const Bytes n = 64 * kMebibyte, part = n / 8;
  cluster.run(request_of(CollectiveKind::all_reduce, members, n));
  for (const char* nic : {"host0/nic0", "host1/nic3", "host2/nic7"})
    EXPECT_EQ(cluster.packets.network->port_counters(cluster.fabric_port(nic)).wire_bytes,
              part + part / 4096 * kHeader)
        << nic;
  for (const char* gpu : {"gpu0", "gpu5"}) {
    const auto out = cluster.packets.at("host1/" + std::string(gpu), "host1/nvswitch").wire_bytes;
    EXPECT_NEAR(static_cast<double>(out), 2.0 * 7 / 8 * n, 0.01 * n) << gpu;
  }
}

// Twice the hops of a longer chain: 2.8 us each, up and down, and what the model has for the network.
TEST(CollnetChain, TakesTheLatenciesOfItsModel) {
  const auto time_of = [](std::uint32_t gpus, const std::string& more) {
    PacketCollectives cluster(
        fabric("{kind: dgx_a100}", "{kind: collnet_chain, chains: 1, chunk: 64 B" + more + "}"));
    std::vector<GpuId> members;
    for (std::uint32_t host = 0; host < 2; ++host) {
      for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) members.push_back(8 * host + gpu);
    }
    return cluster.run(request_of(CollectiveKind::all_reduce, members, 8));
  };
  const std::string none = ", hop_latency: 0, hop_latency_net: 0";
  for (const std::uint32_t gpus : {1U, 2U, 5U, 8U}) {
    EXPECT_EQ(time_of(gpus, "") - time_of(gpus, none),
              30 * kMicrosecond + 2 * (gpus - 1) * 2'800 * kNanosecond)
        << gpus;
  }
}

TEST(CollnetChain, NeedsSwitchesThatAddUp) {
  std::string yaml = fabric("dgx_a100", "collnet_chain");
  yaml.erase(yaml.find(", aggregation: true"), 19);
  EXPECT_THAT(
      [&] {
        PacketCollectives made(yaml);
        const auto members = every(1, 16);
        made.executor->start(0, request_of(CollectiveKind::all_reduce, members, 1000));
      },
      ThrowsMessage<InputError>(HasSubstr("does not add up (network.switch.aggregation)")));
}

}  // namespace
}  // namespace netsim::collnet_chain_test
