#include "sim/simulation/run_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "sim/core/input_file.h"

namespace netsim {
namespace {

constexpr std::uint64_t kSlice = 200'000;      // events between two checks of the watch: about 25 ms
constexpr std::uint64_t kSliceSamples = 1000;  // samples between two checks of the watch

}  // namespace

// If nothing else makes progress, only checks at simulated times tell whether the run is stalled.
bool RunLoop::step(Time until) {
  if (manager_.done() || is_stuck()) return false;
  if (slice(std::min(until, stall_.next()))) return true;
  const Time next = next_time();
  if (next == kNever) return call_schedulers();
  if (next > until) return false;
  stall_.check(next);
  return !stall_.stalled();
}

Time RunLoop::next_time() const { return std::min(engine_.next_time(), engine_.next_interval()); }

// Calls the task schedulers once more when nothing is pending and jobs are not done. Returns whether that has
// made events; the next step executes them.
bool RunLoop::call_schedulers() {
  if (called_schedulers_at_ == engine_.executed()) return false;
  const Time now = engine_.now();
  engine_.call_at(now, [this] { jobs_.call_schedulers(); });
  engine_.run(now);
  called_schedulers_at_ = engine_.executed();
  return engine_.pending() > 0;
}

bool RunLoop::slice(Time until) {
  if (sampler_ == nullptr) return engine_.run_some(kSlice, until) > 0;
  const std::uint64_t before = engine_.executed();
  std::uint64_t samples = 0;
  while (engine_.executed() - before < kSlice && samples < kSliceSamples) {
    if (sampler_->quiet()) {
      const Time next = next_time();
      if (next == kNever || next > until) break;
      sampler_->skip_to(next);
    }
    const std::uint64_t left = kSlice - (engine_.executed() - before);
    if (engine_.run_some(left, std::min(until, sampler_->next())) >= left) break;
    if (engine_.stopped() || next_time() == kNever || sampler_->next() > until) break;
    sampler_->sample();
    ++samples;
  }
  return engine_.executed() > before || samples > 0;
}

void RunLoop::finish_samples(Outcome outcome, Time cut) {
  if (sampler_ == nullptr) return;
  if (next_time() == kNever) {
    sampler_->sample();
  } else {
    sampler_->finish(outcome == Outcome::limit ? cut : engine_.now());
  }
}

Outcome RunLoop::play(const Watch& watch, RunProgress& progress) {
  WallClock::time_point reported = WallClock::now();
  while (!manager_.done()) {
    if (watch.interrupted && watch.interrupted()) return Outcome::interrupted;
    if (!naming_step(watch.until)) {
      const Time next = next_time();
      const bool beyond = next != kNever && next > watch.until;
      return beyond && !is_deadlocked() ? Outcome::limit : Outcome::stalled;
    }
    if (watch.report && seconds_since(reported) >= watch.report_every) {
      watch.report(progress.advance());
      reported = WallClock::now();
    }
  }
  return Outcome::done;
}

// Executes a step. An error in a task names the job's file.
bool RunLoop::naming_step(Time until) {
  const std::vector<JobDescription>& jobs = manager_.descriptions();
  return naming_file(jobs.size() == 1 ? jobs.front().file : workload_, [&] { return step(until); });
}

void RunLoop::settle(const Watch& watch) {
  while (slice(kNever)) {
    if (watch.interrupted && watch.interrupted()) return;
  }
  if (packets_ == nullptr) return;
  const NetworkCounters network = packets_->counters();
  NETSIM_CHECK(network.bytes_sent == network.bytes_delivered,
               fmt::format("{} bytes sent, {} delivered", network.bytes_sent, network.bytes_delivered));
  NETSIM_CHECK(network.pfc_pauses == network.pfc_resumes,
               fmt::format("{} pauses, {} resumes", network.pfc_pauses, network.pfc_resumes));
}

}  // namespace netsim
