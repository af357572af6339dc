// Circles of ranks that wait for one another under a task scheduler. Called between events, like stall
// reports.
#include <algorithm>
#include <map>

#include "sim/jobs/source_job.h"

namespace netsim::source_job {

// Returns the tasks of a circle of waits, from its lowest rank on, or nothing if there is none. Every task
// is taken to wait for one other, so that a walk from task to task ends or comes back.
std::vector<ActiveTask> SourceJob::find_circle() const {
  std::map<ActiveTask, std::size_t> walks;  // by task: the walk that has come to it first
  std::size_t walk = 0;
  for (RankId rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].halted) continue;
    for (const std::uint32_t slot : ranks_[rank].active) {
      std::optional<ActiveTask> at = ActiveTask{rank, slot};
      for (++walk; at && walks.try_emplace(*at, walk).second;) at = blocker(*at);
      if (at && walks[*at] == walk) return circle_from(*at);
    }
  }
  return {};
}

std::vector<ActiveTask> SourceJob::circle_from(ActiveTask first) const {
  std::vector<ActiveTask> circle;
  ActiveTask at = first;
  do {
    circle.push_back(at);
    at = *blocker(at);
  } while (at != first);
  // Slots depend on which ranks share a set, so the program decides which task is named first.
  const auto place = [this](const ActiveTask& task) {
    return std::pair<std::uint32_t, std::uint32_t>(task.first,
                                                   set_of(task.first).active[task.second].task.id);
  };
  const auto earliest =
      std::min_element(circle.begin(), circle.end(),
                       [&](const ActiveTask& a, const ActiveTask& b) { return place(a) < place(b); });
  std::rotate(circle.begin(), earliest, circle.end());
  return circle;
}

// Returns the task for which a task waits, or nothing where it runs, or waits for a time or for a scheduler
// alone. It may wait for several tasks, and the first of them is taken.
std::optional<ActiveTask> SourceJob::blocker(ActiveTask at) const {
  const auto [rank, slot] = at;
  const Active& active = set_of(rank).active[slot];
  if (has_work(active.task.kind()) || active.state == Active::State::held_back) return std::nullopt;
  if (is_held(rank, slot)) return blocker_of_launch(at);
  return active.state == Active::State::ready ? std::nullopt : blocker_of_members(active);
}

// Returns the task of another member for which a launched communication waits.
std::optional<ActiveTask> SourceJob::blocker_of_members(const Active& active) const {
  if (is_point_to_point(active.task)) {
    const RankId peer = active.task.message().peer;
    const std::optional<std::uint32_t> other = slot_of(peer, active.communication);
    if (other && (!is_held(peer, *other) || has_launched_part(peer, active))) return std::nullopt;
    return task_or_first(peer, active.communication);
  }
  if (!has_group(active.task)) return std::nullopt;
  for (const auto& [member, index] : active.group->places) {
    if (member != active.rank && !has_launched_part(member, active))
      return task_or_first(member, active.communication);
  }
  return std::nullopt;
}

// Returns the task for which the launch of a task, or of its next part, waits.
std::optional<ActiveTask> SourceJob::blocker_of_launch(ActiveTask at) const {
  const auto [rank, slot] = at;
  const RankSchedule& schedule = ranks_[rank].schedule;
  const Active& active = set_of(rank).active[slot];
  if (!is_decided_here(active)) {
    const std::optional<std::uint64_t> next = decided_next(rank, active.task.group());
    if (next && *next != active.communication) return task_or_first(rank, *next);
    const RankId decides = source().group(active.task.group()).front();
    return next ? std::nullopt : task_or_first(decides, active.communication);
  }
  if (has_slot(schedule.incomplete, slot)) {
    const std::optional<ActiveTask> other = first_task(rank, slot);
    return other ? other : at;
  }
  if (has_slot(schedule.held, slot)) {
    return is_held_by_sequence(active) ? task_of_turn(rank, active.task) : first_task(rank, slot);
  }
  const PartInFlight* part = holding_part(rank, active.task);
  if (part == nullptr) return std::nullopt;
  if (part->has(slot)) return blocker_of_members(active);
  return ActiveTask{rank, part->slots.front()};
}

