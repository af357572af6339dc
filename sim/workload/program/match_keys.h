// MatchKeys: the number of calls with the same match key before an operation in a role's program. A member of
// a collective, or one end of a message, finds the others by it, independent of the order of events.
//
// The keys are expressions, and two of them may mean the same for a rank. On a ring of two, the next rank and
// the previous one are the same peer. Ranks for which the same expressions coincide share a table, so nearly
// every role has only one.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "sim/core/ids.h"
#include "sim/workload/program/rank_grid.h"
#include "sim/workload/program/unrolled_role.h"

namespace netsim {

class MatchKeys {
 public:
  // Both must outlive this.
  MatchKeys(const OperationList& operations, const UnrolledRole& role);
  // Returns the table of a rank that has the role. Its groups and peers must exist.
  std::uint32_t table_of(RankId rank, const RankGrid& grid, const GroupTable& groups);
  // Returns the sequence number of a communication in an iteration.
  std::uint32_t sequence(std::uint32_t table_index, std::uint32_t index, std::uint32_t iteration) const {
    const Table& table = tables_[table_index];
    return table.before[index] + iteration * table.calls[key_[index]];
  }

 private:
  static constexpr std::uint32_t kNoKey = UINT32_MAX;
  struct Table {
    std::vector<std::uint32_t> before;  // by task: calls with its key before it in its iteration
    // By key: calls in an iteration, added up over keys that mean the same.
    std::vector<std::uint32_t> calls;
  };
  // The meaning of a key for a rank: kind of call, group or peer, tag.
  using Meaning = std::tuple<TaskKind, std::uint32_t, std::uint32_t>;

  Table make_table(const std::vector<std::uint32_t>& same_as) const;

  const OperationList& operations_;
  const UnrolledRole& role_;
  std::vector<std::uint32_t> key_;                             // by task
  std::vector<std::uint32_t> operation_of_;                    // by key: one of its operations
  std::map<std::vector<std::uint32_t>, std::uint32_t> known_;  // by key: the first key that means the same
  std::vector<Table> tables_;
};

}  // namespace netsim
