// CommunicatorLayout: where the members of a group are, what joins them, and in which orders rings run
// through them.
//
// A ring that visits one domain (what NVLink or PCIe joins: a host, a rack) after the other enters each by
// one NIC and leaves it by another. One ring uses two of the NICs of a host; NCCL's search
// (src/graph/search.cc) therefore finds as many as keep all NICs busy, each a channel or several. So does
// this: with R NICs near the members of each domain there are R rings. Ring c enters the first domain near
// NIC c and leaves it near its neighbour, c xor 1 (c + 1 mod R for odd R); it enters the next domain by that
// same NIC, so that the hop stays on its rail, and leaves it near NIC c; and so on in turns. Then each NIC of
// each domain carries one ring in and one out. With an odd number of domains the last hop changes rails. On
// two DGX A100 ring 0 is the one that NCCL prints: 0 ... 1, 9 ... 8.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "sim/core/shared_lookup.h"
#include "sim/transport/endpoint.h"

namespace netsim {

// The most rings of a group, and channels on several rings: what NCCL's search stops at (MAXCHANNELS / 2,
// src/init.cc).
inline constexpr std::size_t kMaxRings = 32;

struct CommunicatorLayout {
  // Of a member from the first one; Reach::scale_up for a group that NVLink joins.
  Reach farthest = Reach::scale_up;
  // Of neighbours in a domain; farthest where each member has a domain of its own.
  Reach nearest = Reach::scale_up;
  std::uint32_t domains = 1;
  // Of a member's links to the others of its domain, and of the NICs near the members of a domain, all
  // together; the least there is. 0: none, or the endpoint does not say.
  BitRate local_rate = 0, nic_rate = 0;
  std::string gpu_model;  // of the first member; "": the endpoint does not say
  // Each the places of all members in the group, in the order of the ring. Empty: the order of the group is
  // as good as any, in a single domain or with a member a domain.
  std::vector<std::vector<std::uint32_t>> rings;
};

// The place in the group of rank `rank` on a ring; with an empty one the same.
constexpr std::uint32_t place_of(std::span<const std::uint32_t> ring, std::uint32_t rank) {
  return ring.empty() ? rank : ring[rank];
}
// The other way round.
std::uint32_t rank_at(std::span<const std::uint32_t> ring, std::uint32_t place);

// `members`: GPUs, in the order of the group; 2 and more.
CommunicatorLayout lay_out(const std::vector<std::uint32_t>& members, const Endpoint& endpoint);

// Layouts of the groups of a run, made when they are first asked for. Any thread may ask; they live as long
// as the cache.
class LayoutCache {
 public:
  using Key = std::vector<std::uint32_t>;
  using Value = CommunicatorLayout;
  explicit LayoutCache(const Endpoint& endpoint) : endpoint_(endpoint) {}
  static const Key& key(const std::vector<std::uint32_t>& members) { return members; }
  const CommunicatorLayout& get(const std::vector<std::uint32_t>& members);

 private:
  const Endpoint& endpoint_;
  std::mutex mutex_;
  std::map<Key, CommunicatorLayout> layouts_;
};

using LayoutLookup = SharedLookup<LayoutCache>;

}  // namespace netsim
