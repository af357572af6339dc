// Switches of one tier that differ from the others.
#include <gtest/gtest.h>

#include <string>

#include "sim/core/errors.h"
#include "tests/support/packet_fixture.h"

namespace netsim::tiers_test {
namespace {

using test::PacketFixture;

std::string leaves(const std::string& network) {
  return "topology: {kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 4, delay: 500 ns}\n"
         "transport: {congestion_control: none, retransmission_timeout: 10 ms}\nnetwork: {" +
         network + "}\n";
}

Time time_of(const std::string& network) {
  PacketFixture f(leaves(network));
  f.send(0, 4, 4096);
  f.loop.run();
  return f.delivered[0];
}

TEST(Tiers, HaveLatenciesOfTheirOwn) {
  const Time without = time_of("");
  EXPECT_EQ(time_of("switch: {latency: 1 us}"), without + 3 * kMicrosecond);
  EXPECT_EQ(time_of("tiers: [{tier: 1, latency: 4 us}]"), without + 4 * kMicrosecond);
  EXPECT_EQ(time_of("switch: {latency: 1 us}, tiers: [{tier: 0, latency: 0 s}, {tier: 1, latency: 4 us}]"),
            without + 4 * kMicrosecond);
  EXPECT_LT(time_of("tiers: [{tier: 1, forwarding: cut_through}]"), without);
}

// Four to one over the spine: the leaf's port to it, the spine's and the last leaf's may mark and drop.
TEST(Tiers, HaveBuffersAndMarkersOfTheirOwn) {
  const auto incast = [](const std::string& network) {
    auto f = std::make_unique<PacketFixture>(leaves(network));
    for (std::uint32_t from = 0; from < 4; ++from) f->send(from, 4, 1'000'000);
    f->loop.run();
    EXPECT_TRUE(f->all_delivered());
    return f;
  };
  const std::string plain = "switch: {flow_control: none, buffer: 100 MB, marker: none}";
  const auto none = incast(plain);
  EXPECT_EQ(none->network->counters().drops + none->network->counters().ecn_marks, 0u);
  const auto marked = incast(plain + ", tiers: [{tier: 0, marker: {kind: red, kmin: 10 KB, kmax: 20 KB}}]");
  EXPECT_GT(marked->at("leaf0", "spine0").ecn_marks, 0u);
  EXPECT_EQ(marked->at("spine0", "leaf1").ecn_marks, 0u);
  const auto small = incast(plain + ", tiers: [{tier: 0, buffer: 200 KB}]");
  EXPECT_GT(small->at("leaf0", "spine0").drops, 0u);
  const auto spine = incast(plain + ", tiers: [{tier: 1, buffer: 200 KB}]");
  EXPECT_EQ(spine->network->counters().drops, 0u) << "nothing waits there";
}

// PFC: a tier with a smaller threshold pauses earlier, by its own alpha and reserve.
TEST(Tiers, PauseByTheirOwnThresholds) {
  const auto pauses = [](const std::string& network) {
    PacketFixture f(leaves(network));
    for (std::uint32_t from = 0; from < 4; ++from) f.send(from, 4, 400'000);
    f.loop.run();
    EXPECT_TRUE(f.all_delivered());
    EXPECT_EQ(f.network->counters().drops, 0u);
    EXPECT_EQ(f.network->counters().pfc_pauses, f.network->counters().pfc_resumes);
    return f.network->counters().pfc_pauses;
  };
  EXPECT_EQ(pauses("switch: {marker: none, alpha: 8, buffer: 32 MB}"), 0u);
  EXPECT_GT(pauses("switch: {marker: none, alpha: 8, buffer: 32 MB}, tiers: [{tier: 0, alpha: 0.001}]"), 0u);
  EXPECT_EQ(pauses("switch: {marker: none, alpha: 8, buffer: 32 MB}, tiers: [{tier: 1, alpha: 0.001}]"), 0u);
}

TEST(Tiers, SayWhatDoesNotFit) {
  const auto error = [](const std::string& network) -> std::string {
    try {
      PacketFixture f(leaves(network));
    } catch (const ConfigError& e) {
      return e.what();
    }
    return {};
  };
  EXPECT_NE(error("tiers: [{tier: 2, latency: 1 us}]").find("'2' is out of range: 0 to 1"),
            std::string::npos);
  EXPECT_NE(error("tiers: [{latency: 1 us}]").find("'tier' is missing"), std::string::npos);
  EXPECT_NE(error("tiers: [{tier: 0, routing: ecmp}]").find("unknown key 'routing'"), std::string::npos);
  EXPECT_NE(error("tiers: [{tier: 0}, {tier: 0}]").find("a second time"), std::string::npos);
  EXPECT_NE(error("tiers: 3").find("expected a list"), std::string::npos);
}

}  // namespace
}  // namespace netsim::tiers_test
