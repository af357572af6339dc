// Results: the results of a run as plain data. The simulation fills it and the writers in sim/report only
// read it. Therefore the screen, summary.json and the tables cannot disagree.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/collectives/execution/library_choice.h"
#include "sim/core/errors.h"
#include "sim/core/ids.h"
#include "sim/core/units.h"
#include "sim/jobs/job.h"
#include "sim/jobs/managed_job.h"
#include "sim/jobs/recovery.h"
#include "sim/report/quantiles.h"
#include "sim/scheduling/flow/flow_summary.h"
#include "sim/topology/graph.h"
#include "sim/transport/packet_network.h"

namespace netsim {

enum class Outcome : std::uint8_t { done, stalled, limit, interrupted };
const char* to_string(Outcome outcome);
ExitCode exit_code(Outcome outcome);

// PathShare: the time that tasks of one name and kind took on the critical paths of all iterations.
struct PathShare {
  PathStep::Kind kind = PathStep::Kind::compute;
  Stream stream = Stream::compute;
  CollectiveKind collective = CollectiveKind::point_to_point;
  std::string name;
  std::uint64_t steps = 0;
  Time time = 0;
};

// PathPair: the time that messages from one GPU to another took on the critical paths, acknowledgements
// included.
struct PathPair {
  std::uint32_t source = 0, destination = 0;  // GPUs
  std::uint64_t steps = 0;
  Time time = 0;
};

// PathPort: the delay of transfers at one port on the critical paths.
struct PathPort {
  std::string name;         // "edge1->agg2"
  std::uint64_t steps = 0;  // transfers that the port delayed
  PortDelay delay;          // sum over these transfers
};

// JobMemory: the memory of a job's GPUs, where the workload gives the memory of its tasks.
struct JobMemory {
  MemoryUse planned;  // largest use of any rank, in program order
  // The rank whose GPU is fullest at any time, the time, and the use then.
  RankId rank = 0;
  Time time = 0;
  MemoryUse use;
  Bytes capacity = 0;            // of that GPU, bytes; 0: unknown
  Bytes host = 0;                // largest use of any host's memory, bytes: the sum of its ranks' peaks
  std::vector<Bytes> rank_peak;  // peak by rank, bytes
  std::vector<Time> rank_time;
};

// CutSummary: what the pieces of a job cost, in ps, summed over ranks.
struct CutSummary {
  Time added = 0;                 // start-ups of the pieces that cutting added
  Time hidden = 0;                // RankTimes::hidden_of_cuts
  std::vector<std::string> keys;  // where a user sets the number of pieces, ascending
};

struct JobResult {
  std::string name;
  // Requested number of iterations; empty: the workload decides it while it runs.
  std::optional<std::uint32_t> iterations = 1;
  bool begun = true;   // false: the run ended before the job arrived or had GPUs
  bool waits = false;  // it had arrived and waited for GPUs when the run ended
  bool done = false;
  std::string never_fits;         // why the cluster can never run it; "": it can
  std::uint32_t wanted_gpus = 0;  // GPUs that it needs; meaningful only while it has none
  // By a job scheduler: number of its pauses, time without GPUs since its begin, and time of its moves.
  std::uint32_t pauses = 0;
  Time paused = 0, moved = 0;
  double weight = 1;
  Time deadline = kNever;               // kNever: none
  std::string vc;                       // virtual cluster, "" for none
  bool stopped = false;                 // stopped by a failure and restarted under another name
  std::optional<JobRecovery> recovery;  // only in the last of the jobs of a restarted job
  std::uint8_t priority = 0;
  Time arrival = 0;
  Time begin = 0;                      // start of its ranks; its arrival if it has not begun
  Time end = 0;                        // end of the last task, or of the run if the job is not done
  std::vector<Time> iteration_ends;    // by iteration, those that ended
  std::vector<GpuId> gpus;             // by rank
  std::vector<RankTimes> rank_times;   // by rank, over [begin, end]
  std::vector<PathSummary> paths;      // by ended iteration, if critical paths are enabled
  std::vector<PathPair> path_pairs;    // by pair of GPUs, the largest first
  std::vector<PathPort> path_ports;    // by port, the largest first
  std::vector<PathShare> path_shares;  // by task name and kind, the largest first
  // The number of first iterations that means leave out, and the times of each rank up to their end, of their
  // tasks only. The vector is empty if that end was not reached.
  std::uint32_t warm_up = 0;
  std::vector<RankTimes> warm_up_times;
  std::optional<JobMemory> memory;
  CutSummary cuts;
  SchedulingSummary scheduling;  // the scheduler's name is empty if the job has none
  std::uint64_t tasks_done = 0;
  std::optional<std::uint64_t> tasks_total;  // empty: unknown before the end
  bool computes = true;    // false: only traffic (a flow list, a pattern, a collective), no training
  double model_flops = 0;  // per iteration, all ranks; 0 = unknown
  double peak_flops = 0;   // per GPU; 0 = unknown

