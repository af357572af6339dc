// Stall reports: a line for each wait of an unfinished rank. Called between events, when the statistics are
// as far as the run.
#include <fmt/format.h>

#include <algorithm>

#include "sim/jobs/source_job.h"

namespace netsim::source_job {

namespace {

// Returns "rank 3" or "ranks 3, 5, 7, 8 and 4 more".
std::string some_ranks(const std::vector<RankId>& ranks) {
  constexpr std::size_t kNamed = 4;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(ranks.size(), kNamed); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  return ranks.size() > kNamed ? text + fmt::format(" and {} more", ranks.size() - kNamed) : text;
}

}  // namespace

// Lists first a circle of waits, then the other running tasks, for which the others wait, then the first
// waiting task of each stream. A halted rank waits for nothing.
std::vector<std::string> SourceJob::waiting(std::size_t limit) const {
  const std::vector<ActiveTask> in_circle =
      plan_.scheduling == nullptr ? std::vector<ActiveTask>() : find_circle();
  std::vector<std::string> lines = lines_of(in_circle);
  if (lines.size() > limit) lines.resize(limit);
  for (RankId rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].halted) continue;
    for (const std::uint32_t slot : slots_in_order(rank)) {
      if (lines.size() == limit) return lines;
      if (std::find(in_circle.begin(), in_circle.end(), ActiveTask{rank, slot}) == in_circle.end())
        lines.push_back(describe(rank, slot));
    }
  }
  for (RankId rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].halted) continue;
    for (const Task& task : source().held_back(rank)) {
      if (lines.size() == limit) return lines;
      lines.push_back(task_label(source(), rank, task) +
                      " did not start: it waits for other tasks of its rank");
    }
  }
  return lines;
}

// Returns the slots of the rank's tasks, in the order of the program.
std::vector<std::uint32_t> SourceJob::slots_in_order(RankId rank) const {
  const std::vector<Active>& active = set_of(rank).active;
  std::vector<std::uint32_t> slots = ranks_[rank].active;
  std::sort(slots.begin(), slots.end(),
            [&](std::uint32_t a, std::uint32_t b) { return active[a].task.id < active[b].task.id; });
  return slots;
}

std::vector<Stall> SourceJob::stalls() const {
  std::vector<Stall> stalls;
  for (RankId rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].halted) continue;
    for (const std::uint32_t slot : slots_in_order(rank)) {
      const Active& active = set_of(rank).active[slot];
      const std::vector<RankId> peers = late_peers(active);
      if (peers.empty()) continue;
      stalls.push_back({number_, rank, peers.front(), static_cast<std::uint32_t>(peers.size()),
                        active.communication, active.task.name, active.posted});
    }
  }
  return stalls;
}

// Returns the ranks for which a launched communication waits.
std::vector<RankId> SourceJob::late_peers(const Active& active) const {
  if (active.state != Active::State::launched) return {};
  if (active.task.kind() == TaskKind::collective) return missing(active);
  if (!is_point_to_point(active.task) || statistics_.sender_began(active.communication)) return {};
  return {active.task.message().peer};
}

std::vector<std::string> SourceJob::circle() const {
  return plan_.scheduling == nullptr ? std::vector<std::string>() : lines_of(find_circle());
}

// Returns a line that says what is wrong, and one for each wait of the circle. A circle of one task stands
// for tasks of its rank that were not handed out.
std::vector<std::string> SourceJob::lines_of(const std::vector<ActiveTask>& circle) const {
  if (circle.empty()) return {};
  const bool agreed = plan_.scheduling->agreed;
  const std::string what = circle.size() == 1
                               ? "a task waits for others, which cannot begin before it has ended"
                               : fmt::format("tasks wait for one another in a circle of {}", circle.size());
  std::vector<std::string> lines;
  lines.push_back(fmt::format("under task scheduler '{}' with scheduling.order {} {}{}",
                              plan_.scheduling->name, agreed ? "agreed" : "local", what,
                              agreed ? "" : " (`order: agreed` gives all members of a group one order)"));
  for (std::size_t i = 0; i < circle.size(); ++i) {
    lines.push_back(
        fmt::format("{} of {}: {}", i + 1, circle.size(), describe(circle[i].first, circle[i].second)));
  }
  return lines;
}

