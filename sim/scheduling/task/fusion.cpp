#include "sim/scheduling/task/fusion.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/scheduling/task/communication_times.h"

namespace netsim {
namespace {

// A sequence is of one group, collective and stream.
using SequenceKey = std::tuple<std::uint32_t, std::uint8_t, std::uint8_t>;

SequenceKey sequence_key(const ProfileTask& task) { return {task.group, task.collective, task.stream}; }

// Returns the tasks of a rank, by index, with this key whose end no other task with it waits for.
std::vector<std::uint32_t> independent_tasks(const JobProfile& profile, RankId rank, const SequenceKey& key) {
  const std::uint32_t begin = profile.first[rank], end = profile.first[rank + 1];
  std::vector<bool> reaches(end - begin, false);
  std::vector<std::uint32_t> result;
  for (std::uint32_t i = end; i-- > begin;) {
    for (const std::uint32_t successor : profile.successors.of(i)) {
      if (successor < begin || successor >= end) continue;
      const ProfileTask& after = profile.tasks[successor];
      const bool same = after.kind == ProfileTaskKind::collective && sequence_key(after) == key;
      if (same || reaches[successor - begin]) reaches[i - begin] = true;
    }
    const ProfileTask& task = profile.tasks[i];
    if (task.fusible && sequence_key(task) == key && !reaches[i - begin]) result.push_back(i);
  }
  std::reverse(result.begin(), result.end());
  return result;
}

}  // namespace

std::vector<std::vector<std::uint32_t>> fusible_sequences(const JobProfile& profile) {
  std::map<SequenceKey, RankId> lowest_rank;
  for (const ProfileTask& task : profile.tasks) {
    if (task.fusible) lowest_rank.try_emplace(sequence_key(task), task.rank);
  }
  std::vector<std::vector<std::uint32_t>> sequences;
  for (const auto& [key, rank] : lowest_rank) {
    std::vector<std::uint32_t> sequence;
    for (const std::uint32_t task : independent_tasks(profile, rank, key))
      sequence.push_back(profile.tasks[task].communication);
    if (sequence.size() > 1) sequences.push_back(std::move(sequence));
  }
  return sequences;
}

FusionMap fuse(const JobProfile& profile, const FusionRule& rule) {
  const std::vector<CommunicationTimes> times = communication_times(profile);
  FusionMap all;
  for (std::vector<std::uint32_t>& sequence : fusible_sequences(profile)) {
    std::stable_sort(sequence.begin(), sequence.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return times[a].ready < times[b].ready; });
    std::vector<FusionTensor> tensors;
    for (const std::uint32_t i : sequence)
      tensors.push_back({times[i].ready, times[i].duration, times[i].tail, profile.task_of(i).bytes});
    for (std::vector<std::uint32_t>& bucket : rule(tensors).buckets) {
      for (std::uint32_t& index : bucket) index = sequence[index];
      all.buckets.push_back(std::move(bucket));
    }
  }
  return all;
}

}  // namespace netsim
