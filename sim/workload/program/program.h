// Program: a workload as plain data, in the shape of workload.proto, which documents every field. Generators
// make one with ProgramBuilder, program_file.h reads and writes it, and RoleProgramSource hands out its
// tasks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/collectives/plan.h"
#include "sim/compute/kernel.h"
#include "sim/core/units.h"
#include "sim/workload/memory_plan.h"
#include "sim/workload/task.h"

namespace netsim {

struct ProgramAxis {
  std::string name;
  std::uint32_t size = 1;
};

// GroupExpression: the group of a rank. Its members are the ranks that agree with the rank on all axes that
// are not named, first named axis fastest. Or they are `ranks`, or the one of `lists` that contains the rank;
// no two lists have a rank in common.
struct GroupExpression {
  struct AxisSubset {
    std::uint32_t axis = 0;
    std::vector<std::uint32_t> members;  // empty: the whole axis
    bool operator==(const AxisSubset&) const = default;
  };
  std::vector<AxisSubset> axes;
  std::vector<RankId> ranks;
  std::uint32_t communicator = 0;
  std::vector<std::vector<RankId>> lists = {};
  bool operator==(const GroupExpression&) const = default;
};

// PeerExpression: the rank with another coordinate on an axis, or `rank`, or the table's value for the rank.
struct PeerExpression {
  enum class Kind : std::uint8_t { none, offset, rank, table };
  Kind kind = Kind::none;
  bool wrap = false;
  std::uint32_t axis = 0;
  std::int32_t offset = 0;
  RankId rank = 0;
  std::uint32_t table = 0;  // index of a table with one value for each rank
  auto operator<=>(const PeerExpression&) const = default;
};

struct ProgramOp {
  TaskKind kind = TaskKind::compute;
  Stream stream = Stream::compute;
  std::uint32_t queue = 0;
  bool unordered = false;
  bool raw = false;
  bool joins = false;
  std::uint32_t name = 0;
  std::uint32_t work = 0;
  CollectiveKind collective = CollectiveKind::all_reduce;
  std::uint32_t group = 0;
  std::uint32_t circuits = 0;  // index in names
  std::uint32_t root = 0;
  PeerExpression peer;
  std::uint32_t tag = 0;
  Bytes bytes = 0;
  std::uint32_t table_plus_one = 0;
  std::uint32_t counts_plus_one = 0;
  std::uint32_t choice_plus_one = 0;
  std::vector<std::uint32_t> after;
  std::vector<std::int32_t> after_previous;
  Time not_before = 0;
  std::uint32_t memory_plus_one = 0;  // index + 1 in Program::memory
  // These set TransferTraits: class, priority and deadline of a collective or message, channel of a raw
  // message. A deadline of 0 is none.
  std::uint8_t traffic_class = 0;
  std::uint8_t priority = 0;
  Time deadline = 0;
  std::uint32_t channel = 0;
  bool operator==(const ProgramOp&) const = default;
};

struct ProgramRepeat {
  std::uint32_t block = 0;
  std::uint32_t count = 1;
  bool operator==(const ProgramRepeat&) const = default;
};

struct ProgramBlock {
  std::string name;
  std::vector<std::variant<ProgramOp, ProgramRepeat>> items;
};

// LayerOperations: operations of a block that work for one layer of the model's body.
struct LayerOperations {
  std::uint32_t begin = 0, end = 0;  // positions in the unrolled block
  std::uint32_t layer = 0;
};

// MarkedOperations: operations of a role's unrolled program that work for one step of a pipeline.
struct MarkedOperations {
  std::uint32_t begin = 0, end = 0;   // positions
  PipelineMark mark;                  // without a layer
  std::uint32_t layers_plus_one = 0;  // index + 1 in Program::layers, for a block that begins at `begin`
};

struct ProgramRole {
  struct Coordinate {
    std::uint32_t axis = 0;
    std::vector<std::uint32_t> values;
  };
  std::string name;
  std::vector<Coordinate> where;
  std::uint32_t block = 0;
  MemoryUse resident = {};  // memory in use throughout, on each of its ranks
  // The steps of its pipeline, in the order of their positions. Files do not contain this.
  std::vector<MarkedOperations> marks = {};
};

// CutOperations: the operations of one name, each of which is one of `pieces` pieces of an operation. A
// strategy has cut it, so that more communication hides behind computation. `key` says where a user sets it.
struct CutOperations {
  std::uint32_t name = 0;
  std::uint32_t pieces = 1;
  std::string key;
};

struct Program {
  std::string producer;
  std::string job;
  std::vector<ProgramAxis> axes;
  std::vector<std::string> names;
  std::vector<Work> works;
  std::vector<std::vector<std::int64_t>> tables;
  std::vector<BlockCounts> counts;
  std::vector<GroupExpression> groups;
  std::vector<ProgramBlock> blocks;
  std::vector<ProgramRole> roles;
  std::uint32_t iterations = 1;
  std::uint32_t warm_up = 0;  // number of the first iterations that means leave out
  double model_flops = 0;
  // The program declares the memory that its operations need. Files do not contain this.
  bool counts_memory = false;
  std::vector<TaskMemory> memory;
  // The operations that strategies have cut, by ascending name. `cut_streams` has a bit for each Stream of
  // the communications among these. Files do not contain this.
  std::vector<CutOperations> cuts;
  std::uint32_t cut_streams = 0;
  // The layers that steps of pipelines work for, in the order of positions. Files do not contain this.
  std::vector<std::vector<LayerOperations>> layers;
};

// Returns what the operation at a position of the role's unrolled program works for, if that is marked.
std::optional<PipelineMark> mark_at(const Program& program, const ProgramRole& role, std::uint32_t position);

// ProgramLimits: the limits of a program. Exceeding one is an InputError.
struct ProgramLimits {
  static constexpr std::uint64_t kFileBytes = 1ULL << 30;
  static constexpr std::uint64_t kRanks = 1ULL << 20;
  static constexpr std::uint64_t kTasks = 1'000'000'000;  // all ranks and iterations together
  static constexpr std::uint64_t kUnrolled = 30'000'000;  // operations of all roles together, one iteration
  // Dependencies of all roles together, one iteration.
  static constexpr std::uint64_t kDependencies = 100'000'000;
  static constexpr std::uint64_t kGroupMembers = 1ULL << 26;  // members of all groups together
  static constexpr std::size_t kAxes = 16;
  static constexpr std::uint32_t kDepth = 64;            // depth of nested blocks
  static constexpr std::size_t kKernels = 500;           // kernels of one work
  static constexpr Bytes kBytes = 1LL << 50;             // bytes of one communication
  static constexpr std::uint32_t kCountsMembers = 4096;  // members of an all-to-all-v
  // Operations of one GEMM, times the bytes of an element.
  static constexpr double kOperations = 1e19;
  static constexpr Time kKernelTime = 10'000 * kSecond;
};

// Returns whether one kernel may have these matrices. Their sizes are at least 1. It holds for kernels
// without matrices.
bool is_allowed_size(const Kernel& kernel);
// Returns the number of ranks: the product of the axes, saturated.
std::uint64_t rank_count(const Program& program);
// Returns a table's value for a rank in an iteration. A table has a row of all ranks for each of some
// iterations and begins again after the last row.
inline std::int64_t table_value(const std::vector<std::int64_t>& table, std::uint64_t ranks, RankId rank,
                                std::uint32_t iteration) {
  return table.size() == ranks ? table[rank] : table[iteration % (table.size() / ranks) * ranks + rank];
}
// Returns the number of operations of every block, unrolled; saturated at 2^63. Throws InputError with the
// path for a block that is out of range or contains itself. It also refuses a repeated block without
// operations, and blocks nested deeper than the limit.
std::vector<std::uint64_t> unrolled_sizes(const Program& program, const std::string& file);
// Returns the number of tasks of all ranks and iterations. Throws the same errors.
std::uint64_t total_tasks(const Program& program, const std::string& file);
// Returns the ranks that have a role, ascending. Throws InputError for an axis or value out of range.
std::vector<RankId> ranks_of_role(const Program& program, std::uint32_t role, const std::string& file);

// ProgramBuilder: builds a Program. Every distinct name, work, group and block is stored once.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(const std::string& job);

