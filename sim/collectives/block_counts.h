// BlockCounts: of an all_to_all_v, how many bytes each member of a group sends to each, as MPI_Alltoallv's
// counts of all ranks together. A block of no bytes is no message: PyTorch leaves out sends and receives of
// nothing (all2all_single_unequal_split in torch/csrc/cuda/nccl.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/units.h"

namespace netsim {

class BlockCounts {
 public:
  // What member s sends to member d is rows[s * members + d], >= 0; both are places in the group. What a
  // member sends to itself is on no link.
  BlockCounts(std::uint32_t members, std::vector<Bytes> rows);

  std::uint32_t members() const { return members_; }
  Bytes of(std::uint32_t source, std::uint32_t destination) const {
    return rows_[std::size_t{source} * members_ + destination];
  }
  std::span<const Bytes> rows() const { return rows_; }
  // The bytes of the collective (CollectiveKindInfo::bytes): what the busiest port has to carry in one
  // direction, where each member has one port; 0: nobody sends anything.
  Bytes busiest() const { return busiest_; }
  // A hash of all counts.
  std::uint64_t digest() const { return digest_; }
  bool operator==(const BlockCounts&) const = default;

 private:
  std::uint32_t members_ = 0;
  Bytes busiest_ = 0;
  std::uint64_t digest_ = 0;
  std::vector<Bytes> rows_;
};

}  // namespace netsim
