#include "sim/report/prediction.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <tuple>
#include <vector>

namespace netsim {
namespace {

// Measured with the main job on one core, PFC, ECN and DCQCN on: see docs/validation.md, Speed.
constexpr double kPacketHopsPerSecond = 4.5e6;
// Queue pairs and packets in flight of one GPU: about a bandwidth-delay product of 64-byte packets each way.
constexpr std::uint64_t kMemoryPerGpu = 256 << 10;
constexpr std::uint64_t kMemoryPerFlow = 8;
constexpr Bytes kTypicalFlow = 512 << 10;

// What one rank's call of a communication costs; the same calls come again and again.
class RankCalls {
 public:
  RankCalls(const TaskSource& source, Executor& executor, std::uint32_t rank)
      : source_(source), executor_(executor), rank_(rank) {}

  // Bytes of `task` over the fabric; 0 for tasks that send nothing.
  Bytes bytes(const Task& task) {
    if (task.kind != TaskKind::collective && task.kind != TaskKind::send) return 0;
    const auto [it, fresh] = known_.try_emplace(key(task), 0);
    if (fresh) it->second = ask(task);
    return it->second;
  }

 private:
  using Key = std::tuple<TaskKind, CollectiveKind, std::uint32_t, std::uint32_t, Bytes, bool>;
  static Key key(const Task& task) {
    const std::uint32_t with = task.kind == TaskKind::collective ? task.group : task.peer;
    return {task.kind, task.collective, with, task.root, task.bytes, task.raw};
  }
  Bytes ask(const Task& task) {
    CommunicationRequest request;
    request.bytes = task.bytes;
    request.raw = task.raw;
    const std::vector<std::uint32_t> pair{rank_, task.peer};
    if (task.kind == TaskKind::send) {
      request.kind = CollectiveKind::point_to_point;
      request.members = &pair;
    } else {
      request.kind = task.collective;
      request.root = task.root;
      request.members = &source_.group(task.group);
      const auto& members = *request.members;
      request.index =
          static_cast<std::uint32_t>(std::find(members.begin(), members.end(), rank_) - members.begin());
    }
    return executor_.scale_out_bytes(rank_, request);
  }

  const TaskSource& source_;
  Executor& executor_;
  std::uint32_t rank_;
  std::map<Key, Bytes> known_;
};

template <class Visit>
void for_each_sending(const TaskSource& source, Executor& executor, Visit visit) {
  for (std::uint32_t rank = 0; rank < source.ranks(); ++rank) {
    RankCalls calls(source, executor, rank);
    const std::uint32_t count = source.task_count(rank);
    for (std::uint32_t id = 0; id < count; ++id) {
      const Task task = source.task(rank, id);
      visit(rank, task, calls.bytes(task));
    }
  }
}

// The GPU to which a rank's bytes of a task go over the fabric: the peer, or the next member on another host.
std::uint32_t far_peer(const TaskSource& source, const Cluster& cluster, std::uint32_t rank,
                       const Task& task) {
  if (task.kind != TaskKind::collective) return task.peer;
  const auto& members = source.group(task.group);
  const auto self =
      static_cast<std::size_t>(std::find(members.begin(), members.end(), rank) - members.begin());
  for (std::size_t step = 1; step < members.size(); ++step) {
    const std::uint32_t peer = members[(self + step) % members.size()];
    if (!cluster.same_host(rank, peer)) return peer;
  }
  return rank;
}

}  // namespace

Prediction predict(const TaskSource& source, Executor& executor, const Cluster& cluster, Bytes mtu) {
  Prediction prediction;
  prediction.ranks = source.ranks();
  std::uint32_t searched = kNoId;
  std::vector<std::uint32_t> distances;
  for_each_sending(source, executor, [&](std::uint32_t rank, const Task& task, Bytes bytes) {
    ++prediction.tasks;
    if (bytes == 0) return;
    if (searched != rank) distances = cluster.graph.distances(cluster.gpus[rank].node);
    searched = rank;
    const auto packets = static_cast<std::uint64_t>((bytes + mtu - 1) / mtu);
    const std::uint32_t hops = distances[cluster.gpus[far_peer(source, cluster, rank, task)].node];
    prediction.scale_out_bytes += bytes;
    prediction.packets += packets;
    if (hops != kNoId) prediction.packet_hops += packets * hops;
  });
  prediction.minutes = static_cast<double>(prediction.packet_hops) / kPacketHopsPerSecond / 60;
  prediction.memory = resident_memory() + kMemoryPerGpu * prediction.ranks +
                      kMemoryPerFlow * static_cast<std::uint64_t>(prediction.scale_out_bytes / kTypicalFlow);
  return prediction;
}

Bytes predict_bytes(const TaskSource& source, Executor& executor) {
  Bytes total = 0;
  for_each_sending(source, executor, [&](std::uint32_t, const Task&, Bytes bytes) { total += bytes; });
  return total;
}

std::uint64_t resident_memory() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t size = 0, resident = 0;
  if (!(statm >> size >> resident)) return 0;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace netsim
