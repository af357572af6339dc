// Packet: 32 bytes, addressed by index, linked intrusively in FIFO queues.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/network/packet_tag.h"
#include "sim/network/packet_trace.h"
#include "sim/network/telemetry.h"

namespace netsim {

enum class PacketKind : std::uint8_t { data, ack, nack, cnp, link_control };

// Ingress queue of packets that take no buffer space: link control, and packets that a switch has copied or
// summed (switch_aggregations.h).
inline constexpr std::uint8_t kNoIngressQueue = 0;

struct alignas(32) Packet {
  std::uint32_t next;     // next packet in the same queue
  std::uint32_t step;     // step after the packet's present port, read from the path while the packet waits
  std::uint32_t psn;      // packet sequence number; ack: next expected one; link control: bytes of credit
  std::uint32_t bytes;    // payload and headers, as buffers, PFC and ECN count them
  std::uint32_t path;     // index in the fabric's paths of the step after the packet's present port
  std::uint32_t ingress;  // port that last transmitted the packet, which is paused if the packet must wait
  // Meaning by kind. Data between a NIC and its GPU, where order is restored: number of messages it
  // completes. Ack: marks it echoes. Nack: psn that arrived. Link control: see LinkControl. Data of a pool of
  // slots: the value that switches add up.
  std::uint32_t message;
  PacketKind kind;
  std::uint8_t priority;  // queue of its port; 0 is served first
  // The data queue that last transmitted the packet, whose buffer space it takes if it waits. kNoRoom if it
  // takes none.
  std::uint8_t ingress_queue;
  bool marked : 1;  // ECN: congestion experienced
  bool last : 1;    // last packet of its message
  // Data: the sender asks for an ACK (InfiniBand's AckReq). Multicast or reduction: last packet of its
  // message.
  bool ack_request : 1;
  bool traced : 1;  // records a PacketTrace
  // Only data into or from an aggregation group: it has a pool of slots, so a lost packet is sent again.
  bool repaired : 1;
  // The same, of a tree without a pool: the link that loses the packet sends it again.
  bool kept_by_links : 1;
  // Only data of a best-effort aggregation group: it was sent again, and it found an aggregator that held
  // another sum (aggregator_table.h).
  bool again : 1;
  bool collided : 1;

  // Sets the packet's queue at all ports of a way without virtual channels.
  void set_priority(std::uint8_t value) { priority = ingress_queue = value; }
};
static_assert(sizeof(Packet) == 32);

// PacketArena: all packets of one logical process. Freed slots are reused, the last freed first. Free slots
// are kept in a stack rather than a list through the packets, because a list would miss the cache at every
// packet.
class PacketArena {
 public:
  std::uint32_t allocate() {
    if (free_.empty()) [[unlikely]] {
      packets_.emplace_back();
      base_ = packets_.data();
      if (has_telemetry_) telemetry_.emplace_back();
      if (has_detours_) via_.push_back(UINT32_MAX);
      if (has_traces_) traces_.emplace_back();
      if (has_tags_) tags_.emplace_back();
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
  // Gives every packet a place for telemetry. Must be called before the first allocate().
  void enable_telemetry() { has_telemetry_ = true; }
  Telemetry& telemetry(std::uint32_t index) { return telemetry_[index]; }
  // Gives every packet a place for the intermediate of its detour (Waypoint::via). Must be called before the
  // first allocate().
  void enable_detours() { has_detours_ = true; }
  std::uint32_t& via(std::uint32_t index) { return via_[index]; }
  // Gives every packet a place for a trace. Must be called before the first allocate().
  void enable_traces() { has_traces_ = true; }
  PacketTrace& trace(std::uint32_t index) { return traces_[index]; }
  // Gives every packet a place for a tag. Must be called before the first allocate().
  void enable_tags() { has_tags_ = true; }
  PacketTag& tag(std::uint32_t index) { return tags_[index]; }
  const PacketTag& tag(std::uint32_t index) const { return tags_[index]; }
  // Returns the place for the workers whose data the packet holds, a bit for each. Only data of best-effort
  // aggregation groups has one.
  std::uint64_t& workers(std::uint32_t index) {
    if (index >= workers_.size()) [[unlikely]]
      workers_.resize(packets_.size());
    return workers_[index];
  }
  // Returns the packet's trace, or null if it records none. It stays valid after the packet is released,
  // until the next allocate().
  const PacketTrace* trace_of(std::uint32_t index) const {
    return packets_[index].traced ? &traces_[index] : nullptr;
  }
  // Returns the address of the array's pointer, for EventLoop::set_prefetch. The array always has an element
  // 0.
  const void* const* base() const { return &base_; }

 private:
  std::vector<Packet> packets_;
  std::vector<Telemetry> telemetry_;
  std::vector<std::uint32_t> via_;
  std::vector<PacketTrace> traces_;
  std::vector<PacketTag> tags_;
  std::vector<std::uint64_t> workers_;
  bool has_telemetry_ = false, has_detours_ = false, has_traces_ = false, has_tags_ = false;
  static constexpr std::size_t kAhead = 4;  // number of allocations that a free slot is prefetched ahead
  std::vector<std::uint32_t> free_;
  static constexpr Packet kNoPacket{};
  const void* base_ = &kNoPacket;
};

}  // namespace netsim
