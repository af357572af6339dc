// CollectiveBounds: the lower bound of a collective's time (law 7). With any algorithm, data from
// one part of the cluster to the others crosses the links between them. Its rate is at most that of all these
// links together.
//
// Parts are the GPUs, the hosts, and the groups that lower-tier switches connect when upper tiers are removed
// (racks, pods). Each is a cut of the network; the narrowest cut decides. With p ranks and n bytes
// (CollectiveKindInfo::bytes), a part with k ranks sends or receives at least:
//
//   all-reduce                       n, the busiest of m parts 2n(m-1)/m; n if switches or servers reduce
//   reduce-scatter, all-gather       n(p-k)/p
//   gather, scatter                  n(p-k)/p, for the root
//   all-to-all                       n k(p-k)/p
//   broadcast, reduce                n
//
// (Patarasuk & Yuan, J. of Parallel and Distributed Computing 69, 2009, for the ranks of an all-reduce).
//
// The time counts from the first member's start to the last member's end. If every part needs data of
// another, it is at least the delay of the part's nearest link.
//
// Aggregation servers without data of their own need to receive nothing. With them only GPUs are considered,
// and of these the fastest. Other kinds have no bound here, because their kind does not determine their data
// volume.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/collective_kind.h"
#include "sim/collectives/execution/library_choice.h"
#include "sim/core/ids.h"
#include "sim/core/units.h"
#include "sim/topology/topology.h"

namespace netsim {

class CollectiveBounds {
 public:
  explicit CollectiveBounds(const Cluster& cluster);
  // Returns the least time in ps. `members` holds at least two GPUs.
  Time least(CollectiveKind kind, Bytes bytes, const std::vector<GpuId>& members, LibraryChoice::Help help);

 private:
  // Part: one part of the cluster, with the links that join it to the other parts. `rate` is their total in
  // the direction in which it is higher.
  struct Part {
    double rate = 0;
    Time delay = kNever;        // of the nearest link
    std::uint32_t members = 0;  // members of the present collective in this part; 0 between calls
  };
  // Level: a division of the cluster into parts.
  struct Level {
    std::vector<Part> parts;
    std::vector<std::uint32_t> part_of;  // by GPU
  };
  // Adds a level with the given part of each node.
  void add_level(const Cluster& cluster, const std::vector<std::uint32_t>& part_of_node);

  std::vector<Level> levels_;         // GPUs, hosts, then tiers from the lowest up
  std::vector<std::uint32_t> found_;  // parts with members in the present level
};

}  // namespace netsim
