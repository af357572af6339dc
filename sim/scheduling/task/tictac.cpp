#include "sim/scheduling/task/tictac.h"

#include <algorithm>
#include <map>
#include <string>

#include "sim/core/errors.h"

namespace netsim {
namespace {

// ReceiveProperties: P and M+ of each outstanding receive.
struct ReceiveProperties {
  std::vector<Time> alone;     // P
  std::vector<Time> together;  // M+, kNever if it shares no computation
};

ReceiveProperties properties(const std::vector<Time>& time,
                             const std::vector<ReceiveDemand::Waiting>& waiting,
                             const std::vector<bool>& outstanding) {
  ReceiveProperties result{std::vector<Time>(time.size(), 0), std::vector<Time>(time.size(), kNever)};
  std::vector<std::uint32_t> left;
  for (const ReceiveDemand::Waiting& computations : waiting) {
    left.clear();
    Time sum = 0;
    for (const std::uint32_t receive : computations.receives) {
      if (!outstanding[receive]) continue;
      left.push_back(receive);
      sum += time[receive];
    }
    if (left.size() == 1) result.alone[left.front()] += computations.time;
    if (left.size() < 2) continue;
    for (const std::uint32_t receive : left)
      result.together[receive] = std::min(result.together[receive], sum);
  }
  return result;
}

using DemandOrder = std::vector<std::uint32_t> (*)(const ReceiveDemand&);
using DependencyBits = std::vector<std::uint64_t>;

// DependencySets: for each task of a rank, the communications of this iteration that it waits for. Program
// order is an order of the edges within an iteration.
class DependencySets {
 public:
  DependencySets(const JobProfile& profile, RankId rank, const std::vector<std::uint32_t>& index_of)
      : profile_(profile), rank_(rank), index_of_(index_of) {}

  // Returns, by task of the rank, the set that computations after it wait for. `first` says that the
  // iteration's own communications count; if not, `before` are the sets of the iteration before.
  std::vector<DependencyBits> sets(std::size_t words, bool first,
                                   const std::vector<DependencyBits>& before) const {
    const std::uint32_t begin = profile_.first[rank_], end = profile_.first[rank_ + 1];
    std::vector<DependencyBits> result(end - begin, DependencyBits(words, 0));
    for (std::uint32_t i = 0; i < before.size(); ++i) {
      for (const std::uint32_t successor : profile_.next_successors.of(begin + i))
        add(result[successor - begin], before[i]);
    }
    for (std::uint32_t i = 0; i < result.size(); ++i) {
      if (const std::uint32_t index = index_of_[i]; first && index != kNoIndex)
        result[i][index / 64] |= std::uint64_t{1} << index % 64;
      for (const std::uint32_t successor : profile_.successors.of(begin + i)) {
        if (successor >= begin && successor < end) add(result[successor - begin], result[i]);
      }
    }
    return result;
  }

 private:
  static void add(DependencyBits& to, const DependencyBits& from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] |= from[i];
  }

  const JobProfile& profile_;
  RankId rank_;
  const std::vector<std::uint32_t>& index_of_;
};

std::vector<std::uint32_t> members_of_bits(const DependencyBits& bits) {
  std::vector<std::uint32_t> result;
  for (std::size_t i = 0; i < bits.size() * 64; ++i) {
    if ((bits[i / 64] >> i % 64 & 1) != 0) result.push_back(static_cast<std::uint32_t>(i));
  }
  return result;
}

// Returns whether the rank decides the place of the communication of its task.
bool orders_task(const JobProfile& profile, const ProfileTask& task) {
  if (task.kind == ProfileTaskKind::receive) return true;
  return task.kind == ProfileTaskKind::collective && profile.task_of(task.communication).rank == task.rank;
}

bool orders_any(const JobProfile& profile, RankId rank) {
  const auto tasks = profile.tasks_of(rank);
  return std::any_of(tasks.begin(), tasks.end(),
                     [&](const ProfileTask& task) { return orders_task(profile, task); });
}

std::vector<std::uint32_t> order_by_rank(const JobProfile& profile, DemandOrder rule) {
  std::vector<std::uint32_t> result(profile.communications(), 0), communications;
  std::map<ReceiveDemand, std::vector<std::uint32_t>> known;  // replicas have equal demands
  for (std::uint32_t rank = 0; rank < profile.ranks(); ++rank) {
    if (!orders_any(profile, rank)) continue;
    ReceiveDemand demand = receive_demand(profile, rank, communications);
    auto found = known.find(demand);
    if (found == known.end()) {
      std::vector<std::uint32_t> places = rule(demand);
      found = known.emplace(std::move(demand), std::move(places)).first;
    }
    std::size_t next = 0;
    for (const ProfileTask& task : profile.tasks_of(rank)) {
      if (next == communications.size()) break;
      if (task.communication != communications[next] || task.kind == ProfileTaskKind::send) continue;
      if (orders_task(profile, task)) result[task.communication] = found->second[next];
      ++next;
    }
  }
  return result;
}

}  // namespace

