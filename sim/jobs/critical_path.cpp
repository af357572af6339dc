#include "sim/jobs/critical_path.h"

#include <algorithm>
#include <utility>

#include "sim/collectives/execution/transfer_record.h"
#include "sim/core/errors.h"
#include "sim/jobs/job_statistics.h"

namespace netsim {

const char* to_string(PathStep::Kind kind) {
  switch (kind) {
    case PathStep::Kind::compute:
      return "compute";
    case PathStep::Kind::launch:
      return "launch";
    case PathStep::Kind::transfer:
      return "transfer";
    case PathStep::Kind::acknowledgement:
      return "acknowledgement";
    case PathStep::Kind::circuits:
      return "circuits";
    case PathStep::Kind::communication:
      return "communication";
    case PathStep::Kind::held:
      return "held";
    case PathStep::Kind::scheduler:
      return "scheduler";
  }
  return "?";
}

void PathSummary::add(const PathStep& step) {
  ++steps;
  const Time duration = step.end - step.begin;
  switch (step.kind) {
    case PathStep::Kind::compute:
      compute += duration;
      return;
    case PathStep::Kind::held:
      held += duration;
      return;
    case PathStep::Kind::scheduler:
      held += duration;
      scheduler += duration;
      return;
    case PathStep::Kind::launch:
      launch += duration;
      break;
    case PathStep::Kind::transfer:
      propagation += step.propagation;
      transmission += step.transmission;
      queueing += step.queueing;
      paused += step.paused;
      at_sender += step.at_sender;
      break;
    case PathStep::Kind::acknowledgement:
      acknowledgement += duration;
      break;
    case PathStep::Kind::circuits:
      circuits += duration;
      break;
    case PathStep::Kind::communication:
      undivided += duration;
      break;
  }
  communication[static_cast<std::size_t>(step.stream)] += duration;
}

namespace {

// Returns the kind of the wait before a task that does not begin when its cause ended. Only a task scheduler
// lets a communication wait for anything but an earliest start.
PathStep::Kind kind_of_wait(const JobRecord& record) {
  const bool chosen =
      record.cause == JobRecord::Cause::task_ended || record.cause == JobRecord::Cause::decided;
  return chosen && is_communication(record.task) ? PathStep::Kind::scheduler : PathStep::Kind::held;
}

PathStep::Kind step_kind(TaskKind kind) {
  if (kind == TaskKind::compute) return PathStep::Kind::compute;
  return kind == TaskKind::circuits ? PathStep::Kind::circuits : PathStep::Kind::communication;
}

// Divides a transfer's time among these ports; the rest is the time at its sender.
void divide(PathStep& transfer, std::span<const PortDelay> ports) {
  transfer.transmission = transfer.queueing = transfer.paused = 0;
  for (const PortDelay& delay : ports) {
    transfer.transmission += delay.transmission;
    transfer.queueing += delay.queueing;
    transfer.paused += delay.paused;
  }
  transfer.at_sender = transfer.end - transfer.begin - transfer.propagation - transfer.transmission -
                       transfer.queueing - transfer.paused;
  transfer.ports = ports;
  NETSIM_CHECK(transfer.at_sender >= 0, "a message has waited longer than it took");
}

// Cuts the step to [begin, end]. A transfer loses waiting time first.
void cut(PathStep& step, std::vector<PortDelay>& ports, Time begin, Time end) {
  Time less = step.end - step.begin;
  step.begin = std::max(step.begin, begin);
  step.end = std::min(step.end, end);
  less -= step.end - step.begin;
  if (step.kind != PathStep::Kind::transfer || less == 0) return;
  const auto take = [&less](Time& part) {
    const Time taken = std::min(part, less);
    part -= taken;
    less -= taken;
  };
  take(step.at_sender);
  for (PortDelay& delay : ports) take(delay.queueing);
  for (PortDelay& delay : ports) take(delay.paused);
  for (PortDelay& delay : ports) take(delay.transmission);
  take(step.propagation);
  divide(step, ports);
}

}  // namespace

// ---- Chains

std::uint32_t CriticalPath::Links::add_task(const TaskCell& task) {
  const std::uint32_t index = tasks_.add(task);
  tasks_[index].holders = 1;
  return index;
}

std::uint32_t CriticalPath::Links::add(std::uint32_t before, const Link& step,
                                       std::span<const PortDelay> ports) {
  const std::uint32_t number = links_.add(step);
  ++used_;
  Link& link = links_[number];
  link.before = before;
  hold(before);
  ++tasks_[link.task].holders;
  if (ports.empty()) return number;
  link.transmission = ports.front().transmission;
  link.slowest = ports.front().port;
  for (const PortDelay& delay : ports) {
    if (delay.queueing > 0 || delay.paused > 0)
      link.waits = waits_.add({delay.queueing, delay.paused, delay.port, link.waits});
  }
  return number;
}

// Frees the link and all links before it that have no other holder.
void CriticalPath::Links::forget(std::uint32_t link) {
  do {
    const Link& over = links_[link];
    for (std::uint32_t wait = over.waits; wait != kNoIndex; wait = waits_[wait].before) waits_.release(wait);
    release_task(over.task);
    links_.release(link);
    --used_;
    link = over.before;
  } while (link != kNoIndex && --links_[link].holders == 0);
}

void CriticalPath::Links::forget_before(Time time) {
  for (std::uint32_t number = 0; number < links_.size(); ++number) {
    Link& link = links_[number];
    if (link.holders > 0 && link.before != kNoIndex && links_[link.before].end <= time)
      release(std::exchange(link.before, kNoIndex));
  }
}

// Lists the ports with the slowest first, as they were given to add().
void CriticalPath::Links::ports_of(std::uint32_t number, std::vector<PortDelay>& ports) const {
  const Link& link = links_[number];
  ports.clear();
  for (std::uint32_t wait = link.waits; wait != kNoIndex; wait = waits_[wait].before)
    ports.push_back({waits_[wait].port, 0, waits_[wait].queueing, waits_[wait].paused});
  if (link.slowest != kNoId && (ports.empty() || ports.back().port != link.slowest))
    ports.push_back({link.slowest, 0, 0, 0});
  std::reverse(ports.begin(), ports.end());
  if (link.slowest != kNoId) ports.front().transmission = link.transmission;
}

CriticalPath::CriticalPath(const std::vector<GpuId>& gpus) : ranks_(gpus.size()) { move(gpus); }

void CriticalPath::move(const std::vector<GpuId>& gpus) {
  rank_of_gpu_.clear();
  for (RankId rank = 0; rank < gpus.size(); ++rank) {
    if (rank_of_gpu_.size() <= gpus[rank]) rank_of_gpu_.resize(gpus[rank] + std::size_t{1}, kNoIndex);
    rank_of_gpu_[gpus[rank]] = rank;
  }
}

void CriticalPath::open(Time begin) { begin_ = begin; }

void CriticalPath::replace(std::uint32_t& place, std::uint32_t chain) {
  steps_.hold(chain);
  steps_.release(place);
  place = chain;
}

std::uint32_t CriticalPath::extend(std::uint32_t chain, const Link& step, std::span<const PortDelay> ports) {
  return end_of(chain) < step.end ? steps_.add(chain, step, ports) : chain;
}

PathStep CriticalPath::step_of(std::uint32_t number) const {
  const Link& link = steps_[number];
  const TaskCell& task = steps_.task(link.task);
  PathStep step;
  step.kind = link.kind;
  step.stream = task.stream;
  step.collective = task.collective;
  step.rank = task.rank;
  step.task = task.task;
  step.name = task.name;
  step.id = task.id;
  step.begin = link.begin;
  step.end = link.end;
  step.source = link.source;
  step.destination = link.destination;
  step.propagation = link.propagation;
  return step;
}

// The gap before a message is the library's overhead. Before any other step nothing ran. A gap that a task
// scheduler caused names the communication that it held.
PathStep CriticalPath::gap_of(std::uint32_t number) const {
  const Link& link = steps_[number];
  PathStep gap;
  if (link.kind == PathStep::Kind::scheduler) gap = step_of(number);
  if (link.source != kNoIndex) {
    gap = step_of(number);
    gap.kind = PathStep::Kind::launch;
    gap.source = gap.destination = kNoIndex;
    gap.propagation = 0;
  }
  gap.rank = steps_.task(link.task).rank;
  gap.begin = end_of(link.before);
  gap.end = link.begin;
  return gap;
}

// ---- Tasks

void CriticalPath::begins(const JobRecord& record) {
  const Task& task = record.task;
  Rank& rank = ranks_[record.rank];
  TaskCell cell{record.communication, record.rank, task.id, task.name, 0, task.stream, {}};
  cell.collective =
      task.kind() == TaskKind::collective ? task.collective().collective : CollectiveKind::point_to_point;
  Running running;
  running.communication = record.operation;
  running.task = steps_.add_task(cell);
  running.begin = record.time;
  running.kind = step_kind(task.kind());
  Link since;
  since.begin = since.end = record.time;
  since.task = running.task;
  since.kind = kind_of_wait(record);
  running.released_by = extend(cause_of(record), since);
  steps_.hold(running.released_by);
  if (running.kind != PathStep::Kind::compute) {
    Communication& communication = communications_[record.operation];
    communication.ranks.push_back(record.rank);
    if (running.kind == PathStep::Kind::circuits) replace(communication.asked, running.released_by);
  }
  rank.running.push_back(std::move(running));
}

// Returns the chain that the begin of a task continues. A decision continues the chain by which the rank that
// decided has launched the same operation itself.
std::uint32_t CriticalPath::cause_of(const JobRecord& record) {
  if (record.cause == JobRecord::Cause::task_ended) return ranks_[record.rank].last;
  if (record.cause == JobRecord::Cause::decided)
    return member(record.decided_by, record.operation).released_by;
  return kNoIndex;
}

// Continues a member's chain from the request of the member that asked last. All members have asked when the
// first one ends.
void CriticalPath::continue_from_last_request(Running& member) {
  replace(member.released_by, communications_[member.communication].asked);
  member.begin = end_of(member.released_by);
}

CriticalPath::Running& CriticalPath::running(const JobRecord& record) {
  std::vector<Running>& all = ranks_[record.rank].running;
  const auto at = std::find_if(all.begin(), all.end(), [&](const Running& running) {
    return !running.ended && running.communication == record.operation &&
           steps_.task(running.task).task == record.task.id;
  });
  NETSIM_CHECK(at != all.end(), "a task ends that did not begin");
  return *at;
}

// A receiver that came after the message has waited for no other rank.
void CriticalPath::ends(const JobRecord& record, Time end) {
  Running& over = running(record);
  if (over.kind == PathStep::Kind::circuits) continue_from_last_request(over);
  Link step;
  step.begin = over.begin;
  step.end = record.time;
  step.task = over.task;
  step.kind = over.kind;
  std::uint32_t released_by = over.released_by;
  if (!over.releases.empty() && over.begin < record.time) {
    released_by = over.releases.back();
    step.begin = end_of(released_by);
    // After the last message the library only copies it out of its buffer.
    if (step.kind == PathStep::Kind::communication) step.kind = PathStep::Kind::launch;
  }
  const std::uint32_t chain = extend(released_by, step);
  replace(ranks_[record.rank].last, chain);
  note_tip(record.task.iteration, chain, end);
  steps_.release_task(over.task);
  over.ended = true;
  if (over.kind == PathStep::Kind::compute) forget(record.rank, over);
}

void CriticalPath::is_over(std::uint64_t id) {
  const auto at = communications_.find(id);
  for (const RankId rank : at->second.ranks) forget(rank, member(rank, id));
  steps_.release(at->second.asked);
  communications_.erase(at);
}

void CriticalPath::forget(RankId rank, Running& over) {
  constexpr std::size_t kAhead = 8;
  for (std::size_t i = over.releases.size(); i-- > 0;) {
    if (i >= kAhead) steps_.prefetch(over.releases[i - kAhead]);
    steps_.release(over.releases[i]);
  }
  steps_.release(over.released_by);
  std::vector<Running>& all = ranks_[rank].running;
  if (&over != &all.back()) over = std::move(all.back());
  all.pop_back();
}

// ---- Releases

// Returns the rank's part in a communication that is not over.
CriticalPath::Running& CriticalPath::member(RankId rank, std::uint64_t communication) {
  std::vector<Running>& all = ranks_[rank].running;
  const auto at = std::find_if(all.begin(), all.end(), [&](const Running& running) {
    return running.communication == communication && running.kind != PathStep::Kind::compute;
  });
  NETSIM_CHECK(at != all.end(), "a release of a communication that the rank has no part in");
  return *at;
}

// Adds a release: the chain by which the message was sent, extended by the message, up to now.
void CriticalPath::released(const TransferRecord& record, std::span<const PortDelay> ports) {
  const bool delivered = record.kind == TransferRecord::Kind::delivered;
  Link step;
  step.source = delivered ? record.peer : record.gpu;
  step.destination = delivered ? record.gpu : record.peer;
  Running& here = member(rank_of_gpu_[record.gpu], record.communication);
  const Running& sender = delivered ? member(rank_of_gpu_[record.peer], record.communication) : here;
  const std::uint32_t chain = sender.chain(record.sent_by);
  step.kind = delivered ? PathStep::Kind::transfer : PathStep::Kind::acknowledgement;
  step.propagation = record.propagation;
  step.task = here.task;
  step.begin = (record.sent_by == 0 ? sender.begin : end_of(chain)) + record.launch;
  step.end = record.time;
  const std::uint32_t longer = extend(chain, step, ports);
  steps_.hold(longer);
  here.releases.push_back(longer);
}

// ---- Iterations

void CriticalPath::note_tip(std::size_t iteration, std::uint32_t chain, Time end) {
  if (tips_.size() <= iteration) tips_.resize(iteration + 1);
  Tip& tip = tips_[iteration];
  if (tip.chain != kNoIndex && end <= tip.end) return;
  tip.end = end;
  replace(tip.chain, chain);
}

PathSummary CriticalPath::close_iteration(std::uint32_t iteration, Time begin, Time end,
                                          const Visitor& visit) {
  std::vector<std::uint32_t> path;
  const std::uint32_t tip = iteration < tips_.size() ? tips_[iteration].chain : kNoIndex;
  for (std::uint32_t link = tip; link != kNoIndex && steps_[link].end > begin; link = steps_[link].before)
    path.push_back(link);
  PathSummary summary;
  std::vector<PortDelay> ports;
  const auto take = [&](PathStep step) {
    cut(step, ports, begin, end);
    if (step.begin >= step.end) return;
    summary.add(step);
    if (visit) visit(step);
  };
  for (auto link = path.rbegin(); link != path.rend(); ++link) {
    take(gap_of(*link));
    PathStep step = step_of(*link);
    if (step.kind == PathStep::Kind::transfer) {
      steps_.ports_of(*link, ports);
      divide(step, ports);
    }
    take(step);
  }
  if (iteration < tips_.size()) replace(tips_[iteration].chain, kNoIndex);
  steps_.forget_before(begin);
  return summary;
}

}  // namespace netsim
