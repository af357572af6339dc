// las: the job with the least attained service runs first. Nothing has to be known about a job's length. It
// is the discretized two-dimensional LAS of Tiresias (Gu et al., NSDI 2019): service is GPUs x
// time. Jobs fall from queue to queue at thresholds, and a queue is served in the order of first begins.
// Without the view `jobs` all jobs stay in the first queue.
#include <memory>
#include <utility>

#include "sim/core/registry.h"
#include "sim/scheduling/job/defragmentation.h"
#include "sim/scheduling/job/job_order.h"

namespace netsim {
namespace {

struct LasParameters : MoveParameters {
  double threshold = 3600;
  double factor = 10;
  std::int64_t queues = 2;
};

const Parameters<LasParameters>& las_parameters() {
  using P = LasParameters;
  static const auto parameters =
      move_parameters<P>()
          .real("threshold", &P::threshold, {1e-6, 1e12},
                "GPU seconds that a job may hold before it leaves the first queue; default: one GPU hour")
          .real("factor", &P::factor, {1, 1e6}, "each further queue ends at so many times the one before")
          .integer("queues", &P::queues, {1, 64}, "number of queues; the last one has no end");
  return parameters;
}

class Las final : public JobScheduler {
 public:
  explicit Las(const LasParameters& p) : JobScheduler(p.move), p_(p), defragmentation_(p) {}
  JobNeeds needs() const override { return {.iterations = true, .pauses = true, .views = {ViewField::jobs}}; }
  void decide(const JobSchedulerView& view, JobDecisions& decisions) override {
    const auto place = [&](const JobState& job) { return std::pair{queue_of(job), job.started}; };
    auto order = sorted_jobs(view, [&](const JobState& a, const JobState& b) { return place(a) < place(b); });
    if (!defragmentation_.decide(view, order, decisions)) run_first(order, view.cluster, decisions);
  }

 private:
  std::int64_t queue_of(const JobState& job) const {
    std::int64_t queue = 0;
    double end = p_.threshold;
    for (; queue + 1 < p_.queues && job.gpu_seconds >= end; ++queue) end *= p_.factor;
    return queue;
  }
  LasParameters p_;
  Defragmentation defragmentation_;
};

const Registration<JobScheduler> kLas{
    "las",
    "Tiresias: jobs that have held few GPU seconds run first, without knowledge of their length. "
    "Without the view `jobs` all jobs stay in the first queue",
    las_parameters(), [](const LasParameters& p, const ConfigNode&) { return std::make_unique<Las>(p); }};

}  // namespace
}  // namespace netsim
