#include "sim/workload/program/program_checks.h"

#include <map>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/workload/traffic/traffic.h"

namespace netsim {
namespace {

// Returns the operations that a role uses, each with the number of its uses.
std::map<std::uint32_t, std::uint64_t> used_operations(const UnrolledRole& role) {
  std::map<std::uint32_t, std::uint64_t> used;
  for (std::uint32_t i = 0; i < role.size(); ++i) ++used[role.operation(i)];
  return used;
}

// Returns the number of iterations after which a table begins again.
std::uint32_t rows_of(const CheckedProgram& checked, std::uint32_t table) {
  return static_cast<std::uint32_t>(checked.program.tables[table].size() / checked.grid.ranks());
}
std::int64_t value_at(const CheckedProgram& checked, std::uint32_t table, RankId rank, std::uint32_t row) {
  return table_value(checked.program.tables[table], checked.grid.ranks(), rank, row);
}
// Returns the values of a rank in all iterations as one number. It is the value itself where a table has one
// row.
std::uint64_t values_of(const CheckedProgram& checked, std::uint32_t table, RankId rank) {
  std::uint64_t values = 0;
  for (std::uint32_t row = 0; row < rows_of(checked, table); ++row)
    values = values * 31 + static_cast<std::uint64_t>(value_at(checked, table, rank, row));
  return values;
}

class OperationCheck {
 public:
  OperationCheck(const CheckedProgram& checked, std::uint32_t operation, RankId rank)
      : checked_(checked), operation_(operation), op_(checked.operations[operation]), rank_(rank) {}

  void run() const {
    if (op_.table_plus_one != 0) check_values();
    if (op_.choice_plus_one != 0) check_choices();
    if (op_.kind == TaskKind::collective || op_.kind == TaskKind::circuits) check_group();
    if (op_.kind == TaskKind::send || op_.kind == TaskKind::receive) check_peer();
  }

 private:
  [[noreturn]] void fail(const std::string& field, const std::string& message) const {
    fail_program(checked_.file, checked_.operations.path(operation_) + field,
                 message + " (rank " + std::to_string(rank_) + ")");
  }
  void check_values() const {
    for (std::uint32_t row = 0; row < rows_of(checked_, op_.table_plus_one - 1); ++row) check_value(row);
  }
  void check_value(std::uint32_t row) const {
    const std::int64_t value = value_at(checked_, op_.table_plus_one - 1, rank_, row);
    const bool compute = op_.kind == TaskKind::compute;
    const std::int64_t low = compute ? 0 : 1;
    const std::int64_t high = compute ? ProgramLimits::kKernelTime : ProgramLimits::kBytes;
    if (value < low || value > high) {
      fail(".table_plus_one", "the table's " + std::to_string(value) +
                                  " is out of range: " + std::to_string(low) + " to " + std::to_string(high));
    }
  }
  void check_choices() const {
    const bool compute = op_.kind == TaskKind::compute;
    const std::size_t size = compute ? checked_.program.works.size() : checked_.program.counts.size();
    for (std::uint32_t row = 0; row < rows_of(checked_, op_.choice_plus_one - 1); ++row) {
      const std::int64_t value = value_at(checked_, op_.choice_plus_one - 1, rank_, row);
      if (value < 0 || static_cast<std::uint64_t>(value) >= size) {
        fail(".choice_plus_one", "the table's " + std::to_string(value) + " is out of range: there are " +
                                     std::to_string(size) + (compute ? " works" : " counts"));
      }
      if (!compute) check_counts(static_cast<std::uint32_t>(value), ".choice_plus_one");
    }
  }
  void check_group() const {
    const std::uint32_t id = checked_.groups.id(op_.group, rank_);
    if (id == kNoIndex) fail(".group", "the rank is not a member of group " + std::to_string(op_.group));
    if (op_.kind == TaskKind::circuits) return;
    const std::size_t members = checked_.groups.members(id).size();
    if (members < 2)
      fail(".group", "group " + std::to_string(op_.group) + " has one member: a collective needs two");
    if (op_.counts_plus_one != 0) check_counts(op_.counts_plus_one - 1, ".counts_plus_one");
    if (op_.root >= members) {
      fail(".root", std::to_string(op_.root) + " is out of range: the group has " + std::to_string(members) +
                        " members");
    }
  }
  void check_counts(std::uint32_t counts, const char* field) const {
    const std::uint32_t id = checked_.groups.id(op_.group, rank_);
    if (id == kNoIndex) return;  // check_group() reports it
    const std::size_t members = checked_.groups.members(id).size();
    const std::uint32_t counted = checked_.program.counts[counts].members();
    if (counted != members)
      fail(field,
           "counts of " + std::to_string(counted) + " ranks for a group of " + std::to_string(members));
    if (checked_.program.counts[counts].has_tokens() != has_tokens(op_.collective))
      fail(field, std::string(to_string(op_.collective)) +
                      (has_tokens(op_.collective) ? " needs counts of tokens" : " has no tokens"));
  }
  void check_peer() const {
    const auto peer = checked_.grid.peer(rank_, op_.peer);
    if (!peer)
      fail(".peer",
           "the peer is out of range: there are " + std::to_string(checked_.grid.ranks()) + " ranks");
    if (*peer == rank_) fail(".peer", "the peer is the rank itself");
  }

