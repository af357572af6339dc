// Queue pairs as plain data: the sender's half, the receiver's half, and what is asked of them now and then.
// Each belongs to one atom, whose set alone touches it while events run. Private to the packet network.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/core/units.h"
#include "sim/topology/graph.h"
#include "sim/transport/congestion/congestion_control.h"

namespace netsim {

inline constexpr std::uint32_t kNone = UINT32_MAX;
inline constexpr BitRate kNoRateLimit = INT64_MAX;

// The sender's half of a queue pair, at the source's NIC. The first cache line is what making a packet
// touches.
struct alignas(64) SenderState {
  std::uint32_t path = 0;      // of data, after the first port
  std::uint32_t injector = 0;  // see Injectors
  std::uint32_t next_psn = 0;
  std::uint32_t acknowledged = 0;     // first psn not acknowledged
  std::uint32_t sent_end = 0;         // one past the highest psn ever sent
  std::uint32_t current = kNone;      // segment that next_psn belongs to; kNone: nothing to send
  std::uint32_t current_first = 0;    // psn of packet 0 of its message, as if the message were one segment
  std::uint32_t current_end = 0;      // one past the segment's last psn
  std::uint32_t window = UINT32_MAX;  // packets that may be unacknowledged when one is started
  std::uint32_t next_ready = kNone;
  BitRate rate = 0;
  BitRate line_rate = 0;
  std::uint32_t mtu = 0;
  std::uint16_t overhead = 0;  // of the wire, which pacing counts
  std::uint8_t traffic_class = 0;
  bool scale_up : 1 = false;       // in pieces, without headers and acknowledgements
  bool fan : 1 = false;            // through switches that copy and add up; scale_up, too
  bool selective : 1 = false;      // repeats only what is missing (ReliabilityPlan)
  std::uint8_t ask_shift : 5 = 0;  // asks for an ACK in one of at most 1 << ask_shift packets

  Time pace_at = 0;
  std::uint64_t digest = 0;
  bool ready : 1 = false;   // in its injector's ring
  bool pacing : 1 = false;  // a pace event is pending
  bool timer : 1 = false;   // the retransmission event of QueuePairRecord::timer_event is pending
  bool failed : 1 = false;
  bool counted : 1 = false;       // see Outstanding
  bool timed_out : 1 = false;     // QueuePairRecord::timeouts is not 0
  bool limited : 1 = false;       // a message of it had limits: see PaceLimits
  std::uint8_t transport = 0;     // that it works by: see TransportState
  std::uint16_t unrequested = 0;  // packets before next_psn that were sent after the last request for an ACK
  std::uint32_t last_paced = 0;   // bytes that the wait that has begun is for
  // See SendQueues.
  std::uint32_t oldest = kNone;                         // first segment not fully acknowledged
  std::uint32_t oldest_end = 0;                         // one past its last psn
  std::uint32_t newest = kNone;                         // segment
  std::uint32_t waiting = kNone, last_waiting = kNone;  // messages with packets to be made
  std::uint32_t messages = 0;                           // that were sent
  // When the retransmission timer began: see Sender::begin_timer.
  Time timer_began = 0;
  Bytes congestion_window = kNoWindow;  // what congestion control last said
};
static_assert(sizeof(SenderState) == 128);

// What congestion control is told of a queue pair's path.
struct alignas(16) PathConstants {
  Time base_rtt = 0;
  std::uint32_t hops = 0;
};

// The receiver's half, at the destination.
struct alignas(64) ReceiverState {
  std::uint64_t key = 0;  // hash of (source, destination, class, number): the flow in ECMP and fingerprints
  Time last_cnp = 0;
  std::uint64_t digest = 0;
  std::uint32_t expected = 0;
  std::uint32_t marked = 0;     // packets with a mark since the last ACK
  std::uint32_t latest = 0;     // psn of the last packet that came out of order
  std::uint32_t back_path = 0;  // of ACKs, after the first port
  PortId back_port = kNoId;     // the NIC's port; kNoId: within a host, where nothing is acknowledged
  PortId gpu_port = 0;          // the NIC's port towards the GPU
  bool cnp_sent : 1 = false;
  bool nack_sent : 1 = false;
  bool pcie : 1 = false;          // goes on to the GPU over PCIe
  bool counted : 1 = false;       // see Outstanding
  bool selective : 1 = false;     // as the sender's
  bool hears_marks : 1 = false;   // marks mean something to its congestion control:
  bool echo_in_acks : 1 = false;  // they are counted and go back in ACKs, or else as CNPs
  std::uint8_t traffic_class = 0;
  std::uint8_t transport = 0;                    // as the sender's
  std::uint32_t oldest = kNone, newest = kNone;  // messages that are to end here, see Receiver
};
static_assert(sizeof(ReceiverState) == 64);

// What is on its way between the two halves of a queue pair, and of its timers: counted for those that are
// over with one message, so that they can be used again when nothing is left but a retransmission timer that
// stands in line (TimerLine). Where a packet is lost the counts never agree again, and the queue pair
// stays.
struct Outstanding {
  std::uint32_t sent = 0, heard = 0;        // data packets made, replies taken: the sender's
  std::uint32_t timers = 0;                 // events of the sender that are pending
  std::uint32_t line = kNone;               // where one of them stands in line; kNone: none does
  std::uint32_t received = 0, replied = 0;  // the receiver's
  bool none() const { return sent == received && heard == replied && timers == (line == kNone ? 0U : 1U); }
};

// State of a queue pair some message of which had a rate limit or a gap (TransferTraits).
struct alignas(32) PaceLimits {
  BitRate current = kNoRateLimit;        // rate limit of the current segment's message
  BitRate paced_at_most = kNoRateLimit;  // rate limit of the packet that was made last
  std::uint32_t ended = kNone;  // message whose last packet was made last; kNone: there was more of it
  std::uint32_t rests = kNone;  // first of its connections that rest (SendQueues)
};

// Who a queue pair is.
struct QueuePairIdentity {
  std::uint32_t source = kNone, destination = kNone;  // GPUs; source kNone: it waits to be used again
  std::uint32_t job = 0;
  std::uint32_t number = 0;  // among those of these two GPUs, this job and this class
  std::uint32_t use = 0;     // how often its number has been given to a queue pair
};

// Where there is room for a path among the fabric's steps. `room`: steps there, 0: no path.
struct PathPlace {
  std::uint32_t first = 0;
  std::uint32_t room = 0;
};

// What a message of so many bytes takes alone in the network: nearly all messages of a queue pair have one
// size. See IdealTimes.
struct IdealMessage {
  Bytes bytes = 0;  // 0: nothing is known yet
  Time time = 0;
  std::uint64_t changes = 0;  // of links and routes until it was worked out
};

// What is asked of a queue pair now and then, beside its two halves.
struct QueuePairRecord {
  QueuePairIdentity identity;
  PathPlace data, back;        // of packets, of their replies
  PathPlace idle;              // the ports of a way from GPU to GPU, for ideal times; no packet takes it
  Bytes acknowledged = 0;      // payload of the segments that are acknowledged as a whole
  std::uint32_t held = 0;      // messages
  double efficiency = 1;       // of a fan: payload by what it takes on the wire...
  std::uint32_t header = 0;    // ... and what each packet has besides
  std::uint32_t timeouts = 0;  // of retransmission, in a row
  Time timer_event = 0;        // when the retransmission event comes that counts; others are out of date
  Time waited = 0;             // in timeouts, all together
};

}  // namespace netsim
