// Packet: 32 bytes, addressed by index, linked intrusively in FIFOs.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/network/packet_trace.h"
#include "sim/network/telemetry.h"

namespace netsim {

enum class PacketKind : std::uint8_t { data, ack, nack, cnp, link_control };

// Of link control, and of what a switch has copied or added up (switch_fans.h).
inline constexpr std::uint8_t kNoRoom = 0;

struct alignas(32) Packet {
  std::uint32_t next;     // in a queue
  std::uint32_t step;     // where it goes after its present port, read from the path while it waits
  std::uint32_t psn;      // packet sequence number; ack: next expected one; link control: bytes of credit
  std::uint32_t bytes;    // as buffers, PFC and ECN count them: payload + headers
  std::uint32_t path;     // index in Fabric's paths of where the packet goes after its present port
  std::uint32_t ingress;  // the port that it was last transmitted from: who is paused if it has to wait
  // Data on its way from a NIC to its GPU, where order is restored: messages that it completes; ack: marks it
  // echoes; nack: the psn that arrived; link control: see LinkControl.
  std::uint32_t message;
  PacketKind kind;
  std::uint8_t priority;  // queue, 0 is served first
  // The queue that it was last transmitted from: whose room it takes if it has to wait; kNoRoom: that of
  // none.
  std::uint8_t came_in;
  bool marked : 1;       // ECN congestion experienced
  bool last : 1;         // of its message
  bool ack_request : 1;  // data: the sender asks for an ACK (InfiniBand's AckReq); of a fan: its message ends
  bool traced : 1;       // writes a PacketTrace

  // Its queue at all ports of a way that has no virtual channels.
  void set_priority(std::uint8_t value) { priority = came_in = value; }
};
static_assert(sizeof(Packet) == 32);

// All packets of one set of atoms; freed slots are used again, last freed first. Free slots are numbers in a
// stack and not a list through the packets: a list would have to wait for one cold packet after the other.
class PacketArena {
 public:
  std::uint32_t allocate() {
    if (free_.empty()) [[unlikely]] {
      packets_.emplace_back();
      base_ = packets_.data();
      if (has_telemetry_) telemetry_.emplace_back();
      if (has_detours_) via_.push_back(UINT32_MAX);
      if (has_traces_) traces_.emplace_back();
      return static_cast<std::uint32_t>(packets_.size() - 1);
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    if (free_.size() > kAhead) __builtin_prefetch(&packets_[free_[free_.size() - kAhead]], 1);
    return index;
  }
  void release(std::uint32_t index) { free_.push_back(index); }
  Packet& operator[](std::uint32_t index) { return packets_[index]; }
  const Packet& operator[](std::uint32_t index) const { return packets_[index]; }
  // From now on every packet has a place for telemetry. Before the first allocate().
  void enable_telemetry() { has_telemetry_ = true; }
  Telemetry& telemetry(std::uint32_t index) { return telemetry_[index]; }
  // The same for intermediates: where a packet is led before its destination (Waypoint::via).
  void enable_detours() { has_detours_ = true; }
  std::uint32_t& via(std::uint32_t index) { return via_[index]; }
  // The same for traces.
  void enable_traces() { has_traces_ = true; }
  PacketTrace& trace(std::uint32_t index) { return traces_[index]; }
  // Null where the packet writes none. Also of one that has been released, until the next allocate().
  const PacketTrace* trace_of(std::uint32_t index) const {
    return packets_[index].traced ? &traces_[index] : nullptr;
  }
  // For EventLoop::set_prefetch: there is always an element 0 to look at.
  const void* const* base() const { return &base_; }

 private:
  std::vector<Packet> packets_;
  std::vector<Telemetry> telemetry_;
  std::vector<std::uint32_t> via_;
  std::vector<PacketTrace> traces_;
  bool has_telemetry_ = false, has_detours_ = false, has_traces_ = false;
  static constexpr std::size_t kAhead = 4;  // allocations
  std::vector<std::uint32_t> free_;
  static constexpr Packet kNoPacket{};
  const void* base_ = &kNoPacket;
};

}  // namespace netsim
