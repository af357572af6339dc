// Sampler: samples the packet network every interval and writes the samples into the result sinks. It keeps
// the distribution of queue lengths for the summary.
//
// It only reads, and it is no event: the simulation stops between two events. A run with samples is therefore
// the same run, with the same number of events, stalls and end.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/report/quantiles.h"
#include "sim/report/result_sinks.h"
#include "sim/report/results.h"
#include "sim/report/samples.h"
#include "sim/topology/graph.h"
#include "sim/transport/packet_network.h"

namespace netsim {

class Sampler {
 public:
  // The interval must be above 0, and `sinks` may be null. Network, graph and sinks must outlive the
  // sampler. Throws ConfigError for a port that does not exist.
  Sampler(const SampleParameters& parameters, PacketNetwork& network, const Graph& graph, ResultSinks* sinks);

  // Returns the time of the next sample.
  Time next() const { return last_ + parameters_.interval; }
  // Takes a sample. Must be called when all events up to next() and none after it have been executed.
  void sample() { look(next()); }
  // Returns whether the last sample found no activity, so that none can follow before the next event.
  bool quiet() const { return quiet_; }
  // Skips the idle time up to `now`, when the first event since the last sample has happened. Requires
  // quiet(). Afterwards next() >= now.
  void skip_to(Time now);
  // Takes a sample of the last, partial interval when the run was cut at `end`.
  void finish(Time end);

  QueueStatistics queues() const;

 private:
  struct SampledPort {
    PortId id;
    std::string name;  // as in links.csv
    Bytes queued = 0;  // bytes at the last sample
    PortCounters counters;
  };

  struct SampledPair {
    Bytes acknowledged = 0;  // bytes at the last sample
    std::uint32_t use = 0;   // QueuePairView::use
  };

  void look(Time time);
  void look_at_queue(SampledPort& port, Time time);
  void look_at_link(SampledPort& port, Time time);
  void look_at_flows(Time time);
  void look_at_aggregation(Time time);

  struct SampledSwitch {
    AggregationCounters counters;  // at the last sample
    Bytes used = 0;
  };

  SampleParameters parameters_;
  PacketNetwork& network_;
  const Graph& graph_;
  ResultSinks* sinks_;
  std::vector<SampledPort> ports_;
  std::vector<SampledPair> pairs_;  // by queue pair
  std::map<NodeId, SampledSwitch> switches_;
  Quantiles lengths_;  // of queues that are not empty, bytes
  Time last_ = 0;
  bool quiet_ = false;
};

}  // namespace netsim