  const CheckedProgram& checked_;
  std::uint32_t operation_;
  const ProgramOp& op_;
  std::uint32_t rank_;
};

// Returns a digest of the properties that all members have to agree on, except the bytes.
std::uint64_t digest_of(const CheckedProgram& checked, const ProgramOp& op) {
  if (op.kind == TaskKind::circuits) return hash_name(checked.program.names[op.circuits]);
  const std::uint64_t what = static_cast<std::uint64_t>(op.traffic_class) << 48 |
                             static_cast<std::uint64_t>(op.collective) << 32 | op.root;
  if (op.counts_plus_one == 0 || op.choice_plus_one != 0) return what;
  return hash_combine(what, checked.program.counts[op.counts_plus_one - 1].digest());
}

// Returns a digest of a rank's choices in all iterations, by their contents.
std::uint64_t digest_of_choices(const CheckedProgram& checked, std::uint32_t table, RankId rank) {
  std::uint64_t digest = 0;
  for (std::uint32_t row = 0; row < rows_of(checked, table); ++row) {
    const auto counts = static_cast<std::size_t>(value_at(checked, table, rank, row));
    digest = hash_combine(digest, checked.program.counts[counts].digest());
  }
  return digest;
}

// CollectiveTotals: the calls of a role on one group expression. Bytes and counts from tables are added per
// rank.
struct CollectiveTotals {
  std::uint64_t calls = 0;
  std::uint64_t order = 0;  // hash of kind, root and bytes, in program order
  std::map<std::uint32_t, std::uint64_t> tables, choices;
};

std::map<std::uint32_t, CollectiveTotals> collectives_of(const CheckedProgram& checked,
                                                         const UnrolledRole& role) {
  std::map<std::uint32_t, CollectiveTotals> totals;
  for (std::uint32_t i = 0; i < role.size(); ++i) {
    const ProgramOp& op = checked.operations[role.operation(i)];
    if (op.kind != TaskKind::collective && op.kind != TaskKind::circuits) continue;
    CollectiveTotals& total = totals[op.group];
    ++total.calls;
    const std::uint64_t what = digest_of(checked, op);
    const bool table = op.table_plus_one != 0;
    total.order =
        hash_combine(hash_combine(total.order, what), table ? 0 : static_cast<std::uint64_t>(op.bytes));
    if (table)
      total.tables[op.table_plus_one - 1] += total.calls;  // weighted by place, so that order matters
    if (op.choice_plus_one != 0) total.choices[op.choice_plus_one - 1] += total.calls;
  }
  return totals;
}

struct GroupCalls {
  std::uint32_t callers = 0;
  std::uint32_t first_caller = 0;
  std::uint64_t calls = 0;
  std::uint64_t digest = 0;
};

// Returns the calls of one rank by group. Expressions that mean the same group are added up.
std::map<std::uint32_t, GroupCalls> calls_of_rank(const CheckedProgram& checked,
                                                  const std::map<std::uint32_t, CollectiveTotals>& totals,
                                                  RankId rank) {
  std::map<std::uint32_t, GroupCalls> result;
  for (const auto& [expression, total] : totals) {
    std::uint64_t from_tables = 0;
    for (const auto& [table, weight] : total.tables) {
      from_tables += weight * values_of(checked, table, rank);
    }
    for (const auto& [table, weight] : total.choices)
      from_tables += weight * digest_of_choices(checked, table, rank);
    GroupCalls& group = result[checked.groups.id(expression, rank)];
    group.first_caller = rank;
    group.calls += total.calls;
    group.digest += hash_combine(total.order, from_tables);
  }
  return result;
}

[[noreturn]] void refuse_different(const CheckedProgram& checked, const GroupCalls& a, const GroupCalls& b) {
  fail_program(checked.file, "",
               "ranks " + std::to_string(a.first_caller) + " and " + std::to_string(b.first_caller) +
                   " of one group call different collectives: " + std::to_string(a.calls) + " and " +
                   std::to_string(b.calls) +
                   " calls, or other kinds, roots, bytes, counts, classes or circuits");
}

// MessageKey: messages of one direction between two ranks with one tag, at one end.
struct MessageKey {
  std::uint32_t sender, receiver, tag;
  auto operator<=>(const MessageKey&) const = default;
};
struct MessageTotal {
  std::uint64_t messages = 0;
  std::uint64_t raw = 0;
  std::uint64_t bytes = 0;  // modulo 2^64
};

// Calls visit(key, received, total) for every operation and rank that sends or receives.
template <class Visit>
void for_each_message(const CheckedProgram& checked, Visit visit) {
  for (std::size_t r = 0; r < checked.roles.size(); ++r) {
    for (const auto& [operation, uses] : used_operations(checked.roles[r])) {
      const ProgramOp& op = checked.operations[operation];
      if (op.kind != TaskKind::send && op.kind != TaskKind::receive) continue;
      const bool received = op.kind == TaskKind::receive;
      for (const RankId rank : checked.ranks_of_role[r]) {
        const RankId peer = *checked.grid.peer(rank, op.peer);
        const MessageKey key{received ? peer : rank, received ? rank : peer, op.tag};
        const std::uint64_t bytes = op.table_plus_one == 0 ? static_cast<std::uint64_t>(op.bytes)
                                                           : values_of(checked, op.table_plus_one - 1, rank);
        visit(key, received, MessageTotal{uses, op.raw ? uses : 0, uses * bytes});
      }
    }
  }
}

// Returns sent minus received as one hash, so that jobs of any size are checked without a table; 0 when all
// match.
std::uint64_t imbalance(const CheckedProgram& checked) {
  std::uint64_t sum = 0;
  for_each_message(checked, [&sum](const MessageKey& key, bool received, const MessageTotal& total) {
    const std::uint64_t base = hash_combine(std::uint64_t{key.sender} << 32 | key.receiver, key.tag);
    const std::uint64_t value =
        total.messages * mix64(base + 1) + total.raw * mix64(base + 2) + total.bytes * mix64(base + 3);
    sum += received ? 0 - value : value;
  });
  return sum;
}

std::string describe(const MessageKey& key) {
  return "messages from rank " + std::to_string(key.sender) + " to rank " + std::to_string(key.receiver) +
         " with tag " + std::to_string(key.tag);
}

void compare(const std::string& file, const MessageKey& key, const MessageTotal& sent,
             const MessageTotal& received) {
  const auto fail = [&](const std::string& what) { fail_program(file, "", describe(key) + ": " + what); };
  if (sent.messages != received.messages) {
    fail(std::to_string(sent.messages) + " are sent and " + std::to_string(received.messages) + " received");
  }
  if (sent.bytes != received.bytes) {
    fail(std::to_string(sent.bytes) + " bytes are sent and " + std::to_string(received.bytes) + " received");
  }
  if (sent.raw != received.raw) fail("raw at one end only");
}

}  // namespace

void check_operations(const CheckedProgram& checked) {
  for (std::size_t r = 0; r < checked.roles.size(); ++r) {
    for (const auto& [operation, uses] : used_operations(checked.roles[r])) {
      for (const RankId rank : checked.ranks_of_role[r]) OperationCheck(checked, operation, rank).run();
    }
  }
}

void check_classes(const Program& program, std::int64_t classes, const std::string& file) {
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    const auto& items = program.blocks[b].items;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const auto* op = std::get_if<ProgramOp>(&items[i]);
      if (op == nullptr || op->traffic_class < classes) continue;
      fail_program(file,
                   "blocks[" + std::to_string(b) + "].items[" + std::to_string(i) + "].op.traffic_class",
                   class_problem(op->traffic_class, classes));
    }
  }
}