  std::uint32_t axis(const std::string& name, std::uint32_t size);
  std::uint32_t name(const std::string& text);
  std::uint32_t work(const Work& work);
  std::uint32_t table(std::vector<std::int64_t> values);
  std::uint32_t counts(BlockCounts counts);
  std::uint32_t group(const GroupExpression& expression);
  std::uint32_t memory(TaskMemory memory);
  // Says that each operation of a name is one of several pieces. The smaller one of two numbers holds. A
  // communication names its stream.
  void cut(const std::string& name, std::uint32_t pieces, const std::string& key,
           std::optional<Stream> stream);
  std::uint32_t block(ProgramBlock block);  // equal contents are one block, whatever their names
  void role(ProgramRole role) { program_.roles.push_back(std::move(role)); }

  // Number of unrolled operations.
  std::uint64_t block_size(std::uint32_t block) const { return sizes_[block]; }
  Program& program() { return program_; }
  const Program& program() const { return program_; }
  Program finish() { return std::move(program_); }

 private:
  Program program_;
  std::vector<std::uint64_t> sizes_;
  std::map<TaskMemory, std::uint32_t> memory_index_;
  std::map<std::string, std::uint32_t> name_index_;
  std::map<std::uint64_t, std::vector<std::uint32_t>> work_index_;  // by hash of the contents
  std::map<std::vector<std::int64_t>, std::uint32_t> table_index_;
  std::map<std::uint64_t, std::vector<std::uint32_t>> counts_index_;  // by digest
  std::map<std::uint64_t, std::vector<std::uint32_t>> block_index_;   // by hash of the contents
};

