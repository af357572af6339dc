// Results: what a run answers, as plain data. The simulation fills it; the writers of this room only read it,
// so that the screen, summary.json and the tables cannot disagree.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/collectives/execution/library_choice.h"
#include "sim/core/errors.h"
#include "sim/core/units.h"
#include "sim/jobs/job.h"
#include "sim/report/quantiles.h"
#include "sim/topology/graph.h"
#include "sim/transport/packet_network.h"

namespace netsim {

enum class Outcome : std::uint8_t { done, stalled, limit, interrupted };
const char* to_string(Outcome outcome);
ExitCode exit_code(Outcome outcome);

// What tasks of one name and kind took of the critical paths of all iterations.
struct PathShare {
  PathStep::Kind kind = PathStep::Kind::compute;
  Stream stream = Stream::compute;
  CollectiveKind collective = CollectiveKind::point_to_point;
  std::string name;
  std::uint64_t steps = 0;
  Time time = 0;
};

// What messages from one GPU to another took of them, acknowledgements included.
struct PathWay {
  std::uint32_t source = 0, destination = 0;  // GPUs
  std::uint64_t steps = 0;
  Time time = 0;
};

// What ports took of them.
struct PathPort {
  std::string name;         // "edge1->agg2"
  std::uint64_t steps = 0;  // transfers that it took some of
  PortDelay delay;          // added up
};

// The memory of a job's GPUs, where the workload knows what its tasks need.
struct JobMemory {
  MemoryUse planned;  // the most of any rank, in the order of the program
  // The rank whose GPU is fullest at some time, when, and with what.
  std::uint32_t rank = 0;
  Time time = 0;
  MemoryUse use;
  Bytes capacity = 0;            // of that GPU; 0: not known
  Bytes host = 0;                // of the host of which its ranks use most: their peaks together
  std::vector<Bytes> rank_peak;  // by rank, as is the next
  std::vector<Time> rank_time;
};

// What became of a job whose hosts failed: it was stopped and begun again, as jobs of their own in the
// report.
struct JobRecovery {
  std::uint32_t restarts = 0;
  std::uint32_t repeated =
      0;  // iterations that all ranks had passed before a failure and that were not saved
  // In integer picoseconds, none of them below 0: whole = useful + lost + down + io.
  Time whole = 0;  // from the first begin to the end of the last
  Time lost = 0;   // from when the last rank had passed what is saved, or the begin, to the failure
  Time down = 0;   // from the failure until the job began again, or was found to be complete
  Time io = 0;     // what the rank that waited longest for storage waited, in what is not lost
  Time useful() const { return whole - lost - down - io; }
  double goodput() const {
    return whole > 0 ? static_cast<double>(useful()) / static_cast<double>(whole) : 0;
  }
};

struct JobResult {
  std::string name;
  std::optional<std::uint32_t> iterations =
      1;              // asked for; nothing: as many as the workload turns out to have
  bool begun = true;  // it arrived before the run ended
  bool done = false;
  bool stopped = false;                 // by a failure, and begun again under another name
  std::optional<JobRecovery> recovery;  // of the last of the jobs that it became
  std::uint8_t priority = 0;
  Time arrival = 0;
  Time begin = 0;                      // its ranks began
  Time end = 0;                        // of the last task; of the run if the job is not done
  std::vector<Time> iteration_ends;    // of the iterations that ended
  std::vector<std::uint32_t> gpus;     // of each rank
  std::vector<RankTimes> rank_times;   // of each rank, over [begin, end]
  std::vector<PathSummary> paths;      // of the iterations that ended, where critical paths were asked for
  std::vector<PathWay> path_ways;      // between which GPUs, the largest first
  std::vector<PathPort> path_ports;    // at which ports, the largest first
  std::vector<PathShare> path_shares;  // what was on them, the largest first
  // The first iterations, which means leave out, and the times of each rank up to their end; empty: it has
  // not come.
  std::uint32_t warm_up = 0;
  std::vector<RankTimes> warm_up_times;
  std::optional<JobMemory> memory;
  std::uint64_t tasks_done = 0;
  std::optional<std::uint64_t> tasks_total;  // nothing: unknown before the end
  bool computes = true;    // false: only traffic (a flow list, a pattern, a collective), no training
  double model_flops = 0;  // per iteration, all ranks; 0 = unknown
  double peak_flops = 0;   // per GPU; 0 = unknown
};

// Collectives of one kind, size and number of ranks that run alike, of all jobs together: a row of
// nccl-tests' table.
struct CollectiveTimes {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::uint32_t ranks = 0;
  Bytes bytes = 0;  // as the kind's CollectiveKindInfo says
  LibraryChoice choice;
  std::uint64_t count = 0;
  // Of all of them, each from its last rank's start to its last rank's end; of those that are called back to
  // back (Task::series) from the end of the one before.
  Time time = 0;

