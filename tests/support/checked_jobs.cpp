// test_checked_jobs: another job scheduler, and checks of what it sees whenever it decides. No GPU has two
// jobs, jobs wait exactly while they hold no GPU, and they are in the order of their submission.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <utility>

#include "sim/core/config.h"
#include "sim/core/registry.h"
#include "sim/scheduling/job/job_scheduler.h"

namespace netsim::test {
namespace {

struct CheckedParameters {
  ConfigNode of;
  bool hosts_fail = false;
};

class CheckedJobs final : public JobScheduler {
 public:
  CheckedJobs(std::unique_ptr<JobScheduler> of, bool hosts_fail)
      : JobScheduler(of->move()), of_(std::move(of)), hosts_fail_(hosts_fail) {}
  JobNeeds needs() const override { return of_->needs(); }
  void decide(const JobSchedulerView& view, JobDecisions& decisions) override {
    std::set<std::uint32_t> held;
    Time last = 0;
    for (const JobState& job : view.jobs) {
      EXPECT_EQ(job.waits(), job.gpus.empty());
      EXPECT_GE(job.submitted, last);
      last = job.submitted;
      if (job.gpus.empty()) continue;
      ASSERT_GE(job.gpus.size(), job.ranks);
      // The drives come behind the GPUs, and serve several jobs.
      for (const std::uint32_t gpu : job.gpus.first(job.ranks))
        EXPECT_TRUE(held.insert(gpu).second) << "GPU " << gpu;
    }
    // GPUs of failed hosts are neither free nor held.
    EXPECT_LE(view.cluster.free + held.size(), view.cluster.gpus);
    if (!hosts_fail_) {
      EXPECT_EQ(view.cluster.free + held.size(), view.cluster.gpus);
    }
    of_->decide(view, decisions);
  }

 private:
  std::unique_ptr<JobScheduler> of_;
  bool hosts_fail_;
};

const Registration<JobScheduler> kCheckedJobs{
    "test_checked_jobs", "a job scheduler whose jobs are checked",
    Parameters<CheckedParameters>()
        .component("of", &CheckedParameters::of, JobScheduler::kComponentKind, "fifo", "the job scheduler")
        .flag("hosts_fail", &CheckedParameters::hosts_fail, "whether hosts of the run fail"),
    [](const CheckedParameters& p, const ConfigNode&) {
      return std::make_unique<CheckedJobs>(Registry<JobScheduler>::instance().create(p.of, "fifo"),
                                           p.hosts_fail);
    }};

}  // namespace
}  // namespace netsim::test
