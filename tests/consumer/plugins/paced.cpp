// A task scheduler with state beside each rank. It lets some time pass between two launches of a rank, and
// asks to be called again after it.
#include <cstring>
#include <memory>

#include "sim/core/plugin.h"
#include "sim/core/registry.h"
#include "sim/scheduling/task/lanes.h"
#include "sim/scheduling/task/task_scheduler.h"

NETSIM_PLUGIN

namespace netsim {
namespace {

struct PacedParameters {
  Time interval = 100 * kMicrosecond;
};

class Paced final : public TaskScheduler {
 public:
  explicit Paced(const PacedParameters& p) : interval_(p.interval) {}
  TaskNeeds needs() const override { return {.rank_state = sizeof(Time)}; }
  Launch next(const RankView& rank, std::span<const Candidate> candidates) const override {
    Time earliest = 0;
    std::memcpy(&earliest, rank.state.data(), sizeof earliest);
    Launch launch;
    if (rank.now < earliest) {
      launch.call_again = earliest;
      return launch;
    }
    launch.candidate = first_candidate(
        candidates, [](const Candidate&) { return true; }, is_ready_before);
    if (launch.candidate == Launch::kNothing) return launch;
    earliest = rank.now + interval_;
    std::memcpy(rank.state.data(), &earliest, sizeof earliest);
    return launch;
  }

 private:
  Time interval_;
};

const Registration<TaskScheduler> kRegistration{
    "paced", "some time passes between two launches of a rank",
    Parameters<PacedParameters>().time("interval", &PacedParameters::interval, {1 * kNanosecond, 1 * kSecond},
                                       "time between two launches of a rank"),
    [](const PacedParameters& p, const ConfigNode&) { return std::make_unique<Paced>(p); }};

}  // namespace
}  // namespace netsim
