// TransferRecord: the executor's record of a release, for critical paths. A release is the moment when a
// message, a credit or an acknowledgement lets a waiting thread block continue. Thread blocks of a channel
// that continue because of another one belong to the same release. A message names the release that let its
// sender send it. So a message that releases nothing needs no record.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>

#include "sim/core/units.h"
#include "sim/transport/message_delays.h"

namespace netsim {

// A release of an operation at one GPU. It is plain data: a journal is an array of records. The releases of
// an operation at a GPU are numbered from 1, in the order in which they are reported.
struct TransferRecord {
  enum class Kind : std::uint8_t {
    delivered,    // a message from `peer` has arrived at `gpu`
    acknowledged  // the last message that `gpu` waited for, to `peer`, is acknowledged
  };
  std::uint64_t communication = 0;
  std::uint32_t job = 0;
  std::uint32_t gpu = 0, peer = 0;
  // Release by which the message's sender sent it; 0: the start of its operation.
  std::uint32_t sent_by = 0;
  Time time = 0;
  // Time from that release (0: from the sender's start) until the message was handed to the endpoint.
  Time launch = 0;
  Time propagation = 0;  // for `delivered`: as in MessageDelays
  Kind kind = Kind::delivered;
};
static_assert(std::is_trivially_copyable_v<TransferRecord>);

// Called from the thread that runs `gpu`. `ports` is as in MessageDelays.
using TransferTrace = std::function<void(const TransferRecord&, std::span<const PortDelay> ports)>;

}  // namespace netsim
