// TransferRecord: what the executor tells of the messages of its operations, for critical paths: from which
// thread block a message left, where its time went, and which message, acknowledgement or other thread block
// let a thread block go on.
#pragma once

#include <cstdint>
#include <functional>
#include <type_traits>

#include "sim/core/units.h"
#include "sim/transport/message_delays.h"

namespace netsim {

// Of one thread block of an operation. Plain data: a journal is an array of them. Records of one GPU come in
// the order of what happened there; what a thread block sends because of something is told after that.
struct TransferRecord {
  enum class Kind : std::uint8_t {
    posted,        // `gpu`'s thread block sends a message to `peer`
    waited,        // at one port: the message that is told of as delivered next
    delivered,     // a message from `peer` is at `gpu`
    acknowledged,  // a message to `peer` is acknowledged that awaits it
    followed       // `gpu`'s thread block went on because its thread block `peer` did
  };
  Kind kind = Kind::posted;
  bool went_on = false;                 // delivered, acknowledged: the thread block had waited for it
  bool awaits_acknowledgement = false;  // posted: its sender does not end before
  std::uint32_t job = 0;
  std::uint64_t communication = 0;
  std::uint32_t gpu = 0, peer = 0, block = 0;
  // posted, delivered, acknowledged: which of its sender's, of all jobs, in the order in which they were
  // posted.
  std::uint64_t message = 0;
  Time time = 0;
  Time launch = 0;       // posted: until the message is handed to the endpoint
  Time propagation = 0;  // delivered, went_on: as in MessageDelays
  PortDelay delay;       // the same: at the first port told of there; waited: at another one
};
static_assert(std::is_trivially_copyable_v<TransferRecord>);

// Called from the thread that runs `gpu`.
using TransferTrace = std::function<void(const TransferRecord&)>;

}  // namespace netsim
