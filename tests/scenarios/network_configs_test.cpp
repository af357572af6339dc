// Tests that the configurations under configs/network run and have the effects that they demonstrate. Every
// marker, routing policy, queue discipline and reliability has one.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "sim/core/config.h"
#include "sim/core/registry.h"
#include "sim/network/policies.h"
#include "sim/simulation/simulation.h"
#include "sim/transport/reliability/reliability.h"
#include "tests/support/paths.h"

namespace netsim::network_configs_test {
namespace {

const std::string kConfigs = source_directory() + "/configs/";

Results run(const std::string& config, const std::string& workload,
            const std::vector<std::string>& overlays = {}) {
  SimulationSetup setup;
  setup.config = load_config(kConfigs + config);
  for (const std::string& overlay : overlays) overlay_config(setup.config, overlay);
  setup.workload = kConfigs + workload;
  Simulation simulation(std::move(setup));
  return simulation.run({});
}

Results run_network(const std::string& name, const std::string& workload,
                    const std::vector<std::string>& overlays = {}) {
  Results results = run("network/" + name + ".yaml", "network/" + workload + ".yaml", overlays);
  EXPECT_EQ(results.outcome, Outcome::done) << name;
  EXPECT_EQ(results.network.bytes_delivered, results.network.bytes_sent);
  return results;
}

TEST(NetworkConfigs, Markers) {
  for (const char* marker : {"red", "step"}) {
    const Results results = run_network(marker, "incast");
    EXPECT_GT(results.network.ecn_marks, 0u) << marker;
    EXPECT_GT(results.network.cnps, 0u);
    EXPECT_EQ(results.network.drops, 0u);
  }
  const Results pfc = run_network("pfc", "incast");
  EXPECT_EQ(pfc.network.ecn_marks, 0u);
  EXPECT_GT(pfc.network.pfc_pauses, 0u);
  EXPECT_EQ(pfc.network.drops, 0u);
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
  const Results fixed = run_network("static", "permutation");
  const auto link = std::find_if(fixed.links.begin(), fixed.links.end(),
                                 [](const LinkResult& l) { return l.name == "agg0->core0"; });
  ASSERT_NE(link, fixed.links.end());
  EXPECT_GE(link->counters.data_packets, 2 * 489u);
}

TEST(NetworkConfigs, Classes) {
  EXPECT_GT(run_network("drr", "two_classes").network.drops, 0u);
  const Results lanes = run_network("vl_arbitration", "two_classes");
  EXPECT_EQ(lanes.network.drops, 0u);
  EXPECT_EQ(lanes.network.retransmissions, 0u);
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

TEST(NetworkConfigs, LossAndFaults) {
  const Results irn = run_network("irn", "incast");
  EXPECT_GT(irn.network.drops, 0u);
  EXPECT_GT(irn.network.retransmissions, 0u);
  const Results faults = run_network("faults", "permutation");
  EXPECT_GT(faults.network.lost, 0u);
  EXPECT_EQ(faults.network.drops, 0u);
}

// No link transmits for longer than the run lasts, even if senders still retransmit after the last message
// has arrived.
TEST(NetworkConfigs, NoLinkIsBusyForLongerThanTheRun) {
  const Results results =
      run("bench/incast_8to1.yaml", "workloads/incast_1MB.yaml",
          {"topology.delay=20 us",
           "transport={congestion_control: none, retransmission_timeout: 10 us, retries: 1000}"});
  EXPECT_GT(results.network.retransmissions, 1000u);
  double highest = 0;
  for (const LinkResult& link : results.links)
    highest = std::max(highest, utilisation(link, results.simulated));
  EXPECT_LE(highest, 1);
  EXPECT_GT(highest, 0.9);
}

// Exit code 5, the cycle by name, and at less load an end like any other.
TEST(NetworkConfigs, TheRingDeadlocks) {
  const Results ring = run("deadlock_ring.yaml", "workloads/deadlock_ring.yaml");
  EXPECT_EQ(ring.outcome, Outcome::stalled);
  EXPECT_EQ(static_cast<int>(exit_code(ring.outcome)), 5);
  ASSERT_GE(ring.waiting.size(), 4u);
  for (int i = 0; i < 4; ++i)
    EXPECT_NE(ring.waiting[static_cast<std::size_t>(i)].find("deadlock: port s"), std::string::npos);
  EXPECT_NE(explain(ring).find("deadlock"), std::string::npos) << explain(ring);
  const Results slow =
      run("deadlock_ring.yaml", "workloads/deadlock_ring.yaml",
          {"topology.links=[{from: host0, to: s0, rate: 40 Gbps}, {from: host1, to: s1, rate: 40 Gbps}, "
           "{from: host2, to: s2, rate: 40 Gbps}, {from: host3, to: s3, rate: 40 Gbps}, {from: s0, to: s1}, "
           "{from: s1, to: s2}, {from: s2, to: s3}, {from: s3, to: s0}]"});
  EXPECT_EQ(slow.outcome, Outcome::done);
  const Results credits =
      run("deadlock_ring.yaml", "workloads/deadlock_ring.yaml", {"network.switch.flow_control=credits"});
  EXPECT_EQ(credits.outcome, Outcome::stalled);
}

// Half the headroom drops, says so, and the run still ends well.
TEST(NetworkConfigs, TooLittleHeadroomIsNoted) {
  const Results results =
      run_network("pfc", "incast", {"network.switch.headroom=16 KB", "network.switch.buffer=1 MB"});
  EXPECT_GT(results.network.drops, 0u);
  EXPECT_TRUE(std::any_of(results.notes.begin(), results.notes.end(), [](const std::string& note) {
    return note.find("headroom") != std::string::npos;
  }));
  EXPECT_EQ(static_cast<int>(exit_code(results.outcome)), 0);
}

// Hosts send half-way around a full mesh of four switches. On the direct path four hosts share a link.
// Detours over the others carry twice as much, and UGAL finds them.
TEST(NetworkConfigs, Detours) {
  EXPECT_EQ(run_network("valiant", "permutation").network.retransmissions, 0u);
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
