#include "sim/report/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/core/text.h"

namespace netsim {
namespace {

constexpr double kFullLink = 0.95;     // utilisation from which a Note names a link
constexpr double kLongTimeouts = 0.1;  // share of the run from which a Note names timeouts

// Returns the mean over ranks of one member of RankTimes, in seconds. It computes in doubles because it is a
// report, not a result.
template <class Get>
double mean_seconds(const std::vector<RankTimes>& ranks, double per, Get get) {
  double sum = 0;
  for (const RankTimes& times : ranks) sum += to_seconds(get(times));
  return ranks.empty() ? 0 : sum / static_cast<double>(ranks.size()) / per;
}

// Changes the times of a warm-up so that none is above that of the whole job. The sum stays the same.
//
// It only acts where a rank ran further ahead of the warm-up's end than of the job's end.
RankTimes limited_to(const RankTimes& whole, RankTimes before) {
  before.communication = std::min(before.communication, whole.communication);
  Time left = 0;
  for (std::size_t s = 0; s < kStreams; ++s) {
    left += std::max<Time>(before.exposed_by[s] - whole.exposed_by[s], 0);
    before.exposed_by[s] = std::min(before.exposed_by[s], whole.exposed_by[s]);
  }
  left += before.idle;
  before.idle = std::min(left, whole.idle);
  left -= before.idle;
  for (std::size_t s = 0; s < kStreams; ++s) {
    const Time taken = std::min(left, whole.exposed_by[s] - before.exposed_by[s]);
    before.exposed_by[s] += taken;
    left -= taken;
  }
  before.exposed = std::accumulate(before.exposed_by.begin(), before.exposed_by.end(), Time{0});
  before.compute += left;
  return before;
}

// Returns, by rank, the times of the warm-up that are not part of the measured iterations.
std::vector<RankTimes> times_before(const JobResult& job) {
  std::vector<RankTimes> times = job.warm_up_times;
  for (std::size_t rank = 0; rank < times.size(); ++rank)
    times[rank] = limited_to(job.rank_times[rank], times[rank]);
  return times;
}

// Notes marking without effect: no marks were set, or the congestion control ignores them. `where` is put
// before the note.
void note_marks(const FabricSettings& knobs, std::uint64_t marks, bool any_traffic, const std::string& where,
                std::vector<std::string>& notes) {
  if (knobs.reacts_to_marks && any_traffic && marks == 0) {
    notes.push_back(where + fmt::format("0 ECN marks: {}, so congestion control ({}) received no signal",
                                        knobs.marker == "none" ? "the switches do not mark (marker: none)"
                                                               : "no queue reached its marking threshold",
                                        knobs.congestion_control));
  }
  if (!knobs.reacts_to_marks && marks > 0) {
    notes.push_back(where +
                    fmt::format("{} ECN marks had no effect: congestion control `{}` does not react to them",
                                marks, knobs.congestion_control));
  }
}

void note_marks(const Results& results, std::vector<std::string>& notes) {
  const NetworkCounters& network = results.network;
  if (results.fabrics.empty())
    return note_marks(results.knobs, network.ecn_marks, network.flows_done > 0, "", notes);
  for (const FabricResult& fabric : results.fabrics) {
    note_marks(fabric.knobs, fabric.counters.ecn_marks, fabric.counters.data_packets > 0,
               "fabric " + fabric.name + ": ", notes);
  }
}

const char* cause_of_drops(const FabricSettings& knobs) {
  return knobs.flow_control == "pfc"
             ? "PFC is on, but some traffic is not lossless or the headroom was too small"
             : "the fabric was not lossless";
}

void note_drops(const Results& results, std::vector<std::string>& notes) {
  const NetworkCounters& network = results.network;
  if (network.drops == 0) return;
  if (results.fabrics.empty()) {
    notes.push_back(fmt::format("{} packets dropped, {} sent again: {}", network.drops,
                                network.retransmissions, cause_of_drops(results.knobs)));
    return;
  }
  for (const FabricResult& fabric : results.fabrics) {
    if (fabric.counters.drops == 0) continue;
    notes.push_back(fmt::format("fabric {}: {} packets dropped: {}", fabric.name, fabric.counters.drops,
                                cause_of_drops(fabric.knobs)));
  }
  notes.push_back(fmt::format("{} packets sent again", network.retransmissions));
}

void note_no_route(const Results& results, std::vector<std::string>& notes) {
  if (results.network.no_route == 0) return;
  notes.push_back(fmt::format("{} packets dropped because links that were down left them no route",
                              results.network.no_route));
}

void note_losses(const Results& results, std::vector<std::string>& notes) {
  const NetworkCounters& network = results.network;
  if (network.lost > 0) {
    const auto worst = std::max_element(
        results.links.begin(), results.links.end(),
        [](const LinkResult& a, const LinkResult& b) { return a.counters.lost < b.counters.lost; });
    notes.push_back(fmt::format("{} packets were lost on links, {} of them on {}", network.lost,
                                worst->counters.lost, worst->name));
  }
  if (network.retransmissions == 0 || network.drops > 0 || network.lost > 0 || network.no_route > 0) return;
  notes.push_back(
      fmt::format("{} packets were sent again although none was dropped or lost: {}", network.retransmissions,
                  network.timeouts == 0
                      ? std::string("reordering was taken for loss")
                      : fmt::format("{} retransmission timeouts expired before the acknowledgements arrived",
                                    network.timeouts)));
}

void note_timeouts(const Results& results, std::vector<std::string>& notes) {
  const NetworkCounters& network = results.network;
  const double share =
      results.simulated > 0 ? to_seconds(network.longest_timeouts) / to_seconds(results.simulated) : 0;
  if (network.timeouts == 0 || share < kLongTimeouts) return;
  notes.push_back(
      fmt::format("{} retransmission timeout{}: one queue pair waited {} in timeouts, {:.0f} % of the run; "
                  "{} sets how long each takes",
                  network.timeouts, network.timeouts == 1 ? "" : "s",
                  human_seconds(to_seconds(network.longest_timeouts)), 100 * std::min(share, 1.0),
                  results.knobs.reliability == "irn" ? "transport.reliability: {timeout_high, timeout_low}"
                                                     : "transport.retransmission_timeout"));
}

// Notes that `priority` has no effect. The messages of a job have one priority, and a queue pair carries
// messages of one job only.
void note_priorities(const Results& results, std::vector<std::string>& notes) {
  std::string names;
  for (const JobResult& job : results.jobs) {
    if (job.priority != 0) append_item(names, job.name);
  }
  if (names.empty()) return;
  notes.push_back("`priority` of " + names +
                  " has no effect: it orders messages of one queue pair, and jobs never share one; a flow "
                  "list's `class` with network.switch.scheduler gives one traffic priority over another");
}

// Notes that a GPU needs more memory than it has. This happens when communication took longer than the
// program order assumes.
void note_memory(const Results& results, std::vector<std::string>& notes) {
  for (const JobResult& job : results.jobs) {
    if (!job.memory || job.memory->capacity == 0 || job.memory->use.total() <= job.memory->capacity) continue;
    notes.push_back(fmt::format("{}: rank {} needs {} at a time, its GPU has {}: it would run out of memory",
                                job.name, job.memory->rank, gibibytes(job.memory->use.total()),
                                gibibytes(job.memory->capacity)));
  }
}

void note_full_links(const Results& results, std::vector<std::string>& notes) {
  const LinkResult* fullest = nullptr;
  std::size_t full = 0;
  double highest = 0;
  for (const LinkResult& link : results.links) {
    const double busy = utilisation(link, results.simulated);
    if (busy >= kFullLink) ++full;
    if (busy > highest) {
      highest = busy;
      fullest = &link;
    }
  }
  if (full == 0) return;
  notes.push_back(
      fmt::format("link {} was busy {:.1f} % of the time{}", fullest->name, 100 * highest,
                  full > 1 ? fmt::format(", {} others over {:.0f} %", full - 1, 100 * kFullLink) : ""));
}

}  // namespace

const char* to_string(FaultyPart::Kind kind) { return kind == FaultyPart::Kind::link ? "link" : "host"; }

const char* to_string(FaultEvent::Kind kind) {
  switch (kind) {
    case FaultEvent::Kind::loss:
      return "loss";
    case FaultEvent::Kind::down:
      return "down";
    case FaultEvent::Kind::up:
      return "up";
    case FaultEvent::Kind::rate:
      return "rate";
    case FaultEvent::Kind::failure:
      return "failure";
  }
  return "?";
}

const char* to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::done:
      return "done";
    case Outcome::stalled:
      return "stalled";
    case Outcome::limit:
      return "limit reached";
    case Outcome::interrupted:
      return "interrupted";
  }
  return "?";
}

