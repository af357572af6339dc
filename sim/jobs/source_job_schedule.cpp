// From ready to launched where a task scheduler decides: candidates, decisions, parts and their ends.
#include <algorithm>
#include <utility>

#include "sim/jobs/communication_id.h"
#include "sim/jobs/source_job.h"
#include "sim/jobs/task_parts.h"
#include "sim/jobs/task_request.h"

namespace netsim::source_job {
namespace {

GroupId group_of(const Task& task) {
  return task.kind() == TaskKind::collective ? task.group() : GroupId(kNoIndex);
}

}  // namespace

// ---- From ready to candidate

// Adds a task that has become ready. Those that the scheduler does not choose are launched at once. The
// others of a grouped call wait until these are ready too.
void SourceJob::add_candidate(SetState& set, std::uint32_t slot) {
  const Active& active = set.active[slot];
  RankSchedule& schedule = ranks_[active.rank].schedule;
  const bool chosen = is_chosen_by_scheduler(active.task);
  Pending pending = pending_of(set, slot);
  if (!chosen) {
    schedule.at_once.push_back(slot);
    if (pending.wanted == 1) return;
    pending.leave_to_others();
  }
  if (pending.wanted == 1) return complete_candidate(set, schedule, std::move(pending));
  const auto others =
      std::find_if(schedule.incomplete.begin(), schedule.incomplete.end(), [&](const Pending& other) {
        return other.fused == pending.fused && other.bucket == pending.bucket && other.place == pending.place;
      });
  if (others == schedule.incomplete.end()) {
    schedule.incomplete.push_back(std::move(pending));
    return;
  }
  others->join(pending);
  if (others->arrived < others->wanted) return;
  Pending whole = std::move(*others);
  schedule.incomplete.erase(others);
  if (!whole.slots.empty()) complete_candidate(set, schedule, std::move(whole));
}

Pending SourceJob::pending_of(const SetState& set, std::uint32_t slot) const {
  const Active& active = set.active[slot];
  const Task& task = active.task;
  const LaunchTables& tables = plan_.scheduling->tables;
  Pending pending;
  pending.slots = {slot};
  pending.bytes = task.bytes();
  pending.order = tables.order(active.rank, task.id);
  if (task.together > 1) {
    pending.wanted = task.together;
    pending.bucket = task.queue;
    pending.place = task.place;
  } else if (const std::uint32_t bucket = tables.bucket(active.rank, task.id); bucket != kNoIndex) {
    pending.fused = true;
    pending.wanted = tables.bucket_size(bucket);
    pending.bucket = bucket;
    pending.place = task.iteration;
  }
  return pending;
}

// Adds a candidate all of whose tasks are ready, unless the plan holds it.
void SourceJob::complete_candidate(SetState& set, RankSchedule& schedule, Pending pending) {
  std::sort(pending.slots.begin(), pending.slots.end(), [&set](std::uint32_t a, std::uint32_t b) {
    return set.active[a].task.id < set.active[b].task.id;
  });
  const Task& first = set.active[pending.slots.front()].task;
  pending.ready = set.loop.now();
  pending.part = first.together > 1 ? pending.bytes : part_of(first, pending.bytes);
  if (is_held(set, pending)) {
    schedule.held.push_back(std::move(pending));
  } else {
    insert(set, schedule, std::move(pending));
  }
}

// Returns the size of the parts of a communication, which is `bytes` where it is not cut.
Bytes SourceJob::part_of(const Task& task, Bytes bytes) const { return part_size(scheduler(), task, bytes); }

// Returns whether the plan holds a candidate. Where another rank decides, that rank keeps the plan.
bool SourceJob::is_held(const SetState& set, const Pending& pending) const {
  const Active& first = set.active[pending.slots.front()];
  if (!is_decided_here(first)) return false;
  return is_held_by_sequence(first) ||
         std::any_of(pending.slots.begin(), pending.slots.end(),
                     [&](std::uint32_t slot) { return is_held_by_task(set.active[slot]); });
}

bool SourceJob::is_held_by_sequence(const Active& first) const {
  const LaunchTables::Turn turn = plan_.scheduling->tables.turn(first.rank, first.task.id);
  if (turn.sequence == kNoIndex) return false;
  const auto& turns = ranks_[first.rank].schedule.turns;
  const auto launched = turns.find(turn.sequence);
  return turn.number != (launched == turns.end() ? 0 : launched->second);
}

bool SourceJob::is_held_by_task(const Active& active) const {
  const LaunchTables& tables = plan_.scheduling->tables;
  const auto holds = tables.holds(active.rank, active.task.id);
  if (holds.empty()) return false;
  const auto& ended = ranks_[active.rank].schedule.ended;
  const std::uint64_t iteration = tables.iteration(active.rank, active.task.id);
  return std::any_of(holds.begin(), holds.end(), [&](std::uint32_t until) {
    const auto found = ended.find(until);
    return found == ended.end() || found->second <= iteration;
  });
}

// Makes candidates of the communications that nothing in the plan holds any longer.
void SourceJob::release_held(const SetState& set, RankSchedule& schedule) {
  for (std::size_t i = 0; i < schedule.held.size();) {
    if (is_held(set, schedule.held[i])) {
      ++i;
      continue;
    }
    Pending pending = std::move(schedule.held[i]);
    schedule.held.erase(schedule.held.begin() + static_cast<std::ptrdiff_t>(i));
    insert(set, schedule, std::move(pending));
  }
}

// A task of the rank has ended, which the plan may hold others for.
void SourceJob::note_end(const SetState& set, RankId rank, TaskId task) {
  const LaunchTables& tables = plan_.scheduling->tables;
  if (!tables.is_awaited(rank, task)) return;
  ++ranks_[rank].schedule.ended[tables.position(rank, task)];
  release_held(set, ranks_[rank].schedule);
}

void SourceJob::insert(const SetState& set, RankSchedule& schedule, Pending pending) {
  const auto id = [&set](const Pending& of) -> std::uint32_t { return set.active[of.slots.front()].task.id; };
  const auto behind = std::find_if(schedule.pending.begin(), schedule.pending.end(),
                                   [&](const Pending& other) { return id(other) > id(pending); });
  schedule.pending.insert(behind, std::move(pending));
}

// A communication is launched. The next one of its sequence becomes a candidate if it is ready.
void SourceJob::take_turn(const SetState& set, RankSchedule& schedule, const Active& active) {
  const LaunchTables::Turn turn = plan_.scheduling->tables.turn(active.rank, active.task.id);
  if (turn.sequence == kNoIndex) return;
  ++schedule.turns[turn.sequence];
  release_held(set, schedule);
}

// ---- Decisions

// Launches what may be launched at the rank now. Tasks that wait for no decision come first, then those that
// other ranks have decided, then those that the scheduler chooses.
void SourceJob::call_scheduler(SetState& set, RankId rank) {
  RankSchedule& schedule = ranks_[rank].schedule;
  if (ranks_[rank].halted || schedule.part_ends) return;
  std::vector<std::uint32_t> at_once = std::move(schedule.at_once);
  schedule.at_once.clear();
  for (const std::uint32_t slot : at_once) {
    if (set.active[slot].task.kind() == TaskKind::receive) {
      launch_all_parts(set, rank, slot, {});
    } else {
      launch(set, slot);
    }
  }
  while (follow_decisions(set, rank)) continue;
  while (!schedule.pending.empty()) {
    const Launch launch = ask_scheduler(set, rank);
    if (launch.candidate == Launch::kNothing) {
      if (launch.call_again != kNever) call_again(set, rank, launch.call_again);
      return;
    }
    count_launch(set, rank, launch.candidate);
    launch_part(set, rank, launch.candidate, launch);
  }
}

// Launches all parts of a receive, whose sender cuts the message into the same parts, or of a task of a
// grouped call.
void SourceJob::launch_all_parts(SetState& set, RankId rank, std::uint32_t slot, const Launch& launch) {
  Pending single;
  single.slots = {slot};
  single.bytes = set.active[slot].task.bytes();
  single.part = part_of(set.active[slot].task, single.bytes);
  while (single.left() > 0) {
    start_part(set, rank, single, launch);
    single.note_launch(launch.last_part);
  }
}

// Launches the first candidate that is next in the order that another rank has decided. Returns whether there
// was one.
bool SourceJob::follow_decisions(SetState& set, RankId rank) {
  RankSchedule& schedule = ranks_[rank].schedule;
  for (std::size_t i = 0; i < schedule.pending.size(); ++i) {
    const Active& active = set.active[schedule.pending[i].slots.front()];
    if (is_decided_here(active)) continue;
    const auto found = schedule.decisions.find(active.task.group());
    if (found == schedule.decisions.end() || found->second.empty()) continue;
    const ArrivedDecision next = found->second.front();
    if (next.decision.communication != active.communication) continue;
    found->second.pop_front();
    const bool after_decision = next.arrived > schedule.pending[i].ready;
    // A collective that is ahead of its place would not be ready without the decision.
    if (active.task.ahead && after_decision) schedule.pending[i].ready = next.arrived;
    const Launch launch{i, next.decision.priority, next.decision.traffic_class, kNever,
                        next.decision.last_part};
    const JobRecord::Cause cause = set.cause;
    if (after_decision) {
      set.cause = JobRecord::Cause::decided;
      set.decided_by = next.decision.by;
    }
    count_launch(set, rank, i);
    launch_part(set, rank, i, launch);
    set.cause = cause;
    set.decided_by = RankId::none();
    return true;
  }
  return false;
}

Launch SourceJob::ask_scheduler(SetState& set, RankId rank) {
  RankSchedule& schedule = ranks_[rank].schedule;
  set.candidates.clear();
  set.in_flight.clear();
  for (const Pending& pending : schedule.pending) set.candidates.push_back(candidate_of(set, pending));
  for (const PartInFlight& part : schedule.in_flight) {
    const Task& task = set.active[part.slots.front()].task;
    if (task.kind() != TaskKind::receive)
      set.in_flight.push_back({facts_of(task, part.whole), task.id, group_of(task), part.bytes,
                               plan_.scheduling->tables.links(rank, task.id)});
  }
  const RankView view{rank, set.loop.now(), set.in_flight, schedule.state};
  const Launch launch = scheduler().next(view, set.candidates);
  const auto may_be_launched = [&](const Launch& one) {
    return one.candidate < set.candidates.size() && set.candidates[one.candidate].decided_here &&
           (!one.last_part || set.candidates[one.candidate].last > 0);
  };
  NETSIM_CHECK(launch.candidate == Launch::kNothing || may_be_launched(launch),
               "task scheduler '" + plan_.scheduling->name + "' launches what it may not launch here");
  return launch;
}

Candidate SourceJob::candidate_of(const SetState& set, const Pending& pending) const {
  const Active& first = set.active[pending.slots.front()];
  Candidate candidate{facts_of(first.task, pending.bytes)};
  candidate.task = first.task.id;
  candidate.iteration = first.task.iteration;
  candidate.order = pending.order;
  candidate.group = group_of(first.task);
  candidate.left = pending.left();
  candidate.next = pending.next();
  candidate.last = pending.last();
  candidate.ready = pending.ready;
  candidate.decided_here = is_decided_here(first);
  candidate.links = plan_.scheduling->tables.links(first.rank, first.task.id);
  return candidate;
}

// Returns whether the rank decides when the communication is launched.
bool SourceJob::is_decided_here(const Active& active) const {
  return !is_agreed(*plan_.scheduling, active.task) ||
         source().group(active.task.group()).front() == active.rank;
}

void SourceJob::call_again(SetState& set, RankId rank, Time time) {
  RankSchedule& schedule = ranks_[rank].schedule;
  NETSIM_CHECK(time > set.loop.now(),
               "task scheduler '" + plan_.scheduling->name + "' asks to be called again in the past");
  if (schedule.call_again <= time) return;
  schedule.call_again = time;
  set.loop.schedule(time, ranks_[rank].origin, EventKind::job, first_rank_ + rank, kCallScheduler);
}

void SourceJob::count_launch(const SetState& set, RankId rank, std::size_t candidate) {
  RankSchedule& schedule = ranks_[rank].schedule;
  const Pending& pending = schedule.pending[candidate];
  const Active& active = set.active[pending.slots.front()];
  LaunchCounts& counts = schedule.counts[active.task.name];
  const auto first = schedule.pending.begin();
  const bool overtakes =
      std::any_of(first, first + static_cast<std::ptrdiff_t>(candidate), [&](const Pending& earlier) {
        return set.active[earlier.slots.front()].task.stream == active.task.stream;
      });
  counts.reordered += overtakes ? 1 : 0;
  if (pending.parts_launched > 0) return;
  counts.launches += pending.slots.size();
  counts.fused += pending.fused ? pending.slots.size() : 0;
  const Time held = set.loop.now() - pending.ready;
  if (held == 0) return;
  ++counts.held;
  (is_decided_here(active) ? counts.held_by_scheduler : counts.held_by_agreement) += held;
  counts.longest_held = std::max(counts.longest_held, held);
}

// Tells the other members of a collective that a part is launched.
void SourceJob::announce_launch(SetState& set, const Active& active, const Launch& launch) {
  if (!is_agreed(*plan_.scheduling, active.task)) return;
  if (active.group->gpus.size() < 2 || !is_decided_here(active)) return;
  RankState& rank = ranks_[active.rank];
  (*run_.announce_decision)(rank.set, set.loop.now() + plan_.scheduling->latency, rank.origin,
                            {number_, active.rank, active.task.group(), active.communication, launch.priority,
                             launch.traffic_class, launch.last_part});
}

// The decision has arrived at the other members. Each launches in an event of its own.
void SourceJob::decided(const LaunchDecision& decision) {
  if (ranks_.empty()) return;
  for (const RankId member : source().group(decision.group)) {
    if (member == decision.by || ranks_[member].halted) continue;
    EventLoop& loop = set_of(member).loop;
    ranks_[member].schedule.decisions[decision.group].push_back({decision, loop.now()});
    loop.schedule(loop.now(), ranks_[member].origin, EventKind::job, first_rank_ + member, kCallScheduler);
  }
}

void SourceJob::call_schedulers() {
  if (plan_.scheduling == nullptr) return;
  for (RankId rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].halted || ranks_[rank].schedule.pending.empty()) continue;
    EventLoop& loop = set_of(rank).loop;
    loop.schedule(loop.now(), ranks_[rank].origin, EventKind::job, first_rank_ + rank, kCallScheduler);
  }
}

