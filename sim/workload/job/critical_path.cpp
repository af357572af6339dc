#include "sim/workload/job/critical_path.h"

#include <algorithm>
#include <utility>

#include "sim/collectives/execution/transfer_record.h"
#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/workload/job/job_books.h"

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

PathStep::Kind kind_of(TaskKind kind) {
  if (kind == TaskKind::compute) return PathStep::Kind::compute;
  return kind == TaskKind::circuits ? PathStep::Kind::circuits : PathStep::Kind::communication;
}

// A transfer spent its time at these ports, and what is left at its sender.
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

// To what of the step is within [begin, end]; of a transfer, what it waited goes first.
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

std::size_t CriticalPath::Links::WayHash::operator()(const Way& way) const {
  std::uint64_t hash = static_cast<std::uint64_t>(way.source) << 32 | way.destination;
  hash = hash_combine(hash, static_cast<std::uint64_t>(way.propagation));
  return hash_combine(hash, static_cast<std::uint64_t>(way.transmission));
}

std::uint32_t CriticalPath::Links::hold_way(const Way& way) {
  if (way.source == kNoIndex) return kNoIndex;
  if (way.source >= last_way_.size()) last_way_.resize(way.source + std::size_t{1}, kNoIndex);
  std::uint32_t& last = last_way_[way.source];
  if (last != kNoIndex && ways_[last].holders > 0 && ways_[last].way == way) {
    ++ways_[last].holders;
    return last;
  }
  const auto [known, fresh] = way_numbers_.try_emplace(way, 0);
  if (fresh) known->second = ways_.add({way, 0});
  ++ways_[known->second].holders;
  last = known->second;
  return last;
}

void CriticalPath::Links::release_way(std::uint32_t way) {
  if (way == kNoIndex || --ways_[way].holders > 0) return;
  way_numbers_.erase(ways_[way].way);
  ways_.release(way);
}

std::uint32_t CriticalPath::Links::add(const Link& link, const Way& way, std::span<const PortDelay> ports) {
  const std::uint32_t index = links_.add(link);
  ++used_;
  hold(link.before);
  ++tasks_[link.task].holders;
  links_[index].way = hold_way(way);
  std::uint32_t& waits = links_[index].waits;
  for (const PortDelay& delay : ports) {
    if (delay.queueing > 0 || delay.paused > 0)
      waits = waits_.add({delay.queueing, delay.paused, delay.port, waits});
  }
  return index;
}

// With all before it that nothing else holds.
void CriticalPath::Links::forget(std::uint32_t link) {
  do {
    const Link& over = links_[link];
    for (std::uint32_t wait = over.waits; wait != kNoIndex; wait = waits_[wait].before) waits_.release(wait);
    release_task(over.task);
    release_way(over.way);
    links_.release(link);
    --used_;
    link = over.before;
  } while (link != kNoIndex && --links_[link].holders == 0);
}

// The slowest port is the first, as it was told.
void CriticalPath::Links::ports_of(std::uint32_t link, std::vector<PortDelay>& ports) const {
  const Way& way = ways_[links_[link].way].way;
  ports.clear();
  for (std::uint32_t wait = links_[link].waits; wait != kNoIndex; wait = waits_[wait].before)
    ports.push_back({waits_[wait].port, 0, waits_[wait].queueing, waits_[wait].paused});
  if (way.slowest != kNoId && (ports.empty() || ports.back().port != way.slowest))
    ports.push_back({way.slowest, 0, 0, 0});
  std::reverse(ports.begin(), ports.end());
  if (way.slowest != kNoId) ports.front().transmission = way.transmission;
}

