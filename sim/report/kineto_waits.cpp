#include "sim/report/kineto_waits.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/workload/convert/listed_rank.h"

namespace netsim {

std::uint64_t KinetoWaits::list(const TaskSource& source, RankId rank, std::uint64_t most) {
  std::uint64_t tasks = 0;
  const bool is_known = source.for_each_task(rank, [&](const Task&) { ++tasks; });
  if (!is_known || tasks > most || !listing_objection(source).empty()) return 0;
  const ListedRank listed = list_rank(source, rank);
  std::uint32_t last = 0;
  for (const Task& task : listed.tasks) last = std::max(last, task.id + 0U);
  waiting_.assign(last + std::size_t{1}, 0);
  std::vector<AdjacencyList::Edge> edges;
  for (std::size_t i = 0; i < listed.tasks.size(); ++i) {
    for (const std::uint32_t before : listed.after[i]) {
      edges.emplace_back(listed.tasks[i].id, listed.tasks[before].id);
      ++waiting_[listed.tasks[before].id];
    }
  }
  before_.emplace().build(waiting_.size(), edges);
  return tasks;
}

bool KinetoWaits::is_awaited(TaskId task) const { return task < waiting_.size() && waiting_[task] > 0; }

std::vector<KinetoWaits::Wait> KinetoWaits::of(const TaskRecord& record, std::uint32_t stream) {
  if (!before_ || record.task.id >= before_->size()) return {};
  std::map<std::uint32_t, Launched*> last;  // by stream
  for (const std::uint32_t before : before_->of(record.task.id)) {
    const auto found = launched_.find(before);
    // A task scheduler may have changed the order of communications.
    if (found == launched_.end() || found->second.stream == stream || found->second.end > record.start)
      continue;
    Launched*& waited = last[found->second.stream];
    if (waited == nullptr || waited->start < found->second.start) waited = &found->second;
  }
  std::vector<Wait> waits;
  waits.reserve(last.size());
  for (const auto& [of_stream, launched] : last)
    waits.push_back({*launched, !std::exchange(launched->recorded, true)});
  for (const std::uint32_t before : before_->of(record.task.id)) {
    if (--waiting_[before] == 0) launched_.erase(before);
  }
  return waits;
}

}  // namespace netsim
