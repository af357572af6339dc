// Recorder: hears of every task, communication and flow that ended, and keeps what the report needs of them:
// the `results` fingerprint, the flow completion times, and the streamed tables if there are any.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/core/fingerprint.h"
#include "sim/report/quantiles.h"
#include "sim/report/results.h"
#include "sim/report/tables.h"

namespace netsim {

class Recorder {
 public:
  // `tables`: may be null; must outlive the recorder, as must `graph`, which names ports.
  Recorder(Tables* tables, const Graph& graph, std::size_t jobs)
      : tables_(tables), graph_(graph), ends_(jobs), series_(jobs), path_(jobs), ways_(jobs), ports_(jobs) {}

  // One more, while the run goes on.
  void add_job() {
    ends_.emplace_back();
    series_.emplace_back();
    path_.emplace_back();
    ways_.emplace_back();
    ports_.emplace_back();
  }

  void record(const TaskRecord& task);
  // `choice`: empty where the library had none, of messages and of groups of one rank.
  void record(const CommunicationRecord& communication, const LibraryChoice& choice);
  void record(const FlowRecord& flow);
  void record(const MemoryRecord& memory) {
    if (tables_ != nullptr) tables_->add(memory);
  }
  void record(std::uint32_t job, std::uint32_t iteration, const PathStep& step);
  // What was on the critical paths of a job, the largest first. `source`: of the job, for names.
  std::vector<PathShare> path_shares(std::uint32_t job, const TaskSource& source) const;
  std::vector<PathWay> path_ways(std::uint32_t job) const;
  std::vector<PathPort> path_ports(std::uint32_t job) const;

  std::vector<CollectiveTimes> collectives() const;
  FlowTimes flow_times() const { return netsim::flow_times(flow_times_); }
  Slowdowns slowdowns() const;
  // Of the flows in bin `bin` of kSizeBins.
  Slowdowns slowdowns(std::size_t bin) const;
  // Hash of the end times of all that was recorded, whatever the order, and of the counters given.
  std::uint64_t fingerprint(const NetworkCounters& network, const std::vector<LinkResult>& links) const;

 private:
  std::string port_name(PortId port) const;
  Time time_of(const CommunicationRecord& communication);

  Tables* tables_;
  const Graph& graph_;
  std::vector<Fingerprint> ends_;  // by job
  // The last communication with a Task::series.
  struct Series {
    std::uint32_t number = 0;
    Time end = 0;
  };
  std::vector<Series> series_;                                                        // by job
  using PathKey = std::tuple<PathStep::Kind, Stream, CollectiveKind, std::uint32_t>;  // and name
  using StepsAndTime = std::pair<std::uint64_t, Time>;
  std::vector<std::map<PathKey, StepsAndTime>> path_;                                  // by job
  std::vector<std::map<std::pair<std::uint32_t, std::uint32_t>, StepsAndTime>> ways_;  // by job, then GPUs
  using StepsAndDelay = std::pair<std::uint64_t, PortDelay>;
  std::vector<std::map<PortId, StepsAndDelay>> ports_;  // by job
  // Kind, ranks, bytes; what the workload named, algorithm, protocol, channels.
  using CollectiveKey =
      std::tuple<CollectiveKind, std::uint32_t, Bytes, std::string, std::string, Protocol, std::uint32_t>;
  struct CollectiveSum {
    std::uint64_t count = 0;
    Time time = 0;
    std::string why;  // of the first
  };
  std::map<CollectiveKey, CollectiveSum> collectives_;
  // 8 B a flow each, up to a number of flows.
  Quantiles flow_times_;
  std::array<Quantiles, kSizeBins.size()> slowdowns_by_size_;  // millionths
};

}  // namespace netsim
