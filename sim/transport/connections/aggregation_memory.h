// AggregationMemory: what aggregation trees take of the memory of switches, and the most they ever took.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "sim/core/units.h"
#include "sim/network/fabric.h"
#include "sim/topology/graph.h"

namespace netsim {

class AggregationMemory {
 public:
  // Holds what a tree takes of one switch.
  struct Share {
    NodeId node = kNoId;
    Bytes bytes = 0;
  };
  // Holds what all trees take of one switch, now and at most so far.
  struct Use {
    Bytes bytes = 0, most = 0;
    std::uint32_t trees = 0, most_trees = 0;
    std::uint64_t waited = 0;  // messages that waited for memory of this switch
  };

  // Returns whether a switch with these parameters has room for the share.
  bool fits(const Share& share, const SwitchParameters& rules) const {
    const Use use = of(share.node);
    return (rules.aggregation_memory == 0 || use.bytes + share.bytes <= rules.aggregation_memory) &&
           (rules.aggregation_groups == 0 || use.trees + 1 <= rules.aggregation_groups);
  }
  void take(const Share& share) {
    Use& use = uses_[share.node];
    use.most = std::max(use.most, use.bytes += share.bytes);
    use.most_trees = std::max(use.most_trees, ++use.trees);
  }
  void give_back(const Share& share) {
    Use& use = uses_[share.node];
    use.bytes -= share.bytes;
    --use.trees;
  }
  void count_waiting(NodeId node) { ++uses_[node].waited; }
  Use of(NodeId node) const {
    const auto found = uses_.find(node);
    return found == uses_.end() ? Use{} : found->second;
  }
  // By switch.
  const std::map<NodeId, Use>& uses() const { return uses_; }

 private:
  std::map<NodeId, Use> uses_;
};

}  // namespace netsim
