#include "sim/report/cut_costs.h"

#include <algorithm>
#include <set>

namespace netsim {
namespace {

// Returns the launches of a work's kernels. Those with a given duration have none of their own.
std::uint64_t launches(const Work& work) {
  return static_cast<std::uint64_t>(std::count_if(
      work.kernels.begin(), work.kernels.end(),
      [](const Kernel& kernel) { return kernel.kind != Kernel::Kind::fixed && kernel.slice.index == 0; }));
}

// Returns the part of a sum over all pieces that whole operations would not have had.
template <class T>
T added(T sum, std::uint32_t pieces) {
  return sum - sum / static_cast<T>(pieces);
}

}  // namespace

CutCosts::JobSums& CutCosts::sums_of(JobId job) {
  while (sums_.size() <= job) {
    const auto next = static_cast<std::uint32_t>(sums_.size());
    const Program* program = jobs_.job(next).plan().source->program();
    sums_.push_back({program != nullptr && !program->cuts.empty() ? program : nullptr, {}, 0});
  }
  return sums_[job];
}

const CutOperations* CutCosts::find(const JobSums& sums, std::uint32_t name) {
  if (sums.program == nullptr) return nullptr;
  const auto& cuts = sums.program->cuts;
  const auto at = std::lower_bound(cuts.begin(), cuts.end(), name,
                                   [](const CutOperations& cut, std::uint32_t n) { return cut.name < n; });
  return at == cuts.end() || at->name != name ? nullptr : &*at;
}

void CutCosts::add(const TaskRecord& task) {
  if (task.task.kind() != TaskKind::compute) return;
  JobSums& sums = sums_of(task.job);
  if (find(sums, task.task.name) == nullptr) return;
  sums.by_name[task.task.name].kernels += launches(sums.program->works[task.task.work()]);
}

void CutCosts::add(const CommunicationRecord& communication, const LibraryChoice& choice) {
  const Time startup = choice.startup * static_cast<Time>(communication.ranks);
  if (startup == 0) return;
  JobSums& sums = sums_of(communication.job);
  sums.of_parts += startup * static_cast<Time>(communication.parts - 1);
  if (find(sums, communication.name) != nullptr) sums.by_name[communication.name].startups += startup;
}

CutSummary CutCosts::summary(JobId job, Time kernel) const {
  CutSummary summary;
  if (job >= sums_.size()) return summary;
  const JobSums& sums = sums_[job];
  summary.added = sums.of_parts;
  std::set<std::string> keys;
  if (sums.of_parts > 0) keys.insert("scheduling.tasks.part");
  for (const auto& [name, sum] : sums.by_name) {
    const CutOperations& cut = *find(sums, name);
    const Time cost =
        added(sum.startups, cut.pieces) + added(static_cast<Time>(sum.kernels) * kernel, cut.pieces);
    summary.added += cost;
    if (cost > 0) keys.insert(cut.key);
  }
  summary.keys.assign(keys.begin(), keys.end());
  return summary;
}

}  // namespace netsim
