// MessageCounts: the number of an operation's messages in some state, by peer and thread block. It has few
// entries in any order, so it uses linear search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/collectives/plan.h"
#include "sim/collectives/protocol.h"

namespace netsim {

// The number of the other end of a connection. It is a rank of the plan, or kAggregationPeer with the number
// of an AggregationGroup.
inline constexpr std::uint32_t kAggregationPeer = 1U << 31;
constexpr std::uint32_t peer_of(const Partner& partner) {
  return partner.aggregation != kNoIndex ? kAggregationPeer | partner.aggregation : partner.rank;
}

// Returns the number of the AggregationGroup that is the other end of a connection.
constexpr std::uint32_t aggregation_of(std::uint32_t peer) { return peer & ~kAggregationPeer; }

// PeerAndThreadBlock: the other end of a connection and a thread block of this one. In Message::tag it
// holds the sender's rank or the AggregationGroup, and the receiver's thread block that the message is for.
struct PeerAndThreadBlock {
  std::uint32_t peer = 0;
  std::uint32_t block = 0;  // index in Operation::thread_blocks
  constexpr std::uint64_t packed() const { return static_cast<std::uint64_t>(peer) << 32 | block; }
  static constexpr PeerAndThreadBlock unpack(std::uint64_t packed) {
    return {static_cast<std::uint32_t>(packed >> 32), static_cast<std::uint32_t>(packed)};
  }
};

// ForwardTag: the tag of a message that its destination must forward. It holds the final GPU, the protocol
// and the thread block there. Ranks and AggregationGroups never set the bit of kMark.
struct ForwardTag {
  std::uint32_t gpu = 0;  // final destination, < 2^28
  Protocol protocol = Protocol::simple;
  std::uint32_t block = 0;
  static constexpr std::uint64_t kMark = std::uint64_t{1} << 62;
  static constexpr bool is(std::uint64_t tag) { return (tag >> 62) == 1; }
  constexpr std::uint64_t packed() const {
    return kMark | static_cast<std::uint64_t>(protocol) << 60 | static_cast<std::uint64_t>(gpu) << 32 | block;
  }
  static constexpr ForwardTag unpack(std::uint64_t tag) {
    return {static_cast<std::uint32_t>(tag >> 32) & ((1U << 28) - 1), static_cast<Protocol>(tag >> 60 & 3),
            static_cast<std::uint32_t>(tag)};
  }
};

class MessageCounts {
 public:
  std::uint32_t get(PeerAndThreadBlock of) const {
    const std::size_t i = find(of.packed());
    return i < entries_.size() ? entries_[i].count : 0;
  }
  void add(PeerAndThreadBlock of) {
    const std::size_t i = find(of.packed());
    if (i == entries_.size()) entries_.push_back({of.packed(), 0});
    ++entries_[i].count;
    ++total_;
  }
  // Removes one message. Returns false if there is none.
  bool take(PeerAndThreadBlock of) {
    const std::size_t i = find(of.packed());
    if (i == entries_.size()) return false;
    --total_;
    if (--entries_[i].count == 0) {
      entries_[i] = entries_.back();
      entries_.pop_back();
    }
    return true;
  }
  std::uint64_t total() const { return total_; }
  void clear() {
    entries_.clear();
    total_ = 0;
  }

 private:
  struct Entry {
    std::uint64_t packed;
    std::uint32_t count;
  };
  std::size_t find(std::uint64_t packed) const {
    std::size_t i = 0;
    while (i < entries_.size() && entries_[i].packed != packed) ++i;
    return i;
  }
  std::vector<Entry> entries_;
  std::uint64_t total_ = 0;
};

}  // namespace netsim
