// sla: keeps weighted tardiness low by the weighted modified due date (Kanet and Li, Journal of Scheduling 7,
// 2004). The job with the least max(remaining time, time to its deadline) / weight runs first. Jobs without a
// deadline run behind all others, by remaining time / weight. Without the view `deadlines` that is so for all
// jobs, and without `jobs` each has one second left.
#include <algorithm>
#include <memory>
#include <utility>

#include "sim/core/registry.h"
#include "sim/scheduling/job/defragmentation.h"
#include "sim/scheduling/job/job_order.h"

namespace netsim {
namespace {

struct SlaParameters : MoveParameters {
  bool pauses = true;
};

// Returns the place of a job: first those with deadlines, then by the modified due date.
std::pair<bool, double> due_order(const JobState& job, Time now) {
  const double left = seconds_left(job);
  if (job.deadline == kNever) return {true, left / job.weight};
  return {false, std::max(left, to_seconds(job.deadline - now)) / job.weight};
}

class Sla final : public JobScheduler {
 public:
  explicit Sla(const SlaParameters& p) : JobScheduler(p.move), p_(p), defragmentation_(p) {}
  JobNeeds needs() const override {
    return {.pauses = p_.pauses || p_.defragment, .views = {ViewField::jobs, ViewField::deadlines}};
  }
  void decide(const JobSchedulerView& view, JobDecisions& decisions) override {
    auto order = sorted_jobs(view, [&](const JobState& a, const JobState& b) {
      return due_order(a, view.now) < due_order(b, view.now);
    });
    if (!defragmentation_.decide(view, order, decisions))
      run_in_order(order, p_.pauses, view.cluster, decisions);
  }

 private:
  SlaParameters p_;
  Defragmentation defragmentation_;
};

const Registration<JobScheduler> kSla{
    "sla",
    "jobs with weights and deadlines: keeps the weighted tardiness low by modified due dates. Without "
    "the view `deadlines` jobs go by remaining time / weight, and without `jobs` each has one second left",
    move_parameters<SlaParameters>().flag(
        "pauses", &SlaParameters::pauses,
        "running jobs are paused for more urgent ones; otherwise a job keeps its GPUs to its end"),
    [](const SlaParameters& p, const ConfigNode&) { return std::make_unique<Sla>(p); }};

}  // namespace
}  // namespace netsim
