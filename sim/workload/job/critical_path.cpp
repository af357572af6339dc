#include "sim/workload/job/critical_path.h"

#include <algorithm>

#include "sim/core/errors.h"
#include "sim/workload/job/job_books.h"

namespace netsim {

const char* to_string(PathStep::Kind kind) {
  switch (kind) {
    case PathStep::Kind::compute:
      return "compute";
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

void CriticalPath::open(Time begin) { begin_ = begin; }

void CriticalPath::replace(std::uint32_t& place, std::uint32_t chain) {
  steps_.hold(chain);
  steps_.release(place);
  place = chain;
}

std::uint32_t CriticalPath::extend(std::uint32_t chain, const PathStep& step) {
  const Time since = chain != kNone ? steps_[chain].step.end : begin_;
  if (since < step.begin) {
    PathStep gap;
    gap.rank = step.rank;
    gap.begin = since;
    gap.end = step.begin;
    chain = steps_.add(gap, chain);
  }
  if (step.begin == step.end) return chain;
  return steps_.add(step, chain);
}

void CriticalPath::begins(const JobRecord& record) {
  Rank& rank = ranks_[record.rank];
  const std::uint32_t by = record.cause == JobRecord::Cause::task_ended ? rank.last : kNone;
  steps_.hold(by);
  rank.running.push_back({record.task.id, by, record.time});
  if (record.task.kind == TaskKind::compute || record.task.kind == TaskKind::receive) return;
  // The last member of a collective, the sender of a message.
  Meeting& meeting = meetings_[record.communication];
  replace(meeting.released_by, by);
  meeting.begin = record.time;
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
  PathStep step;
  step.rank = record.rank;
  step.task = record.task.id;
  step.name = record.task.name;
  step.stream = record.task.stream;
  step.begin = running.begin;
  step.end = record.time;
  std::uint32_t released_by = running.released_by;
  if (record.task.kind == TaskKind::compute) {
    step.kind = PathStep::Kind::compute;
  } else {
    step.kind = PathStep::Kind::communication;
    step.id = record.communication;
    if (record.task.kind == TaskKind::collective) step.collective = record.task.collective;
    const auto meeting = meetings_.find(record.communication);
    if (meeting != meetings_.end() && running.begin < record.time) {
      released_by = meeting->second.released_by;
      step.begin = meeting->second.begin;
    }
  }
  const std::uint32_t chain = extend(released_by, step);
  replace(ranks_[record.rank].last, chain);
  steps_.release(running.released_by);
  const std::size_t iteration = record.task.iteration;
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
                : step.kind == PathStep::Kind::communication
                    ? summary.communication[static_cast<std::size_t>(step.stream)]
                    : summary.held;
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
}

}  // namespace netsim
