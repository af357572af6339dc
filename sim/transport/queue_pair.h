// Queue pairs as plain data: the sender's half, the receiver's half, and a record that is used rarely. Each
// belongs to one atom, and only that atom's logical process uses it while events run. Private to the packet
// network.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/core/ids.h"
#include "sim/core/units.h"
#include "sim/topology/graph.h"
#include "sim/transport/congestion/congestion_control.h"

namespace netsim {

inline constexpr std::uint32_t kNone = UINT32_MAX;
inline constexpr BitRate kNoRateLimit = INT64_MAX;

// The sender's half of a queue pair, at the source's NIC. The first cache line holds what making a packet
// uses.
struct alignas(64) SenderState {
  std::uint32_t path = 0;      // index of the first step after the first port, for data
  std::uint32_t injector = 0;  // index in Injectors
  std::uint32_t next_psn = 0;
  std::uint32_t acknowledged = 0;  // first psn not acknowledged
  std::uint32_t sent_end = 0;      // one past the highest psn ever sent
  std::uint32_t current = kNone;   // segment of next_psn; kNone: nothing to send
  // The psn that packet 0 of its message would have if the message were one segment.
  std::uint32_t current_first = 0;
  std::uint32_t current_end = 0;      // one past the segment's last psn
  std::uint32_t window = UINT32_MAX;  // unacknowledged packets below which a packet may start
  std::uint32_t next_ready = kNone;
  BitRate rate = 0;
  BitRate line_rate = 0;
  std::uint32_t mtu = 0;
  std::uint16_t overhead = 0;  // bytes on the wire that pacing counts
  std::uint8_t traffic_class = 0;
  bool scale_up : 1 = false;     // sent in pieces, without headers and acknowledgements
  bool aggregation : 1 = false;  // sent through switches that copy and sum; scale_up is set too
  // Only missing packets are sent again (ReliabilityPlan). With `aggregation`: into a pool of slots.
  bool selective : 1 = false;
  std::uint8_t ask_shift : 5 = 0;  // requests an ACK at least once in 1 << ask_shift packets

