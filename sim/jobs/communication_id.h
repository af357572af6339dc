// Ids of communications. Every member computes the id from the match key of its own task, and all get the
// same id, in any order of events. Ids of different jobs may be equal.
//
//   bits 63-62   the other bits
//   00           collective: group and sequence on it, 31 bits each
//   10           message: sender and receiver 15 bits each, tag and sequence 16 bits each
//   01           message of a larger job, the only one of its tag: sender and receiver 20 bits, tag 22 bits
//   11           anything that does not fit: a 62-bit hash of its match key; parts of communications
//
// All but the last are exact. If k hashed communications are alive, two of them share an id with a
// probability below k^2 / 2^63 (1e-7 for a million). The job's statistics detect that and end the run with an
// error.
#pragma once

#include <cstdint>

#include "sim/core/ids.h"
#include "sim/core/random.h"

namespace netsim {

// MessageKey: identifies a point-to-point operation as message `number` of its sender, receiver and tag.
struct MessageKey {
  std::uint32_t sender = 0, receiver = 0, tag = 0, number = 0;
  bool operator==(const MessageKey&) const = default;
};

inline constexpr std::uint64_t kWideMessage = 1ULL << 62;
inline constexpr std::uint64_t kExactMessage = 2ULL << 62;
inline constexpr std::uint64_t kHashed = 3ULL << 62;

constexpr std::uint64_t collective_id(std::uint32_t group, std::uint32_t number) {
  constexpr std::uint32_t kLimit = 1U << 31;
  if (group < kLimit && number < kLimit) return static_cast<std::uint64_t>(group) << 31 | number;
  return kHashed |
         hash_combine(hash_name("collective"), static_cast<std::uint64_t>(group) << 32 | number) >> 2;
}

// Returns the key of an operation of one rank alone, its task `id`. It is the key of a message to itself,
// which no rank sends.
constexpr MessageKey own_message(RankId rank, std::uint32_t id) {
  return {rank, rank, id >> 16, id & 0xFFFF};
}

constexpr std::uint64_t message_id(const MessageKey& m) {
  constexpr std::uint32_t kRanks = 1U << 15, kCounts = 1U << 16;
  constexpr std::uint32_t kManyRanks = 1U << 20, kManyTags = 1U << 22;
  if (m.sender < kRanks && m.receiver < kRanks && m.tag < kCounts && m.number < kCounts) {
    return kExactMessage | static_cast<std::uint64_t>(m.sender) << 47 |
           static_cast<std::uint64_t>(m.receiver) << 32 | static_cast<std::uint64_t>(m.tag) << 16 | m.number;
  }
  if (m.sender < kManyRanks && m.receiver < kManyRanks && m.tag < kManyTags && m.number == 0) {
    return kWideMessage | static_cast<std::uint64_t>(m.sender) << 42 |
           static_cast<std::uint64_t>(m.receiver) << 22 | m.tag;
  }
  const std::uint64_t ranks = static_cast<std::uint64_t>(m.sender) << 32 | m.receiver;
  const std::uint64_t order = static_cast<std::uint64_t>(m.tag) << 32 | m.number;
  return kHashed | hash_combine(ranks, order) >> 2;
}

// Returns the id of the operation that is part `part`, from 0, of a communication that is launched in parts.
// Tables have the id of the communication and the number of the part instead.
constexpr std::uint64_t part_id(std::uint64_t communication, std::uint32_t part) {
  return kHashed | hash_combine(communication, part + std::uint64_t{1}) >> 2;
}

}  // namespace netsim
