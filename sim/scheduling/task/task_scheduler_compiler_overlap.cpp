// compiler_overlap: the scheduler of PyTorch's compiler (pytorch 002965e, overlap_scheduling.py). It plans
// before the run where each collective is launched between the computations of its rank. A collective is held
// until that place, and those of a group run one after the other, as on a stream of NCCL.
//
// A wait of the schedule holds later collectives. It does not hold computations, which wait for what the
// workload says. Messages between two ranks are launched at once.
#include <memory>

#include "sim/core/registry.h"
#include "sim/scheduling/task/compiler_overlap.h"
#include "sim/scheduling/task/lanes.h"
#include "sim/scheduling/task/task_scheduler.h"

namespace netsim {
namespace {

const Parameters<OverlapLimits>& overlap_parameters() {
  using P = OverlapLimits;
  static const auto parameters =
      Parameters<P>()
          .bytes("in_flight", &P::in_flight, {1, 1000 * kGigabyte},
                 "most bytes of inputs and outputs of collectives between their start and the wait for them")
          .integer("prefetch", &P::prefetch, {0, 1 << 20},
                   "how many computations ahead of the one that needs it a collective may be started")
          .integer("distance", &P::distance, {0, 1 << 30},
                   "most tasks between a computation and a collective that is started early beside it")
          .real("multiplier", &P::multiplier, {0, 1000},
                "share of a computation's time that counts as hiding collectives");
  return parameters;
}

class CompilerOverlap final : public TaskScheduler {
 public:
  explicit CompilerOverlap(const OverlapLimits& limits) : limits_(limits) {}
  TaskNeeds needs() const override { return {.profile = true}; }
  LaunchPlan plan(const JobProfile& profile) const override { return compiler_overlap(profile, limits_); }
  Launch next(const RankView& rank, std::span<const Candidate> candidates) const override {
    const auto fits = [&](const Candidate& one) {
      return one.group == kNoIndex || parts_in_lane(rank, one) == 0;
    };
    return {first_candidate(candidates, fits, is_ready_before)};
  }

 private:
  OverlapLimits limits_;
};

const Registration<TaskScheduler> kCompilerOverlap{
    "compiler_overlap",
    "PyTorch's compiler: collectives are launched early enough that computations hide them, in an order made "
    "before the run",
    overlap_parameters(),
    [](const OverlapLimits& limits, const ConfigNode&) { return std::make_unique<CompilerOverlap>(limits); }};

}  // namespace
}  // namespace netsim
