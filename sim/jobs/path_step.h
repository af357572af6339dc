// PathStep: a step of a critical path. PathSummary: the sum of the steps of an iteration. See
// critical_path.h.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "sim/core/index.h"
#include "sim/transport/message_delays.h"
#include "sim/workload/task_source.h"

namespace netsim {

struct PathStep {
  enum class Kind : std::uint8_t {
    compute,
    launch,           // library overhead: latencies before a message leaves, copies after the last one
    transfer,         // a message, from its sender's endpoint to its receiver
    acknowledgement,  // a message and its acknowledgement, which end a point-to-point sender
    circuits,         // from the last member's request for optical circuits until they are up
    communication,    // not known in parts: from the last member's or the sender's start to the end
    held,             // nothing ran: an earliest start
    scheduler         // nothing ran: a task scheduler held the communication that begins at the end
  };
  Kind kind = Kind::held;
  Stream stream = Stream::compute;
  CollectiveKind collective = CollectiveKind::point_to_point;  // kind of a communication
  RankId rank = 0;                                             // rank at which it ended
  std::uint32_t task = 0;                                      // task id at that rank
  std::uint32_t name = 0;                                      // TaskSource::name()
  std::uint64_t id = 0;                                        // id of a communication
  std::uint32_t source = kNoIndex, destination = kNoIndex;     // GPUs of a transfer or an acknowledgement
  Time begin = 0, end = 0;
  // Parts of a transfer's duration, which add up to it (PortDelay, MessageDelays). `at_sender` is the rest
  // that those do not cover.
  Time propagation = 0, transmission = 0, queueing = 0, paused = 0, at_sender = 0;
  // Transmission, queueing and paused time by port. The span is valid only during the call that is given the
  // step.
  std::span<const PortDelay> ports;
};

const char* to_string(PathStep::Kind kind);

// PathSummary: the path of one iteration, added up. The times add up to the iteration's duration.
struct PathSummary {
  void add(const PathStep& step);

  Time compute = 0;
  Time held = 0;       // nothing ran
  Time scheduler = 0;  // part of `held` in which a task scheduler held a communication
  std::array<Time, kStreams> communication{};  // by stream: all time that is neither of those
  // The time of `communication`, divided by its cause.
  Time launch = 0, propagation = 0, transmission = 0, queueing = 0, paused = 0, at_sender = 0;
  Time acknowledgement = 0, circuits = 0, undivided = 0;
  std::uint64_t steps = 0;
};

}  // namespace netsim