  // Returns how long the job waited for GPUs, at least 0.
  Time queued() const { return waits ? end - arrival : begin - arrival; }
  // Returns the number of GPUs that it needs.
  std::size_t gpu_count() const { return gpus.empty() ? wanted_gpus : gpus.size(); }
  // Returns the time for which it held its GPUs.
  Time held() const { return begun ? end - begin - paused : 0; }
  // Returns its completion time divided by the time in which it ran, or nothing if it is not done.
  std::optional<double> slowdown() const;
  // Returns the time by which it missed its deadline, or nothing if it has none or is not done.
  std::optional<Time> tardiness() const;
  // Returns "done", "under way", "waits for GPUs" or another state in words.
  const char* state() const;
};

// CollectiveTimes: the times of all collectives of one kind, size, number of ranks and algorithm in a job. It
// is a row in the table of nccl-tests.
struct CollectiveTimes {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::uint32_t ranks = 0;
  Bytes bytes = 0;  // as defined by the kind's CollectiveKindInfo
  LibraryChoice choice;
  std::uint64_t count = 0;
  // Sum of the durations in ps. A duration lasts from the last rank's start to the last rank's end. For
  // collectives called back to back (CollectiveTask::series) it begins at the end of the one before.
  Time time = 0;
  JobId job = 0;

