// BlockCounts: of an all_to_all_v, how many bytes each member of a group sends to each, as MPI_Alltoallv's
// counts of all ranks together. A block of no bytes is no message: PyTorch leaves out sends and receives of
// nothing (all2all_single_unequal_split in torch/csrc/cuda/nccl.cpp).
//
// Of a dispatch and a combine, which belong together, blocks are tokens: what a member has for the experts of
// another, and gets back from them. A token may have several experts at one member, and several members of a
// host: so there are three counts, of which an algorithm takes those that it sends by (Counted in plan.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/units.h"

namespace netsim {

// What there is to say of blocks of tokens besides their bytes. All bytes are multiples of `token`.
struct TokenBytes {
  Bytes token = 0;         // bytes of a token, which goes as a whole; 0: the blocks are no tokens
  std::uint32_t host = 1;  // so many members behind each other are on one host; the last one may have fewer
  // Of each member to each, by [s * members + d]: a token once for each of its experts there.
  std::vector<Bytes> copies;
  // Of each member to each host, by [s * hosts + h]: a token once.
  std::vector<Bytes> to_hosts;

  bool operator==(const TokenBytes&) const = default;
};

class BlockCounts {
 public:
  // What member s sends to member d is rows[s * members + d], >= 0; both are places in the group. What a
  // member sends to itself is on no link. Of tokens a row has each once.
  BlockCounts(std::uint32_t members, std::vector<Bytes> rows, TokenBytes tokens = {});

  std::uint32_t members() const { return members_; }
  Bytes of(std::uint32_t source, std::uint32_t destination) const {
    return rows_[std::size_t{source} * members_ + destination];
  }
  std::span<const Bytes> rows() const { return rows_; }
  const TokenBytes& tokens() const { return tokens_; }
  bool has_tokens() const { return tokens_.token != 0; }
  std::uint32_t hosts() const { return (members_ + tokens_.host - 1) / tokens_.host; }
  Bytes copies(std::uint32_t source, std::uint32_t destination) const {
    return tokens_.copies[std::size_t{source} * members_ + destination];
  }
  Bytes to_host(std::uint32_t source, std::uint32_t host) const {
    return tokens_.to_hosts[std::size_t{source} * hosts() + host];
  }
  // The bytes of the collective (CollectiveKindInfo::bytes); 0: nobody sends anything. Of an all_to_all_v
  // what the busiest port has to carry in one direction, where each member has one port.
  Bytes busiest() const { return busiest_; }
  // A hash of all counts.
  std::uint64_t digest() const { return digest_; }
  bool operator==(const BlockCounts&) const = default;

 private:
  std::uint32_t members_ = 0;
  Bytes busiest_ = 0;
  std::uint64_t digest_ = 0;
  std::vector<Bytes> rows_;
  TokenBytes tokens_;
};

}  // namespace netsim