std::string SourceJob::describe(RankId rank, std::uint32_t slot) const {
  const Active& active = set_of(rank).active[slot];
  const std::string name = task_label(source(), rank, active.task);
  if (active.state == Active::State::held_back) {
    return fmt::format("{} waits for its earliest start, {} s", name,
                       to_seconds(begin_ + active.task.not_before));
  }
  if (active.state == Active::State::pausing) return name + describe_pause(active);
  if (active.state == Active::State::ready) return name + " is ready: " + describe_held(rank, slot);
  if (plan_.scheduling != nullptr && is_held(rank, slot))
    return name + " is launched in part: " + describe_held(rank, slot);
  switch (active.task.kind()) {
    case TaskKind::compute:
    case TaskKind::host_compute:
    case TaskKind::host_thread:
      return fmt::format("{} runs until {} s", name, to_seconds(expected_end(active)));
    case TaskKind::collective:
      return name + describe_collective(active);
    case TaskKind::circuits:
      return name + describe_circuits(active);
    case TaskKind::copy_to_host:
    case TaskKind::copy_from_host:
      return name + " is in flight over PCIe";
    case TaskKind::send:
    case TaskKind::receive:
      break;
  }
  return name + describe_point_to_point(active);
}

// Returns why a task, or its next part, is not launched.
std::string SourceJob::describe_held(RankId rank, std::uint32_t slot) const {
  const Active& active = set_of(rank).active[slot];
  if (!is_scheduled(active.task)) return "it waits for earlier tasks of its stream";
  if (is_decided_here(active)) return describe_hold(rank, slot);
  const RankId decides = source().group(active.task.group()).front();
  const std::optional<std::uint64_t> next = decided_next(rank, active.task.group());
  if (!next) {
    return fmt::format("it waits for rank {}, whose task scheduler '{}' decides about its group", decides,
                       plan_.scheduling->name);
  }
  const std::optional<std::uint32_t> other = slot_of(rank, *next), there = slot_of(decides, *next);
  if (!other) {
    const std::string name =
        there ? "'" + source().name(set_of(decides).active[*there].task.name) + "'" : "a collective";
    return fmt::format("rank {} has decided that {}, which is not ready here, is launched first", decides,
                       name);
  }
  return fmt::format("rank {} has decided that task {} of its group is launched first", decides,
                     set_of(rank).active[*other].task.id);
}

// Returns why a task that is ready is not launched, where its own rank decides about it.
std::string SourceJob::describe_hold(RankId rank, std::uint32_t slot) const {
  const RankSchedule& schedule = ranks_[rank].schedule;
  const std::string& name = plan_.scheduling->name;
  if (has_slot(schedule.incomplete, slot)) return "it waits for the others that are launched with it";
  if (has_slot(schedule.held, slot)) {
    return fmt::format("task scheduler '{}' {}", name,
                       is_held_by_sequence(set_of(rank).active[slot])
                           ? "launches others of its sequence first"
                           : "holds it until another task ends");
  }
  const PartInFlight* part = holding_part(rank, set_of(rank).active[slot].task);
  if (part == nullptr) return fmt::format("task scheduler '{}' holds it", name);
  if (part->has(slot)) return describe_part(set_of(rank).active[slot]);
  return fmt::format("task scheduler '{}' holds it while task {} is in flight", name,
                     set_of(rank).active[part->slots.front()].task.id);
}

// Returns why the next part of a task is not launched while an earlier one is in flight.
std::string SourceJob::describe_part(const Active& active) const {
  const std::vector<RankId> ranks = has_group(active.task) ? missing(active) : std::vector<RankId>();
  const std::uint32_t number = active.parts_ended + 1;
  if (!ranks.empty())
    return fmt::format("part {} waits for {}, which did not launch it", number, some_ranks(ranks));
  return fmt::format("task scheduler '{}' holds the next part while part {} is in flight",
                     plan_.scheduling->name, number);
}

