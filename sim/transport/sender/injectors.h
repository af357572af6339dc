// Injectors: the sources of packets for first ports, of one logical process. A first port is a NIC's Ethernet
// port, the PCIe link towards the NIC, or a GPU's NVLink port. Queue pairs that may send wait in an
// injector's rings, one per class.
//
// Queue pairs of a ring are served round robin, and so are GPUs that share a NIC. PCIe's flow control limits
// the bytes that a NIC holds ahead of its wire.
//
// With levels of priority (`transport.nic_priorities`) a ring is in order of the levels, and within a level
// in order of arrival. So the queue pair at its head is always served next. If GPUs share a NIC, the one with
// the highest level at a head is the first to use space in the NIC.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "sim/network/fabric_shard.h"
#include "sim/network/policies.h"
#include "sim/transport/transport_state.h"

namespace netsim {

class Injectors {
 public:
  struct Ring {
    std::uint32_t head = kNone, tail = kNone;  // ids of queue pairs; kNone: the ring is empty
  };
  struct alignas(64) Injector {
    PortId port = 0;
    PortId wire = 0;                 // `port`; behind PCIe the NIC's port
    std::uint32_t gate = kNone;      // PCIe: index of the gate that limits the bytes between GPU and wire
    std::uint32_t next_at_gate = 0;  // next injector at the gate; they form a cycle in the order of creation
    std::uint32_t next = 0;          // next injector at the same port, in a cycle
    std::uint32_t ready = 0;         // bit per class with a ring that is not empty
    std::array<Ring, kMaxClasses> rings;
  };

  Injectors(FabricShard& fabric, TransportState& state)
      : fabric_(fabric),
        state_(state),
        senders_(state.senders.data()),
        levels_(state.nic_levels),
        level_(state.levels.data()) {}

  // Returns the index of the injector at `first` for `gate`, creating it at its first use. `gate` is the
  // wire's port behind PCIe, or `first` itself. `room` is the number of bytes that the NIC holds ahead of its
  // wire.
  //
  // A GPU with several NICs behind one PCIe link has one injector for each of them there.
  std::uint32_t at(PortId first, PortId gate, Bytes room);
  Injector& operator[](std::uint32_t index) { return injectors_[index]; }
  const Injector& operator[](std::uint32_t index) const { return injectors_[index]; }
  // Returns the injector at the port whose turn it is.
  Injector& of_port(PortId port) { return injectors_[state_.injector_of_port[port]]; }
  // Gives the turn to the port's next injector. Returns false if there is only one.
  bool turn(const Injector& in) {
    std::uint32_t& now = state_.injector_of_port[in.port];
    const bool other = in.next != now;
    now = in.next;
    return other;
  }
  // Returns whether an injector at the port has a queue pair waiting and the NIC has space for a packet.
  bool any_waiting(PortId port) const;

  // Appends the queue pair to its ring. Not with levels.
  void join(std::uint32_t id);
  // Returns whether queue pairs have levels of priority. They then join by join_at().
  bool has_levels() const { return levels_ > 1; }
  // Inserts the queue pair into its ring as the last one of the level, which must be below
  // TransportState::nic_levels.
  void join_at(std::uint32_t id, std::uint32_t level);
  // Changes the level of a queue pair that is in its ring.
  void set_level(std::uint32_t id, std::uint32_t level);
  // Removes and returns the first queue pair of a ring, which must not be empty.
  std::uint32_t take(Injector& in, std::uint32_t traffic_class);
  // Makes the port ask for packets as soon as it is free. If the NIC has no space, nothing is done;
  // departed() then does it later.
  void wake(Injector& in) {
    if (!open(in)) return;
    fabric_.set_source_ready(in.port, true);
    fabric_.wake(in.port, likely_next(in));
  }
  // Returns the queue pair that will probably be served next, for PortArbiter::wake().
  static std::uint64_t likely_next(const Injector& in) {
    if (in.ready == 0) return 0;
    const auto first = static_cast<std::size_t>(std::countr_zero(in.ready));
    return static_cast<std::uint64_t>(in.rings[first].head) << 32;
  }
  // Returns the class to serve next, out of those with waiting queue pairs that are not held back. kNone: all
  // are held back. has_work(id) returns whether a queue pair still may send. bytes(id) returns the bytes of
  // its next packet.
  template <class HasWork, class NextBytes>
  std::uint32_t next_class(Injector& in, HasWork has_work, NextBytes bytes);