  double mean_s() const { return to_seconds(time) / static_cast<double>(count); }
  // Returns bytes / mean time in B/s, or 0 if the collectives take no time. The bus bandwidth is that times
  // the kind's factor (nccl-tests, doc/PERFORMANCE.md).
  double algorithm_bandwidth() const;
  double bus_bandwidth() const;
  // Size of an element, by default a float in nccl-tests. It counts elements of the buffer, or of a rank's
  // part where all ranks have equal parts.
  static constexpr Bytes kElement = 4;
  Bytes elements() const { return bytes / kElement / (has_parts(kind) && !has_counts(kind) ? ranks : 1); }
  // Returns the reduction as nccl-tests names it: "sum" or "none".
  const char* reduction() const;
};
// Returns the times of a single communication.
CollectiveTimes times_of(const CommunicationRecord& record);

// FaultEvent: a fault of a link or host at a time.
struct FaultEvent {
  enum class Kind : std::uint8_t { loss, down, up, rate, failure };
  Time at = 0;  // 0 for a loss rate, which holds throughout
  Kind kind = Kind::down;
  BitRate rate = 0;        // new rate, for Kind::rate
  double probability = 0;  // that a packet is lost, for Kind::loss
  bool operator==(const FaultEvent&) const = default;
};

// FaultyPart: a link or host with the faults that are configured for it.
struct FaultyPart {
  enum class Kind : std::uint8_t { link, host };
  Kind kind = Kind::link;
  std::string name;                    // "edge0-agg0", or "edge0->agg0" where the directions differ; "host3"
  std::vector<FaultEvent> events;      // in the order of time
  std::uint64_t lost = 0;              // packets lost on a link, by any of its faults
  std::vector<std::size_t> jobs;       // indices in Results::jobs, of those that lost ranks on a host
  std::vector<std::string> ends = {};  // the two nodes of a link
};
const char* to_string(FaultyPart::Kind kind);
const char* to_string(FaultEvent::Kind kind);

// LinkResult: one direction of a link.
struct LinkResult {
  std::string name;  // "edge7->agg2"
  LinkKind kind = LinkKind::ethernet;
  BitRate rate = 0;
  PortCounters counters;
  std::uint32_t tier = 0;  // index in Results::link_tiers
};

// AggregationResult: a switch that has added up packets.
struct AggregationResult {
  std::string name;  // "leaf0"
  AggregatingSwitch use;
};

// FlowTimes: flow completion times. A quantile is nearest-rank: the smallest time that at least a share q of
// the flows do not exceed. With many flows it is up to 0.1 % larger (quantiles.h).
struct FlowTimes {
  std::uint64_t count = 0;
  double mean = 0;  // ps
  Time p50 = 0, p99 = 0, maximum = 0;
};
FlowTimes flow_times(const Quantiles& times);

// Slowdowns: completion times divided by the time of the same flow in an idle network. Only flows with a
// known ideal time count. Quantiles are as in FlowTimes, rounded to millionths.
struct Slowdowns {
  std::uint64_t count = 0;
  double mean = 0, p50 = 0, p95 = 0, p99 = 0;
};
// Returns the flow's slowdown in millionths, or 0 where the ideal time is unknown.
std::int64_t slowdown_millionths(const FlowRecord& flow);

// Percentiles: the quantiles of 1 %, 2 %, ... 100 % of a distribution, for a picture of it. Empty where no
// file of the run shows them.
using Percentiles = std::vector<std::int64_t>;

// Upper limits of the flow size bins in bytes. A bin holds the flows that are below its limit and not below
// the limit before.
inline constexpr std::array<Bytes, 3> kSizeBins{30 * kKilobyte, 1 * kMegabyte, INT64_MAX};

// QueueStatistics: lengths in bytes of queues that were not empty, over all sampled ports and times.
struct QueueStatistics {
  std::uint64_t count = 0;
  double mean = 0;
  Bytes p50 = 0, p95 = 0, p99 = 0, maximum = 0;
};

// FabricSettings: the settings that the Notes mention.
struct FabricSettings {
  std::string congestion_control;  // names of components and choices; "" where there is none
  std::string marker, flow_control, reliability;
  bool reacts_to_marks = false;  // true: the congestion control reacts to ECN marks
  // True if the transport limits the bytes in flight, with any congestion control.
  bool window = false;
};

// FabricResult: one of several packet fabrics, whose settings may differ.
struct FabricResult {
  std::string name;
  FabricSettings knobs;
  PortCounters counters;  // sums over the ports of its switches and the ports that lead into them
};

struct Fingerprints {
  std::uint64_t results = 0, packets = 0, events = 0;
};

inline constexpr std::size_t kCollectiveTimes = 4096;

struct Results {
  std::vector<std::string> gpu_names;  // by GPU, named as the nodes of links.csv
  Outcome outcome = Outcome::done;
  bool deadlocked = false;           // outcome stalled: ports wait for each other in a cycle
  std::vector<std::string> waiting;  // outcome stalled: a line for each wait
  Time simulated = 0;                // end of the last job, or of the run, ps
  std::uint64_t events = 0;
  bool packet_network = true;  // false: `network: ideal`
  NetworkCounters network;
  Fingerprints fingerprints;
  FlowTimes flows;
  Slowdowns slowdowns;
  std::array<Slowdowns, kSizeBins.size()> slowdowns_by_size;
  Percentiles flow_times_ps, slowdowns_millionths;
  std::optional<QueueStatistics> sampled_queues;  // only if queues are sampled
  FabricSettings knobs;                           // settings of all fabrics
  std::vector<FabricResult> fabrics;              // only where there are several packet fabrics
  FlowSchedulingSummary flow_scheduling;          // the scheduler's name is empty if the run has none
  SplitSummary splits;                            // the splitter's name is empty if the run has none
  std::vector<JobResult> jobs;
  // The use of the cluster, a line for each change; empty where all jobs were placed before the run.
  std::vector<ClusterUse> uses;
  std::uint32_t gpus = 0;  // of the cluster, without drives of storage servers
  // Sorted by kind, ranks and bytes, algorithm, then job; only the first kCollectiveTimes that occurred.
  std::vector<CollectiveTimes> collectives;
  std::uint64_t further_collectives = 0;  // number of collectives that are in none of these rows
  std::vector<LinkResult> links;          // by port id; empty for `network: ideal`
  // The names of the tiers of links, such as "tier 0 -> tier 1", from hosts upward.
  std::vector<std::string> link_tiers;
  std::vector<AggregationResult> aggregation;  // by node; empty if no switch added up packets
  std::vector<FaultyPart> faults;              // links by port, then hosts; empty if nothing has a fault
  std::vector<std::string> notes;
  double wall_seconds = 0;  // duration of the run itself; not part of the results
};

// JobSummary: a job's times in seconds, as means over ranks, per iteration after warm-up. They are the times
// of the job less those of its warm-up alone. So they have all work of the measured iterations, even what
// began during the warm-up. No time is negative.
//
// A job that is not done has no jct. Its iteration_time and tflops are those of the ended iterations, if any;
// compute, communication, exposed and idle are totals so far.
struct JobSummary {
  std::optional<double> jct_s, iteration_time_s, tflops_per_gpu;
  double compute_s = 0, communication_s = 0, exposed_s = 0, idle_s = 0;
  std::array<double, kStreams> exposed_by_s{};
};
JobSummary summarise(const JobResult& job);

// Returns "3 of 8", or "3" if the total is unknown.
std::string out_of(std::uint64_t done, std::optional<std::uint64_t> all);

// Returns the share of the run, 0 to 1, in which the link was transmitting. The run lasts until `simulated`.
// A link that still had acknowledgements or retransmissions to send then counts until it had sent them.
double utilisation(const LinkResult& link, Time simulated);

// Returns the sums of all switches that add up, and the largest memory and number of trees of any of them.
AggregatingSwitch all_aggregation(const Results& results);

// Returns whether no job computes, so that the run is only traffic.
bool only_traffic(const Results& results);

// Returns one line on why the run did not end: the waits, the limit or the interruption. Returns "" for a run
// that is done.
std::string explain(const Results& results);

// Returns the Notes for the user: settings that could not act, full links, losses (law 8).
std::vector<std::string> derive_notes(const Results& results);

}  // namespace netsim
