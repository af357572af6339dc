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

inline constexpr std::size_t kLongestRow = 24;  // boxes of a row that is folded

// Returns the rows: the first fabric by tier, its hosts below, and other fabrics below the hosts. A row with
// at most `whole` boxes is not folded. If one has more, only some of the equal pods are drawn, until rows
// have at most kLongestRow boxes. In rows that are still longer, switches that are joined alike share a box,
// or else the first and the last are drawn. Hosts share a box per set of switches if there are more than fit
// a row.
TierRows rows_of_tiers(const ClusterParts& parts, std::size_t whole = kLongestRow);

// Returns a name for switches: that of a single one, else "core0-7", or their number and kind.
std::string name_of_switches(const std::vector<NodeId>& switches, const Graph& graph);

}  // namespace netsim
