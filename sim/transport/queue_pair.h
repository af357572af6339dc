// Queue pairs as plain data: what sender and receiver, a NIC's arbitration and a message in flight consist
// of. Private to the packet network.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/core/config.h"
#include "sim/network/policies.h"
#include "sim/topology/graph.h"
#include "sim/transport/congestion/congestion_control.h"
#include "sim/transport/endpoint.h"
#include "sim/transport/psn_window.h"

namespace netsim {

// What packets carry besides payload, in bytes as buffers count them.
struct Framing {
  std::uint32_t header = 0;        // of every data packet
  std::uint32_t first_header = 0;  // more in a message's first packet
  std::uint32_t ack = 0;           // whole ACK or NACK
  std::uint32_t cnp = 0;           // whole congestion notification
};
enum class FramingKind : std::uint8_t { roce_v2, infiniband, ns3 };
Framing framing(FramingKind kind);

enum class EcnEcho : std::uint8_t { cnp, ack };

// `transport.acknowledge`.
struct AcknowledgeParameters {
  std::optional<std::int64_t> every;  // a power of two; PacketNetwork::acknowledging() has the default
};

// The `transport` section.
struct TransportParameters {
  Bytes mtu = 4096;
  std::int64_t queue_pairs = 4;
  AcknowledgeParameters acknowledge;
  FramingKind framing = FramingKind::roce_v2;
  EcnEcho ecn_echo = EcnEcho::cnp;
  Bytes nic_buffer = 64 * kKibibyte;
  ConfigNode reliability;
  Time retransmission_timeout = 67'108'864 * kNanosecond;
  std::int64_t retransmission_backoff = 1;
  std::int64_t retries = 7;
  Bytes window = 0;
  bool window_scales = false;
  Time base_rtt = 0;
  ConfigNode congestion_control;
};

inline constexpr std::uint32_t kNone = UINT32_MAX;
inline constexpr BitRate kNoRateLimit = INT64_MAX;

// What the receiver knows of a message, from when its last packet was made until it is delivered: messages of
// a queue pair end in the order in which their last packets were made, whatever the order of their
// beginnings.
struct Incoming {
  SendRequest request;
  Time start = 0;
  std::uint32_t number = 0;    // within its queue pair, in order of send()
  std::uint32_t next = kNone;  // of the queue pair, in order of their ends
};

// The sender's half of a queue pair, at the source's NIC. The first cache line is what making a packet
// touches.
struct alignas(64) Sender {
  std::uint32_t path = 0;  // of data, after the first port
  std::uint32_t injector = 0;
  std::uint32_t next_psn = 0;
  std::uint32_t acknowledged = 0;     // first psn not acknowledged
  std::uint32_t sent_end = 0;         // one past the highest psn ever sent
  std::uint32_t current = kNone;      // segment that next_psn belongs to; kNone: nothing to send
  std::uint32_t current_first = 0;    // psn that its message's first packet would have in a row
  std::uint32_t current_end = 0;      // one past its last psn
  std::uint32_t window = UINT32_MAX;  // packets that may be unacknowledged when one is started
  std::uint32_t next_ready = kNone;
  BitRate rate = 0;
  BitRate line_rate = 0;
  std::uint32_t mtu = 0;
  std::uint16_t overhead = 0;  // of the wire, which pacing counts
  std::uint8_t traffic_class = 0;
  bool scale_up = false;

