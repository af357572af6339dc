// AccessOrder: whether what the thread blocks of one rank do to the same chunk is ordered by waits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/collectives/proof/wording.h"

namespace netsim::proof {

// Vector clocks of the thread blocks of each rank, and who touched which chunk last.
class AccessOrder {
 public:
  AccessOrder(std::uint32_t ranks, std::uint32_t thread_blocks)
      : thread_blocks_(thread_blocks),
        clocks_(std::size_t{ranks} * thread_blocks * thread_blocks, 0),
        waits_(std::size_t{ranks} * thread_blocks) {}

  // Thread block `thread_block` has waited, in its instruction `index`, until `other` has finished `count`
  // instructions.
  void waited(std::uint32_t rank, std::uint32_t thread_block, std::uint32_t index, std::uint32_t other,
              std::uint32_t count) {
    std::uint32_t* mine = clock(rank, thread_block);
    for (const auto& [other_index, seen] : waits_[std::size_t{rank} * thread_blocks_ + other]) {
      if (other_index >= count) break;
      for (std::uint32_t t = 0; t < thread_blocks_; ++t) mine[t] = std::max(mine[t], seen[t]);
    }
    mine[other] = std::max(mine[other], count);
    waits_[std::size_t{rank} * thread_blocks_ + thread_block].emplace_back(
        index, std::vector<std::uint32_t>(mine, mine + thread_blocks_));
  }

  // Empty, or the conflict with another thread block's access that is not ordered before this one.
  std::string touched(std::uint32_t rank, std::uint32_t thread_block, std::uint32_t index,
                      std::uint32_t chunk, bool writes) {
    const std::uint64_t key = static_cast<std::uint64_t>(rank) << 32 | chunk;
    const auto [entry, fresh] =
        rows_.try_emplace(key, static_cast<std::uint32_t>(accesses_.size() / thread_blocks_));
    if (fresh) accesses_.resize(accesses_.size() + thread_blocks_);
    Access* row = &accesses_[std::size_t{entry->second} * thread_blocks_];
    const std::uint32_t* seen = clock(rank, thread_block);
    for (std::uint32_t other = 0; other < thread_blocks_; ++other) {
      const std::uint32_t conflict =
          writes ? std::max(row[other].read, row[other].written) : row[other].written;
      if (other == thread_block || seen[other] >= conflict) continue;
      return place(rank, thread_block, index) + " and thread block " + number(other) + " instruction " +
             number(conflict - 1) + " both touch chunk " + number(chunk) + ", and no wait orders them";
    }
    (writes ? row[thread_block].written : row[thread_block].read) = index + 1;
    return "";
  }

 private:
  struct Access {
    std::uint32_t read = 0, written = 0;  // number of instructions finished once that access is
  };
  std::uint32_t* clock(std::uint32_t rank, std::uint32_t thread_block) {
    return &clocks_[(std::size_t{rank} * thread_blocks_ + thread_block) * thread_blocks_];
  }
  std::uint32_t thread_blocks_;
  std::vector<std::uint32_t> clocks_;
  std::vector<std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>>> waits_;
  std::unordered_map<std::uint64_t, std::uint32_t> rows_;  // by (rank, chunk); looked up, never iterated
  std::vector<Access> accesses_;
};

}  // namespace netsim::proof
