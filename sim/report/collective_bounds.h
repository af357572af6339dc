// CollectiveBounds: what no collective can be faster than (law 7). However an algorithm deals its data out,
// what a GPU, or a host, has to send or to get goes over its links, and over no more than all of them at
// once.
//
// Of p ranks and n bytes (CollectiveKindInfo::bytes) the busiest rank sends or gets at least
//   all-reduce                       2n(p-1)/p (Patarasuk & Yuan, J. of Parallel and Distributed Computing
//   69,
//                                    2009), or n where switches or servers add up
//   reduce-scatter, all-gather       n(p-1)/p
//   gather, scatter                  n(p-1)/p, the root
//   all-to-all                       n(p-1)/p
//   broadcast, reduce                n
// and hosts, each taken as one rank that has what its members have, without servers, the same with
//   all-reduce                       H hosts: 2n(H-1)/H, or n
//   reduce-scatter, all-gather       n(p-k)/p, of a host with k members
//   broadcast, reduce                n
// from the first member's start to the last one's end. Other kinds have no bound here: how much they move is
// not told by their kind.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/collective_kind.h"
#include "sim/collectives/execution/library_choice.h"
#include "sim/core/units.h"
#include "sim/topology/topology.h"

namespace netsim {

class CollectiveBounds {
 public:
  explicit CollectiveBounds(const Cluster& cluster);
  // `members`: GPUs, two and more.
  Time least(CollectiveKind kind, Bytes bytes, const std::vector<std::uint32_t>& members,
             LibraryChoice::Help help);

 private:
  // By GPU and by host: the rate of all links that leave it, in one direction.
  std::vector<double> gpu_rates_, host_rates_;
  std::vector<std::uint32_t> host_of_;     // by GPU
  std::vector<std::uint32_t> members_of_;  // by host; 0 between calls
};

}  // namespace netsim
