#include "sim/workload/program/match_keys.h"

namespace netsim {
namespace {

// Returns the kind by which calls are counted. Circuits count among the collectives of their group.
TaskKind kind_of_key(const ProgramOp& op) {
  return op.kind == TaskKind::circuits ? TaskKind::collective : op.kind;
}

}  // namespace

MatchKeys::MatchKeys(const OperationList& operations, const UnrolledRole& role)
    : operations_(operations), role_(role), key_(role.size(), kNoKey) {
  using Expression = std::tuple<TaskKind, std::uint32_t, PeerExpression, std::uint32_t>;
  std::map<Expression, std::uint32_t> known;
  for (std::uint32_t i = 0; i < role.size(); ++i) {
    const ProgramOp& op = operations[role.operation(i)];
    if (op.kind == TaskKind::compute || is_of_host(op.kind)) continue;
    const TaskKind kind = kind_of_key(op);
    const bool collective = kind == TaskKind::collective;
    const Expression expression{kind, collective ? op.group : 0, collective ? PeerExpression{} : op.peer,
                                collective ? 0 : op.tag};
    const auto next = static_cast<std::uint32_t>(operation_of_.size());
    const auto [it, added] = known.try_emplace(expression, next);
    if (added) operation_of_.push_back(role.operation(i));
    key_[i] = it->second;
  }
}

std::uint32_t MatchKeys::table_of(RankId rank, const RankGrid& grid, const GroupTable& groups) {
  std::map<Meaning, std::uint32_t> first;
  std::vector<std::uint32_t> same_as;
  for (std::uint32_t key = 0; key < operation_of_.size(); ++key) {
    const ProgramOp& op = operations_[operation_of_[key]];
    const TaskKind kind = kind_of_key(op);
    const Meaning meaning = kind == TaskKind::collective ? Meaning{kind, groups.id(op.group, rank), 0}
                                                         : Meaning{kind, *grid.peer(rank, op.peer), op.tag};
    same_as.push_back(first.try_emplace(meaning, key).first->second);
  }
  const auto [it, added] = known_.try_emplace(same_as, static_cast<std::uint32_t>(tables_.size()));
  if (added) tables_.push_back(make_table(same_as));
  return it->second;
}

MatchKeys::Table MatchKeys::make_table(const std::vector<std::uint32_t>& same_as) const {
  Table table;
  table.before.resize(role_.size());
  table.calls.resize(same_as.size());
  for (std::uint32_t i = 0; i < role_.size(); ++i) {
    if (key_[i] != kNoKey) table.before[i] = table.calls[same_as[key_[i]]]++;
  }
  for (std::size_t key = 0; key < same_as.size(); ++key) table.calls[key] = table.calls[same_as[key]];
  return table;
}

}  // namespace netsim