// Returns a part in flight that may keep the scheduler from launching the task. It is one of the same group
// if there is one. Null: nothing is in flight.
const PartInFlight* SourceJob::holding_part(RankId rank, const Task& task) const {
  const bool collective = task.kind() == TaskKind::collective;
  const PartInFlight* any = nullptr;
  for (const PartInFlight& part : ranks_[rank].schedule.in_flight) {
    const Task& other = set_of(rank).active[part.slots.front()].task;
    if (other.kind() == TaskKind::receive) continue;
    const bool same_kind = (other.kind() == TaskKind::collective) == collective;
    if (same_kind && (!collective || other.group() == task.group())) return &part;
    if (any == nullptr) any = &part;
  }
  return any;
}

// Returns the communication of the group that another rank has decided to be launched next.
std::optional<std::uint64_t> SourceJob::decided_next(RankId rank, GroupId group) const {
  const auto decided = ranks_[rank].schedule.decisions.find(group);
  if (decided == ranks_[rank].schedule.decisions.end() || decided->second.empty()) return std::nullopt;
  return decided->second.front().decision.communication;
}

// Returns the task of the rank that is next in the sequence of `task`, or its first task.
std::optional<ActiveTask> SourceJob::task_of_turn(RankId rank, const Task& task) const {
  const LaunchTables& tables = plan_.scheduling->tables;
  const std::uint32_t sequence = tables.turn(rank, task.id).sequence;
  const auto& turns = ranks_[rank].schedule.turns;
  const auto launched = turns.find(sequence);
  const std::uint64_t next = launched == turns.end() ? 0 : launched->second;
  for (const std::uint32_t slot : ranks_[rank].active) {
    const LaunchTables::Turn turn = tables.turn(rank, set_of(rank).active[slot].task.id);
    if (turn.sequence == sequence && turn.number == next) return ActiveTask{rank, slot};
  }
  return first_task(rank, kNoIndex);
}

// Returns the slot of the communication at the rank, if it has it now.
std::optional<std::uint32_t> SourceJob::slot_of(RankId rank, std::uint64_t communication) const {
  for (const std::uint32_t slot : ranks_[rank].active) {
    const Active& active = set_of(rank).active[slot];
    if (active.communication == communication && !has_work(active.task.kind())) return slot;
  }
  return std::nullopt;
}

// Returns the rank's task of a communication. A task that the source holds back waits for others of its rank,
// so the first of these stands for it.
std::optional<ActiveTask> SourceJob::task_or_first(RankId rank, std::uint64_t communication) const {
  const std::optional<std::uint32_t> slot = slot_of(rank, communication);
  return slot && !ranks_[rank].halted ? ActiveTask{rank, *slot} : first_task(rank, kNoIndex);
}

// Returns the earliest task of the rank in its program that is not `besides`. A halted rank has none.
std::optional<ActiveTask> SourceJob::first_task(RankId rank, std::uint32_t besides) const {
  std::optional<ActiveTask> first;
  if (ranks_[rank].halted) return first;
  const std::vector<Active>& all = set_of(rank).active;
  const auto id = [&all](std::uint32_t slot) -> std::uint32_t { return all[slot].task.id; };
  for (const std::uint32_t slot : ranks_[rank].active) {
    if (slot != besides && (!first || id(slot) < id(first->second))) first = ActiveTask{rank, slot};
  }
  return first;
}

bool SourceJob::has_slot(const std::vector<Pending>& all, std::uint32_t slot) {
  return std::any_of(all.begin(), all.end(), [slot](const Pending& pending) { return pending.has(slot); });
}

// Returns whether a task scheduler has not launched all parts of the task.
bool SourceJob::is_held(RankId rank, std::uint32_t slot) const {
  const RankSchedule& schedule = ranks_[rank].schedule;
  return has_slot(schedule.incomplete, slot) || has_slot(schedule.held, slot) ||
         has_slot(schedule.pending, slot);
}

}  // namespace netsim::source_job