  double mean_s() const { return to_seconds(time) / static_cast<double>(count); }
  // bytes / mean time, in B/s, and that times the kind's factor (nccl-tests, doc/PERFORMANCE.md); 0 where
  // they take no time.
  double algorithm_bandwidth() const;
  double bus_bandwidth() const;
  // nccl-tests counts elements, floats unless it is told otherwise: of the buffer, or of a rank's part of it
  // where each has an equal one.
  static constexpr Bytes kElement = 4;
  Bytes elements() const { return bytes / kElement / (has_parts(kind) && !has_counts(kind) ? ranks : 1); }
  // Its name of the operation that reduces, "sum" or "none".
  const char* reduction() const;
};
// Of one alone.
CollectiveTimes times_of(const CommunicationRecord& record);

// One direction of a link.
struct LinkResult {
  std::string name;  // "edge7->agg2"
  LinkKind kind = LinkKind::ethernet;
  BitRate rate = 0;
  PortCounters counters;
};

// Flow completion times. Quantiles are nearest-rank: the smallest time that at least q of the flows do not
// exceed, of many flows up to 0.1 % more (quantiles.h).
struct FlowTimes {
  std::uint64_t count = 0;
  double mean = 0;  // ps
  Time p50 = 0, p99 = 0, maximum = 0;
};
FlowTimes flow_times(const Quantiles& times);

// Slowdowns: completion times over what the same flow takes in an idle network; of the flows whose ideal time
// is known. Quantiles as above, rounded to millionths.
struct Slowdowns {
  std::uint64_t count = 0;
  double mean = 0, p50 = 0, p95 = 0, p99 = 0;
};
// Millionths; 0 where the ideal time is unknown.
std::int64_t slowdown_millionths(const FlowRecord& flow);

// Flows by size: each bin holds those below its limit and not below the one before.
inline constexpr std::array<Bytes, 3> kSizeBins{30 * kKilobyte, 1 * kMegabyte, INT64_MAX};

// Lengths of queues that were not empty, over all sampled ports and times.
struct QueueStatistics {
  std::uint64_t count = 0;
  double mean = 0;
  Bytes p50 = 0, p95 = 0, p99 = 0, maximum = 0;
};

// What of the configuration the Notes speak of.
struct Knobs {
  std::string congestion_control;  // names of components and choices; "" where there is none
  std::string marker, flow_control, reliability;
  bool hears_marks = false;  // whether ECN marks mean anything to the congestion control
  bool window = false;  // whether the transport limits what is in flight, whatever congestion control does
};

// One of several packet fabrics, whose knobs may differ.
struct FabricResult {
  std::string name;
  Knobs knobs;
  // Of the ports of its switches, and of those into them.
  std::uint64_t packet_hops = 0, ecn_marks = 0, drops = 0, pauses = 0, credit_stalls = 0;
};

struct Fingerprints {
  std::uint64_t results = 0, packets = 0, events = 0;
};

inline constexpr std::size_t kCollectiveTimes = 4096;

struct Results {
  std::vector<std::string> gpu_names;  // as nodes of links.csv
  Outcome outcome = Outcome::done;
  bool deadlocked = false;           // stalled: ports wait for each other in a circle
  std::vector<std::string> waiting;  // stalled: what waits for what
  Time simulated = 0;                // end of the last job, or where the run ended
  std::uint64_t events = 0;
  bool packet_network = true;  // false: `network: ideal`
  NetworkCounters network;
  Fingerprints fingerprints;
  FlowTimes flows;
  Slowdowns slowdowns;
  std::array<Slowdowns, kSizeBins.size()> slowdowns_by_size;
  std::optional<QueueStatistics> sampled_queues;  // if queues were sampled
  Knobs knobs;                                    // of all fabrics
  std::vector<FabricResult> fabrics;              // where there are several packet fabrics
  std::vector<JobResult> jobs;
  // By kind, then ranks, then bytes; the first kCollectiveTimes that were met.
  std::vector<CollectiveTimes> collectives;
  std::vector<LinkResult> links;  // by port id; empty for `network: ideal`
  std::vector<std::string> notes;
  double wall_seconds = 0;  // of the run itself; not part of the answer
};

// A job's times as a person asks for them: seconds, means over ranks, per iteration behind warm-up. A job
// that is not done has no jct; its other times are those of the iterations that ended (iteration_time,
// tflops; none if none ended) or the totals so far (compute, communication, exposed, idle).
struct JobSummary {
  std::optional<double> jct_s, iteration_time_s, tflops_per_gpu;
  double compute_s = 0, communication_s = 0, exposed_s = 0, idle_s = 0;
  std::array<double, kStreams> exposed_by_s{};
};
JobSummary summarise(const JobResult& job);

// "3 of 8", or "3" where nobody knows of how many.
std::string out_of(std::uint64_t done, std::optional<std::uint64_t> all);

// Share of the run in which the link was transmitting, 0..1. The run lasts until `simulated`, for a link that
// had something left to send then (acknowledgements, repeats) until it had sent it.
double utilisation(const LinkResult& link, Time simulated);

// Nothing but traffic: no job computes.
bool only_traffic(const Results& results);

// One line on why a run did not end: what waits, the limit, the interruption. "" for a run that is done.
std::string explain(const Results& results);

// What the numbers say that one could overlook: knobs that could not act, full links, losses (law 8).
std::vector<std::string> derive_notes(const Results& results);

}  // namespace netsim