// BlockBuilder: a block under construction. A Position is the offset of an operation in the unrolled block,
// repeats included.
class BlockBuilder {
 public:
  using Position = std::uint32_t;
  // kBefore is the operation unrolled right before this block, wherever the block is used. kBefore - i is the
  // i-th operation before that one, for i up to kReach.
  static constexpr Position kBefore = UINT32_MAX, kReach = (1U << 20) - 1;

  BlockBuilder(ProgramBuilder& builder, std::string name) : builder_(builder), block_{std::move(name), {}} {}

  // Each of these appends one operation that waits for `after` and for its stream, and returns its position.
  // `name` is that of the operation, if it is not the work's.
  Position compute(const Work& work, const std::vector<Position>& after = {}, const std::string& name = {});
  Position collective(const std::string& name, CollectiveKind kind, Stream stream, std::uint32_t queue,
                      std::uint32_t group, Bytes bytes, const std::vector<Position>& after);
  // Appends a send, which is unordered: it waits for `after` only.
  Position send(const std::string& name, const PeerExpression& peer, std::uint32_t tag, Bytes bytes,
                const std::vector<Position>& after);
  // Appends a receive, which waits for the one before in `queue` of stream pp, and for `after`. With an empty
  // `after` it is posted early and blocks nothing.
  Position receive(const std::string& name, std::uint32_t queue, const PeerExpression& peer,
                   std::uint32_t tag, Bytes bytes, const std::vector<Position>& after = {});
  Position add(ProgramOp op, const std::vector<Position>& after);
  // Appends a block `count` times and returns the position of its first operation. Equal neighbours are
  // merged.
  Position repeat(std::uint32_t block, std::uint32_t count = 1);
  Position size() const { return size_; }
  // Returns the number of items of the block itself, in which a repeated block is one item.
  std::size_t items() const { return block_.items.size(); }
  // Sets the memory that the items from `first_item` on need together; all of them must be operations. It is
  // allocated when the first begins and released when the last ends.
  void add_memory(std::size_t first_item, const TaskMemory& memory);
  // Returns the position by which a block that is appended next refers to the operation at `position` of this
  // one.
  Position seen_from_next(Position position) const;
  std::uint32_t finish() { return builder_.block(std::move(block_)); }

 private:
  void add_memory_to(std::size_t item, const TaskMemory& memory);

  ProgramBuilder& builder_;
  ProgramBlock block_;
  Position size_ = 0;
};

// Throws InputError for a field of a workload file. `path` is the field ("roles[2].block"), or empty for the
// whole file.
[[noreturn]] void fail_program(const std::string& file, const std::string& path, const std::string& message);

}  // namespace netsim
