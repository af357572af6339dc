// Congestion controls say when they cannot work with a path, in a Note; and of no configuration that is
// shipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "sim/configuration/load_run.h"
#include "sim/core/config.h"
#include "sim/core/registry.h"
#include "sim/transport/congestion/congestion_control.h"
#include "tests/support/congestion_driver.h"
#include "tests/support/packet_fixture.h"
#include "tests/support/paths.h"
#include "tests/support/test_size.h"

namespace netsim::path_notes_test {
namespace {

using test::PacketFixture;

std::string path_note(const PacketNetwork& network) {
  for (const std::string& note : network.notes()) {
    if (note.find("congestion control does not fit") != std::string::npos) return note;
  }
  return "";
}

std::string star(const std::string& delay, const std::string& transport) {
  return "topology: {kind: star, hosts: 3, rate: 100 Gbps, delay: " + delay + "}\ntransport: {" + transport +
         "}\n";
}

struct Found {
  std::string note;
  double slowdown;
};

// One flow of 10 MB alone.
Found lone_flow(const std::string& delay, const std::string& transport) {
  PacketFixture f(star(delay, transport));
  f.send(1, 2, 10 * kMegabyte);
  f.loop.run();
  EXPECT_TRUE(f.all_delivered());
  const FlowRecord& flow = f.flows[0];
  return {path_note(*f.network),
          static_cast<double>(flow.end - flow.start) / static_cast<double>(flow.ideal)};
}

void expect_words(const std::string& note, const std::vector<std::string>& words) {
  for (const std::string& word : words)
    EXPECT_NE(note.find(word), std::string::npos) << word << " in: " << note;
}

TEST(PathNotes, SwiftWithATargetBelowTheRoundTrip) {
  const Found bad = lone_flow("50 us", "congestion_control: swift");
  EXPECT_GT(bad.slowdown, 100) << "what the Note is about";
  expect_words(bad.note,
               {"GPU 1 to GPU 2", "round trip 200.68224 us", "base_target 20 us", "above 197.62924 us"});
  const Found good = lone_flow("50 us", "congestion_control: {kind: swift, base_target: 198 us}");
  EXPECT_LT(good.slowdown, 1.1);
  EXPECT_EQ(good.note, "");
}

TEST(PathNotes, TimelyWithThresholdsBelowTheRoundTrip) {
  const Found collapsed =
      lone_flow("50 us", "congestion_control: {kind: timely, t_low: 20 us, t_high: 100 us}");
  EXPECT_GT(collapsed.slowdown, 10);
  expect_words(collapsed.note, {"round trip 200.68224 us", "t_high 100 us", "t_low"});
  const Found blind = lone_flow("50 us", "congestion_control: timely");
  expect_words(blind.note, {"t_low 50 us"});
  const Found good = lone_flow("50 us", "congestion_control: {kind: timely, t_low: 201 us}");
  EXPECT_LT(good.slowdown, 1.1);
  EXPECT_EQ(good.note, "");
}

TEST(PathNotes, HpccWithATShorterThanTheRoundTrip) {
  const Found own = lone_flow("50 us", "congestion_control: {kind: hpcc, base_rtt: 8 us}");
  EXPECT_GT(own.slowdown, 10);
  expect_words(own.note, {"(base_rtt 8 us)", "holds 4.0 %", "base_rtt to 200"});
  const Found given = lone_flow("50 us", "base_rtt: 8 us, congestion_control: hpcc");
  expect_words(given.note, {"(transport.base_rtt 8 us)"});
  EXPECT_EQ(lone_flow("50 us", "base_rtt: 201 us, congestion_control: hpcc").note, "");
  EXPECT_EQ(lone_flow("50 us", "congestion_control: hpcc").note, "");
}

// The vendor's floor is a hundredth of the line rate, six halvings and a half away.
TEST(PathNotes, DcqcnThatFallsToItsFloorWithinARoundTrip) {
  const CongestionDriver vendor("dcqcn", 100 * kGbps);
  EXPECT_EQ(vendor.objection(28 * kMicrosecond - 7), "");
  expect_words(vendor.objection(28 * kMicrosecond), {"every 4 us (decrease_interval)", "more than 4 us"});
  const CongestionDriver paper("{kind: dcqcn, profile: sigcomm15}", 100 * kGbps);
  EXPECT_EQ(paper.objection(499 * kMicrosecond), "") << "ten halvings to a thousandth, a CNP every 50 us";
  expect_words(paper.objection(500 * kMicrosecond), {"(cnp_interval)"});
  const CongestionDriver gentle("{kind: dcqcn, minimum_rate: 0 bps}", 100 * kGbps);
  EXPECT_EQ(gentle.objection(255 * kMicrosecond), "");
  expect_words(lone_flow("10 us", "congestion_control: dcqcn").note, {"GPU 1 to GPU 2", "decrease_interval"});
  EXPECT_EQ(lone_flow("10 us", "congestion_control: {kind: dcqcn, decrease_interval: 7 us}").note, "");
}

TEST(PathNotes, OthersFitAnyPath) {
  for (const char* control : {"none", "dctcp", "ib_cct"})
    EXPECT_EQ(CongestionDriver(control, 100 * kGbps).objection(kSecond), "") << control;
}

// The note names the pair with the longest round trip, or the first of several equal ones.
TEST(PathNotes, TheWorstPathIsNamed) {
  PacketFixture f(
      "topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 10 us}\n"
      "transport: {congestion_control: swift}\n");
  f.send(9, 8, 1000);
  f.send(9, 2, 1000);
  f.send(5, 3, 1000);
  f.send(5, 12, 1000);
  f.loop.run();
  expect_words(path_note(*f.network), {"GPU 5 to GPU 3,"});
}

// ---- No false alarms

// Every configuration in configs/, with queue pairs from some GPUs to all others (of large clusters, to
// some).
std::string shipped_note(const std::string& path) {
  const ConfigNode root = load_run(path).config;
  const auto section = [&root](const char* name) {
    static const ConfigNode none;
    const ConfigNode* node = root.find(name);
    return node != nullptr && !node->is_scalar() ? *node : none;
  };
  const ConfigNode* network_kind = section("network").find("kind");
  if (network_kind != nullptr && network_kind->text() == "ideal") return "";
  const Cluster cluster = build_cluster(root);
  Engine engine;
  const auto network = PacketNetwork::create(engine, cluster, Partition(), section("network"),
                                             section("transport"), 1, [](const FlowRecord&) {});
  const auto gpus = static_cast<std::uint32_t>(cluster.gpus.size());
  for (std::uint32_t to = 1; to < gpus; to += std::max(1U, gpus / 200)) {
    for (const std::uint32_t from : {0U, gpus / 2, gpus - 1}) {
      Message message;
      message.source = from;
      message.destination = to;
      message.bytes = 1;
      if (from != to) network->send({message});
    }
  }
  return path_note(*network);
}

TEST(PathNotes, NoShippedConfigurationHasOne) {
  std::vector<std::string> configurations;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_directory() + "/configs")) {
    const std::string path = entry.path().string();
    if (path.find("config.txt") != std::string::npos ||
        (entry.path().extension() == ".yaml" && load_config(path).find("topology") != nullptr))
      configurations.push_back(path);
  }
  EXPECT_GT(configurations.size(), 40u);
  std::sort(configurations.begin(), configurations.end());
  for (const std::string& path : test::share_of(configurations, 6, 12))
    EXPECT_EQ(shipped_note(path), "") << path;
}

TEST(PathNotes, NoDefaultHasOneOnADefaultNetwork) {
  for (const std::string& control : Registry<CongestionControl>::instance().names()) {
    for (const char* cluster : {"topology: fat_tree\n", "topology: {kind: star, hosts: 4}\n",
                                "topology: {kind: fat_tree, k: 8}\nhost: dgx_a100\nhosts: 8\n"}) {
      PacketFixture f(cluster + std::string("transport: {congestion_control: ") + control + "}\n");
      for (std::uint32_t to = 1; to < f.network->gpu_count(); ++to) f.send(0, to, 1);
      f.loop.run();
      EXPECT_EQ(path_note(*f.network), "") << control << " on " << cluster;
    }
  }
}

}  // namespace
}  // namespace netsim::path_notes_test
