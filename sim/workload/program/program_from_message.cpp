#include <algorithm>
#include <utility>

#include "sim/core/errors.h"
#include "sim/workload/program/program_checks.h"
#include "sim/workload/program/program_message.h"
#include "sim/workload/program/workload.pb.h"
#include "sim/workload/traffic/traffic.h"

namespace netsim {
namespace {

// MessageDecoder: converts the parts of a message.
class MessageDecoder {
 public:
  explicit MessageDecoder(const std::string& file) : file_(file) {}

  Program convert(const pb::Workload& message) const {
    Program program;
    program.producer = message.producer();
    program.job = message.job();
    program.iterations = message.iterations();
    program.model_flops = message.model_flops();
    if (program.iterations == 0) fail("iterations", "0 is not a number of iterations: at least 1");
    program.warm_up = message.warm_up();
    if (program.warm_up >= program.iterations)
      fail("warm_up", std::to_string(program.warm_up) + " of " + std::to_string(program.iterations) +
                          " iterations: fewer than all are allowed");
    if (!(program.model_flops >= 0 && program.model_flops < 1e40))
      fail("model_flops", "is not a number of operations");
    convert_axes(message, program);
    program.names.assign(message.names().begin(), message.names().end());
    for (int i = 0; i < message.works_size(); ++i) {
      program.works.push_back(work(message.works(i), program, "works[" + std::to_string(i) + "]"));
    }
    for (int i = 0; i < message.tables_size(); ++i) {
      const auto& values = message.tables(i).values();
      if (values.empty() || static_cast<std::uint64_t>(values.size()) % rank_count(program) != 0) {
        fail("tables[" + std::to_string(i) + "]",
             count_of(static_cast<std::size_t>(values.size()), "values") + " for " +
                 std::to_string(rank_count(program)) + " ranks");
      }
      program.tables.emplace_back(values.begin(), values.end());
    }
    for (int i = 0; i < message.counts_size(); ++i)
      program.counts.push_back(counts(message.counts(i), "counts[" + std::to_string(i) + "]"));
    for (int i = 0; i < message.groups_size(); ++i) program.groups.push_back(group(message.groups(i)));
    for (int i = 0; i < message.blocks_size(); ++i) {
      program.blocks.push_back(block(message.blocks(i), program, "blocks[" + std::to_string(i) + "]"));
    }
    for (int i = 0; i < message.roles_size(); ++i) program.roles.push_back(role(message.roles(i)));
    return program;
  }

 private:
  [[noreturn]] void fail(const std::string& path, const std::string& message) const {
    fail_program(file_, path, message);
  }

  template <class Ours>
  Ours ours(const EnumTable<Ours>& table, int number, const std::string& path) const {
    for (const auto& [value, theirs_number] : table) {
      if (theirs_number == number) return value;
    }
    fail(path, number == 0 ? "is missing" : "the value " + std::to_string(number) + " is unknown");
  }
  std::uint32_t index(std::uint32_t value, std::size_t size, const char* what,
                      const std::string& path) const {
    if (value < size) return value;
    fail(path, std::to_string(value) + " is out of range: there are " + count_of(size, what));
  }
  std::int64_t in_range(std::int64_t value, std::int64_t low, std::int64_t high,
                        const std::string& path) const {
    if (value >= low && value <= high) return value;
    fail(path,
         std::to_string(value) + " is out of range: " + std::to_string(low) + " to " + std::to_string(high));
  }

  void convert_axes(const pb::Workload& message, Program& program) const {
    if (message.axes_size() == 0) fail("axes", "is missing: a workload has at least one axis of ranks");
    in_range(message.axes_size(), 1, ProgramLimits::kAxes, "axes");
    for (int i = 0; i < message.axes_size(); ++i) {
      in_range(message.axes(i).size(), 1, ProgramLimits::kRanks, "axes[" + std::to_string(i) + "].size");
      program.axes.push_back({message.axes(i).name(), message.axes(i).size()});
    }
    if (rank_count(program) > ProgramLimits::kRanks) {
      fail("axes", std::to_string(rank_count(program)) + " ranks are too many: at most " +
                       std::to_string(ProgramLimits::kRanks));
    }
  }

  Work work(const pb::Work& message, const Program& program, const std::string& path) const {
    Work result;
    result.name = program.names[index(message.name(), program.names.size(), "names", path + ".name")];
    in_range(message.kernels_size(), 0, ProgramLimits::kKernels, path + ".kernels");
    for (int i = 0; i < message.kernels_size(); ++i) {
      result.kernels.push_back(
          kernel(message.kernels(i), program, path + ".kernels[" + std::to_string(i) + "]"));
    }
    return result;
  }

