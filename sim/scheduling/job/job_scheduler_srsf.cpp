// srsf: the job with the shortest remaining service runs first. Service is the remaining time multiplied by
// the number of GPUs (Tiresias calls this SRSF: Gu et al., NSDI 2019). With one rank a job it is
// shortest remaining time first. Without the view `jobs` each job counts as one second x its GPUs.
#include <memory>

#include "sim/core/registry.h"
#include "sim/scheduling/job/defragmentation.h"
#include "sim/scheduling/job/job_order.h"

namespace netsim {
namespace {

struct SrsfParameters : MoveParameters {
  bool pauses = true;
};

class Srsf final : public JobScheduler {
 public:
  explicit Srsf(const SrsfParameters& p) : JobScheduler(p.move), p_(p), defragmentation_(p) {}
  JobNeeds needs() const override {
    return {.pauses = p_.pauses || p_.defragment, .views = {ViewField::jobs}};
  }
  void decide(const JobSchedulerView& view, JobDecisions& decisions) override {
    const auto service = [](const JobState& job) { return seconds_left(job) * job.ranks; };
    auto order =
        sorted_jobs(view, [&](const JobState& a, const JobState& b) { return service(a) < service(b); });
    if (!defragmentation_.decide(view, order, decisions))
      run_in_order(order, p_.pauses, view.cluster, decisions);
  }

 private:
  SrsfParameters p_;
  Defragmentation defragmentation_;
};

const Registration<JobScheduler> kSrsf{
    "srsf",
    "the job with the least remaining time x GPUs runs first, and pauses jobs with more. "
    "Without the view `jobs` each job counts as one second x its GPUs",
    move_parameters<SrsfParameters>().flag(
        "pauses", &SrsfParameters::pauses,
        "running jobs are paused for shorter ones; otherwise a job keeps its GPUs to its end"),
    [](const SrsfParameters& p, const ConfigNode&) { return std::make_unique<Srsf>(p); }};

}  // namespace
}  // namespace netsim
