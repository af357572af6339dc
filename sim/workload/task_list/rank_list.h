// RankList: the ranks that a task of a task list names, and how a description writes them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/ids.h"

namespace netsim {

// RankList: ranks in the order in which they are written, which is that of a collective's group. No rank is
// in it twice.
class RankList {
 public:
  // Throws ConfigError at `node` for a rank that is listed twice.
  RankList(std::vector<RankId> ranks, const ConfigNode& node);
  const std::vector<RankId>& ranks() const { return ranks_; }
  bool contains(RankId rank) const;
  // Returns whether a rank is in both lists.
  bool meets(const RankList& other) const;
  RankId largest() const { return sorted_.back(); }

 private:
  std::vector<RankId> ranks_, sorted_;
};

// Null stands for all ranks of the job.
using SharedRanks = std::shared_ptr<const RankList>;
using RankGroups = std::map<std::string, SharedRanks>;

// Reads `groups: {data: [0, 1], all_hosts: 0-15}`. Throws ConfigError.
RankGroups read_rank_groups(const ConfigNode& node);
// Reads a rank, a range "0-7", a list of these, the name of a group, or `all`. Null stands for all ranks.
// Throws ConfigError.
SharedRanks read_rank_list(const ConfigNode& node, const RankGroups& groups);
// Reads the ends of messages: a rank, a range, a list of these, or the name of a group, but not `all`. Throws
// ConfigError.
SharedRanks read_named_ranks(const ConfigNode& node, const RankGroups& groups);

}  // namespace netsim
