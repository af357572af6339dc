// Blocks: numbers the thread blocks of all ranks of a plan consecutively.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/collectives/plan.h"

namespace netsim::proof {

struct BlockAt {
  std::uint32_t rank = 0;
  std::uint32_t block = 0;
};

class Blocks {
 public:
  // The plan has fewer than 2^32 thread blocks.
  explicit Blocks(const Plan& plan) {
    begin_.reserve(std::size_t{plan.ranks()} + 1);
    for (std::uint32_t rank = 0; rank < plan.ranks(); ++rank) {
      begin_.push_back(total_);
      total_ += plan.blocks(rank);
    }
    begin_.push_back(total_);
    std::uint32_t alike = 1;
    while (alike < plan.ranks() && of(alike) == of(0)) ++alike;
    if (alike == plan.ranks()) of_each_ = of(0);
  }
  std::uint32_t total() const { return total_; }
  std::uint32_t of(std::uint32_t rank) const { return begin_[rank + 1] - begin_[rank]; }
  std::uint32_t id(std::uint32_t rank, std::uint32_t block) const { return begin_[rank] + block; }
  std::uint32_t id(Partner partner) const { return id(partner.rank, partner.block); }
  BlockAt at(std::uint32_t id) const {
    if (of_each_ != 0) [[likely]]
      return {id / of_each_, id % of_each_};
    const auto after = std::upper_bound(begin_.begin(), begin_.end(), id);
    const auto rank = static_cast<std::uint32_t>(after - begin_.begin() - 1);
    return {rank, id - begin_[rank]};
  }

 private:
  std::vector<std::uint32_t> begin_;  // first number of each rank, and the total
  std::uint32_t total_ = 0;
  std::uint32_t of_each_ = 0;  // thread blocks of each rank; 0: ranks have different numbers of them
};

}  // namespace netsim::proof