  Kernel kernel(const pb::Kernel& message, const Program& program, const std::string& path) const {
    constexpr std::int64_t kDimension = 1LL << 32;
    Kernel result;
    result.kind = ours(kernel_kind_table(), message.kind(), path + ".kind");
    result.name = program.names[index(message.name(), program.names.size(), "names", path + ".name")];
    switch (result.kind) {
      case Kernel::Kind::gemm:
      case Kernel::Kind::attention:
        result.m = in_range(message.m(), 1, kDimension, path + ".m");
        result.n = in_range(message.n(), 1, kDimension, path + ".n");
        result.k = in_range(message.k(), 1, kDimension, path + ".k");
        result.batch = in_range(message.batch(), 1, kDimension, path + ".batch");
        result.element_bytes = in_range(message.element_bytes(), 1, 16, path + ".element_bytes");
        result.precision = ours(precision_table(), message.precision(), path + ".precision");
        result.pieces =
            in_range(std::max<std::int64_t>(1, message.pieces()), 1, kDimension, path + ".pieces");
        result.backward = message.backward();
        result.weight_gradient = message.weight_gradient();
        result.accumulates = message.accumulates();
        result.held_multiprocessors =
            in_range(message.held_multiprocessors(), 0, kDimension, path + ".held_multiprocessors");
        result.slice = slice(message, path);
        if (!is_allowed_size(result)) fail(path, "the matrices are too large for one kernel");
        result.bytes = in_range(message.bytes(), result.kind == Kernel::Kind::attention ? 1 : 0,
                                ProgramLimits::kBytes, path + ".bytes");
        break;
      case Kernel::Kind::memory:
        result.bytes = in_range(message.bytes(), 1, ProgramLimits::kBytes, path + ".bytes");
        result.atomic_adds = in_range(message.atomic_adds(), 0, ProgramLimits::kBytes, path + ".atomic_adds");
        break;
      case Kernel::Kind::fixed:
        result.duration =
            in_range(message.duration_ps(), 0, ProgramLimits::kKernelTime, path + ".duration_ps");
        break;
    }
    return result;
  }

  KernelSlice slice(const pb::Kernel& message, const std::string& path) const {
    constexpr std::int64_t kMostSlices = 1 << 20;
    const std::int64_t count =
        in_range(std::max<std::int64_t>(1, message.slices()), 1, kMostSlices, path + ".slices");
    return {in_range(message.slice(), 0, count - 1, path + ".slice"), count, message.slice_awaits(),
            message.slice_starts_kernel()};
  }

  static GroupExpression group(const pb::Group& message) {
    GroupExpression result;
    for (const auto& subset : message.axes()) {
      result.axes.push_back({subset.axis(), {subset.members().begin(), subset.members().end()}});
    }
    result.ranks.assign(message.ranks().begin(), message.ranks().end());
    result.communicator = message.communicator();
    for (const auto& list : message.lists())
      result.lists.emplace_back(list.ranks().begin(), list.ranks().end());
    return result;
  }

  ProgramBlock block(const pb::Block& message, const Program& program, const std::string& path) const {
    ProgramBlock result{message.name(), {}};
    result.items.reserve(static_cast<std::size_t>(message.items_size()));
    for (int i = 0; i < message.items_size(); ++i) {
      const pb::Block::Item& item = message.items(i);
      const std::string where = path + ".items[" + std::to_string(i) + "]";
      if (item.has_op()) {
        result.items.emplace_back(op(item.op(), program, where + ".op"));
      } else if (item.has_repeat()) {
        result.items.emplace_back(ProgramRepeat{item.repeat().block(), item.repeat().count()});
      } else {
        fail(where, "is empty: an operation or a repeat was expected");
      }
    }
    return result;
  }

  BlockCounts counts(const pb::Counts& message, const std::string& path) const {
    const auto size = static_cast<std::uint64_t>(message.values_size());
    std::uint32_t members = 0;
    while (std::uint64_t{members} * members < size && members < ProgramLimits::kCountsMembers) ++members;
    if (members < 2 || std::uint64_t{members} * members != size) {
      fail(path, count_of(size, "values") + " are not the blocks of 2 to " +
                     std::to_string(ProgramLimits::kCountsMembers) + " ranks, a square number");
    }
    std::vector<Bytes> rows;
    rows.reserve(size);
    for (int i = 0; i < message.values_size(); ++i) {
      rows.push_back(
          in_range(message.values(i), 0, ProgramLimits::kBytes, path + ".values[" + std::to_string(i) + "]"));
    }
    BlockCounts counts(members, std::move(rows), tokens(message, members, path));
    if (counts.busiest() == 0) fail(path, "no rank sends anything to another");
    return counts;
  }

