// Recorder: hears of every task, communication and flow that ended, and keeps what the report needs of them:
// the `results` fingerprint, the flow completion times, and the streamed tables if there are any.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/fingerprint.h"
#include "sim/report/results.h"
#include "sim/report/tables.h"

namespace netsim {

class Recorder {
 public:
  // `tables`: may be null; must outlive the recorder.
  explicit Recorder(Tables* tables) : tables_(tables) {}

  void record(const TaskRecord& task);
  void record(const CommunicationRecord& communication);
  void record(const FlowRecord& flow);

  FlowTimes flow_times() const { return netsim::flow_times(flow_times_); }
  // Hash of the end times of all that was recorded, whatever the order, and of the counters given.
  std::uint64_t fingerprint(const NetworkCounters& network, const std::vector<LinkResult>& links) const;

 private:
  Tables* tables_;
  Fingerprint ends_;
  std::vector<Time> flow_times_;  // 8 B a flow
};

}  // namespace netsim
