// cassini: jobs that share links communicate at different times. It is the scheduler of Rajasekaran, Ghobadi
// and Akella, "CASSINI: Network-Aware Job Scheduling in Machine Learning Clusters", NSDI 2024. As there, it
// augments another job scheduler, which decides which jobs run.
#include <deque>
#include <memory>
#include <span>
#include <utility>

#include "sim/core/registry.h"
#include "sim/scheduling/job/cassini_alignment.h"

namespace netsim {
namespace {

struct CassiniParameters {
  ConfigNode order;
  Time resolution = 10 * kMicrosecond;
  std::int64_t steps = 72;
  std::int64_t most_combinations = 10'000;
  std::int64_t candidates = 4;
  double margin = 0;
  double tolerance = 0.05;
};

const Parameters<CassiniParameters>& cassini_parameters() {
  using P = CassiniParameters;
  static const auto parameters =
      Parameters<P>()
          .component("order", &P::order, JobScheduler::kComponentKind, "fifo",
                     "the job scheduler that decides which jobs run; cassini chooses their GPUs and shifts "
                     "their iterations")
          .time("resolution", &P::resolution, {kNanosecond, kSecond},
                "iteration times are rounded to multiples of it, and communication that is interrupted for a "
                "shorter time is one phase")
          .integer("steps", &P::steps, {2, 3600},
                   "rotations of a full circle that are tried; 72 are the paper's steps of 5 degrees")
          .integer("most_combinations", &P::most_combinations, {1, 100'000'000},
                   "up to so many combinations of the rotations on a link are all tried; beyond, jobs are "
                   "rotated one after the other until no rotation improves the score")
          .integer("candidates", &P::candidates, {1, 1000},
                   "most placements of a waiting job that are compared; 1: its placement decides alone")
          .real("margin", &P::margin, {0, 0.5},
                "phases are taken to begin earlier by this part of the iteration time, so that phases that "
                "vary in length, as under congestion control, stay apart")
          .real("tolerance", &P::tolerance, {0.001, 0.5},
                "a job is aligned again when its iteration begins off by more than this part of its "
                "iteration time");
  return parameters;
}

class CassiniJobs final : public JobScheduler {
 public:
  CassiniJobs(std::unique_ptr<JobScheduler> order, const CassiniParameters& p)
      : JobScheduler(order->move()),
        order_(std::move(order)),
        settings_{{p.resolution, static_cast<std::uint32_t>(p.steps),
                   static_cast<std::uint32_t>(p.most_combinations)},
                  p.margin,
                  p.tolerance},
        candidates_(static_cast<std::uint32_t>(p.candidates)),
        alignment_(settings_) {}

  JobNeeds needs() const override {
    JobNeeds needs = order_->needs();
    needs.iterations = needs.pauses = true;
    needs.phases = settings_.search.resolution;
    needs.views = needs.views | ViewFields{ViewField::jobs, ViewField::phases};
    return needs;
  }
  void decide(const JobSchedulerView& view, JobDecisions& decisions) override {
    CandidatePlacements places(view, decisions, candidates_, settings_);
    order_->decide(view, places);
    alignment_.align(view.now, view.jobs, decisions);
  }
  std::vector<std::string> notes() const override {
    std::vector<std::string> notes = order_->notes();
    notes.insert(notes.end(), alignment_.notes().begin(), alignment_.notes().end());
    return notes;
  }

 private:
  // CandidatePlacements: starts a job on the best of its candidate placements. All else is decided as the
  // other scheduler says.
  class CandidatePlacements final : public JobDecisions {
   public:
    CandidatePlacements(const JobSchedulerView& view, JobDecisions& decisions, std::uint32_t most,
                        const AlignmentSettings& settings)
        : view_(view), decisions_(decisions), most_(most), settings_(settings) {
      for (const JobState& job : view.jobs)
        if (!job.waits() && job.phases != nullptr) running_.push_back({job.job, job.phases});
    }
    bool start(JobId job) override {
      if (view_.facts == nullptr || most_ < 2 || running_.empty()) return decisions_.start(job);
      const std::vector<std::vector<GpuId>> places = view_.facts->candidates(job, most_);
      if (places.size() < 2) return decisions_.start(job);
      std::vector<IterationPhases> phases;
      for (const auto& place : places) phases.push_back(view_.facts->phases_on(job, place));
      const std::uint32_t best = best_of(job, phases);
      if (!decisions_.start(job, places[best])) return false;
      running_.push_back({job, &started_.emplace_back(std::move(phases[best]))});
      return true;
    }
    bool start(JobId job, const std::vector<GpuId>& gpus) override { return decisions_.start(job, gpus); }
    bool would_fit(std::span<const JobId> jobs, std::span<const JobId> without) const override {
      return decisions_.would_fit(jobs, without);
    }
    void pause(JobId job) override { decisions_.pause(job); }
    void shift(JobId job, Time by) override { decisions_.shift(job, by); }
    void set_traffic(JobId job, std::uint8_t priority, std::uint8_t traffic_class) override {
      decisions_.set_traffic(job, priority, traffic_class);
    }

   private:
    // Returns the candidate with the best score. Where all have loops, the first one.
    std::uint32_t best_of(JobId job, const std::vector<IterationPhases>& phases) const {
      std::vector<std::vector<SharedLink>> candidates;
      for (const IterationPhases& own : phases) {
        std::vector<JobOnLinks> jobs = running_;
        jobs.push_back({job, &own});
        candidates.push_back(shared_links(std::move(jobs), settings_));
      }
      const std::vector<RankedPlacement> ranked = rank_placements(candidates, settings_.search);
      return ranked.empty() ? 0 : ranked.front().candidate;
    }

    const JobSchedulerView& view_;
    JobDecisions& decisions_;
    std::uint32_t most_;
    const AlignmentSettings& settings_;
    std::vector<JobOnLinks> running_;
    std::deque<IterationPhases> started_;  // of the jobs that this call has started
  };

  std::unique_ptr<JobScheduler> order_;
  AlignmentSettings settings_;
  std::uint32_t candidates_;
  CassiniAlignment alignment_;
};

const Registration<JobScheduler> kCassini{
    "cassini",
    "CASSINI: jobs that share links are placed and shifted so that they communicate at different times. It "
    "uses when and on which links each job communicates (the views `phases`, `topology` and `jobs`); a job "
    "of which that is not known is neither compared nor shifted",
    cassini_parameters(), [](const CassiniParameters& p, const ConfigNode&) {
      if (!p.order.is_null() && Registry<JobScheduler>::component_name(p.order, "") == "cassini")
        p.order.fail("the order of cassini cannot be cassini (allowed: another job scheduler)");
      return std::make_unique<CassiniJobs>(Registry<JobScheduler>::instance().create(p.order, "fifo"), p);
    }};

}  // namespace
}  // namespace netsim