CriticalPath::CriticalPath(const std::vector<std::uint32_t>& gpus) : ranks_(gpus.size()) {
  for (std::uint32_t rank = 0; rank < gpus.size(); ++rank) {
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

std::uint32_t CriticalPath::extend(std::uint32_t chain, Link step, const Way& way,
                                   std::span<const PortDelay> ports) {
  if (end_of(chain) >= step.end) return chain;
  step.before = chain;
  return steps_.add(step, way, ports);
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
  if (link.way == kNoIndex) return step;
  const Way& way = steps_.way(link.way);
  step.source = way.source;
  step.destination = way.destination;
  step.propagation = way.propagation;
  return step;
}

// Before a message: what the library costs. Before all else nothing ran.
PathStep CriticalPath::gap_of(std::uint32_t number) const {
  const Link& link = steps_[number];
  PathStep gap;
  if (link.way != kNoIndex) {
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

void CriticalPath::begins(const JobRecord& record) {
  const Task& task = record.task;
  Rank& rank = ranks_[record.rank];
  TaskCell cell{record.communication, record.rank, task.id, task.name, 0, task.stream, {}};
  cell.collective = task.kind == TaskKind::collective ? task.collective : CollectiveKind::point_to_point;
  Running running;
  running.task = steps_.add_task(cell);
  running.begin = record.time;
  running.kind = kind_of(task.kind);
  Link since;
  since.begin = since.end = record.time;
  since.task = running.task;
  running.released_by = extend(record.cause == JobRecord::Cause::task_ended ? rank.last : kNoIndex, since);
  steps_.hold(running.released_by);
  if (task.kind == TaskKind::circuits) ask(record.communication, running.released_by);
  rank.running.push_back(std::move(running));
}

// Who asks last is whom the others wait for.
void CriticalPath::ask(std::uint64_t circuits, std::uint32_t chain) {
  Asked& asked = asked_[circuits];
  ++asked.members;
  replace(asked.last, chain);
}

// A member's chain goes on from the last one's request; all have asked when the first one ends.
void CriticalPath::light(Running& member, std::uint64_t circuits) {
  const auto asked = asked_.find(circuits);
  replace(member.released_by, asked->second.last);
  member.begin = end_of(member.released_by);
  if (--asked->second.members > 0) return;
  steps_.release(asked->second.last);
  asked_.erase(asked);
}

// ---- Messages

// By number, with all before it that are not known yet.
CriticalPath::Sent& CriticalPath::Outgoing::add(std::uint64_t message) {
  if (first_ == end_) first_ = end_ = message;
  while (end_ < message) next() = Sent{};
  return next();
}

// The place of the one after the newest, which it is from now on.
CriticalPath::Sent& CriticalPath::Outgoing::next() {
  if (end_ - first_ == sent_.size()) grow();
  return place(end_++);
}

void CriticalPath::Outgoing::grow() {
  constexpr std::size_t kFew = 16;
  std::vector<Sent> more(std::max(kFew, 2 * sent_.size()));
  for (std::uint64_t message = first_; message < end_; ++message)
    more[message & (more.size() - 1)] = place(message);
  sent_ = std::move(more);
}

CriticalPath::Sent& CriticalPath::Outgoing::operator[](std::uint64_t message) {
  NETSIM_CHECK(message >= first_ && message < end_, "a message arrives that was not sent");
  return place(message);
}

void CriticalPath::Outgoing::forget_over() {
  while (first_ < end_ && place(first_).over()) ++first_;
}

// The rank's part in a communication; null: it has none now.
CriticalPath::Running* CriticalPath::member(std::uint32_t gpu, std::uint64_t communication) {
  for (Running& running : rank_of(gpu).running) {
    if (running.kind != PathStep::Kind::compute && steps_.task(running.task).id == communication)
      return &running;
  }
  return nullptr;
}

// Of a thread block that has not gone on yet: what let its rank enter.
std::uint32_t CriticalPath::chain_of(const Running* member, std::uint32_t block) {
  if (member == nullptr) return kNoIndex;
  return block < member->blocks.size() ? member->blocks[block] : member->released_by;
}

void CriticalPath::go_on(Running& member, std::uint32_t block, std::uint32_t chain) {
  steps_.hold(chain);  // it may be one of those
  while (member.blocks.size() <= block) {
    steps_.hold(member.released_by);
    member.blocks.push_back(member.released_by);
  }
  replace(member.blocks[block], chain);
  steps_.release(chain);
  member.went_on = block;
}

void CriticalPath::moved(const TransferRecord& record) {
  using Kind = TransferRecord::Kind;
  switch (record.kind) {
    case Kind::posted:
      post(record);
      return;
    case Kind::waited:
      waits_.push_back(record.delay);
      return;
    case Kind::delivered:
    case Kind::acknowledged:
      arrive(record);
      return;
    case Kind::followed:
      if (Running* here = member(record.gpu, record.communication); here != nullptr)
        go_on(*here, record.block, chain_of(here, record.peer));
      return;
  }
}

void CriticalPath::post(const TransferRecord& record) {
  const std::uint32_t chain = chain_of(member(record.gpu, record.communication), record.block);
  steps_.hold(chain);
  rank_of(record.gpu).outgoing.add(record.message) = {chain, false, !record.awaits_acknowledgement,
                                                      record.time, record.launch};
}

// The message, or its acknowledgement.
void CriticalPath::arrive(const TransferRecord& record) {
  const bool delivered = record.kind == TransferRecord::Kind::delivered;
  Outgoing& outgoing = rank_of(delivered ? record.peer : record.gpu).outgoing;
  Sent& sent = outgoing[record.message];
  Running* here = record.went_on ? member(record.gpu, record.communication) : nullptr;
  if (here != nullptr) go_on(*here, record.block, carried(sent, record, *here));
  waits_.clear();
  (delivered ? sent.delivered : sent.acknowledged) = true;
  if (!sent.over()) return;
  steps_.release(sent.chain);
  sent.chain = kNoIndex;
  outgoing.forget_over();
}

// The message's chain, up to now.
std::uint32_t CriticalPath::carried(const Sent& sent, const TransferRecord& record, const Running& here) {
  const bool delivered = record.kind == TransferRecord::Kind::delivered;
  Way way;
  way.source = delivered ? record.peer : record.gpu;
  way.destination = delivered ? record.gpu : record.peer;
  way.propagation = record.propagation;
  way.transmission = record.delay.transmission;
  way.slowest = record.delay.port;
  Link step;
  step.kind = delivered ? PathStep::Kind::transfer : PathStep::Kind::acknowledgement;
  step.task = here.task;
  step.begin = sent.posted + sent.launch;
  step.end = record.time;
  if (record.delay.port != kNoId) waits_.insert(waits_.begin(), record.delay);
  return extend(sent.chain, step, way, waits_);
}

// ---- Ends

CriticalPath::Running CriticalPath::take_running(const JobRecord& record) {
  std::vector<Running>& all = ranks_[record.rank].running;
  const auto at = std::find_if(all.begin(), all.end(), [&](const Running& running) {
    return steps_.task(running.task).task == record.task.id;
  });
  NETSIM_CHECK(at != all.end(), "a task ends that did not begin");
  std::swap(*at, all.back());
  Running running = std::move(all.back());
  all.pop_back();
  return running;
}

// A receiver that came after the message waited for nobody.
void CriticalPath::ends(const JobRecord& record, Time end) {
  Running running = take_running(record);
  if (running.kind == PathStep::Kind::circuits) light(running, record.communication);
  Link step;
  step.begin = running.begin;
  step.end = record.time;
  step.task = running.task;
  step.kind = running.kind;
  std::uint32_t released_by = running.released_by;
  if (running.went_on != kNoIndex && running.begin < record.time) {
    released_by = running.blocks[running.went_on];
    step.begin = end_of(released_by);
  }
  const std::uint32_t chain = extend(released_by, step);
  replace(ranks_[record.rank].last, chain);
  note_tip(record.task.iteration, chain, end);
  steps_.release(running.released_by);
  for (const std::uint32_t block : running.blocks) steps_.release(block);
  steps_.release_task(running.task);
}

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
  forget_before(begin);
  return summary;
}

// Cuts all chains behind the step in which `time` is, or before which it is.
void CriticalPath::forget_before(Time time) {
  const auto cut = [&](std::uint32_t link) {
    while (link != kNoIndex && end_of(steps_[link].before) > time) link = steps_[link].before;
    if (link != kNoIndex) steps_.cut_before(link);
  };
  for (const Rank& rank : ranks_) {
    cut(rank.last);
    for (const Running& running : rank.running) {
      cut(running.released_by);
      for (const std::uint32_t block : running.blocks) cut(block);
    }
    rank.outgoing.for_each([&](const Sent& sent) { cut(sent.chain); });
  }
  for (const Tip& tip : tips_) cut(tip.chain);
  for (const auto& [circuits, asked] : asked_) cut(asked.last);
}

}  // namespace netsim