  Time pace_at = 0;
  std::uint64_t digest = 0;
  bool ready : 1 = false;   // in its injector's ring
  bool pacing : 1 = false;  // a pace event is pending
  bool timer : 1 = false;   // the retransmission event of QueuePairRecord::timer_event is pending
  bool failed : 1 = false;
  bool counted : 1 = false;    // see Outstanding
  bool timed_out : 1 = false;  // QueuePairRecord::timeouts is not 0
  bool limited : 1 = false;    // one of its messages had a limit or path hint: see PaceLimits
  // With limits: the next packet may be of another message than the last one, or its message's limit or path
  // has changed. Only then are they looked up (Sender::renew_limits).
  bool renews_limits : 1 = true;
  std::uint8_t transport = 0;     // index in TransportState::transports
  std::uint16_t unrequested = 0;  // packets before next_psn sent after the last one that requested an ACK
  std::uint32_t last_paced = 0;   // bytes that the present wait is for
  // Lists of segments and messages; see SendQueues.
  std::uint32_t oldest = kNone;                         // first segment not fully acknowledged
  std::uint32_t oldest_end = 0;                         // one past its last psn
  std::uint32_t newest = kNone;                         // newest segment
  std::uint32_t waiting = kNone, last_waiting = kNone;  // messages with packets to be made
  std::uint32_t messages = 0;                           // number of messages sent
  // Start of the retransmission timer; see Sender::begin_timer.
  Time timer_began = 0;
  Bytes congestion_window = kNoWindow;  // window that congestion control set last
};
static_assert(sizeof(SenderState) == 128);

// Properties of a queue pair's path for congestion control.
struct alignas(16) PathConstants {
  Time base_rtt = 0;
  std::uint32_t hops = 0;
};

// The receiver's half of a queue pair, at the destination.
struct alignas(64) ReceiverState {
  // Hash of source, destination, class and number. It identifies the flow for ECMP and fingerprints.
  std::uint64_t key = 0;
  Time last_cnp = 0;
  std::uint64_t digest = 0;
  std::uint32_t expected = 0;
  std::uint32_t marked = 0;     // marked packets since the last ACK
  std::uint32_t latest = 0;     // psn of the last packet that arrived out of order
  std::uint32_t back_path = 0;  // index of the first step after the first port, for ACKs
  PortId back_port = kNoId;     // the NIC's port; kNoId within a host, where nothing is acknowledged
  PortId gpu_port = 0;          // the NIC's port towards the GPU
  bool cnp_sent : 1 = false;
  bool nack_sent : 1 = false;
  bool pcie : 1 = false;             // packets go on to the GPU over PCIe
  bool counted : 1 = false;          // see Outstanding
  bool selective : 1 = false;        // as in SenderState
  bool reacts_to_marks : 1 = false;  // its congestion control reacts to ECN marks
  bool echo_in_acks : 1 = false;     // marks are counted and returned in ACKs, otherwise as CNPs
  std::uint8_t traffic_class = 0;
  std::uint8_t transport = 0;                    // as in SenderState
  std::uint32_t oldest = kNone, newest = kNone;  // messages to be delivered; see Receiver
};
static_assert(sizeof(ReceiverState) == 64);

// Counts what is in flight between the two halves of a queue pair, and its timers. It is kept for queue pairs
// that end with one message. They are reused when at most a retransmission timer in the line (TimerQueue) is
// left.
//
// After a packet loss the counts never agree again, and the queue pair is not reused.
struct Outstanding {
  std::uint32_t sent = 0, heard = 0;        // sender: data packets made, replies received
  std::uint32_t timers = 0;                 // pending events of the sender
  std::uint32_t line = kNone;               // place of one of them in the TimerQueue; kNone: none
  std::uint32_t received = 0, replied = 0;  // receiver: data packets received, replies made
  std::uint32_t reply_timers = 0;           // pending events of the receiver
  bool none() const {
    return sent == received && heard == replied && timers == (line == kNone ? 0U : 1U) && reply_timers == 0;
  }
};

// State of a queue pair of which a message had a rate limit, a gap or a path hint (TransferTraits).
struct alignas(32) PaceLimits {
  BitRate paced_at_most = kNoRateLimit;  // rate limit of the packet that was made last
  std::uint32_t paced_for = kNone;       // message of that packet; kNone: it was its message's last one
  // Message whose last packet was the last one made; kNone if that message goes on.
  std::uint32_t ended = kNone;
  std::uint32_t rests = kNone;  // first of its connections that rest (SendQueues)
  std::uint32_t own_path = 0;   // SenderState::path of messages without a path hint
  // Time at which the rate limit allows the next packet. kNever: no packet of the present message was paced
  // by its limit.
  Time due = kNever;
};

// Identity of a queue pair.
struct QueuePairIdentity {
  GpuId source, destination;  // no source: the id waits to be reused
  JobId job = 0;
  std::uint32_t number = 0;  // among the queue pairs of the two GPUs with this job and class
  std::uint32_t use = 0;     // how often the id has been given to a queue pair
};

// Space for a path among the fabric's steps. `room` is the number of steps; 0 means no path.
struct PathPlace {
  std::uint32_t first = 0;
  std::uint32_t room = 0;
};

// A path of a queue pair for messages with a path hint. The paths of a queue pair form a list.
struct HintedPath {
  std::uint32_t hint = kNoPathHint;  // kNoPathHint: the path is not in use
  PathPlace place;
  std::uint32_t next = kNone;
  std::uint32_t path() const { return place.first + 1; }  // as SenderState::path
};

// Ideal time of a message of so many bytes, because nearly all messages of a queue pair have one size. See
// IdealTimes.
struct IdealMessage {
  Bytes bytes = 0;  // 0: nothing is known yet
  Time time = 0;
  std::uint64_t changes = 0;  // IdealTimes::changes() when `time` was computed
};

// Data of a queue pair that is used rarely.
struct QueuePairRecord {
  QueuePairIdentity identity;
  PathPlace data, back;          // paths of packets and of their replies
  PathPlace idle;                // ports of a way from GPU to GPU, for ideal times; no packet takes it
  Bytes acknowledged = 0;        // payload bytes of the segments that are acknowledged completely
  std::uint32_t held = 0;        // number of held messages
  std::uint32_t hinted = kNone;  // first HintedPath (SendQueues)
  double efficiency = 1;     // with an aggregation group: payload divided by the bytes it takes on the wire
  std::uint32_t header = 0;  // with an aggregation group: bytes added to each packet
  std::uint32_t slots = 0;   // with a pool of slots: number of its SlotWindow at the sender
  // With an aggregation group: its session (AggregationDirectory), and its member among those of the session.
  std::uint32_t session = 0, member = 0;
  std::uint32_t tree_number = 0;  // of the session's tree, in order of creation with one logical process
  PortId wire = kNoId;            // with a tree: the NIC's port
  bool tree = false;              // it leads into a tree over a fabric
  std::uint32_t timeouts = 0;     // retransmission timeouts in a row
  Time timer_event = 0;           // time of the retransmission event that counts; others are out of date
  Time waited = 0;                // total time spent in timeouts
};

}  // namespace netsim