ExitCode exit_code(Outcome outcome) {
  switch (outcome) {
    case Outcome::done:
      return ExitCode::done;
    case Outcome::stalled:
      return ExitCode::stalled;
    case Outcome::limit:
      return ExitCode::limit;
    case Outcome::interrupted:
      return ExitCode::interrupted;
  }
  return ExitCode::bug;
}

double CollectiveTimes::algorithm_bandwidth() const {
  return time > 0 ? static_cast<double>(bytes) / mean_s() : 0;
}

double CollectiveTimes::bus_bandwidth() const {
  return info_of(kind).bus_bandwidth(algorithm_bandwidth(), std::max<double>(ranks, 1));
}

const char* CollectiveTimes::reduction() const {
  const bool reduces = info_of(kind).goal.contributors == ChunkRanks::all && kind != CollectiveKind::custom;
  return reduces ? "sum" : "none";
}

CollectiveTimes times_of(const CommunicationRecord& record) {
  return {record.kind, record.ranks, record.bytes, {}, 1, record.end - record.last_start, record.job};
}

FlowTimes flow_times(const Quantiles& times) {
  return {times.count(), times.mean(), times.quantile(50), times.quantile(99), times.maximum()};
}

std::int64_t slowdown_millionths(const FlowRecord& flow) {
  if (flow.ideal <= 0) return 0;
  return static_cast<std::int64_t>((static_cast<Int128>(flow.end - flow.start) * 1'000'000 + flow.ideal / 2) /
                                   flow.ideal);
}