  TokenBytes tokens(const pb::Counts& message, std::uint32_t members, const std::string& path) const {
    TokenBytes tokens;
    tokens.token = in_range(message.token(), 0, ProgramLimits::kBytes, path + ".token");
    if (tokens.token == 0) {
      if (message.host() != 0 || message.copies_size() != 0 || message.to_hosts_size() != 0)
        fail(path + ".token", "is 0, and there are counts of tokens");
      return tokens;
    }
    tokens.host = static_cast<std::uint32_t>(
        in_range(message.host(), 1, ProgramLimits::kCountsMembers, path + ".host"));
    const std::size_t hosts = (members + tokens.host - 1) / tokens.host;
    tokens.copies =
        of_tokens(message.copies(), std::size_t{members} * members, tokens.token, path + ".copies");
    tokens.to_hosts = of_tokens(message.to_hosts(), members * hosts, tokens.token, path + ".to_hosts");
    of_tokens(message.values(), std::size_t{members} * members, tokens.token, path + ".values");
    return tokens;
  }
  template <class Values>
  std::vector<Bytes> of_tokens(const Values& values, std::size_t size, Bytes token,
                               const std::string& path) const {
    if (static_cast<std::size_t>(values.size()) != size)
      fail(path, count_of(static_cast<std::uint64_t>(values.size()), "values") + " instead of " +
                     std::to_string(size));
    std::vector<Bytes> bytes;
    bytes.reserve(size);
    for (int i = 0; i < values.size(); ++i) {
      const std::string at = path + "[" + std::to_string(i) + "]";
      bytes.push_back(in_range(values[i], 0, ProgramLimits::kBytes, at));
      if (bytes.back() % token != 0) fail(at, std::to_string(bytes.back()) + " bytes are no whole tokens");
    }
    return bytes;
  }

  ProgramOp collective(const pb::Op& message, const Program& program, const std::string& path,
                       ProgramOp result) const {
    result.collective = ours(collective_table(), message.collective(), path + ".collective");
    result.group = index(message.group(), program.groups.size(), "groups", path + ".group");
    result.root = message.root();
    result.counts_plus_one =
        index(message.counts_plus_one(), program.counts.size() + 1, "counts", path + ".counts_plus_one");
    const std::string name = to_string(result.collective);
    if (has_counts(result.collective) != (result.counts_plus_one != 0)) {
      fail(path + ".counts_plus_one",
           name + (result.counts_plus_one == 0 ? " needs counts" : " has no counts of blocks"));
    }
    if (has_counts(result.collective) &&
        program.counts[result.counts_plus_one - 1].has_tokens() != has_tokens(result.collective)) {
      fail(path + ".counts_plus_one",
           name + (has_tokens(result.collective) ? " needs counts of tokens" : " has no tokens"));
    }
    if (has_bytes(result.collective)) return result;
    if (result.table_plus_one != 0 || message.bytes() != 0) {
      fail(path + (result.table_plus_one != 0 ? ".table_plus_one" : ".bytes"),
           name + (has_counts(result.collective) ? " has its bytes from counts" : " has no bytes"));
    }
    return result;
  }

  void check_chooses(const pb::Op& message, const std::string& path) const {
    const bool counts = message.kind() == pb::Op::COLLECTIVE &&
                        (message.collective() == pb::Op::ALL_TO_ALL_V ||
                         message.collective() == pb::Op::DISPATCH || message.collective() == pb::Op::COMBINE);
    if (message.kind() != pb::Op::COMPUTE && !counts) {
      fail(path + ".choice_plus_one",
           "only a compute operation, a dispatch, a combine and an all-to-all-v take their values from a "
           "table");
    }
    if (message.table_plus_one() != 0)
      fail(path + ".choice_plus_one", "table_plus_one is given, too: give one of the two");
  }