// ---- Launches

// Launches the next part of a candidate, or its last one. The candidate is gone when all parts are launched.
void SourceJob::launch_part(SetState& set, RankId rank, std::size_t candidate, const Launch& launch) {
  RankSchedule& schedule = ranks_[rank].schedule;
  Pending& pending = schedule.pending[candidate];
  announce_launch(set, set.active[pending.slots.front()], launch);
  if (pending.wanted > 1 && !pending.fused) {
    const std::vector<std::uint32_t> slots = std::move(pending.slots);
    schedule.pending.erase(schedule.pending.begin() + static_cast<std::ptrdiff_t>(candidate));
    for (const std::uint32_t slot : slots) {
      launch_all_parts(set, rank, slot, launch);
      take_turn(set, schedule, set.active[slot]);
    }
    return;
  }
  const Active& first = set.active[pending.slots.front()];
  start_part(set, rank, pending, launch);
  const bool begins = pending.parts_launched == 0;
  pending.note_launch(launch.last_part);
  if (pending.left() == 0)
    schedule.pending.erase(schedule.pending.begin() + static_cast<std::ptrdiff_t>(candidate));
  if (begins) take_turn(set, schedule, first);
}

// Starts a part as an operation of the executor. Its records come first, because the statistics refuse
// members that disagree.
void SourceJob::start_part(SetState& set, RankId rank, const Pending& pending, const Launch& launch) {
  const bool first = pending.parts_launched == 0;
  const std::uint32_t parts = pending.parts(), slot = pending.slots.front();
  const std::uint64_t whole = set.active[slot].communication;
  const std::uint32_t number = launch.last_part ? parts - 1 : pending.next_number();
  const std::uint64_t operation = parts == 1 ? whole : part_id(whole, number);
  for (const std::uint32_t member : pending.slots) {
    Active& active = set.active[member];
    if (member == slot || first) {
      active.parts = member == slot ? parts : 1;
      if (first && active.task.kind() == TaskKind::collective) ++membership(active.rank, active.task).reached;
      tell_part_begins(set, member, member == slot ? operation : active.communication, first);
    }
  }
  const Active& active = set.active[slot];
  count_part(rank, active.task, first && parts > 1);
  CommunicationRequest part = request(active, members(set, slot), slot);
  part.bytes = launch.last_part ? pending.last() : pending.next();
  part.communication = operation;
  if (parts > 1) part.part = number;
  part.whole = whole;
  part.traits.priority = std::max(part.traits.priority, launch.priority);
  if (launch.traffic_class != 0) part.traits.traffic_class = launch.traffic_class;
  const GpuId gpu = plan_.gpus[rank];
  const std::uint32_t channels = run_.executor->start(gpu, part);
  ranks_[rank].schedule.in_flight.push_back({operation, pending.slots, pending.bytes, part.bytes, channels});
  if (runs_kernels(active.task)) run_.devices->communication_begins(gpu, active.task.stream, channels);
}

