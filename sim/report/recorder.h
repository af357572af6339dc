// Recorder: hears of every task, communication and flow that ended, and keeps what the report needs of them:
// the `results` fingerprint, the flow completion times, and the streamed tables if there are any.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/core/fingerprint.h"
#include "sim/report/quantiles.h"
#include "sim/report/results.h"
#include "sim/report/tables.h"
#include "sim/report/value_list.h"

namespace netsim {

class Recorder {
 public:
  // `tables`: may be null; must outlive the recorder.
  explicit Recorder(Tables* tables) : tables_(tables) {}

  void record(const TaskRecord& task);
  void record(const CommunicationRecord& communication);
  void record(const FlowRecord& flow);

  FlowTimes flow_times() const { return netsim::flow_times(flow_times_); }
  Slowdowns slowdowns() const;
  // Of the flows in bin `bin` of kSizeBins.
  Slowdowns slowdowns(std::size_t bin) const;
  // Hash of the end times of all that was recorded, whatever the order, and of the counters given.
  std::uint64_t fingerprint(const NetworkCounters& network, const std::vector<LinkResult>& links) const;

 private:
  Tables* tables_;
  Fingerprint ends_;
  ValueList flow_times_;                                       // 8 B a flow
  std::array<Quantiles, kSizeBins.size()> slowdowns_by_size_;  // millionths; 8 B a flow up to a number
};

}  // namespace netsim
