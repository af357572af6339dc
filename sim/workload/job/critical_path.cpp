#include "sim/workload/job/critical_path.h"

#include <algorithm>

#include "sim/collectives/execution/transfer_record.h"
#include "sim/core/errors.h"
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
    case PathStep::Kind::communication:
      return "communication";
    case PathStep::Kind::held:
      return "held";
  }
  return "?";
}

std::uint32_t CriticalPath::Links::add(const PathStep& step, std::uint32_t before) {
  hold(before);
  if (free_.empty()) {
    links_.push_back({step, before, 0});
    return static_cast<std::uint32_t>(links_.size() - 1);
  }
  const std::uint32_t link = free_.back();
  free_.pop_back();
  links_[link] = {step, before, 0};
  return link;
}

// With all before it that nothing else holds.
void CriticalPath::Links::release(std::uint32_t link) {
  while (link != kNone && --links_[link].holders == 0) {
    free_.push_back(link);
    link = links_[link].before;
  }
}

CriticalPath::CriticalPath(const std::vector<std::uint32_t>& gpus) : gpus_(gpus), ranks_(gpus.size()) {
  for (std::uint32_t rank = 0; rank < gpus.size(); ++rank) rank_of_gpu_[gpus[rank]] = rank;
}

void CriticalPath::open(Time begin) { begin_ = begin; }

void CriticalPath::replace(std::uint32_t& place, std::uint32_t chain) {
  steps_.hold(chain);
  steps_.release(place);
  place = chain;
}

std::uint32_t CriticalPath::extend(std::uint32_t chain, const PathStep& step, PathStep::Kind gap) {
  const Time since = chain != kNone ? steps_[chain].step.end : begin_;
  if (since < step.begin) {
    PathStep before = gap == PathStep::Kind::held ? PathStep() : step;
    before.kind = gap;
    before.rank = step.rank;
    before.source = before.destination = PathStep::kNoGpu;
    before.begin = since;
    before.end = step.begin;
    chain = steps_.add(before, chain);
  }
  if (step.begin == step.end) return chain;
  return steps_.add(step, chain);
}

void CriticalPath::begins(const JobRecord& record) {
  Rank& rank = ranks_[record.rank];
  const std::uint32_t by = record.cause == JobRecord::Cause::task_ended ? rank.last : kNone;
  steps_.hold(by);
  PathStep step;
  step.rank = record.rank;
  step.task = record.task.id;
  step.name = record.task.name;
  step.stream = record.task.stream;
  step.id = record.communication;
  if (record.task.kind == TaskKind::collective) step.collective = record.task.collective;
  step.kind = record.task.kind == TaskKind::compute ? PathStep::Kind::compute : PathStep::Kind::communication;
  rank.running.push_back({record.task.id, by, record.time, record.communication, step});
  if (record.task.kind == TaskKind::compute || record.task.kind == TaskKind::receive) return;
  // The last member of a collective, the sender of a message.
  Meeting& meeting = meetings_[record.communication];
  replace(meeting.released_by, by);
  meeting.begin = record.time;
}

// ---- Messages

const CriticalPath::Running* CriticalPath::member(std::uint32_t gpu, std::uint64_t communication) const {
  const auto rank = rank_of_gpu_.find(gpu);
  if (rank == rank_of_gpu_.end()) return nullptr;
  for (const Running& running : ranks_[rank->second].running) {
    if (running.communication == communication && running.step.kind != PathStep::Kind::compute)
      return &running;
  }
  return nullptr;
}

// Of a thread block that has not gone on yet: what let its rank enter.
std::uint32_t CriticalPath::chain_of(Meeting& meeting, std::uint32_t gpu, std::uint32_t block,
                                     std::uint64_t communication) {
  const auto known = meeting.blocks.find({gpu, block});
  if (known != meeting.blocks.end()) return known->second;
  const Running* running = member(gpu, communication);
  return running != nullptr ? running->released_by : kNone;
}

void CriticalPath::go_on(Meeting& meeting, const TransferRecord& record, std::uint32_t chain) {
  const auto [known, fresh] = meeting.blocks.try_emplace({record.gpu, record.block}, kNone);
  replace(known->second, chain);
  meeting.went_on[record.gpu] = record.block;
}

// The message's chain, up to now.
std::uint32_t CriticalPath::carried(const Sent& sent, const TransferRecord& record, const PathStep& like,
                                    PathStep::Kind kind, std::uint32_t source, std::uint32_t destination) {
  PathStep step = like;
  step.kind = kind;
  step.source = source;
  step.destination = destination;
  step.begin = sent.posted + sent.launch;
  step.end = record.time;
  return extend(sent.chain, step, PathStep::Kind::launch);
}

// What is delivered and acknowledged is over.
void CriticalPath::drop_front(Lane& lane) {
  while (lane.delivered > 0 && lane.acknowledged > 0) {
    steps_.release(lane.sent.front().chain);
    lane.sent.pop_front();
    --lane.delivered;
    --lane.acknowledged;
  }
}

