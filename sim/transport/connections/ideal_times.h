// IdealTimes: what messages of a queue pair take alone in an idle network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/network/fabric.h"
#include "sim/transport/transport_state.h"

namespace netsim {

// How a message passes through an idle network.
struct IdealPassage {
  Time time = 0;              // from send() to the last byte at the destination
  Time propagation = 0;       // the same for its first byte alone
  std::vector<PortId> ports;  // of its way
  std::vector<Time> waits;    // by those: of its last packet, for the packets before it
  PortId slowest = kNoId;     // the first of those with the lowest rate
};

class IdealTimes {
 public:
  // Keeps the last time of each queue pair in the state.
  IdealTimes(TransportState& state, const Fabric& fabric) : state_(state), fabric_(fabric) {}
  // From send() to the last byte at the destination, whose set asks.
  Time of_message(std::uint32_t queue_pair, Bytes bytes) const;

 private:
  friend class IdealPassages;
  // A message's packets, in bytes as buffers count them.
  struct Packets {
    std::uint64_t count;
    Bytes first, full, last;
    bool operator==(const Packets&) const = default;
  };

  std::span<const PortId> way(std::uint32_t queue_pair) const;
  Packets packets(std::uint32_t queue_pair, Bytes bytes) const;
  Time time(std::span<const PortId> way, const Packets& packets, std::span<Time> waits = {}) const;

  TransportState& state_;
  const Fabric& fabric_;
};

// The passages of messages of one set of atoms, kept for those of the same size on the same way, which come
// again and again.
class IdealPassages {
 public:
  explicit IdealPassages(const IdealTimes& times) : times_(times) {}
  // Until the next call.
  const IdealPassage& of_message(std::uint32_t queue_pair, Bytes bytes);

 private:
  static constexpr std::size_t kKept = 1024;  // a power of two
  struct Kept {
    std::uint64_t changes = 0;  // Fabric::passage_changes()
    IdealTimes::Packets packets{};
    IdealPassage passage;
  };

  void work_out(Kept& kept, std::uint32_t queue_pair) const;

  const IdealTimes& times_;
  std::vector<Kept> kept_;  // each where a hash of it says; none before the first call
};

}  // namespace netsim
