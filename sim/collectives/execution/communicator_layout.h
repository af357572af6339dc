// CommunicatorLayout: where the members of a group are, and in which orders rings run through them.
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
#include <vector>

#include "sim/transport/endpoint.h"

namespace netsim {

// The most rings of a group, and channels on several rings: what NCCL's search stops at (MAXCHANNELS / 2,
// src/init.cc).
inline constexpr std::size_t kMaxRings = 32;

struct CommunicatorLayout {
  // Of a member from the first one; Reach::scale_up for a group that NVLink joins.
  Reach farthest = Reach::scale_up;
  // Each the places of all members in the group, in the order of the ring. Empty: the order of the group is
  // as good as any, in a single domain or with a member a domain.
  std::vector<std::vector<std::uint32_t>> rings;
};

// `members`: GPUs, in the order of the group.
CommunicatorLayout lay_out(const std::vector<std::uint32_t>& members, const Endpoint& endpoint);

// Layouts of the groups of a run, made when they are first asked for. Any thread may ask; they live as long
// as the cache.
class LayoutCache {
 public:
  explicit LayoutCache(const Endpoint& endpoint) : endpoint_(endpoint) {}
  const CommunicatorLayout& get(const std::vector<std::uint32_t>& members);

 private:
  const Endpoint& endpoint_;
  std::mutex mutex_;
  std::map<std::vector<std::uint32_t>, CommunicatorLayout> layouts_;
};

// The same for one set of GPUs, in front of the cache of all, so that asking again needs no lock.
class LayoutLookup {
 public:
  explicit LayoutLookup(LayoutCache& cache) : cache_(cache) {}
  const CommunicatorLayout& get(const std::vector<std::uint32_t>& members);

 private:
  LayoutCache& cache_;
  std::map<std::vector<std::uint32_t>, const CommunicatorLayout*> known_;
};

}  // namespace netsim
