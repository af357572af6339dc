// Ids of communications: every member computes the id from what it knows itself, and all get the same.
//
//   collective       bits 63-62 = 00, 31 bits group, 31 bits how-many-th of this rank on the group: exact;
//   point-to-point   10, sender and receiver 15 bits each, tag and how-many-th 16 bits each: exact, if all
//   fit; otherwise        11, a 62-bit hash of the four. With k such operations alive, two of them share an
//   id with a
//                    probability below k^2 / 2^63 (1e-7 for a million); the job notices and stops
//                    (NETSIM_CHECK).
//
// "How-many-th" counts in the order in which the rank reaches its tasks, from 0.
#pragma once

#include <cstdint>

#include "sim/core/errors.h"
#include "sim/core/random.h"

namespace netsim {

// One point-to-point operation: number `number` of its sender, receiver and tag.
struct MessageKey {
  std::uint32_t sender = 0, receiver = 0, tag = 0, number = 0;
  bool operator==(const MessageKey&) const = default;
};

inline constexpr std::uint64_t kExactMessage = 2ULL << 62;
inline constexpr std::uint64_t kHashedMessage = 3ULL << 62;

inline std::uint64_t collective_id(std::uint32_t group, std::uint32_t number) {
  NETSIM_CHECK(group < 1U << 31 && number < 1U << 31, "2^31 groups, or collectives of a group");
  return static_cast<std::uint64_t>(group) << 31 | number;
}

constexpr std::uint64_t message_id(const MessageKey& m) {
  constexpr std::uint32_t kRanks = 1U << 15, kCounts = 1U << 16;
  if (m.sender < kRanks && m.receiver < kRanks && m.tag < kCounts && m.number < kCounts) {
    return kExactMessage | static_cast<std::uint64_t>(m.sender) << 47 |
           static_cast<std::uint64_t>(m.receiver) << 32 | static_cast<std::uint64_t>(m.tag) << 16 | m.number;
  }
  const std::uint64_t ranks = static_cast<std::uint64_t>(m.sender) << 32 | m.receiver;
  const std::uint64_t order = static_cast<std::uint64_t>(m.tag) << 32 | m.number;
  return kHashedMessage | hash_combine(ranks, order) >> 2;
}

}  // namespace netsim
