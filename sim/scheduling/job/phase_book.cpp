#include "sim/scheduling/job/phase_book.h"

#include <algorithm>
#include <utility>

namespace netsim {
namespace {

// Returns the rate at which so many bytes take so long.
BitRate mean_rate(Bytes bytes, Time duration) {
  return static_cast<BitRate>(static_cast<Int128>(bytes) * 8 * kSecond / std::max<Time>(duration, 1));
}

using SpansByPort = std::map<PortId, std::vector<std::pair<Time, Time>>>;

SpansByPort spans_by_port(const std::vector<JobActivity>& activities) {
  SpansByPort spans;
  for (const JobActivity& activity : activities)
    for (const PortId port : activity.ports) spans[port].emplace_back(activity.begin, activity.end);
  return spans;
}

// Marks the busy times in which `from` to `to` lies.
void mark_met(Time from, Time to, const std::vector<BusyTime>& busy, std::vector<bool>& met) {
  for (std::size_t i = 0; i < busy.size(); ++i)
    if (from < busy[i].end && busy[i].begin < to) met[i] = true;
}

}  // namespace

void PhaseBook::give(JobId job, std::uint32_t ranks, Time iteration, std::vector<DemandArc> arcs) {
  KnownJob& known = jobs_[job];
  known.given = true;
  known.here.iteration = iteration;
  known.given_arcs = std::move(arcs);
  for (std::uint32_t rank = 0; rank < ranks && ranks > 1; ++rank)
    known.demands.push_back({rank, (rank + 1) % ranks, {}, {}});
}

const IterationPhases* PhaseBook::phases(JobId job) const {
  const auto known = jobs_.find(job);
  return known != jobs_.end() && !known->second.here.links.empty() ? &known->second.here : nullptr;
}

IterationPhases PhaseBook::phases_on(JobId job, std::span<const GpuId> gpus) const {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return {};
  const KnownJob& known = found->second;
  std::map<PortId, std::vector<DemandArc>> arcs;
  for (const RankDemand& demand : known.demands) {
    Message message;
    message.source = gpus[demand.from];
    message.destination = gpus[demand.to];
    message.traits = demand.traits;
    message.traits.job = job;
    for (const PortId port : recorder_.ports_of(message))
      if (recorder_.port_rates()[port] > 0) arcs[port].push_back(demand.arc);
  }
  IterationPhases phases{known.here.iteration, known.here.estimated, {}};
  for (const auto& [port, list] : arcs)
    phases.links.push_back({port, recorder_.port_rates()[port],
                            known.given ? known.given_arcs : joined_arcs(list, recorder_.resolution())});
  return phases;
}

void PhaseBook::place(JobId job, std::span<const GpuId> gpus) {
  if (const auto known = jobs_.find(job); known != jobs_.end()) known->second.here = phases_on(job, gpus);
}

void PhaseBook::measure(const std::vector<RunningJob>& running) {
  Time oldest = kNever;
  for (const RunningJob& job : running) {
    oldest = std::min(oldest, job.present);
    const auto known = jobs_.find(job.job);
    const bool is_known = known != jobs_.end() && (known->second.given || !known->second.here.estimated ||
                                                   known->second.measured == job.end);
    if (job.begin < job.end && !is_known) measure(job);
  }
  recorder_.forget(oldest);
}

void PhaseBook::measure(const RunningJob& job) {
  const std::vector<JobActivity> own = recorder_.activities(job.job, job.begin, job.end);
  std::vector<BusyTime> busy = busy_times(job, own);
  const bool met = shorten_met(busy, job, own);
  const auto [entry, is_first] = jobs_.try_emplace(job.job);
  KnownJob& known = entry->second;
  known.measured = job.end;
  if (met && !is_first) return;
  known.demands.clear();
  known.here.iteration = time_alone(job.end - job.begin, busy);
  known.here.estimated = met;
  std::map<GpuId, std::uint32_t> rank_of;
  for (std::uint32_t rank = 0; rank < job.gpus.size(); ++rank) rank_of[job.gpus[rank]] = rank;
  for (const JobActivity& activity : own) {
    const auto from = rank_of.find(activity.first.source), to = rank_of.find(activity.first.destination);
    const Time begin = time_alone(activity.begin - job.begin, busy),
               end = time_alone(activity.end - job.begin, busy);
    if (begin == end || from == rank_of.end() || to == rank_of.end()) continue;
    known.demands.push_back({from->second,
                             to->second,
                             activity.first.traits,
                             {begin, end, mean_rate(activity.bytes, end - begin)}});
  }
  known.here = phases_on(job.job, job.gpus);
}

// Returns the times in which the job communicates at all.
std::vector<BusyTime> PhaseBook::busy_times(const RunningJob& job,
                                            const std::vector<JobActivity>& own) const {
  std::vector<std::pair<Time, Time>> spans;
  spans.reserve(own.size());
  for (const JobActivity& activity : own)
    spans.emplace_back(activity.begin - job.begin, activity.end - job.begin);
  std::sort(spans.begin(), spans.end());
  std::vector<BusyTime> busy;
  for (const auto& [begin, end] : spans) {
    if (busy.empty() || begin >= busy.back().end + recorder_.resolution()) busy.push_back({begin, end, 0});
    busy.back().end = std::max(busy.back().end, end);
    busy.back().alone = busy.back().end - busy.back().begin;
  }
  return busy;
}

// Shortens the busy times in which the job met others on a link for longer than the resolution. Returns
// whether there are any.
bool PhaseBook::shorten_met(std::vector<BusyTime>& busy, const RunningJob& job,
                            const std::vector<JobActivity>& own) const {
  const SpansByPort spans = spans_by_port(own);
  std::vector<bool> met(busy.size(), false);
  for (const JobId other : recorder_.jobs()) {
    if (other == job.job) continue;
    for (const auto& [port, others] : spans_by_port(recorder_.activities(other, job.begin, job.end))) {
      const auto shared = spans.find(port);
      if (shared == spans.end()) continue;
      for (const auto& [begin, end] : others)
        for (const auto& [own_begin, own_end] : shared->second) {
          const Time from = std::max(begin, own_begin), to = std::min(end, own_end);
          if (to - from > recorder_.resolution()) mark_met(from - job.begin, to - job.begin, busy, met);
        }
    }
  }
  for (std::size_t i = 0; i < busy.size(); ++i)
    if (met[i]) busy[i].alone = std::min(busy[i].alone, time_needed(busy[i], job, own));
  return std::find(met.begin(), met.end(), true) != met.end();
}

// Returns the time that the bytes of a busy time need on the link that takes longest.
Time PhaseBook::time_needed(const BusyTime& phase, const RunningJob& job,
                            const std::vector<JobActivity>& own) const {
  std::map<PortId, Bytes> bytes;
  for (const JobActivity& activity : own) {
    const Time begin = activity.begin - job.begin;
    if (begin < phase.begin || begin >= phase.end) continue;
    for (const PortId port : activity.ports) bytes[port] += activity.bytes;
  }
  Time longest = 0;
  for (const auto& [port, sum] : bytes)
    if (const BitRate rate = recorder_.port_rates()[port]; rate > 0)
      longest = std::max(longest, transmission_time(sum, rate));
  return longest;
}

}  // namespace netsim