std::vector<std::uint32_t> tac_order(const ReceiveDemand& demand) {
  const auto count = static_cast<std::uint32_t>(demand.time.size());
  std::vector<bool> outstanding(count, true);
  std::vector<std::uint32_t> order(count, 0);
  for (std::uint32_t place = 0; place < count; ++place) {
    const ReceiveProperties now = properties(demand.time, demand.computations, outstanding);
    const auto before = [&](std::uint32_t a, std::uint32_t b) {
      const Time ahead = std::min(now.alone[b], demand.time[a]),
                 behind = std::min(now.alone[a], demand.time[b]);
      return ahead != behind ? ahead < behind : now.together[a] < now.together[b];
    };
    std::uint32_t best = kNoIndex;
    for (std::uint32_t receive = 0; receive < count; ++receive) {
      if (outstanding[receive] && (best == kNoIndex || before(receive, best))) best = receive;
    }
    outstanding[best] = false;
    order[best] = place;
  }
  return order;
}

std::vector<std::uint32_t> tic_order(const ReceiveDemand& demand) {
  const std::vector<Time> ones(demand.time.size(), 1);
  return dense_order(properties(ones, demand.computations, std::vector<bool>(ones.size(), true)).together);
}

ReceiveDemand receive_demand(const JobProfile& profile, RankId rank,
                             std::vector<std::uint32_t>& communications) {
  ReceiveDemand demand;
  communications.clear();
  const auto tasks = profile.tasks_of(rank);
  std::vector<std::uint32_t> index_of(tasks.size(), kNoIndex);
  for (std::uint32_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].kind != ProfileTaskKind::collective && tasks[i].kind != ProfileTaskKind::receive) continue;
    index_of[i] = static_cast<std::uint32_t>(communications.size());
    communications.push_back(tasks[i].communication);
    demand.time.push_back(tasks[i].duration);
  }
  if (communications.size() > kMostTacReceives) {
    throw InputError("rank " + std::to_string(rank) + " has " + std::to_string(communications.size()) +
                     " communications in an iteration: TicTac's rules order at most " +
                     std::to_string(kMostTacReceives));
  }
  const std::size_t words = (communications.size() + 63) / 64;
  const DependencySets sets(profile, rank, index_of);
  const std::vector<DependencyBits> now = sets.sets(words, true, {}), next = sets.sets(words, false, now);
  std::map<DependencyBits, Time> waiting;
  for (std::uint32_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].kind != ProfileTaskKind::compute) continue;
    waiting[now[i]] += tasks[i].duration;
    waiting[next[i]] += tasks[i].duration;
  }
  waiting.erase(DependencyBits(words, 0));
  for (const auto& [bits, time] : waiting) demand.computations.push_back({members_of_bits(bits), time});
  return demand;
}

std::vector<std::uint32_t> tac_order(const JobProfile& profile) {
  return order_by_rank(profile, [](const ReceiveDemand& demand) { return tac_order(demand); });
}

std::vector<std::uint32_t> tic_order(const JobProfile& profile) {
  return order_by_rank(profile, [](const ReceiveDemand& demand) { return tic_order(demand); });
}

}  // namespace netsim
