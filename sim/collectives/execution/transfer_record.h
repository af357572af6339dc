// TransferRecord: what the executor tells of its operations, for critical paths: each release, when a
// message, a credit or an acknowledgement lets a thread block go on that had waited for it. Thread blocks
// that go on because of another one of their channel do so by the same release. A message says which release
// let its sender send it, so nothing is told of it unless it is one itself.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>

#include "sim/core/units.h"
#include "sim/transport/message_delays.h"

namespace netsim {

// A release of an operation at one GPU. Plain data: a journal is an array of them. The releases of an
// operation there are numbered from 1, in the order in which they are told.
struct TransferRecord {
  enum class Kind : std::uint8_t {
    delivered,    // a message from `peer` is at `gpu`
    acknowledged  // a message to `peer` is acknowledged, the last that `gpu` waited for
  };
  std::uint64_t communication = 0;
  std::uint32_t job = 0;
  std::uint32_t gpu = 0, peer = 0;
  // By which the message's sender sent it; 0: as it began.
  std::uint32_t sent_by = 0;
  Time time = 0;
  Time launch = 0;  // from then (0: from the sender's start) until the message was handed to the endpoint
  Time propagation = 0;  // delivered: as in MessageDelays
  Kind kind = Kind::delivered;
};
static_assert(std::is_trivially_copyable_v<TransferRecord>);

// Called from the thread that runs `gpu`. `ports`: as in MessageDelays.
using TransferTrace = std::function<void(const TransferRecord&, std::span<const PortDelay> ports)>;

}  // namespace netsim
