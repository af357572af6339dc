#include "sim/jobs/iteration_work.h"

#include <algorithm>
#include <vector>

#include "sim/core/errors.h"
#include "sim/jobs/profile_builder.h"
#include "sim/scheduling/task/communication_times.h"

namespace netsim {
namespace {

std::optional<JobProfile> profile_without_communication(const TaskSource& source, const ComputeTimes& times) {
  const CommunicationEstimate none = [](RankId, const Task&) { return Time{0}; };
  try {
    return build_job_profile(source, times, none, {});
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<IterationWork> planned_work(const TaskSource& source, const ComputeTimes& times) {
  const std::optional<JobProfile> profile = profile_without_communication(source, times);
  if (!profile) return std::nullopt;
  IterationWork work;
  work.compute = work.offset = iteration_length(*profile);
  for (const CommunicationTimes& next : communication_times(*profile))
    work.offset = std::min(work.offset, next.ready);
  for (const ProfileTask& task : profile->tasks) {
    if (task.kind == ProfileTaskKind::compute) work.gpu_seconds += to_seconds(task.duration);
  }
  return work;
}

IterationWork measured_work(const Job& job, Time now) {
  IterationWork work;
  const auto iterations = static_cast<Time>(job.iteration_ends().size());
  if (iterations == 0) return work;
  for (const RankTimes& rank : job.rank_times(job.done() ? job.end_time() : now)) {
    const Time compute = rank.compute / iterations;
    work.gpu_seconds += to_seconds(compute);
    if (compute <= work.compute) continue;
    work.compute = compute;
    work.offset = std::max<Time>(0, compute - (rank.communication - rank.exposed) / iterations);
  }
  return work;
}

}  // namespace netsim
