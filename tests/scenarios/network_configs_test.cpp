// Compares configurations under configs/network with each other. Every marker, routing policy, queue
// discipline and reliability has one. declared/network.yaml has what a single run shows.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "sim/core/registry.h"
#include "sim/network/policies.h"
#include "sim/simulation/simulation.h"
#include "sim/transport/reliability/reliability.h"
#include "tests/support/paths.h"
#include "tests/support/shipped_run.h"

namespace netsim::network_configs_test {
namespace {

const std::string kConfigs = source_directory() + "/configs/";

Results run_network(const std::string& name, const std::string& workload,
                    const std::vector<std::string>& overlays = {}) {
  Results results = test::run_of({.config = "network/" + name + ".yaml",
                                  .workload = "network/" + workload + ".yaml",
                                  .overlays = overlays});
  EXPECT_EQ(results.outcome, Outcome::done) << name;
  EXPECT_EQ(results.network.bytes_delivered, results.network.bytes_sent);
  return results;
}

TEST(NetworkConfigs, Routing) {
  const Time ecmp = run_network("ecmp", "permutation", {"transport.congestion_control=none"}).flows.maximum;
  for (const char* policy : {"spray", "adaptive"}) {
    const Results results = run_network(policy, "permutation");
    EXPECT_EQ(results.network.retransmissions, 0u) << policy;
    EXPECT_LT(results.flows.maximum, ecmp) << policy;
  }
  const Results by_destination = run_network("d_mod_k", "permutation");
  EXPECT_EQ(by_destination.flows.p50, by_destination.flows.maximum) << "none waits for another";
  EXPECT_LT(by_destination.flows.maximum, ecmp);
  EXPECT_EQ(by_destination.network.credit_stalls, 0u);
}

TEST(NetworkConfigs, FlowControlAndForwarding) {
  const Results credits = run_network("credits", "permutation");
  EXPECT_EQ(credits.network.drops, 0u);
  EXPECT_EQ(credits.network.pfc_pauses, 0u);
  EXPECT_GT(credits.network.credit_stalls, 0u);
  std::uint64_t stalls = 0;
  for (const LinkResult& link : credits.links) {
    EXPECT_EQ(link.counters.pauses, 0u) << link.name;
    stalls += link.counters.credit_stalls;
  }
  EXPECT_EQ(stalls, credits.network.credit_stalls);
  const Results cut = run_network("cut_through", "permutation");
  const Results stored =
      run_network("cut_through", "permutation", {"network.switch.forwarding=store_and_forward"});
  EXPECT_LT(cut.flows.p50, stored.flows.p50);
}

// No link transmits for longer than the run lasts, even if senders still retransmit after the last message
// has arrived.
TEST(NetworkConfigs, NoLinkIsBusyForLongerThanTheRun) {
  const Results results = test::run_of(
      {.config = "bench/incast_8to1.yaml",
       .workload = "workloads/incast_1MB.yaml",
       .overlays = {"topology.delay=20 us",
                    "transport={congestion_control: none, retransmission_timeout: 10 us, retries: 1000}"}});
  EXPECT_GT(results.network.retransmissions, 1000u);
  double highest = 0;
  for (const LinkResult& link : results.links)
    highest = std::max(highest, utilisation(link, results.simulated));
  EXPECT_LE(highest, 1);
  EXPECT_GT(highest, 0.9);
}

// The report of a deadlock names the ports of the cycle.
TEST(NetworkConfigs, TheRingDeadlocks) {
  const Results ring =
      test::run_of({.config = "deadlock_ring.yaml", .workload = "workloads/deadlock_ring.yaml"});
  EXPECT_EQ(ring.outcome, Outcome::stalled);
  EXPECT_EQ(static_cast<int>(exit_code(ring.outcome)), 5);
  ASSERT_GE(ring.waiting.size(), 4u);
  for (int i = 0; i < 4; ++i)
    EXPECT_NE(ring.waiting[static_cast<std::size_t>(i)].find("deadlock: port s"), std::string::npos);
  EXPECT_NE(explain(ring).find("deadlock"), std::string::npos) << explain(ring);
}

// Hosts send half-way around a full mesh of four switches. On the direct path four hosts share a link.
// Detours over the others carry twice as much, and UGAL finds them.
TEST(NetworkConfigs, Detours) {
  const Time straight = run_network("ugal", "permutation", {"network.switch.routing=ecmp"}).flows.maximum;
  const Results ugal = run_network("ugal", "permutation");
  EXPECT_EQ(ugal.network.retransmissions, 0u);
  EXPECT_LT(static_cast<double>(ugal.flows.maximum), 0.7 * static_cast<double>(straight));
}

// ---- Coverage: every component of these kinds has a description and is in a configuration that is run
// above.

std::string all_configs() {
  std::ostringstream text;
  for (const auto& entry : std::filesystem::directory_iterator(kConfigs + "network"))
    text << std::ifstream(entry.path()).rdbuf();
  return text.str();
}

template <class Interface>
void expect_covered(const std::string& key) {
  const std::string text = all_configs();
  for (const std::string& name : Registry<Interface>::instance().names()) {
    const bool named =
        text.find(key + ": " + name) != std::string::npos || text.find("kind: " + name) != std::string::npos;
    EXPECT_TRUE(named) << Interface::kComponentKind << " " << name
                       << " is in no configuration of configs/network";
    const auto all = Catalogue::instance().all();
    const auto found = std::find_if(all.begin(), all.end(), [&](const ComponentInfo* info) {
      return info->kind == Interface::kComponentKind && info->name == name;
    });
    ASSERT_NE(found, all.end()) << name;
    EXPECT_FALSE((*found)->summary.empty()) << name;
  }
}

TEST(NetworkConfigs, NoComponentIsWithoutOne) {
  expect_covered<Marker>("marker");
  expect_covered<RoutingPolicy>("routing");
  expect_covered<QueueDiscipline>("scheduler");
  expect_covered<Reliability>("reliability");
}

}  // namespace
}  // namespace netsim::network_configs_test
