// Sampler: looks at the packet network every interval and writes what it sees into the tables; keeps the
// distribution of the queues' lengths for the summary.
//
// It only reads, and it is not an event: the simulation stops between two events, so that a run with samples
// is the same run, down to its number of events, its stalls and its end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/report/quantiles.h"
#include "sim/report/results.h"
#include "sim/report/samples.h"
#include "sim/report/tables.h"
#include "sim/topology/graph.h"
#include "sim/transport/packet_network.h"

namespace netsim {

class Sampler {
 public:
  // Interval > 0. `tables` may be null. Network, graph and tables must outlive the sampler. ConfigError for a
  // port that does not exist.
  Sampler(const SampleParameters& parameters, PacketNetwork& network, const Graph& graph, Tables* tables);

  // When to look next.
  Time next() const { return last_ + parameters_.interval; }
  // Looks. To be called when all events up to next() and none after it have been executed.
  void sample() { look(next()); }
  // The last look found nothing going on, so nothing can be seen before the next event.
  bool quiet() const { return quiet_; }
  // Only when quiet(): the first event since then has happened, at `now`. Afterwards next() >= now.
  void skip_to(Time now);
  // The run was cut at `end`: looks at what there is of the last interval.
  void finish(Time end);

  QueueStatistics queues() const;

 private:
  struct SampledPort {
    PortId id;
    std::string name;  // as a cell
    Bytes queued = 0;  // at the last look
    PortCounters counters;
  };

  struct SampledPair {
    Bytes acknowledged = 0;  // at the last look
    std::uint32_t use = 0;   // QueuePairView::use
  };

  void look(Time time);
  void look_at_queue(SampledPort& port, Time time);
  void look_at_link(SampledPort& port, Time time);
  void look_at_flows(Time time);

  SampleParameters parameters_;
  PacketNetwork& network_;
  Tables* tables_;
  std::vector<SampledPort> ports_;
  std::vector<SampledPair> pairs_;  // by queue pair
  Quantiles lengths_;               // of queues that are not empty
  Time last_ = 0;
  bool quiet_ = false;
};

}  // namespace netsim
