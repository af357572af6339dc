#include "sim/scheduling/job/cassini_alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace netsim {
namespace {

// A delay costs an iteration's part once, so it must raise the score by more than rounding does.
constexpr double kWorthDelay = 0.005;

BitRate peak_of(const PeriodicDemand& demand) {
  BitRate peak = 0;
  for (const DemandArc& arc : demand.arcs) peak = std::max(peak, arc.rate);
  return peak;
}

// Lets each phase begin earlier by this part of the iteration time, but not before the end of another one.
void begin_earlier(PeriodicDemand& demand, double margin) {
  const auto by = static_cast<Time>(margin * static_cast<double>(demand.iteration));
  Time last = 0;
  for (DemandArc& arc : demand.arcs) {
    arc.begin = std::max(last, arc.begin - by);
    last = arc.end;
  }
}

// Returns whether several jobs share the link and may exceed its capacity.
bool can_congest(const SharedLink& link) {
  BitRate sum = 0;
  for (const PeriodicDemand& demand : link.demands) sum += peak_of(demand);
  return link.demands.size() > 1 && sum > link.capacity;
}

std::vector<JobId> jobs_of(const SharedLink& link) {
  std::vector<JobId> jobs;
  for (const PeriodicDemand& demand : link.demands) jobs.push_back(demand.job);
  return jobs;
}

const JobState& state_of(JobId job, std::span<const JobState> jobs) {
  return *std::find_if(jobs.begin(), jobs.end(), [&](const JobState& state) { return state.job == job; });
}

// Returns whether the begin of the job's present iteration is known.
bool is_in_iteration(const JobState& job) {
  return job.phase == JobState::Phase::running || job.phase == JobState::Phase::pausing;
}

Time wrapped(Time time, Time around) { return (time % around + around) % around; }

}  // namespace

std::vector<SharedLink> shared_links(std::vector<JobOnLinks> jobs, const AlignmentSettings& settings) {
  std::sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) { return a.job < b.job; });
  std::map<PortId, SharedLink> by_port;
  for (const JobOnLinks& job : jobs) {
    for (const LinkPhases& on_link : job.phases->links) {
      SharedLink& link = by_port[on_link.port];
      link.capacity = on_link.capacity;
      link.demands.push_back({job.job, job.phases->iteration, on_link.arcs});
      begin_earlier(link.demands.back(), settings.margin);
    }
  }
  std::map<std::vector<JobId>, std::pair<double, SharedLink>> by_jobs;
  for (auto& [port, link] : by_port) {
    if (!can_congest(link)) continue;
    const double score = compatibility_score(link, {}, settings.search);
    const auto [entry, added] = by_jobs.try_emplace(jobs_of(link), score, link);
    if (!added && score < entry->second.first) entry->second = {score, link};
  }
  std::vector<SharedLink> links;
  links.reserve(by_jobs.size());
  for (auto& [set, scored] : by_jobs) links.push_back(std::move(scored.second));
  return links;
}

bool CassiniAlignment::Group::has(JobId job) const {
  return std::any_of(links.begin(), links.end(), [&](const SharedLink& link) {
    return std::any_of(link.demands.begin(), link.demands.end(),
                       [&](const PeriodicDemand& demand) { return demand.job == job; });
  });
}

void CassiniAlignment::align(Time now, Jobs jobs, JobDecisions& decisions) {
  std::vector<JobOnLinks> known;
  for (const JobState& job : jobs)
    if (!job.waits() && job.phases != nullptr) known.push_back({job.job, job.phases});
  if (std::vector<SharedLink> links = shared_links(known, settings_); links != links_) {
    links_ = std::move(links);
    find_groups(jobs);
  }
  for (const Group& group : groups_) align(group, now, jobs, decisions);
}

// Divides the links into groups that have no jobs in common.
void CassiniAlignment::find_groups(Jobs jobs) {
  groups_.clear();
  std::vector<std::vector<SharedLink>> parts;
  for (const SharedLink& link : links_) {
    std::vector<SharedLink> joined{link};
    for (auto part = parts.begin(); part != parts.end();) {
      const Group group{*part, {}, 0, 0, 0};
      const std::vector<JobId> own = jobs_of(link);
      if (std::any_of(own.begin(), own.end(), [&](JobId job) { return group.has(job); })) {
        joined.insert(joined.end(), part->begin(), part->end());
        part = parts.erase(part);
      } else {
        ++part;
      }
    }
    parts.push_back(std::move(joined));
  }
  for (std::vector<SharedLink>& part : parts) groups_.push_back(group_of(std::move(part), jobs));
}

