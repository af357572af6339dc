// CollectiveBounds: what no collective can be faster than (law 7). However an algorithm deals its data out,
// what goes from one part of the cluster to the others goes over the links between them, and over no more
// than all of them at once.
//
// Parts are the GPUs; the hosts; and what switches of the lower tiers join when those of the upper ones are
// taken away (racks, pods): cuts of the network, of which the narrowest decides. Of p ranks and n bytes
// (CollectiveKindInfo::bytes) a part with k of them sends, or gets, at least
//   all-reduce                       n, the busiest of m parts 2n(m-1)/m; n where switches or servers add up
//   reduce-scatter, all-gather       n(p-k)/p
//   gather, scatter                  n(p-k)/p, that of the root
//   all-to-all                       n k(p-k)/p
//   broadcast, reduce                n
// (Patarasuk & Yuan, J. of Parallel and Distributed Computing 69, 2009, of an all-reduce's ranks)
// from the first member's start to the last one's end, and where every part has to hear of another one, no
// less than the delay of its nearest link. Servers that contribute nothing need nothing either: with them
// only GPUs are looked at, and of these the fastest. Other kinds have no bound here: how much they move is
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
  // All links between a part and others, in the direction that has more.
  struct Part {
    double rate = 0;
    Time delay = kNever;        // of the nearest one
    std::uint32_t members = 0;  // of the collective that is looked at; 0 between calls
  };
  // A way to cut the cluster into parts.
  struct Level {
    std::vector<Part> parts;
    std::vector<std::uint32_t> part_of;  // by GPU
  };
  // Parts by node.
  void add_level(const Cluster& cluster, const std::vector<std::uint32_t>& part_of_node);

  std::vector<Level> levels_;         // GPUs, hosts, from the lowest tier on
  std::vector<std::uint32_t> found_;  // parts with members, of the level that is looked at
};

}  // namespace netsim
