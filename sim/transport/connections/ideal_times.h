// IdealTimes: the time that messages of a queue pair take alone in an idle network.
//
// A message on one way has the exact time of that way. If packets are routed one by one, or routes changed
// meanwhile, the time is a lower bound over all possible ways (spread_time.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/network/fabric.h"
#include "sim/transport/transport_state.h"

namespace netsim {

// The passage of a message through an idle network.
struct IdealPassage {
  Time time = 0;              // from send() to the last byte at the destination
  Time propagation = 0;       // from send() to the arrival of the first byte
  std::vector<PortId> ports;  // ports of one way that it may take
  std::vector<Time> waits;    // by port: wait of its last packet for the packets before it
  PortId slowest = kNoId;     // first port with the lowest rate
};

// Returns ideal times of messages to the GPUs of one logical process. Only that one may use the object.
class IdealTimes {
 public:
  // Stores the last time of each queue pair in the state.
  IdealTimes(TransportState& state, const Fabric& fabric)
      : state_(state), fabric_(fabric), spread_(fabric.spread_times()) {}
  // Returns the time from send() at `start` to the last byte at the destination.
  Time of_message(std::uint32_t queue_pair, Bytes bytes, Time start);

 private:
  friend class IdealPassages;

  std::span<const PortId> way(std::uint32_t queue_pair) const;
  PacketTrain packets(std::uint32_t queue_pair, Bytes bytes) const;
  std::uint64_t changes() const { return fabric_.passage_changes() + state_.route_changes; }
  bool is_spread(std::uint32_t queue_pair) const;
  Time time_now(std::uint32_t queue_pair, const PacketTrain& packets);
  Time time_through_changes(std::uint32_t queue_pair, const PacketTrain& packets);

  TransportState& state_;
  const Fabric& fabric_;
  SpreadTimes spread_;
};

// The passages of messages of one logical process. Passages of messages with the same size and way are kept,
// because they occur again and again.
class IdealPassages {
 public:
  explicit IdealPassages(IdealTimes& times) : times_(times) {}
  // Returns the message's passage. It is valid until the next call.
  const IdealPassage& of_message(std::uint32_t queue_pair, Bytes bytes);

 private:
  static constexpr std::size_t kKept = 1024;  // a power of two
  struct Kept {
    std::uint64_t changes = 0;  // IdealTimes::changes()
    PacketTrain packets{};
    IdealPassage passage;
  };

  void work_out(Kept& kept, std::uint32_t queue_pair) const;

  IdealTimes& times_;
  std::vector<Kept> kept_;  // indexed by a hash of the message; empty before the first call
};

}  // namespace netsim