CassiniAlignment::Group CassiniAlignment::group_of(std::vector<SharedLink> links, Jobs jobs) {
  Group group{std::move(links), {}, 0, 0, 0};
  std::vector<LinkRotations> rotations;
  for (const SharedLink& link : group.links) {
    rotations.push_back(best_rotations(link, settings_.search));
    group.score += rotations.back().score / static_cast<double>(group.links.size());
  }
  if (auto shifts = time_shifts(group.links, rotations)) {
    group.shifts = std::move(*shifts);
  } else {
    note_loop(group, jobs);
    return group;
  }
  Time longest = 0;
  for (const JobShift& shift : group.shifts) {
    const JobState& job = state_of(shift.job, jobs);
    if (job.phases->iteration <= longest) continue;
    longest = job.phases->iteration;
    group.anchor = job.job;
    group.since = job.iterations_done;
  }
  return group;
}

void CassiniAlignment::note_loop(const Group& group, Jobs jobs) {
  std::string names;
  for (const JobState& job : jobs)
    if (group.has(job.job)) names += fmt::format("{}'{}'", names.empty() ? "" : ", ", job.name);
  std::string note = fmt::format(
      "job scheduler 'cassini' did not shift the jobs {}: they share links in a loop, and such links may ask "
      "for different shifts of one job (another placement may avoid the loop)",
      names);
  if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(std::move(note));
}

// A job is off by the time from where it should have begun, seen from the anchor's last begin.
void CassiniAlignment::align(const Group& group, Time now, Jobs jobs, JobDecisions& decisions) const {
  const auto is_ready = [&](const JobShift& shift) { return is_in_iteration(state_of(shift.job, jobs)); };
  if (group.shifts.empty() || !std::all_of(group.shifts.begin(), group.shifts.end(), is_ready)) return;
  const JobState& anchor = state_of(group.anchor, jobs);
  const Time period = on_circle(anchor.phases->iteration);
  if (now - anchor.iteration_began > period)
    return;  // its next iteration should have begun; its begin gives the new origin
  const Time origin = anchor.iteration_began - period * (anchor.iterations_done - group.since);
  Time anchor_shift = 0;
  for (const JobShift& shift : group.shifts)
    if (shift.job == group.anchor) anchor_shift = shift.shift;
  std::vector<JobShift> delays;
  for (const JobShift& shift : group.shifts) {
    const JobState& job = state_of(shift.job, jobs);
    if (shift.job == group.anchor || job.phase != JobState::Phase::running) continue;
    const Time delay = realignment_delay(origin + shift.shift - anchor_shift, job.iteration_began,
                                         on_circle(job.phases->iteration), settings_.tolerance);
    if (delay > 0) delays.push_back({shift.job, delay});
  }
  if (delays.empty() || group.score - present_score(group, origin, jobs) < kWorthDelay) return;
  for (const JobShift& delay : delays) decisions.shift(delay.job, delay.shift);
}

// Returns the mean score of the links when all jobs go on as they began their present iterations.
double CassiniAlignment::present_score(const Group& group, Time origin, Jobs jobs) const {
  double sum = 0;
  for (const SharedLink& link : group.links) {
    std::vector<Time> offsets;
    for (const PeriodicDemand& demand : link.demands)
      offsets.push_back(
          wrapped(state_of(demand.job, jobs).iteration_began - origin, on_circle(demand.iteration)));
    sum += compatibility_score(link, offsets, settings_.search);
  }
  return sum / static_cast<double>(group.links.size());
}

// Returns the iteration time as the circle has it.
Time CassiniAlignment::on_circle(Time iteration) const {
  const Time resolution = settings_.search.resolution;
  return std::max<Time>(1, (iteration + resolution / 2) / resolution) * resolution;
}

}  // namespace netsim
