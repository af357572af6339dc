// Recorder: records every task, communication and flow that ended, and keeps the data for the report. These
// are the `results` fingerprint and the flow completion times. It gives each record to the result sinks, if
// there are any.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/core/fingerprint.h"
#include "sim/core/ids.h"
#include "sim/report/quantiles.h"
#include "sim/report/result_sinks.h"
#include "sim/report/results.h"

namespace netsim {

class Recorder {
 public:
  // `sinks` may be null. `sinks` and `graph`, which names ports, must outlive the recorder.
  Recorder(ResultSinks* sinks, const Graph& graph, std::size_t jobs)
      : sinks_(sinks), graph_(graph), ends_(jobs), series_(jobs), path_(jobs), ways_(jobs), ports_(jobs) {}

  // Adds a job during the run.
  void add_job() {
    ends_.emplace_back();
    series_.emplace_back();
    path_.emplace_back();
    ways_.emplace_back();
    ports_.emplace_back();
  }

  void record(const TaskRecord& task);
  // `choice` is empty where the library had none: for messages and for groups of one rank.
  void record(const CommunicationRecord& communication, const LibraryChoice& choice);
  void record(const FlowRecord& flow);
  void record(const MemoryRecord& memory) {
    if (sinks_ != nullptr) sinks_->add(memory);
  }
  void record(JobId job, std::uint32_t iteration, const PathStep& step);
  // Return the critical paths of a job by task name and kind, by pair of GPUs and by port, the largest first.
  // `source` is the job's and provides the names.
  std::vector<PathShare> path_shares(JobId job, const TaskSource& source) const;
  std::vector<PathPair> path_pairs(JobId job) const;
  std::vector<PathPort> path_ports(JobId job) const;

  std::vector<CollectiveTimes> collectives() const;
  std::uint64_t further_collectives() const { return further_collectives_; }
  FlowTimes flow_times() const { return netsim::flow_times(flow_times_); }
  Slowdowns slowdowns() const;
  // Return the percentiles of the flow completion times in ps, and of the slowdowns in millionths.
  Percentiles flow_time_percentiles() const;
  Percentiles slowdown_percentiles() const;
  // Returns the slowdowns of the flows in bin `bin` of kSizeBins.
  Slowdowns slowdowns(std::size_t bin) const;
  // Returns a hash of the end times of all records, whatever their order, and of the given counters.
  std::uint64_t fingerprint(const NetworkCounters& network, const std::vector<LinkResult>& links) const;

 private:
  std::string port_name(PortId port) const;
  Time time_of(const CommunicationRecord& communication);
  void add_collective(const CommunicationRecord& collective, const LibraryChoice& choice, Time time);

  ResultSinks* sinks_;
  const Graph& graph_;
  std::vector<Fingerprint> ends_;  // by job
  // Series: the last communication of a CollectiveTask::series.
  struct Series {
    std::uint32_t number = 0;
    Time end = 0;
  };
  std::vector<Series> series_;  // by job
  // The last element is the number of the task's name.
  using PathKey = std::tuple<PathStep::Kind, Stream, CollectiveKind, std::uint32_t>;
  using StepsAndTime = std::pair<std::uint64_t, Time>;
  std::vector<std::map<PathKey, StepsAndTime>> path_;                                  // by job
  std::vector<std::map<std::pair<std::uint32_t, std::uint32_t>, StepsAndTime>> ways_;  // by job, then GPUs
  using StepsAndDelay = std::pair<std::uint64_t, PortDelay>;
  std::vector<std::map<PortId, StepsAndDelay>> ports_;  // by job
  // The elements are kind, ranks, bytes, name given by the workload, algorithm, protocol, channels and job.
  using CollectiveKey = std::tuple<CollectiveKind, std::uint32_t, Bytes, std::string, std::string, Protocol,
                                   std::uint32_t, JobId>;
  struct CollectiveSum {
    std::uint64_t count = 0;
    Time time = 0;
    std::string why;  // of the first collective
  };
  std::map<CollectiveKey, CollectiveSum> collectives_;
  std::uint64_t further_collectives_ = 0;  // those without a place in `collectives_`
  // 8 bytes for each flow, up to a number of flows.
  Quantiles flow_times_;
  std::array<Quantiles, kSizeBins.size()> slowdowns_by_size_;  // millionths
};

}  // namespace netsim