  Time pace_at = 0;
  std::uint64_t digest = 0;
  bool ready : 1 = false;   // in its injector's ring
  bool pacing : 1 = false;  // a pace event is pending
  bool timer : 1 = false;   // a retransmission event is pending
  bool failed : 1 = false;
  bool counted : 1 = false;       // see Outstanding
  bool unasked : 1 = false;       // when the timer was set, no answer was due
  bool limited : 1 = false;       // a message of it had a rate limit
  std::uint16_t unrequested = 0;  // packets before next_psn that were sent after the last request for an ACK
  std::uint32_t last_paced = 0;   // bytes that the wait that has begun is for
  // See SendQueues.
  std::uint32_t oldest = kNone;                         // first segment not fully acknowledged
  std::uint32_t oldest_end = 0;                         // one past its last psn
  std::uint32_t newest = kNone;                         // segment
  std::uint32_t waiting = kNone, last_waiting = kNone;  // messages with packets to be made
  std::uint32_t messages = 0;                           // that were sent
  std::uint32_t timer_snapshot = 0;                     // `acknowledged` when the timer was set
  std::uint32_t timeouts = 0;                           // in a row
  Bytes congestion_window = kNoWindow;                  // what congestion control last said
};
static_assert(sizeof(Sender) == 128);

// What congestion control is told of a queue pair's path.
struct alignas(16) PathConstants {
  Time base_rtt = 0;
  std::uint32_t hops = 0;
};

// The receiver's half, at the destination.
struct alignas(64) Receiver {
  std::uint64_t key = 0;  // hash of (source, destination, number): names the flow in fingerprints
  Time last_cnp = 0;
  std::uint64_t digest = 0;
  std::uint32_t expected = 0;
  std::uint32_t marked = 0;     // packets with a mark since the last ACK
  std::uint32_t latest = 0;     // psn of the last packet that came out of order
  std::uint32_t back_path = 0;  // of ACKs, after the first port
  PortId back_port = kNoId;     // the NIC's port; kNoId: within a host, where nothing is acknowledged
  PortId gpu_port = 0;          // the NIC's port to the GPU
  bool cnp_sent : 1 = false;
  bool nack_sent : 1 = false;
  bool pcie : 1 = false;     // goes on to the GPU over PCIe
  bool counted : 1 = false;  // see Outstanding
  std::uint8_t traffic_class = 0;
  std::uint32_t oldest = kNone, newest = kNone;  // messages that have not been delivered
};
static_assert(sizeof(Receiver) == 64);

// What is on its way between the two halves of a queue pair, and of its timers: counted for those that are
// over with one message, so that they can be used again when nothing is left but a retransmission timer that
// stands in line (timer_line.h). Where a packet is lost the counts never agree again, and the queue pair
// stays.
struct Outstanding {
  std::uint32_t sent = 0, heard = 0;        // data packets made, replies taken: the sender's
  std::uint32_t timers = 0;                 // events of the sender that are pending
  std::uint32_t line = kNone;               // where one of them stands in line; kNone: none does
  std::uint32_t received = 0, replied = 0;  // the receiver's
  bool none() const { return sent == received && heard == replied && timers == (line == kNone ? 0U : 1U); }
};

// What came out of order; `asking`: within a message, with a request for an ACK, which the last one always
// has.
enum class Kept : std::uint8_t { absent, inner, asking, last };

// What selective repeat remembers of a queue pair besides.
struct Selective {
  // Sender: what arrived out of order, and which of the gaps are to be sent again.
  PsnWindow<std::uint8_t> arrived{0};
  std::uint32_t arrived_count = 0;
  std::uint32_t repeat_next = 0;  // gaps before this one have been sent again
  std::uint32_t repeat_end = 0;   // gaps before this one are to be
  std::uint32_t timer_end = 0;    // next_psn when the retransmission timer was set
  Time last_sent = 0;             // when a packet was last made
  Time quiet_since = 0;           // when the first of the timeouts in a row began
  // Receiver: the packets that came out of order.
  PsnWindow<Kept> kept{Kept::absent};
};

// What makes packets for one first port: a NIC (Ethernet port, or the PCIe link that feeds it), or a GPU's
// NVLink port.
struct Injector {
  struct Ring {
    std::uint32_t head = kNone, tail = kNone;
  };
  PortId port = 0;
  std::uint32_t gate = kNone;  // PCIe: limits what is between GPU and wire
  std::uint32_t ready = 0;     // bit per class with a ring that is not empty
  // Queue pairs that may send, by class, served round robin.
  std::array<Ring, kMaxClasses> rings;
};

// PCIe's flow control towards the wire: data that a NIC may hold ahead of it.
struct Gate {
  Bytes credit = 0;
  std::vector<std::uint32_t> injectors;
};

// Who a queue pair is.
struct QueuePairIdentity {
  std::uint32_t source = kNone, destination = kNone;  // GPUs; source kNone: it waits to be used again
  std::uint32_t job = 0;
  std::uint32_t number = 0;  // among those of these two GPUs, this job and class
  std::uint32_t use = 0;     // how often its number has been given to a queue pair
};

// Where there is room for a path among the fabric's steps. `room`: steps there, 0: no path.
struct PathPlace {
  std::uint32_t first = 0;
  std::uint32_t room = 0;
};

// What is asked of a queue pair now and then, beside its two halves.
struct QueuePairRecord {
  QueuePairIdentity identity;
  PathPlace data, back;    // of packets, of their replies
  PathPlace idle;          // the ports of a way from GPU to GPU, for ideal times; no packet takes it
  Bytes acknowledged = 0;  // payload of the segments that are acknowledged as a whole
  std::uint32_t held = 0;  // messages
  BitRate paced_at_most = kNoRateLimit;  // of the message of the packet made last
};

}  // namespace netsim
