// Do Crux's schedulers give the levels and paths of its rules to jobs and flows?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/registry.h"
#include "sim/scheduling/flow/flow_scheduler.h"
#include "sim/scheduling/job/job_scheduler.h"

namespace netsim::crux_schedulers_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Traffic = std::tuple<std::uint32_t, int, int>;  // job, priority, class

// The paper's first example: computations and communications of 2 and 1 seconds on one link.
class TwoJobs final : public JobDecisions {
 public:
  explicit TwoJobs(const std::string& scheduler)
      : scheduler_(Registry<JobScheduler>::instance().create(parse_config(scheduler, "jobs.yaml"), "")) {
    for (const Time seconds : {Time{2}, Time{1}}) {
      JobState& job = jobs_.emplace_back();
      job.job = static_cast<std::uint32_t>(jobs_.size() - 1);
      job.phase = JobState::Phase::running;
      job.priority = 5;
      job.traffic_class = 6;
      job.work = {5 * static_cast<double>(seconds), seconds * kSecond, seconds * kSecond};
      links_[job.job] = {{1, 12'500'000'000 * seconds}};
    }
  }
  void decide(std::uint32_t measured) {
    set.clear();
    for (std::uint32_t job = 0; job < measured; ++job) jobs_[job].traffic = links_[job];
    const std::vector<BitRate> rates(2, 100 * kGbps);
    JobSchedulerView view{0, jobs_, cluster_};
    view.port_rates = rates;
    scheduler_->decide(view, *this);
  }
  bool start(JobId) override { return false; }
  bool start(JobId, const std::vector<GpuId>&) override { return false; }
  bool would_fit(std::span<const JobId>, std::span<const JobId>) const override { return false; }
  void pause(JobId) override {}
  void shift(JobId, Time) override {}
  void set_traffic(JobId job, std::uint8_t priority, std::uint8_t traffic_class) override {
    set.emplace_back(job, priority, traffic_class);
  }
  JobNeeds needs() const { return scheduler_->needs(); }

  std::vector<Traffic> set;

 private:
  std::unique_ptr<JobScheduler> scheduler_;
  std::vector<JobState> jobs_;
  std::array<std::vector<LinkBytes>, 2> links_;
  ClusterState cluster_;
};

TEST(CruxJobScheduler, PrefersTheShorterIterationByClass) {
  TwoJobs jobs("crux");
  EXPECT_EQ(jobs.needs().classes, 2U);
  EXPECT_EQ(jobs.needs().nic_levels, 1U);
  jobs.decide(0);
  EXPECT_THAT(jobs.set, IsEmpty()) << "nothing is measured";
  jobs.decide(2);
  EXPECT_THAT(jobs.set, ElementsAre(Traffic{0, 5, 1}, Traffic{1, 5, 0}));
  jobs.decide(2);
  EXPECT_THAT(jobs.set, IsEmpty()) << "nothing has changed";
}

TEST(CruxJobScheduler, PrefersTheShorterIterationByPriority) {
  TwoJobs jobs("{kind: crux, act: priorities, levels: 2}");
  EXPECT_EQ(jobs.needs().classes, 1U);
  EXPECT_EQ(jobs.needs().nic_levels, 2U);
  jobs.decide(2);
  EXPECT_THAT(jobs.set, ElementsAre(Traffic{0, 0, 6}, Traffic{1, 1, 6}));
}

// Two jobs send from GPUs 0 and 1 to GPUs 2 and 3, over port 4 or over port 5. The second one computes more.
class TwoFlows final : public FlowFacts {
 public:
  TwoFlows() {
    for (std::uint32_t i = 0; i < 2; ++i) {
      FlowView& flow = flows.emplace_back();
      flow.id = i;
      flow.job = i;
      flow.source = i;
      flow.destination = i + 2;
      flow.bytes = flow.left = kGigabyte;
    }
  }
  std::uint32_t path_count(const FlowView&) const override { return 2; }
  std::vector<PortId> ports_of_path(const FlowView& flow, std::uint32_t hint) const override {
    return {flow.source, 4 + hint, flow.destination};
  }
  std::vector<PortPassage> passages(const FlowView&, std::uint32_t, Bytes) const override { return {}; }
  std::string name(const FlowView&) const override { return ""; }
  JobFacts job(JobId job) const override {
    return {{job == 0 ? 1.0 : 2.0, kSecond, kSecond}, 0, job == over};
  }

  // Admits the flows, and returns the path of each after the decisions.
  std::vector<std::uint32_t> decide(FlowScheduler& scheduler) {
    for (FlowView& flow : flows) static_cast<FlowTreatment&>(flow) = scheduler.admit(flow);
    FlowsView view;
    view.flows = flows;
    view.port_rates = rates_;
    view.facts = this;
    FlowDecisions decisions;
    scheduler.decide(view, decisions);
    for (const FlowDecisions::Decision& decision : decisions.list()) {
      if (decision.kind == FlowDecisions::Kind::path)
        flows[decision.flow].path = static_cast<std::uint32_t>(decision.value);
      if (decision.kind == FlowDecisions::Kind::release) flows[decision.flow].held = false;
    }
    std::vector<std::uint32_t> paths;
    for (const FlowView& flow : flows) paths.push_back(flow.path);
    return paths;
  }

  std::vector<FlowView> flows;
  JobId over = JobId::none();

 private:
  std::vector<BitRate> rates_ = std::vector<BitRate>(6, 100 * kGbps);
};

TEST(CruxFlowScheduler, LetsTheIntenseJobChooseFirst) {
  const auto scheduler = Registry<FlowScheduler>::instance().create(parse_config("crux", "c.yaml"), "");
  TwoFlows two;
  EXPECT_TRUE(scheduler->admit(two.flows[0]).held);
  EXPECT_THAT(two.decide(*scheduler), ElementsAre(1, 0));
  EXPECT_FALSE(two.flows[0].held);
  FlowView later = two.flows[0];
  later.path = kNoPathHint;
  EXPECT_EQ(scheduler->admit(later).path, 1U);
  EXPECT_FALSE(scheduler->admit(later).held) << "its job has a path between these GPUs";
  two.over = 1;
  two.flows.pop_back();
  EXPECT_THAT(two.decide(*scheduler), ElementsAre(1)) << "a flow under way keeps its path";
  EXPECT_EQ(scheduler->admit(later).path, 0U) << "the other job is over, so the next one has the first path";
}

}  // namespace
}  // namespace netsim::crux_schedulers_test
