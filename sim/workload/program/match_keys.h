// MatchKeys: how many calls with the same match key go before an operation in a role's program: what a
// member of a collective, or one end of a message, needs to find the others, whatever happens first.
//
// The keys are expressions, and two of them may mean the same for a rank: on a ring of two the next rank and
// the previous one are the same peer. Ranks for which the same expressions fall together share a table, so
// there is one for nearly every role.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "sim/workload/program/rank_grid.h"
#include "sim/workload/program/unrolled_role.h"

namespace netsim {

class MatchKeys {
 public:
  // Both outlive this.
  MatchKeys(const OperationList& operations, const UnrolledRole& role);
  // The table of a rank that plays the role, whose groups and peers exist.
  std::uint32_t table_of(std::uint32_t rank, const RankGrid& grid, const GroupTable& groups);
  // Of a communication.
  std::uint32_t sequence(std::uint32_t table_index, std::uint32_t index, std::uint32_t iteration) const {
    const Table& table = tables_[table_index];
    return table.before[index] + iteration * table.calls[key_[index]];
  }

 private:
  static constexpr std::uint32_t kNoKey = UINT32_MAX;
  struct Table {
    std::vector<std::uint32_t> before;  // by task: calls with its key before it in its iteration
    std::vector<std::uint32_t> calls;   // by key: in an iteration, those that mean the same added up
  };
  // What a key means for a rank: kind of call, group or peer, tag.
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
