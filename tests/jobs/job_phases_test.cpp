// Are the communication phases of jobs measured, given and moved to other GPUs as
// docs/how-to/job-schedulers.md says?
#include "sim/scheduling/job/job_phases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "sim/core/config.h"
#include "sim/core/registry.h"
#include "sim/scheduling/job/job_scheduler.h"
#include "sim/simulation/simulation.h"
#include "tests/report/fixtures.h"

namespace netsim::job_phases_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(JoinedArcs, AddsWhatOverlapsAndJoinsWhatIsShort) {
  EXPECT_THAT(joined_arcs({{0, 100, 4}, {50, 100, 2}}, 10),
              ElementsAre(DemandArc{0, 50, 4}, DemandArc{50, 100, 6}));
  EXPECT_THAT(joined_arcs({{0, 95, 4}, {100, 195, 4}}, 10).size(), 2U) << "the gap has joined the first arc";
  EXPECT_THAT(joined_arcs({{0, 95, 100}, {100, 195, 100}}, 10).front(), (DemandArc{0, 100, 95}));
  EXPECT_THAT(joined_arcs({{0, 50, 4}, {60, 100, 4}}, 10),
              ElementsAre(DemandArc{0, 50, 4}, DemandArc{60, 100, 4}));
  EXPECT_THAT(joined_arcs({{0, 5, 4}, {60, 100, 4}}, 10),
              ElementsAre(DemandArc{0, 5, 4}, DemandArc{60, 100, 4}));
  EXPECT_THAT(joined_arcs({}, 10), IsEmpty());
}

TEST(TimeAlone, ShortensBusyTimesInProportion) {
  const std::vector<BusyTime> busy{{100, 300, 100}, {400, 500, 100}};
  EXPECT_EQ(time_alone(100, busy), 100);
  EXPECT_EQ(time_alone(200, busy), 150);
  EXPECT_EQ(time_alone(300, busy), 200);
  EXPECT_EQ(time_alone(450, busy), 350);
  EXPECT_EQ(time_alone(600, busy), 500);
}

// SeenPhases: starts all jobs, and keeps the phases of each job that it was told last.
std::map<std::uint32_t, IterationPhases>& seen() {
  static std::map<std::uint32_t, IterationPhases> phases;
  return phases;
}

class SeenPhases final : public JobScheduler {
 public:
  JobNeeds needs() const override {
    return {.iterations = true, .views = {ViewField::phases}, .phases = 10 * kMicrosecond};
  }
  void decide(const JobSchedulerView& view, JobDecisions& decisions) override {
    for (const JobState& job : view.jobs) {
      if (job.waits()) decisions.start(job.job);
      if (job.phases != nullptr) seen()[job.job] = *job.phases;
    }
  }
};

const Registration<JobScheduler> kSeenPhases{
    "test_seen_phases", "starts all jobs and keeps their phases", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<SeenPhases>(); }};

// Two pairs of hosts, joined by a trunk of 100 Gb/s. A job on hosts 0 and 2 or 1 and 3 crosses it. A message
// of 12,451,840 bytes takes 1 ms there with its headers.
class JobPhases : public ::testing::Test {
 protected:
  static constexpr const char* kJob =
      "placement: {kind: strided, stride: 2}, workload: {kind: phases, ranks: 2, iterations: 3, phases: "
      "[{compute: 1 ms}, {collective: all_gather, bytes: 24903680 B}]}";