void SourceJob::count_part(RankId rank, const Task& task, bool cut) {
  if (task.kind() == TaskKind::receive) return;
  LaunchCounts& counts = ranks_[rank].schedule.counts[task.name];
  ++counts.parts;
  counts.cut += cut ? 1 : 0;
}

void SourceJob::tell_part_begins(SetState& set, std::uint32_t slot, std::uint64_t operation, bool first) {
  Active& active = set.active[slot];
  active.state = Active::State::launched;
  if (first) active.start = set.loop.now();
  JobRecord record = record_of(set, active, JobRecord::Kind::communication_begins);
  record.operation = operation;
  record.first_part = first;
  tell(record);
}

// ---- Ends

// The scheduler is called when all tasks of a bucket have ended, so that it sees everything that waited for
// one of them.
void SourceJob::part_done(SetState& set, RankId rank, const CommunicationRequest& request, Time started) {
  RankSchedule& schedule = ranks_[rank].schedule;
  std::vector<PartInFlight>& all = schedule.in_flight;
  const auto at = std::find_if(all.begin(), all.end(), [&](const PartInFlight& part) {
    return part.operation == request.communication;
  });
  if (at == all.end()) return end_communication(set, request.handle, started);
  const PartInFlight part = std::move(*at);
  all.erase(at);
  const Task& task = set.active[part.slots.front()].task;
  if (runs_kernels(task)) run_.devices->communication_ends(plan_.gpus[rank], task.stream, part.channels);
  set.cause = JobRecord::Cause::task_ended;
  schedule.part_ends = true;
  const bool last = set.active[part.slots.front()].parts_ended + 1 == set.active[part.slots.front()].parts;
  for (std::size_t i = 1; last && i < part.slots.size(); ++i) {
    complete(set, part.slots[i], JobRecord::Kind::communication_ends, set.active[part.slots[i]].start);
  }
  end_part(set, part.slots.front(), part, started);
  schedule.part_ends = false;
  call_scheduler(set, rank);
}