  // Returns whether the NIC has space for more bytes ahead of its wire.
  bool open(const Injector& in) const { return in.gate == kNone || gates_[in.gate].credit > 0; }
  // fill() is called when a packet goes towards the wire, departed() when one has left it.
  void fill(const Injector& in, Bytes bytes) {
    if (in.gate == kNone) return;
    gates_[in.gate].credit -= bytes;
    gates_[in.gate].last = static_cast<std::uint32_t>(&in - injectors_.data());
  }
  void departed(PortId port, Bytes bytes);

 private:
  // The last queue pairs of a ring's levels; kNone: the ring has none of the level.
  using Lasts = std::array<std::uint32_t, kMaxNicLevels>;

  Lasts& lasts_of(const SenderState& s) { return lasts_[s.injector * kMaxClasses + s.traffic_class]; }
  void leave(std::uint32_t id);
  void forget_last(std::uint32_t id);
  std::uint32_t highest_level(const Injector& in) const;
  std::uint32_t highest_at_gate(std::uint32_t first) const;
  std::uint32_t find(std::uint32_t any, PortId wire) const;
  void join_gate(std::uint32_t index, std::uint32_t gate);

  // PCIe's flow control towards the wire. `credit` is the number of bytes that the NIC may still take.
  struct Gate {
    Bytes credit = 0;
    // The injector that made a packet last. The next one is served first.
    std::uint32_t last = kNone;
  };

  FabricShard& fabric_;
  TransportState& state_;
  SenderState* senders_;
  std::uint32_t levels_;  // 1: none
  std::uint8_t* level_;   // with levels: by queue pair
  std::vector<Injector> injectors_;
  std::vector<Lasts> lasts_;  // with levels: by injector and class
  std::vector<Gate> gates_;
};

inline void Injectors::join(std::uint32_t id) {
  SenderState& s = senders_[id];
  Injector& in = injectors_[s.injector];
  Ring& ring = in.rings[s.traffic_class];
  s.ready = true;
  s.next_ready = kNone;
  if (ring.head == kNone) {
    ring.head = id;
    in.ready |= 1U << s.traffic_class;
  } else {
    senders_[ring.tail].next_ready = id;
  }
  ring.tail = id;
}

inline std::uint32_t Injectors::take(Injector& in, std::uint32_t traffic_class) {
  Ring& ring = in.rings[traffic_class];
  const std::uint32_t id = ring.head;
  if (has_levels()) [[unlikely]]
    forget_last(id);
  ring.head = senders_[id].next_ready;
  senders_[id].ready = false;
  if (ring.head == kNone) {
    ring.tail = kNone;
    in.ready &= ~(1U << traffic_class);
  } else {
    __builtin_prefetch(&senders_[ring.head], 1);
  }
  return id;
}

template <class HasWork, class NextBytes>
std::uint32_t Injectors::next_class(Injector& in, HasWork has_work, NextBytes bytes) {
  std::uint32_t ready = in.ready & ~fabric_.paused_classes(in.port);
  if ((ready & (ready - 1)) == 0)
    return ready != 0 ? static_cast<std::uint32_t>(std::countr_zero(ready)) : kNone;
  for (std::uint32_t c = 0; c < kMaxClasses; ++c) {
    while ((in.ready >> c & 1) != 0 && !has_work(in.rings[c].head)) take(in, c);
  }
  ready &= in.ready;
  if (ready == 0) return kNone;
  return fabric_.select_class(in.port, ready, [&](std::uint32_t c) { return bytes(in.rings[c].head); });
}

}  // namespace netsim
