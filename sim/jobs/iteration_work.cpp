#include "sim/jobs/iteration_work.h"

#include <algorithm>
#include <vector>

#include "sim/core/errors.h"
#include "sim/jobs/profile_builder.h"
#include "sim/scheduling/task/operation_graph.h"

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
  const OperationGraph graph(*profile);
  std::vector<Time> begin(graph.size(), 0);
  IterationWork work;
  for (const std::uint32_t node : graph.order()) {
    const Time end = begin[node] + graph.duration(node);
    work.compute = std::max(work.compute, end);
    for (const std::uint32_t next : graph.successors().of(node)) begin[next] = std::max(begin[next], end);
  }
  work.offset = work.compute;
  for (std::uint32_t communication = 0; communication < profile->communications(); ++communication)
    work.offset = std::min(work.offset, begin[graph.of_communication(communication)]);
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