  ProgramOp op(const pb::Op& message, const Program& program, const std::string& path) const {
    ProgramOp result;
    result.kind = ours(task_kind_table(), message.kind(), path + ".kind");
    result.stream = ours(stream_table(), message.stream(), path + ".stream");
    result.queue = message.queue();
    result.unordered = message.unordered();
    result.raw = message.raw();
    result.joins = message.joins();
    result.name = index(message.name(), program.names.size(), "names", path + ".name");
    result.table_plus_one =
        index(message.table_plus_one(), program.tables.size() + 1, "tables", path + ".table_plus_one");
    result.choice_plus_one =
        index(message.choice_plus_one(), program.tables.size() + 1, "tables", path + ".choice_plus_one");
    if (result.choice_plus_one != 0) check_chooses(message, path);
    read_traits(message, path, result);
    result.after.assign(message.after().begin(), message.after().end());
    result.after_previous.assign(message.after_previous().begin(), message.after_previous().end());
    result.not_before = in_range(message.not_before_ps(), 0, kNever / 4, path + ".not_before_ps");
    if (result.kind == TaskKind::compute) {
      if (result.table_plus_one == 0)
        result.work = index(message.work(), program.works.size(), "works", path + ".work");
      return result;
    }
    if (has_work(result.kind)) {
      if (result.table_plus_one != 0 || result.choice_plus_one != 0)
        fail(path + ".table_plus_one", "what a host computes is the same for all ranks");
      result.work = index(message.work(), program.works.size(), "works", path + ".work");
      return result;
    }
    if (result.kind == TaskKind::circuits) {
      if (result.table_plus_one != 0) fail(path + ".table_plus_one", "circuits have no numbers");
      result.circuits = index(message.circuits(), program.names.size(), "names", path + ".circuits");
      result.group = index(message.group(), program.groups.size(), "groups", path + ".group");
      return result;
    }
    if (result.kind == TaskKind::collective) {
      result = collective(message, program, path, std::move(result));
      if (!has_bytes(result.collective)) return result;
    } else if (!is_copy(result.kind)) {
      result.peer = peer(message.peer(), program, path + ".peer");
      result.tag = message.tag();
    }
    if (result.table_plus_one == 0)
      result.bytes = in_range(message.bytes(), 1, ProgramLimits::kBytes, path + ".bytes");
    return result;
  }

  // Reads how the messages of a communication are carried.
  void read_traits(const pb::Op& message, const std::string& path, ProgramOp& result) const {
    const bool message_end = is_point_to_point(result.kind);
    const bool between_ranks = message_end || result.kind == TaskKind::collective;
    if (!between_ranks && message.traffic_class() != 0)
      fail(path + ".traffic_class", "only a collective, a send and a receive have a class");
    if (!between_ranks && message.priority() != 0)
      fail(path + ".priority", "only a collective, a send and a receive have a priority");
    if (!between_ranks && message.deadline_ps() != 0)
      fail(path + ".deadline_ps", "only a collective, a send and a receive have a deadline");
    if (message.channel() != 0 && !(message_end && message.raw()))
      fail(path + ".channel", "only a raw send or receive has a channel");
    result.traffic_class = static_cast<std::uint8_t>(in_range(
        message.traffic_class(), kTrafficClasses.minimum, kTrafficClasses.maximum, path + ".traffic_class"));
    result.priority =
        static_cast<std::uint8_t>(in_range(message.priority(), 0, UINT8_MAX, path + ".priority"));
    result.channel =
        static_cast<std::uint32_t>(in_range(message.channel(), 0, kMaxChannel, path + ".channel"));
    result.deadline = in_range(message.deadline_ps(), 0, kFlowDeadlines.maximum, path + ".deadline_ps");
  }

  PeerExpression peer(const pb::Peer& message, const Program& program, const std::string& path) const {
    PeerExpression result;
    if (message.has_offset()) {
      result.kind = PeerExpression::Kind::offset;
      result.axis = message.offset().axis();
      result.offset = message.offset().offset();
      result.wrap = message.offset().wrap();
    } else if (message.where_case() == pb::Peer::kRank) {
      result.kind = PeerExpression::Kind::rank;
      result.rank = message.rank();
    } else if (message.where_case() == pb::Peer::kTable) {
      result.kind = PeerExpression::Kind::table;
      result.table = index(message.table(), program.tables.size(), "tables", path + ".table");
    } else {
      fail(path, "is missing");
    }
    return result;
  }

  static ProgramRole role(const pb::Role& message) {
    ProgramRole result{message.name(), {}, message.block()};
    for (const auto& coordinate : message.where()) {
      result.where.push_back({coordinate.axis(), {coordinate.values().begin(), coordinate.values().end()}});
    }
    return result;
  }

  const std::string& file_;
};

}  // namespace

Program program_of_message(const pb::Workload& message, const std::string& file) {
  return MessageDecoder(file).convert(message);
}

}  // namespace netsim
