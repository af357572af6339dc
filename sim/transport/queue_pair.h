// Queue pairs as plain data: what sender and receiver, a NIC's arbitration and a message in flight consist
// of. Private to the packet network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/core/config.h"
#include "sim/topology/graph.h"
#include "sim/transport/congestion_control.h"
#include "sim/transport/endpoint.h"

namespace netsim {

// RoCEv2 framing (InfiniBand Architecture Specification 1.4, annex A17): Ethernet 14, IPv4 20, UDP 8, BTH 12,
// ICRC 4, FCS 4; RETH 16 in a message's first packet; AETH 4 in an ACK. A CNP carries 16 reserved bytes after
// the BTH.
constexpr std::uint32_t kHeaderBytes = 62, kRethBytes = 16, kAckBytes = 66, kCnpBytes = 78;

// The `transport` section.
struct TransportParameters {
  Bytes mtu = 4096;
  std::int64_t queue_pairs = 4;
  std::int64_t ack_every = 1;
  Bytes nic_buffer = 64 * kKibibyte;
  Time retransmission_timeout = 67'108'864 * kNanosecond;
  std::int64_t retries = 7;
  ConfigNode congestion_control;
};

inline constexpr std::uint32_t kNone = UINT32_MAX;

struct Message {
  SendRequest request;
  Time start = 0;
  std::uint64_t number = 0;    // within its queue pair
  std::uint32_t next = kNone;  // in the queue pair, oldest first
  std::uint32_t first_psn = 0;
  std::uint32_t packets = 0;
  std::uint32_t holders = 0;  // sender until acknowledged, receiver until delivered
};

// The sender's half of a queue pair, at the source's NIC.
struct alignas(64) Sender {
  std::uint32_t path = 0;  // of data, after the first port
  std::uint32_t injector = 0;
  std::uint32_t next_psn = 0;
  std::uint32_t acknowledged = 0;  // first psn not acknowledged
  std::uint32_t sent_end = 0;      // one past the highest psn ever sent
  std::uint32_t current = kNone;   // message that next_psn belongs to
  std::uint32_t oldest = kNone;    // first message not fully acknowledged
  std::uint32_t newest = kNone;
  std::uint32_t next_ready = kNone;
  bool ready = false;   // in its injector's ring
  bool pacing = false;  // a pace event is pending
  bool scale_up = false;
  bool timer = false;  // a retransmission event is pending
  BitRate rate = 0;
  BitRate line_rate = 0;
  std::uint32_t timer_snapshot = 0;  // `acknowledged` when the timer was set
  std::uint32_t timeouts = 0;        // in a row
  std::uint32_t end_psn = 0;         // one past the last psn of the newest message
  std::uint32_t mtu = 0;
  std::uint64_t messages = 0;
  std::uint64_t digest = 0;
  bool failed = false;
};

// The receiver's half, at the destination.
struct alignas(64) Receiver {
  std::uint64_t key = 0;  // hash of (source, destination, number): names the flow in fingerprints
  Time last_cnp = 0;
  std::uint64_t digest = 0;
  std::uint32_t expected = 0;
  std::uint32_t unacknowledged = 0;
  std::uint32_t back_path = 0;  // of ACKs, after the first port
  PortId back_port = 0;         // the NIC's port
  bool cnp_sent = false;
  bool nack_sent = false;
  bool pcie = false;    // goes on to the GPU over PCIe
  PortId gpu_port = 0;  // the NIC's port to the GPU
};

// What makes packets for one first port: a NIC (Ethernet port, or the PCIe link that feeds it), or a GPU's
// NVLink port.
struct Injector {
  PortId port = 0;
  std::uint32_t gate = kNone;                // PCIe: limits what is between GPU and wire
  std::uint32_t head = kNone, tail = kNone;  // ring of queue pairs that may send, served round robin
};

struct Gate {
  Bytes credit = 0;
  std::vector<std::uint32_t> injectors;
};

struct Names {
  std::uint32_t source, destination, number;
};

}  // namespace netsim
