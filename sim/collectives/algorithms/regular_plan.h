// RegularPlan: the common part of computed plans, and the errors of an algorithm that does not support a
// group.
#pragma once

#include <cstdint>
#include <string>

#include "sim/collectives/plan.h"
#include "sim/core/errors.h"

namespace netsim {

class RegularPlan : public Plan {
 public:
  RegularPlan(const char* algorithm, CollectiveKind kind, std::uint32_t ranks, std::uint32_t root = 0)
      : algorithm_(algorithm), kind_(kind), ranks_(ranks), root_(root) {}

  CollectiveKind kind() const override { return kind_; }
  const char* algorithm() const override { return algorithm_; }
  std::uint32_t ranks() const override { return ranks_; }
  std::uint32_t root() const override { return root_; }

 protected:
  // Return the place of a rank counted from the root, and the inverse.
  std::uint32_t from_root(std::uint32_t rank) const { return wrap(std::uint64_t{rank} + ranks_ - root_); }
  std::uint32_t from_rank_0(std::uint32_t place) const { return wrap(std::uint64_t{place} + root_); }
  std::uint32_t wrap(std::uint64_t number) const { return static_cast<std::uint32_t>(number % ranks_); }
  // Returns the buffer that an in-place plan uses: the output of an all_gather, the input of other kinds.
  Buffer whole() const { return kind_ == CollectiveKind::all_gather ? Buffer::output : Buffer::input; }

  const char* algorithm_;
  CollectiveKind kind_;
  std::uint32_t ranks_;
  std::uint32_t root_;
};

inline constexpr std::uint32_t kMaxAllToAllRanks = 65'535;  // ranks^2 blocks have 32-bit numbers

// Throws InputError: "all_reduce of 12 ranks: 'swing' REASON".
[[noreturn]] inline void refuse(const char* algorithm, CollectiveKind kind, std::uint32_t ranks,
                                const std::string& reason) {
  throw InputError(std::string(to_string(kind)) + " of " + std::to_string(ranks) + " ranks: '" + algorithm +
                   "' " + reason);
}
// Throws InputError for more chunks than have 32-bit numbers.
inline void check_chunks(const char* algorithm, CollectiveKind kind, std::uint32_t ranks,
                         std::uint64_t chunks) {
  if (chunks > UINT32_MAX)
    refuse(algorithm, kind, ranks, "would need " + std::to_string(chunks) + " chunks, more than 2^32 - 1");
}
inline void check_all_to_all(const char* algorithm, CollectiveKind kind, std::uint32_t ranks) {
  if (ranks > kMaxAllToAllRanks)
    refuse(algorithm, kind, ranks, "does at most " + std::to_string(kMaxAllToAllRanks));
}

}  // namespace netsim
