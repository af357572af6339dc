// Samples: the quantities sampled over time (section `output.sample` of the configuration), as plain data. A
// sample covers the interval that ends at its time.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/core/config.h"
#include "sim/core/ids.h"
#include "sim/core/parameters.h"
#include "sim/core/units.h"
#include "sim/network/counters.h"

namespace netsim {

struct SampleParameters {
  Time interval = 0;  // 0: no samples
  bool queues = true, links = true, flows = true, aggregation = true;
  ConfigNode ports;  // names; "switches" if missing
};
const Parameters<SampleParameters>& sample_parameters();
inline constexpr const char* kDefaultSampledPorts = "switches";

struct QueueSample {
  Time time = 0;
  std::string_view port;  // name as in links.csv, here and below
  Bytes bytes = 0;        // queued at `time`
};

struct LinkSample {
  Time time = 0;
  std::string_view port;
  double utilisation = 0;  // share of the interval in which the link transmitted
  PortCounters counters;   // counts of the interval; only those of sampled_counters()
};

struct FlowSample {
  Time time = 0;
  // GPUs, and number among the queue pairs of these two.
  std::uint32_t source = 0, destination = 0, queue_pair = 0;
  BitRate delivered = 0;  // rate of payload acknowledged in the interval
  BitRate allowed = 0;    // rate allowed by congestion control at `time`
  JobId job = 0;          // the job that it belongs to
};

struct AggregationSample {
  Time time = 0;
  std::string_view switch_name;  // name as in aggregation.csv
  // Memory at `time`: that of trees with messages in flight, and that of all trees; and the number of these.
  Bytes used = 0, memory = 0;
  std::int64_t trees = 0;
  // Counts of the interval: packets that were added to sums, their bytes, and sums that became complete.
  std::int64_t packets = 0;
  Bytes bytes = 0;
  std::int64_t sums = 0;
};

}  // namespace netsim
