// Endpoint: how messages go from one GPU to another. Executors know nothing of packets, so the packet network
// and the ideal one are two Endpoints.
#pragma once

#include <cstdint>

#include "sim/core/units.h"
#include "sim/transport/transfer_traits.h"

namespace netsim {

// What joins two GPUs: decides which latencies, channels and queue pairs a collective uses there.
enum class Reach : std::uint8_t {
  self,
  scale_up,   // same host: NVLink through the host's switch stage
  scale_out,  // through NICs and the fabric
  ideal       // `network: ideal`: no cost anywhere
};

struct SendRequest {
  std::uint32_t source = 0;       // GPU
  std::uint32_t destination = 0;  // GPU
  Bytes bytes = 0;                // > 0
  TransferTraits traits;
  std::uint32_t name = 0;           // what the workload calls the communication (for tables)
  std::uint64_t communication = 0;  // the collective or point-to-point operation it belongs to (for tables)
  std::uint64_t tag = 0;            // the receiver's business
  Time started = 0;                 // the sender's start of the communication (carried to the receiver)
};

// Who is told. All calls come from events of the atom of the GPU in question, at loop.now().
class MessageListener {
 public:
  virtual ~MessageListener() = default;
  // The last byte is at the destination.
  virtual void message_delivered(const SendRequest& message) = 0;
  // The sender may reuse its buffer: the last acknowledgement came back (scale-out), or the message was
  // delivered (within a host, ideal).
  virtual void message_sent(const SendRequest& message) = 0;
};

class Endpoint {
 public:
  virtual ~Endpoint() = default;
  virtual void set_listener(MessageListener* listener) = 0;
  virtual void send(const SendRequest& request) = 0;
  virtual Reach reach(std::uint32_t source, std::uint32_t destination) const = 0;
  virtual std::uint32_t gpu_count() const = 0;
};

}  // namespace netsim
