// LinkOrders: orders in which rings and chains run through the GPUs of a host along the links that join them
// directly, so that these links are used as well as can be.
//
// Where GPUs have a link each to some others and no switch between them (a DGX-1's cube mesh, a full mesh of
// MI300X), a ring in any one order uses a link of each GPU and leaves the others idle. NCCL's search
// (src/graph/search.cc, ncclTopoSearchRec) therefore lays ring after ring, each through all GPUs and over
// links that are not used up yet, and gives each ring channels of its own: on a DGX-1 with V100 six of them,
// that is three ways round in both directions, which use up the six NVLinks of each GPU.
//
// So does this. Links count in lanes, as many as the narrowest of them would fit into one; each ring takes a
// lane of every link that it runs over. The best that there can be is the narrowest cut: every ring leaves
// each part of the GPUs once at least. From there on downwards it is tried whether so many rings fit, also
// twice as many over twice the lanes, where two rings share a lane (four GPUs in a full mesh have no three
// rings without a common link, but six of which each has half a link). The search goes from GPU to GPU, first
// over the links with the most lanes left, and back where that leads nowhere; from an attempt that takes too
// long another one begins, which takes equal links in another order. It knows no clock and no random stream,
// so equal hosts have equal rings, in every run.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/core/index.h"

namespace netsim {

// The links between some GPUs, which are numbered from 0 here.
struct LinkLanes {
  std::uint32_t count = 0;           // GPUs
  std::vector<std::uint32_t> lanes;  // at from * count + to; 0: no link
  auto operator<=>(const LinkLanes&) const = default;
};

// Where a way begins and ends.
struct WayEnds {
  std::uint32_t first = 0, last = kNoIndex;  // kNoIndex: anywhere
  auto operator<=>(const WayEnds&) const = default;
};

// What was found is kept, because the hosts of a run are of few kinds. Not for several threads.
class LinkOrders {
 public:
  // All GPUs, each once.
  using Order = std::vector<std::uint32_t>;
  using Orders = std::vector<Order>;
  // Hosts with more GPUs on direct links than this have no orders of these.
  static constexpr std::uint32_t kMostGpus = 16;

  // Closed rings, `most` at the most: from each GPU a link leads to the next one, and from the last to the
  // first. None where there is no such ring, and with fewer than three GPUs, which have one order.
  const Orders& rings(const LinkLanes& links, std::uint32_t most);
  // A way along links for each of `ends`, such that the busiest lane carries as few as was found. None unless
  // each has one. `both_ways`: each way is also gone back.
  const Orders& ways(const LinkLanes& links, const std::vector<WayEnds>& ends, bool both_ways);

 private:
  std::map<std::pair<LinkLanes, std::uint32_t>, Orders> rings_;
  std::map<std::pair<LinkLanes, std::pair<std::vector<WayEnds>, bool>>, Orders> ways_;
};

// Lanes that lead out of some part of the GPUs, or into it, where that is least: of no ring that leaves each
// GPU once there can be more.
std::uint32_t narrowest_cut(const LinkLanes& links);

}  // namespace netsim
