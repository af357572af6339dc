#include "sim/scheduling/task/fusion.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "sim/core/adjacency_list.h"
#include "sim/scheduling/task/communication_times.h"
#include "sim/scheduling/task/operation_graph.h"

namespace netsim {
namespace {

using Buckets = std::vector<std::vector<std::uint32_t>>;

// FusedGraph: the operations of a job, in which the communications of a bucket are one node.
class FusedGraph {
 public:
  FusedGraph(const JobProfile& profile, const OperationGraph& graph, const Buckets& buckets, bool in_order)
      : bucket_(graph.size(), kNoIndex), node_(graph.size()) {
    std::iota(node_.begin(), node_.end(), 0U);
    for (std::uint32_t i = 0; i < buckets.size(); ++i) {
      for (const std::uint32_t communication : buckets[i]) {
        const std::uint32_t node = graph.of_communication(communication);
        node_[node] = graph.of_communication(buckets[i].front());
        if (buckets[i].size() > 1) bucket_[node_[node]] = i;
      }
    }
    std::vector<AdjacencyList::Edge> edges;
    for (std::uint32_t node = 0; node < graph.size(); ++node) {
      for (const std::uint32_t next : graph.successors().of(node))
        edges.emplace_back(node_[node], node_[next]);
    }
    for (std::uint32_t i = 1; in_order && i < buckets.size(); ++i) {
      const std::uint32_t before = buckets[i - 1].front(), behind = buckets[i].front();
      if (sequence_key(profile.task_of(before)) == sequence_key(profile.task_of(behind)))
        edges.emplace_back(graph.of_communication(before), graph.of_communication(behind));
    }
    successors_.build(graph.size(), edges);
    remove_sorted();
  }

  // Returns a bucket of several communications that is part of a circle, or kNoIndex if there is none.
  std::uint32_t bucket_in_circle() const {
    std::vector<std::uint32_t> before(waits_.size(), kNoIndex);
    std::uint32_t node = kNoIndex;
    for (std::uint32_t from = 0; from < waits_.size(); ++from) {
      if (waits_[from] == 0) continue;
      node = from;
      for (const std::uint32_t next : successors_.of(from)) before[next] = from;
    }
    if (node == kNoIndex) return kNoIndex;
    // Every node that is left has a predecessor that is left, so going back ends in a circle.
    for (std::size_t i = 0; i < before.size(); ++i) node = before[node];
    for (std::size_t i = 0; i < before.size() && bucket_[node] == kNoIndex; ++i) node = before[node];
    return bucket_[node];
  }

 private:
  // Counts for each node how many nodes it waits for that are in a circle, or behind one.
  void remove_sorted() {
    waits_.assign(successors_.size(), 0);
    for (std::uint32_t node = 0; node < waits_.size(); ++node) {
      for (const std::uint32_t next : successors_.of(node)) ++waits_[next];
    }
    std::vector<std::uint32_t> free;
    for (std::uint32_t node = 0; node < waits_.size(); ++node) {
      if (waits_[node] == 0) free.push_back(node);
    }
    while (!free.empty()) {
      const std::uint32_t node = free.back();
      free.pop_back();
      for (const std::uint32_t next : successors_.of(node)) {
        if (--waits_[next] == 0) free.push_back(next);
      }
    }
  }

  std::vector<std::uint32_t> bucket_;  // by node: its bucket, or kNoIndex
  std::vector<std::uint32_t> node_;    // by node of the operation graph: the node that stands for it
  AdjacencyList successors_;
  std::vector<std::uint32_t> waits_;
};

// Divides buckets that would wait for one another in a circle. Such are those of all-reduces and all-to-alls
// where each has a communication that waits for one of the other.
void divide_circles(const JobProfile& profile, bool in_order, Buckets& buckets) {
  const OperationGraph graph(profile);
  while (true) {
    const std::uint32_t index = FusedGraph(profile, graph, buckets, in_order).bucket_in_circle();
    if (index == kNoIndex) return;
    const std::vector<std::uint32_t> divided = std::move(buckets[index]);
    auto at = buckets.erase(buckets.begin() + index);
    for (const std::uint32_t communication : divided) at = buckets.insert(at, {communication}) + 1;
  }
}

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

FusionMap fuse(const JobProfile& profile, const FusionRule& rule, bool in_order) {
  const std::vector<CommunicationTimes> times = communication_times(profile);
  FusionMap all;
  for (std::vector<std::uint32_t>& sequence : fusible_sequences(profile)) {
    std::stable_sort(sequence.begin(), sequence.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return times[a].ready < times[b].ready; });
    std::vector<FusionTensor> tensors;
    tensors.reserve(sequence.size());
    for (const std::uint32_t i : sequence)
      tensors.push_back({times[i].ready, times[i].duration, times[i].tail, profile.task_of(i).bytes});
    for (std::vector<std::uint32_t>& bucket : rule(tensors).buckets) {
      for (std::uint32_t& index : bucket) index = sequence[index];
      all.buckets.push_back(std::move(bucket));
    }
  }
  divide_circles(profile, in_order, all.buckets);
  return all;
}

}  // namespace netsim