// Ends a part of the task in `slot`, and the task with its last part.
void SourceJob::end_part(SetState& set, std::uint32_t slot, const PartInFlight& part, Time started) {
  Active& active = set.active[slot];
  if (active.task.kind() == TaskKind::receive)
    active.start = active.parts_ended == 0 ? started : std::min(active.start, started);
  if (++active.parts_ended == active.parts) {
    complete(set, slot, JobRecord::Kind::communication_ends, active.start, part.operation);
    return;
  }
  JobRecord record = record_of(set, active, JobRecord::Kind::communication_ends);
  record.operation = part.operation;
  record.last_part = false;
  record.posted = active.posted;
  record.start = active.start;
  tell(record);
}

// The kernels of all parts in flight leave the GPU of a rank that is halted.
void SourceJob::drop_parts(RankId rank) {
  SetState& set = set_of(rank);
  for (const PartInFlight& part : ranks_[rank].schedule.in_flight) {
    const Task& task = set.active[part.slots.front()].task;
    if (runs_kernels(task)) run_.devices->communication_ends(plan_.gpus[rank], task.stream, part.channels);
  }
  ranks_[rank].schedule.in_flight.clear();
}

SchedulingSummary SourceJob::scheduling() const {
  SchedulingSummary sum;
  if (plan_.scheduling == nullptr) return sum;
  if (!released_.scheduler.empty()) return released_;
  sum.scheduler = plan_.scheduling->name;
  for (const RankState& rank : ranks_) {
    for (const auto& [name, counts] : rank.schedule.counts) {
      sum.add(counts);
      sum.by_name[source().name(name)].add(counts);
    }
  }
  return sum;
}

}  // namespace netsim::source_job