Time SourceJob::expected_end(const Active& active) const {
  for (const std::uint32_t slot : ranks_[active.rank].active) {
    if (&set_of(active.rank).active[slot] == &active)
      return run_.devices->expected_end(plan_.gpus[active.rank], number_, slot);
  }
  return active.start;
}

std::string SourceJob::describe_collective(const Active& active) const {
  const std::vector<RankId> ranks = missing(active);
  if (ranks.empty()) return fmt::format(" is in flight among {} ranks", active.group->places.size());
  return fmt::format(" waits for {}, which did not reach it", some_ranks(ranks));
}

std::string SourceJob::describe_circuits(const Active& active) const {
  const std::vector<RankId> ranks = missing(active);
  const std::size_t members = active.group->places.size();
  const std::string& circuits = source().circuits()[active.task.circuits().circuits].name;
  if (ranks.empty())
    return fmt::format(" waits for circuits '{}', asked for by all {} members", circuits, members);
  return fmt::format(" waits for circuits '{}', asked for by {} of {} members, not by {}", circuits,
                     members - ranks.size(), members, some_ranks(ranks));
}

std::string SourceJob::describe_pause(const Active& active) const {
  const std::vector<RankId> ranks = missing(active);
  if (ranks.empty()) {
    return fmt::format(" begins {} s after the last of its {} ranks has reached it",
                       to_seconds(active.task.collective().pause), active.group->places.size());
  }
  return fmt::format(" begins when all members have reached it, and waits for {}", some_ranks(ranks));
}

// Returns the members that have not launched the communication, in ascending order.
std::vector<RankId> SourceJob::missing(const Active& active) const {
  std::vector<RankId> ranks;
  for (const auto& [rank, index] : active.group->places) {
    if (!has_launched_part(rank, active)) ranks.push_back(rank);
  }
  return ranks;
}

// Returns whether the rank has launched the communication. Either it is running there, or the rank has
// launched more of the group's operations than come before it. With a task scheduler these may be others, so
// that only the end of its iteration tells.
bool SourceJob::has_reached(RankId rank, const Active& active) const {
  const std::vector<Active>& all = set_of(rank).active;
  for (const std::uint32_t slot : ranks_[rank].active) {
    if (all[slot].communication == active.communication && has_group(all[slot].task))
      return all[slot].state == Active::State::launched || all[slot].state == Active::State::pausing;
  }
  if (plan_.scheduling != nullptr) return source().open_iteration(rank) > active.task.iteration;
  const auto member = ranks_[rank].memberships.find(active.task.group());
  return member != ranks_[rank].memberships.end() && member->second.reached > active.task.sequence;
}

// Returns whether the rank has launched the part of the communication that ends next at `active`. A
// communication that is not cut is one part.
bool SourceJob::has_launched_part(RankId rank, const Active& active) const {
  const std::optional<std::uint32_t> slot = slot_of(rank, active.communication);
  if (rank == active.rank || !slot || !is_held(rank, *slot)) return has_reached(rank, active);
  const std::vector<Pending>& pending = ranks_[rank].schedule.pending;
  const auto found = std::find_if(pending.begin(), pending.end(),
                                  [&](const Pending& candidate) { return candidate.has(*slot); });
  return found != pending.end() && found->parts_launched > active.parts_ended;
}

std::string SourceJob::describe_point_to_point(const Active& active) const {
  const RankId peer = active.task.message().peer;
  const std::uint32_t tag = active.task.message().tag;
  if (!statistics_.sender_began(active.communication)) {
    return fmt::format(" waits for rank {}, which did not send it (tag {})", peer, tag);
  }
  const char* direction = active.task.kind() == TaskKind::send ? "to" : "from";
  return fmt::format(" is in flight {} rank {} (tag {})", direction, peer, tag);
}

}  // namespace netsim::source_job
