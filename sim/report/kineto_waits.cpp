#include "sim/report/kineto_waits.h"

#include <algorithm>
#include <iterator>
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
  launched_.assign(last + std::size_t{1}, {});
  ended_.reserve(launched_.size());
  std::vector<AdjacencyList::Edge> edges;
  for (std::size_t i = 0; i < listed.tasks.size(); ++i) {
    for (const std::uint32_t before : listed.after[i])
      edges.emplace_back(listed.tasks[i].id, listed.tasks[before].id);
  }
  before_.emplace().build(launched_.size(), edges);
  return tasks;
}

void KinetoWaits::add(const Launched& launched) {
  if (!before_ || launched.task >= launched_.size()) return;
  launched_[launched.task] = launched;
  ended_.insert(behind(launched.end), {launched.end, launched.task});
}

// Returns the place in ended_ behind all tasks that had ended by then.
KinetoWaits::Ends::const_iterator KinetoWaits::behind(Time end) const {
  return std::upper_bound(ended_.begin(), ended_.end(), end,
                          [](Time time, const auto& one) { return time < one.first; });
}

// Returns the task in another stream that ended when a communication was let go, or null.
KinetoWaits::Launched* KinetoWaits::held_by(const TaskRecord& record, std::uint32_t stream) {
  const TaskKind kind = record.task.kind();
  if ((kind != TaskKind::collective && kind != TaskKind::send) || record.start == record.posted)
    return nullptr;
  const auto place = behind(record.start);
  if (place == ended_.begin()) return nullptr;
  const auto [end, task] = *std::prev(place);
  if (end != record.start || launched_[task].stream == stream) return nullptr;
  return &launched_[task];
}

std::vector<KinetoWaits::Wait> KinetoWaits::of(const TaskRecord& record, std::uint32_t stream) {
  if (!before_ || record.task.id >= before_->size()) return {};
  std::map<std::uint32_t, Launched*> last;  // by stream
  for (const std::uint32_t before : before_->of(record.task.id)) {
    Launched& earlier = launched_[before];
    // A task scheduler may have changed the order of communications.
    if (earlier.event == 0 || earlier.stream == stream || earlier.end > record.start) continue;
    Launched*& waited = last[earlier.stream];
    if (waited == nullptr || waited->start < earlier.start) waited = &earlier;
  }
  if (Launched* held = held_by(record, stream); held != nullptr) {
    Launched*& waited = last[held->stream];
    if (waited == nullptr || waited->start < held->start) waited = held;
  }
  std::vector<Wait> waits;
  waits.reserve(last.size());
  for (const auto& [of_stream, launched] : last)
    waits.push_back({*launched, !std::exchange(launched->recorded, true)});
  return waits;
}

}  // namespace netsim