void check_collectives(const CheckedProgram& checked) {
  std::map<std::uint32_t, GroupCalls> groups;
  for (std::size_t r = 0; r < checked.roles.size(); ++r) {
    const auto totals = collectives_of(checked, checked.roles[r]);
    for (const RankId rank : checked.ranks_of_role[r]) {
      for (const auto& [id, calls] : calls_of_rank(checked, totals, rank)) {
        GroupCalls& group = groups.try_emplace(id, calls).first->second;
        group.callers += 1;
        if (group.calls != calls.calls || group.digest != calls.digest)
          refuse_different(checked, group, calls);
      }
    }
  }
  for (const auto& [id, group] : groups) {
    const auto& members = checked.groups.members(id);
    if (group.callers == members.size()) continue;
    fail_program(checked.file, "",
                 "only " + std::to_string(group.callers) + " of the " + std::to_string(members.size()) +
                     " members of the group of rank " + std::to_string(members.front()) +
                     " call its collectives");
  }
}

void check_messages(const CheckedProgram& checked) {
  if (imbalance(checked) == 0) return;
  std::map<MessageKey, std::pair<MessageTotal, MessageTotal>> totals;
  for_each_message(checked, [&totals](const MessageKey& key, bool received, const MessageTotal& total) {
    auto& [sent, taken] = totals[key];
    MessageTotal& side = received ? taken : sent;
    side.messages += total.messages;
    side.raw += total.raw;
    side.bytes += total.bytes;
  });
  for (const auto& [key, sides] : totals) compare(checked.file, key, sides.first, sides.second);
}

}  // namespace netsim