std::optional<double> JobResult::slowdown() const {
  const Time ran = held() - moved;
  if (!done || ran <= 0) return std::nullopt;
  return static_cast<double>(end - arrival) / static_cast<double>(ran);
}

std::optional<Time> JobResult::tardiness() const {
  if (!done || deadline == kNever) return std::nullopt;
  return std::max<Time>(0, end - deadline);
}

const char* JobResult::state() const {
  if (done) return "done";
  if (!never_fits.empty()) return "never fits";
  if (stopped) return "stopped by a failure";
  if (begun) return "under way";
  return waits ? "waits for GPUs" : "not arrived";
}

JobSummary summarise(const JobResult& job) {
  JobSummary summary;
  // Excludes the warm-up, from whose end on it counts, if one more iteration ended.
  const std::size_t all = job.done && job.iterations ? *job.iterations : job.iteration_ends.size();
  const bool warm = job.warm_up > 0 && all > job.warm_up && !job.warm_up_times.empty();
  const std::size_t ended = warm ? all - job.warm_up : all;
  const Time begin = warm ? job.iteration_ends[job.warm_up - 1] : job.begin;
  if (job.done) summary.jct_s = to_seconds(job.end - job.arrival);
  if (ended > 0) {
    const Time end = job.done ? job.end : job.iteration_ends.back();
    const Time waits = job.done && !warm ? job.paused + job.moved : 0;  // of a job scheduler
    summary.iteration_time_s = to_seconds(end - begin - waits) / static_cast<double>(ended);
    const double gpu_seconds = *summary.iteration_time_s * static_cast<double>(job.gpus.size());
    summary.tflops_per_gpu = gpu_seconds > 0 ? job.model_flops / gpu_seconds * 1e-12 : 0;
  }
  const double per = job.done ? std::max<double>(static_cast<double>(ended), 1) : 1;
  const std::vector<RankTimes> warm_up = warm ? times_before(job) : std::vector<RankTimes>{};
  const auto mean = [&job, per, &warm_up](auto get) {
    const double before = mean_seconds(warm_up, per, get);
    return mean_seconds(job.rank_times, per, get) - before;
  };
  summary.compute_s = mean([](const RankTimes& t) { return t.compute; });
  summary.communication_s = mean([](const RankTimes& t) { return t.communication; });
  summary.exposed_s = mean([](const RankTimes& t) { return t.exposed; });
  summary.idle_s = mean([](const RankTimes& t) { return t.idle; });
  for (std::size_t s = 0; s < kStreams; ++s) {
    summary.exposed_by_s[s] = mean([s](const RankTimes& t) { return t.exposed_by[s]; });
  }
  return summary;
}

std::string out_of(std::uint64_t done, std::optional<std::uint64_t> all) {
  return all ? fmt::format("{} of {}", done, *all) : fmt::format("{}", done);
}

double utilisation(const LinkResult& link, Time simulated) {
  const Time end = std::max(simulated, link.counters.last_end);
  return end > 0 ? static_cast<double>(link.counters.busy) / static_cast<double>(end) : 0;
}

AggregatingSwitch all_aggregation(const Results& results) {
  AggregatingSwitch all;
  for (const AggregationResult& one : results.aggregation) {
    all.counters += one.use.counters;
    all.memory = std::max(all.memory, one.use.memory);
    all.trees = std::max(all.trees, one.use.trees);
    all.waited += one.use.waited;
    all.aggregators = std::max(all.aggregators, one.use.aggregators);
  }
  return all;
}

bool only_traffic(const Results& results) {
  return std::none_of(results.jobs.begin(), results.jobs.end(),
                      [](const JobResult& job) { return job.computes; });
}

