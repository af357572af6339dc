// BlockCounts: how many bytes each member of a group sends to each other member in an all_to_all_v. They are
// MPI_Alltoallv's counts of all ranks together. A block of no bytes is no message: PyTorch leaves out empty
// sends and receives (all2all_single_unequal_split in torch/csrc/cuda/nccl.cpp).
//
// In a dispatch and the combine that belongs to it, blocks are tokens. They hold what a member has for the
// experts of another member, and what it gets back from them. A token may have several experts at one member
// and several members of a host. Hence there are three counts, and an algorithm uses those by which it sends
// (Counted in plan.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/units.h"

namespace netsim {

// TokenBytes: the counts of blocks of tokens besides their bytes. All byte counts are multiples of `token`.
struct TokenBytes {
  Bytes token = 0;         // size in bytes of a token, which is never split; 0: the blocks are not tokens
  std::uint32_t host = 1;  // number of consecutive members on one host; the last host may have fewer
  // Bytes from each member to each, at [s * members + d]. A token counts once for each of its experts there.
  std::vector<Bytes> copies;
  // Bytes from each member to each host, at [s * hosts + h]. A token counts once per host.
  std::vector<Bytes> to_hosts;

  bool operator==(const TokenBytes&) const = default;
};

class BlockCounts {
 public:
  // rows[s * members + d] >= 0 is the number of bytes that member s sends to member d; both are indices in
  // the group. The bytes that a member sends to itself use no link. A row counts each token once per
  // destination member.
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
  // Returns the bytes of the collective (CollectiveKindInfo::bytes); 0: no member sends anything. For an
  // all_to_all_v this is the load of the busiest port in one direction, where each member has one port.
  Bytes busiest() const { return busiest_; }
  // Returns a hash of all counts.
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
