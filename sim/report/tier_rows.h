// TierRows: the rows of a cluster's drawing by tier. Long rows are folded, so that the drawing stays
// readable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/report/cluster_parts.h"

namespace netsim {

// TierEntry: one box of a row, for switches or for hosts. It holds several if all are joined alike. Without
// either it stands for `left_out` switches or hosts that are not drawn.
struct TierEntry {
  std::vector<NodeId> switches;
  std::vector<std::uint32_t> hosts;
  std::size_t left_out = 0;
};

struct TierRows {
  std::vector<std::vector<TierEntry>> rows;  // from top to bottom
  std::vector<std::string> notes;            // what the folding means
};

// Returns the rows: the first fabric by tier, its hosts below, and other fabrics below the hosts. If a row is
// too long, only some of the equal pods are drawn. In rows that are still too long, switches that are joined
// alike share a box, or else the first and the last are drawn.
TierRows rows_of_tiers(const ClusterParts& parts);

// Returns a name for switches from `first` to `last`: "core0-7", or their number and kind.
std::string name_of_range(const std::string& first, const std::string& last, std::size_t count);

}  // namespace netsim
