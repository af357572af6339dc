// LinkOrders: orders in which rings and chains run through the GPUs of a host along direct links. They use
// these links as well as possible.
//
// Some hosts have a link from each GPU to some others and no switch (a DGX-1's cube mesh, a full mesh of
// MI300X). A ring in any one order uses one link of each GPU and leaves the others idle. NCCL's search
// (src/graph/search.cc, ncclTopoSearchRec) therefore adds ring after ring through all GPUs, over links with
// bandwidth left. Each ring has its own channels. A DGX-1 with V100 has six rings, three orders in both
// directions, which use up the six NVLinks of each GPU.
//
// netsim does the same. Links are counted in lanes, as many as the narrowest link would fit into each. Each
// ring takes a lane of every link that it uses. The upper bound is the narrowest cut, because every ring
// leaves each subset of the GPUs at least once.
//
// From this bound on downwards the search tests whether so many rings fit. It also tries twice as many rings
// over twice the lanes, where two rings share a lane. Four GPUs in a full mesh have no three rings without a
// common link, but six of which each has half a link.
//
// The search goes from GPU to GPU, first over the links with the most lanes left, and backtracks. An attempt
// that takes too long is replaced by another one, which tries equal links in another order. The search uses
// no clock and no random stream, so equal hosts have equal rings, in every run.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/core/index.h"

namespace netsim {

// LinkLanes: the links between some GPUs, which are numbered from 0 here.
struct LinkLanes {
  std::uint32_t count = 0;           // number of GPUs
  std::vector<std::uint32_t> lanes;  // lanes from GPU `from` to GPU `to`, at from * count + to; 0: no link
  auto operator<=>(const LinkLanes&) const = default;
};

// WayEnds: the first and the last GPU of a chain along links.
struct WayEnds {
  std::uint32_t first = 0, last = kNoIndex;  // kNoIndex: any GPU
  auto operator<=>(const WayEnds&) const = default;
};

// Results are kept, because the hosts of a run are of few kinds. Not thread-safe.
class LinkOrders {
 public:
  // Order: all GPUs, each once.
  using Order = std::vector<std::uint32_t>;
  using Orders = std::vector<Order>;
  // Hosts with more GPUs on direct links than this get no orders along links.
  static constexpr std::uint32_t kMostGpus = 16;

  // Returns closed rings, at most `most`. A link leads from each GPU to the next one, and from the last to
  // the first. Empty where there is no such ring, and with fewer than three GPUs, which have one order.
  const Orders& rings(const LinkLanes& links, std::uint32_t most);
  // Returns a chain along links for each of `ends`. It returns the solution whose busiest lane carries the
  // fewest chains. Empty unless each has a chain. `both_ways`: each chain is also used backwards.
  const Orders& ways(const LinkLanes& links, const std::vector<WayEnds>& ends, bool both_ways);

 private:
  std::map<std::pair<LinkLanes, std::uint32_t>, Orders> rings_;
  std::map<std::pair<LinkLanes, std::pair<std::vector<WayEnds>, bool>>, Orders> ways_;
};

// Returns the least number of lanes into or out of any subset of the GPUs. It bounds the number of rings that
// leave each GPU once.
std::uint32_t narrowest_cut(const LinkLanes& links);

}  // namespace netsim
