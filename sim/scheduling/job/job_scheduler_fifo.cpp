// fifo: jobs begin strictly in the order of their arrivals.
#include <memory>

#include "sim/core/registry.h"
#include "sim/scheduling/job/job_order.h"

namespace netsim {
namespace {

struct FifoJobParameters {
  bool backfill = false;
};

class FifoJobs final : public JobScheduler {
 public:
  explicit FifoJobs(bool backfill) : backfill_(backfill) {}
  void decide(const JobSchedulerView& view, JobDecisions& decisions) override {
    const auto in_order = [](const JobState&, const JobState&) { return false; };
    start_in_order(sorted_jobs(view, in_order), backfill_, decisions);
  }

 private:
  bool backfill_;
};

const Registration<JobScheduler> kFifoJobs{
    "fifo", "jobs begin in the order of their arrivals, and each keeps its GPUs to its end",
    Parameters<FifoJobParameters>().flag(
        "backfill", &FifoJobParameters::backfill,
        "later jobs that fit begin before one that does not; otherwise all wait behind it"),
    [](const FifoJobParameters& p, const ConfigNode&) { return std::make_unique<FifoJobs>(p.backfill); }};

}  // namespace
}  // namespace netsim
