// PathStep: a step of a critical path, and PathSummary, the steps of an iteration added up. See
// critical_path.h.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "sim/core/index.h"
#include "sim/transport/message_delays.h"
#include "sim/workload/task.h"

namespace netsim {

struct PathStep {
  enum class Kind : std::uint8_t {
    compute,
    launch,           // what the library costs before a message leaves: base latency, latency of a hop
    transfer,         // a message, from its sender's endpoint to its receiver
    acknowledgement,  // a message and its acknowledgement: the end of a point-to-point sender
    circuits,         // from the last member's request for optical circuits until they are lit
    communication,    // not known in parts: from the last member's arrival, or the sender's start, to the end
    held              // nothing ran: an earliest start, a task scheduler
  };
  Kind kind = Kind::held;
  Stream stream = Stream::compute;
  CollectiveKind collective = CollectiveKind::point_to_point;  // of a communication
  std::uint32_t rank = 0;                                      // where it ended
  std::uint32_t task = 0;                                      // there
  std::uint32_t name = 0;                                      // TaskSource::name()
  std::uint64_t id = 0;                                        // of a communication
  std::uint32_t source = kNoIndex, destination = kNoIndex;     // GPUs of a transfer or an acknowledgement
  Time begin = 0, end = 0;
  // What of a transfer is what: see PortDelay and MessageDelays; at_sender: all that those do not name. They
  // add up to its duration.
  Time propagation = 0, transmission = 0, queueing = 0, paused = 0, at_sender = 0;
  // transmission, queueing and paused by port; as long as the call lasts that is given the step.
  std::span<const PortDelay> ports;
};

const char* to_string(PathStep::Kind kind);

// The path of one iteration, added up. The times add up to its duration.
struct PathSummary {
  void add(const PathStep& step);

  Time compute = 0, held = 0;
  std::array<Time, kStreams> communication{};  // by stream: all that is neither
  // The same by what it was.
  Time launch = 0, propagation = 0, transmission = 0, queueing = 0, paused = 0, at_sender = 0;
  Time acknowledgement = 0, circuits = 0, undivided = 0;
  std::uint64_t steps = 0;
};

}  // namespace netsim