  void run(const std::string& jobs, std::uint32_t sets = 1) {
    seen().clear();
    const test::Directory directory;
    SimulationSetup setup;
    setup.workload = directory.path() + "/jobs.yaml";
    std::ofstream(setup.workload.text()) << "jobs:\n" << jobs;
    setup.config = parse_config(
        "topology:\n"
        "  kind: custom\n"
        "  rate: 400 Gbps\n"
        "  delay: 100 ns\n"
        "  overhead: 0\n"
        "  switches: [s0, s1]\n"
        "  links: [{from: host0, to: s0}, {from: host1, to: s0}, {from: host2, to: s1}, "
        "{from: host3, to: s1}, {from: s0, to: s1, rate: 100 Gbps}]\n"
        "host: single_nic\n"
        "engine: {sets: " +
            std::to_string(sets) +
            "}\n"
            "transport: {mtu: 16 KiB, congestion_control: none, acknowledge: {every: 256}}\n"
            "collectives: {library: as_configured, base_latency_ring: 0, hop_latency_net_ring: 0}\n"
            "scheduling: {jobs: test_seen_phases, flows: max_min}\n",
        "cluster.yaml");
    setup.threads = sets;
    Simulation(std::move(setup)).run({});
  }
  // Returns the job's phases on a link of 100 Gb/s, which is the trunk in one of its directions.
  static std::vector<DemandArc> on_trunk(std::uint32_t job) {
    for (const LinkPhases& link : seen().at(job).links)
      if (link.capacity == 100 * kGbps) return link.arcs;
    return {};
  }
  static std::string job(const std::string& name, const std::string& more = "") {
    return "- {name: " + name + ", " + more + kJob + "}\n";
  }
};

TEST_F(JobPhases, AreThoseOfAnIterationWithoutOthers) {
  run(job("alone"));
  ASSERT_TRUE(seen().contains(0));
  EXPECT_FALSE(seen()[0].estimated);
  EXPECT_NEAR(static_cast<double>(seen()[0].iteration), 2 * kMillisecond, 20 * kMicrosecond);
  EXPECT_GE(seen()[0].links.size(), 6U) << "two links of hosts and the trunk, in both directions";
  ASSERT_EQ(on_trunk(0).size(), 1U);
  const DemandArc arc = on_trunk(0).front();
  EXPECT_NEAR(static_cast<double>(arc.begin), kMillisecond, 10 * kMicrosecond);
  EXPECT_NEAR(static_cast<double>(arc.end), 2 * kMillisecond, 20 * kMicrosecond);
  EXPECT_NEAR(static_cast<double>(arc.rate), 99.6e9, 1e9);
}

// Both need 2 ms for what takes 1 ms alone.
TEST_F(JobPhases, AreEstimatedWhereTheJobMetAnother) {
  run(job("a") + job("b"));
  for (const std::uint32_t number : {0U, 1U}) {
    ASSERT_TRUE(seen().contains(number));
    EXPECT_TRUE(seen()[number].estimated);
    EXPECT_NEAR(static_cast<double>(seen()[number].iteration), 2 * kMillisecond, 20 * kMicrosecond);
    ASSERT_EQ(on_trunk(number).size(), 1U);
    EXPECT_NEAR(static_cast<double>(on_trunk(number).front().rate), 100e9, 1e9);
  }
}

TEST_F(JobPhases, AreMeasuredAgainWithoutTheOther) {
  run(job("a") + "- {name: b, " +
      std::string(kJob).replace(std::string(kJob).find("iterations: 3"), 13, "iterations: 1") + "}\n");
  EXPECT_FALSE(seen()[0].estimated) << "job b had ended before the second iteration";
}

TEST_F(JobPhases, AreThoseThatTheJobGives) {
  run(job("given", "iteration: 3 ms, phases: [{begin: 1 ms, end: 2 ms, rate: 50 Gbps}], "));
  EXPECT_EQ(seen()[0].iteration, 3 * kMillisecond);
  EXPECT_THAT(on_trunk(0), ElementsAre(DemandArc{kMillisecond, 2 * kMillisecond, 50 * kGbps}));
}

using JobPhaseThreads = JobPhases;
TEST_F(JobPhaseThreads, DoNotShow) {
  run(job("a") + job("b", "arrival: 300 us, "));
  const auto one = seen();
  run(job("a") + job("b", "arrival: 300 us, "), 2);
  EXPECT_EQ(one, seen());
}

}  // namespace
}  // namespace netsim::job_phases_test