std::string explain(const Results& results) {
  std::uint64_t done = 0;
  std::optional<std::uint64_t> total = 0;
  for (const JobResult& job : results.jobs) {
    done += job.tasks_done;
    total = total && job.tasks_total ? std::optional(*total + *job.tasks_total) : std::nullopt;
  }
  const std::string where = fmt::format("at {} with {} tasks done",
                                        human_seconds(to_seconds(results.simulated)), out_of(done, total));
  switch (results.outcome) {
    case Outcome::done:
      return "";
    case Outcome::stalled:
      return "stalled " + where +
             (results.deadlocked ? ": a deadlock, ports wait for each other in a cycle"
                                 : ": nothing can make progress, but tasks are unfinished");
    case Outcome::limit:
      return "limit reached (--until) " + where;
    case Outcome::interrupted:
      return "interrupted " + where;
  }
  return "";
}

namespace {

// Notes a task scheduler by which no candidate overtook another one of its stream. In a job that is not done,
// what is still held would not be counted.
void note_schedulers(const Results& results, std::vector<std::string>& notes) {
  for (const JobResult& job : results.jobs) {
    const SchedulingSummary& s = job.scheduling;
    if (!job.done || s.scheduler.empty() || s.reordered > 0 || s.fused > 0) continue;
    const std::string whose = results.jobs.size() > 1 ? "job '" + job.name + "': " : "";
    notes.push_back(fmt::format(
        "{}no launch by the task scheduler '{}' overtook an earlier candidate of its stream: {}", whose,
        s.scheduler,
        s.held == 0
            ? "every communication was launched as soon as it was ready"
            : fmt::format(
                  "{} were held, by a bound on what is in flight, a plan or the agreement on an order",
                  s.held)));
  }
}

// Notes a flow scheduler that changed nothing. `fair` never does.
void note_flow_scheduler(const FlowSchedulingSummary& s, std::vector<std::string>& notes) {
  if (s.scheduler.empty() || s.scheduler == "fair" || s.decisions > 0) return;
  notes.push_back(fmt::format(
      "the flow scheduler '{}' changed nothing: {}", s.scheduler,
      s.flows == 0 ? "no flow crossed the fabric" : fmt::format("it left {} flows as they were", s.flows)));
}

// Notes a flow splitter that split nothing.
void note_splits(const SplitSummary& s, std::vector<std::string>& notes) {
  if (s.splitter.empty() || s.split > 0) return;
  notes.push_back(fmt::format(
      "scheduling.splits changes nothing: {}",
      s.messages == 0
          ? "no message crossed the fabric"
          : fmt::format("of {} messages none had a way over another NIC of its host and as many bytes as the "
                        "splitter '{}' asks for",
                        s.messages, s.splitter)));
}

// Notes operations that are cut into pieces whose start-ups take longer than what they hide.
void note_cuts(const Results& results, std::vector<std::string>& notes) {
  for (const JobResult& job : results.jobs) {
    if (!job.done || job.rank_times.empty() || job.cuts.added <= job.cuts.hidden) continue;
    const auto ranks = static_cast<Time>(job.rank_times.size());
    std::string keys;
    for (const std::string& key : job.cuts.keys) keys += (keys.empty() ? "" : ", ") + key;
    notes.push_back(fmt::format(
        "{}cutting operations into pieces costs more start-up than it hides: a GPU spends {} at least on the "
        "start-ups of added pieces, and {} of such communication is hidden behind computation; fewer pieces "
        "change that ({})",
        results.jobs.size() > 1 ? "job '" + job.name + "': " : "",
        human_seconds(to_seconds(job.cuts.added / ranks)), human_seconds(to_seconds(job.cuts.hidden / ranks)),
        keys));
  }
}

// Notes collectives that have no row in the table of collectives, which has room for some thousand rows.
void note_further_collectives(const Results& results, std::vector<std::string>& notes) {
  if (results.further_collectives == 0) return;
  notes.push_back(fmt::format(
      "bandwidths.csv and summary.json hold the first {} kinds and sizes of collectives; {} of others are in "
      "collectives.csv only",
      kCollectiveTimes, counted(results.further_collectives, "collective")));
}

}  // namespace

std::vector<std::string> derive_notes(const Results& results) {
  std::vector<std::string> notes;
  if (!results.packet_network) notes.push_back("network: ideal: the times include no network");
  if (results.packet_network && results.network.flows_started == 0) {
    notes.push_back("nothing crossed the scale-out fabric");
  }
  note_marks(results, notes);
  note_drops(results, notes);
  note_no_route(results, notes);
  note_losses(results, notes);
  note_timeouts(results, notes);
  note_priorities(results, notes);
  note_full_links(results, notes);
  note_memory(results, notes);
  note_schedulers(results, notes);
  note_cuts(results, notes);
  note_flow_scheduler(results.flow_scheduling, notes);
  note_splits(results.splits, notes);
  note_further_collectives(results, notes);
  return notes;
}

}  // namespace netsim