void CriticalPath::moved(const TransferRecord& record) {
  using Kind = TransferRecord::Kind;
  const auto found = meetings_.find(record.communication);
  if (found == meetings_.end()) return;  // all members have ended: late acknowledgements
  Meeting& meeting = found->second;
  if (record.kind == Kind::followed) {
    go_on(meeting, record, chain_of(meeting, record.gpu, record.peer, record.communication));
    return;
  }
  const bool from_here = record.kind != Kind::delivered;
  const std::uint32_t source = from_here ? record.gpu : record.peer,
                      destination = from_here ? record.peer : record.gpu;
  Lane& lane = meeting.lanes[{source, destination, record.block}];
  if (record.kind == Kind::posted) {
    const std::uint32_t chain = chain_of(meeting, record.gpu, record.block, record.communication);
    steps_.hold(chain);
    lane.sent.push_back({chain, record.time, record.launch});
    return;
  }
  std::size_t& done = record.kind == Kind::delivered ? lane.delivered : lane.acknowledged;
  NETSIM_CHECK(done < lane.sent.size(), "a message arrives that was not sent");
  const Running* here = member(record.gpu, record.communication);
  if (record.went_on && here != nullptr) {
    const PathStep::Kind kind =
        record.kind == Kind::delivered ? PathStep::Kind::transfer : PathStep::Kind::acknowledgement;
    go_on(meeting, record, carried(lane.sent[done], record, here->step, kind, source, destination));
  }
  ++done;
  drop_front(lane);
}

CriticalPath::Running CriticalPath::take_running(const JobRecord& record) {
  std::vector<Running>& all = ranks_[record.rank].running;
  const auto at = std::find_if(all.begin(), all.end(),
                               [&](const Running& running) { return running.task == record.task.id; });
  NETSIM_CHECK(at != all.end(), "a task ends that did not begin");
  const Running running = *at;
  *at = all.back();
  all.pop_back();
  return running;
}

// A receiver that came after the message waited for nobody.
void CriticalPath::ends(const JobRecord& record, Time end) {
  const Running running = take_running(record);
  PathStep step = running.step;
  step.begin = running.begin;
  step.end = record.time;
  std::uint32_t released_by = running.released_by;
  const auto meeting = meetings_.find(record.communication);
  if (step.kind == PathStep::Kind::communication && meeting != meetings_.end() &&
      running.begin < record.time) {
    const std::uint32_t gpu = gpus_[record.rank];
    const auto went_on = meeting->second.went_on.find(gpu);
    if (went_on != meeting->second.went_on.end()) {
      released_by = meeting->second.blocks.at({gpu, went_on->second});
      step.begin = released_by != kNone ? steps_[released_by].step.end : begin_;
    } else if (meeting->second.lanes.empty()) {
      released_by = meeting->second.released_by;
      step.begin = meeting->second.begin;
    }
  }
  const std::uint32_t chain = extend(released_by, step);
  replace(ranks_[record.rank].last, chain);
  steps_.release(running.released_by);
  note_tip(record.task.iteration, chain, end);
}

void CriticalPath::note_tip(std::size_t iteration, std::uint32_t chain, Time end) {
  if (tips_.size() <= iteration) tips_.resize(iteration + 1);
  Tip& tip = tips_[iteration];
  if (tip.chain != kNone && end <= tip.end) return;
  tip.end = end;
  replace(tip.chain, chain);
}

void CriticalPath::over(std::uint64_t communication) {
  const auto meeting = meetings_.find(communication);
  if (meeting == meetings_.end()) return;
  steps_.release(meeting->second.released_by);
  for (const auto& [block, chain] : meeting->second.blocks) steps_.release(chain);
  for (const auto& [ends, lane] : meeting->second.lanes) {
    for (const Sent& sent : lane.sent) steps_.release(sent.chain);
  }
  meetings_.erase(meeting);
}

PathSummary CriticalPath::close_iteration(std::uint32_t iteration, Time begin, Time end,
                                          const Visitor& visit) {
  std::vector<PathStep> path;
  const std::uint32_t tip = iteration < tips_.size() ? tips_[iteration].chain : kNone;
  for (std::uint32_t link = tip; link != kNone && steps_[link].step.end > begin; link = steps_[link].before) {
    PathStep step = steps_[link].step;
    step.begin = std::max(step.begin, begin);
    step.end = std::min(step.end, end);
    if (step.begin < step.end) path.push_back(step);
  }
  std::reverse(path.begin(), path.end());
  PathSummary summary;
  summary.steps = path.size();
  for (const PathStep& step : path) {
    Time& sum = step.kind == PathStep::Kind::compute ? summary.compute
                : step.kind == PathStep::Kind::held
                    ? summary.held
                    : summary.communication[static_cast<std::size_t>(step.stream)];
    sum += step.end - step.begin;
    if (visit) visit(step);
  }
  if (iteration < tips_.size()) replace(tips_[iteration].chain, kNone);
  forget_before(begin);
  return summary;
}

// Cuts all chains behind the step in which `time` is.
void CriticalPath::forget_before(Time time) {
  const auto cut = [&](std::uint32_t link) {
    while (link != kNone && steps_[link].step.begin > time) link = steps_[link].before;
    if (link != kNone) replace(steps_[link].before, kNone);
  };
  for (const Rank& rank : ranks_) {
    cut(rank.last);
    for (const Running& running : rank.running) cut(running.released_by);
  }
  for (const Tip& tip : tips_) cut(tip.chain);
  for (const auto& [communication, meeting] : meetings_) {
    cut(meeting.released_by);
    for (const auto& [block, chain] : meeting.blocks) cut(chain);
    for (const auto& [ends, lane] : meeting.lanes) {
      for (const Sent& sent : lane.sent) cut(sent.chain);
    }
  }
}

}  // namespace netsim
