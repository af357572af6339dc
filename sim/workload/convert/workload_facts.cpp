#include "sim/workload/convert/workload_facts.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "sim/core/errors.h"

namespace netsim {
namespace {

// FactCounter: counts the tasks of one rank after the other.
class FactCounter {
 public:
  FactCounter(const TaskSource& source, const std::function<std::optional<Time>(const Work&)>& duration)
      : source_(source), duration_(duration), times_(source.works().size()) {
    facts_.job = source.job_name();
    facts_.ranks = source.ranks();
    facts_.iterations = source.iterations();
    facts_.notes = source.notes();
  }

  WorkloadFacts count() {
    for (RankId rank = 0; rank < source_.ranks(); ++rank) {
      computed_ = 0;
      if (!source_.for_each_task(rank, [&](const Task& task) { add(rank, task); }))
        throw InputError(Place{}, "the workload '" + source_.job_name() +
                                      "' decides its tasks during the run, so they cannot be counted before");
      facts_.most_compute = std::max(facts_.most_compute, computed_);
      facts_.least_compute = rank == 0 ? computed_ : std::min(facts_.least_compute, computed_);
    }
    facts_.groups = groups_.size();
    for (auto& [name, row] : kinds_) facts_.kinds.push_back(row);
    for (std::size_t stream = 0; stream < streams_.size(); ++stream) {
      if (streams_[stream].tasks == 0) continue;
      streams_[stream].stream = stream == kStreams ? "cpu" : to_string(static_cast<Stream>(stream));
      facts_.streams.push_back(streams_[stream]);
    }
    return std::move(facts_);
  }

 private:
  void add(RankId rank, const Task& task) {
    ++facts_.tasks;
    const std::string name = kind_name(task);
    WorkloadFacts::KindRow& kind = kinds_[name];
    // Work of CPUs in the stream compute has a row of its own.
    const bool on_cpu = (task.kind() == TaskKind::host_thread || task.kind() == TaskKind::host_compute) &&
                        task.stream == Stream::compute;
    WorkloadFacts::StreamRow& stream = streams_[on_cpu ? kStreams : static_cast<std::size_t>(task.stream)];
    kind.kind = name;
    ++kind.tasks;
    ++stream.tasks;
    if (has_group(task)) add_group(task.group());
    if (has_work(task.kind())) {
      const std::optional<Time> time = time_of(task.work());
      facts_.untimed += time ? 0 : 1;
      kind.time += time.value_or(0);
      stream.time += time.value_or(0);
      if (task.kind() == TaskKind::compute) computed_ += time.value_or(0);
    } else if (is_counted(rank, task)) {
      const Bytes bytes = is_barrier(task) ? 0 : task.bytes();
      ++kind.calls;
      kind.bytes += bytes;
      stream.bytes += bytes;
    }
  }
  static bool is_barrier(const Task& task) {
    return task.kind() == TaskKind::collective && task.collective().collective == CollectiveKind::barrier;
  }
  // A communication of several ranks counts at one of them.
  bool is_counted(RankId rank, const Task& task) const {
    if (has_group(task)) return source_.group(task.group()).front() == rank;
    return task.kind() != TaskKind::receive;
  }
  void add_group(GroupId group) {
    groups_.insert(group);
    facts_.largest_group = std::max<std::uint64_t>(facts_.largest_group, source_.group(group).size());
  }
  std::optional<Time> time_of(std::uint32_t work) {
    std::optional<std::optional<Time>>& known = times_[work];
    if (!known) known = duration_(source_.works()[work]);
    return *known;
  }

  const TaskSource& source_;
  const std::function<std::optional<Time>(const Work&)>& duration_;
  std::vector<std::optional<std::optional<Time>>> times_;  // by work; empty: not asked yet
  WorkloadFacts facts_;
  std::map<std::string, WorkloadFacts::KindRow> kinds_;
  std::array<WorkloadFacts::StreamRow, kStreams + 1> streams_;  // by stream, then that of CPUs
  std::set<std::uint32_t> groups_;
  Time computed_ = 0;  // on the GPU of the current rank
};

}  // namespace

WorkloadFacts workload_facts(TaskSource& source,
                             const std::function<std::optional<Time>(const Work&)>& duration, BitRate rate) {
  source.open();
  WorkloadFacts facts = FactCounter(source, duration).count();
  const auto time = [&](const Work& work) { return duration(work).value_or(0); };
  facts.path = replay_ideally(source, {time, rate});
  return facts;
}

}  // namespace netsim
