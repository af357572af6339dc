#include "sim/workload/program/program.h"

#include <algorithm>

#include "sim/core/errors.h"
#include "sim/core/random.h"

namespace netsim {
namespace {

constexpr std::uint64_t kSaturated = 1ULL << 63;

std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) { return std::min(kSaturated, a + b); }

std::uint64_t saturating_multiply(std::uint64_t a, std::uint64_t b) {
  const UInt128 product = static_cast<UInt128>(a) * b;
  return product > kSaturated ? kSaturated : static_cast<std::uint64_t>(product);
}

// BlockSizes: computes sizes of blocks by depth-first search with a stack of its own, because a file may nest
// blocks to any depth.
class BlockSizes {
 public:
  BlockSizes(const Program& program, const std::string& file)
      : program_(program),
        file_(file),
        sizes_(program.blocks.size(), 0),
        depth_(program.blocks.size(), 0),
        state_(program.blocks.size(), State::fresh) {}

  std::vector<std::uint64_t> compute() {
    for (std::uint32_t block = 0; block < sizes_.size(); ++block) {
      if (state_[block] == State::fresh) visit(block);
    }
    return std::move(sizes_);
  }

 private:
  enum class State : std::uint8_t { fresh, open, closed };
  struct Frame {
    std::uint32_t block;
    std::size_t item;
  };

  void visit(std::uint32_t root) {
    std::vector<Frame> stack{{root, 0}};
    state_[root] = State::open;
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const auto& items = program_.blocks[frame.block].items;
      if (frame.item == items.size()) {
        state_[frame.block] = State::closed;
        stack.pop_back();
      } else if (const auto* repeat = std::get_if<ProgramRepeat>(&items[frame.item])) {
        if (!descend(frame, *repeat, stack)) continue;
      } else {
        sizes_[frame.block] = saturating_add(sizes_[frame.block], 1);
        ++frame.item;
      }
    }
  }

  // Returns true if the repeated block's size is known and added, false after pushing the block.
  bool descend(Frame& frame, const ProgramRepeat& repeat, std::vector<Frame>& stack) {
    const std::string path =
        "blocks[" + std::to_string(frame.block) + "].items[" + std::to_string(frame.item) + "].repeat";
    if (repeat.block >= sizes_.size()) {
      fail_program(file_, path + ".block",
                   std::to_string(repeat.block) + " is out of range: there are " +
                       std::to_string(sizes_.size()) + " blocks");
    }
    if (repeat.count == 0)
      fail_program(file_, path + ".count", "0 is not a number of repetitions: at least 1");
    if (state_[repeat.block] == State::open) {
      fail_program(file_, path + ".block", "block " + std::to_string(repeat.block) + " contains itself");
    }
    if (state_[repeat.block] == State::fresh) {
      state_[repeat.block] = State::open;
      stack.push_back({repeat.block, 0});
      return false;
    }
    if (sizes_[repeat.block] == 0)
      fail_program(file_, path + ".block", "block " + std::to_string(repeat.block) + " is empty");
    depth_[frame.block] = std::max(depth_[frame.block], depth_[repeat.block] + 1);
    if (depth_[frame.block] > ProgramLimits::kDepth) {
      fail_program(file_, path + ".block",
                   "blocks are nested more than " + std::to_string(ProgramLimits::kDepth) + " deep");
    }
    sizes_[frame.block] =
        saturating_add(sizes_[frame.block], saturating_multiply(sizes_[repeat.block], repeat.count));
    ++frame.item;
    return true;
  }

  const Program& program_;
  const std::string& file_;
  std::vector<std::uint64_t> sizes_;
  std::vector<std::uint32_t> depth_;
  std::vector<State> state_;
};

std::uint64_t hash_op(const ProgramOp& op) {
  std::uint64_t h = hash_combine(static_cast<std::uint64_t>(op.kind), static_cast<std::uint64_t>(op.stream));
  for (const std::uint64_t part :
       {std::uint64_t{op.name}, std::uint64_t{op.work}, std::uint64_t{op.group},
        static_cast<std::uint64_t>(op.bytes), std::uint64_t{op.tag},
        static_cast<std::uint64_t>(op.peer.offset), std::uint64_t{op.peer.table}, std::uint64_t{op.queue},
        std::uint64_t{op.circuits}, std::uint64_t{op.counts_plus_one}, std::uint64_t{op.joins ? 1U : 0U},
        std::uint64_t{op.choice_plus_one}, std::uint64_t{op.table_plus_one},
        std::uint64_t{op.memory_plus_one}, std::uint64_t{op.traffic_class}, std::uint64_t{op.priority},
        std::uint64_t{op.channel}}) {
    h = hash_combine(h, part);
  }
  for (const std::uint32_t distance : op.after) h = hash_combine(h, distance);
  for (const std::int32_t distance : op.after_previous)
    h = hash_combine(h, static_cast<std::uint64_t>(distance));
  return h;
}

std::uint64_t hash_block(const ProgramBlock& block) {
  std::uint64_t h = block.items.size();
  for (const auto& item : block.items) {
    if (const auto* op = std::get_if<ProgramOp>(&item)) {
      h = hash_combine(h, hash_op(*op));
    } else {
      const auto& repeat = std::get<ProgramRepeat>(item);
      h = hash_combine(hash_combine(h, repeat.block), repeat.count);
    }
  }
  return h;
}

bool same_kernel(const Kernel& a, const Kernel& b) {
  return a.kind == b.kind && a.name == b.name && a.m == b.m && a.n == b.n && a.k == b.k &&
         a.batch == b.batch && a.element_bytes == b.element_bytes && a.precision == b.precision &&
         a.pieces == b.pieces && a.backward == b.backward && a.weight_gradient == b.weight_gradient &&
         a.accumulates == b.accumulates && a.held_multiprocessors == b.held_multiprocessors &&
         a.slice == b.slice && a.bytes == b.bytes && a.atomic_adds == b.atomic_adds &&
         a.duration == b.duration;
}

bool same_work(const Work& a, const Work& b) {
  return a.name == b.name &&
         std::equal(a.kernels.begin(), a.kernels.end(), b.kernels.begin(), b.kernels.end(), same_kernel);
}

std::uint64_t hash_work(const Work& work) {
  std::uint64_t h = hash_name(work.name);
  for (const Kernel& kernel : work.kernels) {
    h = hash_combine(h, hash_name(kernel.name));
    for (const std::int64_t part :
         {kernel.m, kernel.n, kernel.k, kernel.batch, kernel.bytes, kernel.duration, kernel.slice.index})
      h = hash_combine(h, static_cast<std::uint64_t>(part));
  }
  return h;
}

// Returns the range that contains a position, or null. The ranges are in order and do not overlap.
template <class Range>
const Range* range_at(const std::vector<Range>& ranges, std::uint32_t position) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), position,
                                      [](std::uint32_t at, const Range& one) { return at < one.begin; });
  if (after == ranges.begin() || position >= std::prev(after)->end) return nullptr;
  return &*std::prev(after);
}

}  // namespace

std::optional<PipelineMark> mark_at(const Program& program, const ProgramRole& role, std::uint32_t position) {
  const MarkedOperations* marked = range_at(role.marks, position);
  if (marked == nullptr) return std::nullopt;
  PipelineMark mark = marked->mark;
  if (marked->layers_plus_one == 0) return mark;
  const LayerOperations* layer =
      range_at(program.layers[marked->layers_plus_one - 1], position - marked->begin);
  if (layer != nullptr) mark.layer = layer->layer;
  return mark;
}

// Tiles round small dimensions up, so each counts 256 more than its size here.
bool is_allowed_size(const Kernel& kernel) {
  if (kernel.kind != Kernel::Kind::gemm && kernel.kind != Kernel::Kind::attention) return true;
  const double m = static_cast<double>(kernel.m), n = static_cast<double>(kernel.n),
               k = static_cast<double>(kernel.k), batch = static_cast<double>(kernel.batch),
               element_bytes = static_cast<double>(kernel.element_bytes);
  constexpr double kPadding = 256;
  const double operations = 2.0 * (m + kPadding) * (n + kPadding) * k * batch * element_bytes;
  const double elements = (m * k + k * n + m * n) * batch * element_bytes;
  const bool fused = kernel.kind == Kernel::Kind::attention;
  return operations <= ProgramLimits::kOperations &&
         (fused || elements <= static_cast<double>(ProgramLimits::kBytes));
}

std::uint64_t rank_count(const Program& program) {
  std::uint64_t ranks = 1;
  for (const ProgramAxis& axis : program.axes) ranks = saturating_multiply(ranks, axis.size);
  return ranks;
}

std::vector<std::uint64_t> unrolled_sizes(const Program& program, const std::string& file) {
  return BlockSizes(program, file).compute();
}

std::uint64_t total_tasks(const Program& program, const std::string& file) {
  const std::vector<std::uint64_t> sizes = unrolled_sizes(program, file);
  std::uint64_t total = 0;
  for (std::uint32_t r = 0; r < program.roles.size(); ++r) {
    const ProgramRole& role = program.roles[r];
    if (role.block >= sizes.size()) {
      fail_program(file, "roles[" + std::to_string(r) + "].block",
                   std::to_string(role.block) + " is out of range: there are " +
                       std::to_string(sizes.size()) + " blocks");
    }
    const std::uint64_t ranks = ranks_of_role(program, r, file).size();
    total = saturating_add(total, saturating_multiply(sizes[role.block], ranks));
  }
  return saturating_multiply(total, program.iterations);
}

std::vector<RankId> ranks_of_role(const Program& program, std::uint32_t role_index, const std::string& file) {
  const ProgramRole& role = program.roles[role_index];
  std::vector<std::vector<std::uint32_t>> values(program.axes.size());
  for (std::size_t i = 0; i < role.where.size(); ++i) {
    const auto& [axis, chosen] = role.where[i];
    const std::string path = "roles[" + std::to_string(role_index) + "].where[" + std::to_string(i) + "]";
    if (axis >= program.axes.size())
      fail_program(file, path + ".axis", std::to_string(axis) + " is not an axis");
    if (!values[axis].empty())
      fail_program(file, path + ".axis", "axis " + std::to_string(axis) + " is named twice");
    if (chosen.empty()) fail_program(file, path + ".values", "no value is named");
    values[axis] = chosen;
    std::sort(values[axis].begin(), values[axis].end());
    if (std::adjacent_find(values[axis].begin(), values[axis].end()) != values[axis].end()) {
      fail_program(file, path + ".values", "a value is named twice");
    }
    if (values[axis].back() >= program.axes[axis].size) {
      fail_program(file, path + ".values",
                   std::to_string(values[axis].back()) + " is out of range: axis '" +
                       program.axes[axis].name + "' has " + std::to_string(program.axes[axis].size));
    }
  }
  // It goes from the slowest axis to the fastest, so that the ranks come out in ascending order.
  std::vector<RankId> ranks{0};
  for (std::size_t axis = program.axes.size(); axis-- > 0;) {
    const std::uint32_t size = program.axes[axis].size;
    std::vector<RankId> next;
    for (const RankId high : ranks) {
      if (values[axis].empty()) {
        for (std::uint32_t v = 0; v < size; ++v) next.push_back(high * size + v);
      } else {
        for (const std::uint32_t v : values[axis]) next.push_back(high * size + v);
      }
    }
    ranks = std::move(next);
  }
  return ranks;
}

ProgramBuilder::ProgramBuilder(const std::string& job) {
  program_.producer = std::string("netsim ") + NETSIM_VERSION;
  program_.job = job;
}

std::uint32_t ProgramBuilder::axis(const std::string& axis_name, std::uint32_t size) {
  program_.axes.push_back({axis_name, size});
  return static_cast<std::uint32_t>(program_.axes.size() - 1);
}

std::uint32_t ProgramBuilder::name(const std::string& text) {
  const auto [it, added] = name_index_.emplace(text, static_cast<std::uint32_t>(program_.names.size()));
  if (added) program_.names.push_back(text);
  return it->second;
}

std::uint32_t ProgramBuilder::work(const Work& work) {
  auto& works = program_.works;
  std::vector<std::uint32_t>& candidates = work_index_[hash_work(work)];
  for (const std::uint32_t candidate : candidates) {
    if (same_work(works[candidate], work)) return candidate;
  }
  name(work.name);
  for (const Kernel& kernel : work.kernels) name(kernel.name);
  works.push_back(work);
  candidates.push_back(static_cast<std::uint32_t>(works.size() - 1));
  return candidates.back();
}

std::uint32_t ProgramBuilder::table(std::vector<std::int64_t> values) {
  const auto [it, added] =
      table_index_.emplace(std::move(values), static_cast<std::uint32_t>(program_.tables.size()));
  if (added) program_.tables.push_back(it->first);
  return it->second;
}

std::uint32_t ProgramBuilder::counts(BlockCounts counts) {
  std::vector<std::uint32_t>& candidates = counts_index_[counts.digest()];
  for (const std::uint32_t candidate : candidates) {
    if (program_.counts[candidate] == counts) return candidate;
  }
  candidates.push_back(static_cast<std::uint32_t>(program_.counts.size()));
  program_.counts.push_back(std::move(counts));
  return candidates.back();
}

std::uint32_t ProgramBuilder::group(const GroupExpression& expression) {
  auto& groups = program_.groups;
  const auto it = std::find(groups.begin(), groups.end(), expression);
  if (it != groups.end()) return static_cast<std::uint32_t>(it - groups.begin());
  groups.push_back(expression);
  return static_cast<std::uint32_t>(groups.size() - 1);
}

std::uint32_t ProgramBuilder::memory(TaskMemory memory) {
  const auto [it, added] =
      memory_index_.emplace(std::move(memory), static_cast<std::uint32_t>(program_.memory.size()));
  if (added) program_.memory.push_back(it->first);
  return it->second;
}

void ProgramBuilder::cut(const std::string& text, std::uint32_t pieces, const std::string& key,
                         std::optional<Stream> stream) {
  const std::uint32_t number = name(text);
  if (stream) program_.cut_streams |= 1U << static_cast<std::uint32_t>(*stream);
  const auto at = std::lower_bound(program_.cuts.begin(), program_.cuts.end(), number,
                                   [](const CutOperations& cut, std::uint32_t n) { return cut.name < n; });
  if (at == program_.cuts.end() || at->name != number) {
    program_.cuts.insert(at, {number, pieces, key});
  } else {
    at->pieces = std::min(at->pieces, pieces);
  }
}

std::uint32_t ProgramBuilder::block(ProgramBlock block) {
  auto& candidates = block_index_[hash_block(block)];
  for (const std::uint32_t candidate : candidates) {
    if (program_.blocks[candidate].items == block.items) return candidate;
  }
  std::uint64_t size = 0;
  for (const auto& item : block.items) {
    const auto* repeat = std::get_if<ProgramRepeat>(&item);
    size += repeat != nullptr ? sizes_[repeat->block] * repeat->count : 1;
  }
  const auto index = static_cast<std::uint32_t>(program_.blocks.size());
  candidates.push_back(index);
  sizes_.push_back(size);
  program_.blocks.push_back(std::move(block));
  return index;
}

BlockBuilder::Position BlockBuilder::compute(const Work& work, const std::vector<Position>& after,
                                             const std::string& name) {
  ProgramOp op;
  op.kind = TaskKind::compute;
  op.work = builder_.work(work);
  op.name = builder_.name(name.empty() ? work.name : name);
  return add(std::move(op), after);
}

BlockBuilder::Position BlockBuilder::collective(const std::string& name, CollectiveKind kind, Stream stream,
                                                std::uint32_t queue, std::uint32_t group, Bytes bytes,
                                                const std::vector<Position>& after) {
  ProgramOp op;
  op.kind = TaskKind::collective;
  op.collective = kind;
  op.stream = stream;
  op.queue = queue;
  op.group = group;
  op.bytes = bytes;
  op.name = builder_.name(name);
  return add(std::move(op), after);
}

BlockBuilder::Position BlockBuilder::send(const std::string& name, const PeerExpression& peer,
                                          std::uint32_t tag, Bytes bytes,
                                          const std::vector<Position>& after) {
  ProgramOp op;
  op.kind = TaskKind::send;
  op.stream = Stream::pp;
  op.unordered = true;
  op.peer = peer;
  op.tag = tag;
  op.bytes = bytes;
  op.name = builder_.name(name);
  return add(std::move(op), after);
}

BlockBuilder::Position BlockBuilder::receive(const std::string& name, std::uint32_t queue,
                                             const PeerExpression& peer, std::uint32_t tag, Bytes bytes,
                                             const std::vector<Position>& after) {
  ProgramOp op;
  op.kind = TaskKind::receive;
  op.stream = Stream::pp;
  op.queue = queue;
  op.peer = peer;
  op.tag = tag;
  op.bytes = bytes;
  op.name = builder_.name(name);
  return add(std::move(op), after);
}

BlockBuilder::Position BlockBuilder::add(ProgramOp op, const std::vector<Position>& after) {
  for (const Position position : after)
    op.after.push_back(position >= kBefore - kReach ? size_ + 1 + (kBefore - position) : size_ - position);
  block_.items.emplace_back(std::move(op));
  return size_++;
}

void BlockBuilder::add_memory(std::size_t first_item, const TaskMemory& memory) {
  if (memory.empty()) return;
  NETSIM_CHECK(first_item < block_.items.size(), "memory of operations that do not exist");
  if (!memory.begin.empty()) add_memory_to(first_item, {memory.begin, {}});
  if (!memory.end.empty()) add_memory_to(block_.items.size() - 1, {{}, memory.end});
}

void BlockBuilder::add_memory_to(std::size_t item, const TaskMemory& memory) {
  auto* op = std::get_if<ProgramOp>(&block_.items[item]);
  NETSIM_CHECK(op != nullptr, "memory of a repeated block");
  TaskMemory all;
  if (op->memory_plus_one != 0) all = builder_.program().memory[op->memory_plus_one - 1];
  all.begin.insert(all.begin.end(), memory.begin.begin(), memory.begin.end());
  all.end.insert(all.end.end(), memory.end.begin(), memory.end.end());
  op->memory_plus_one = builder_.memory(std::move(all)) + 1;
}

BlockBuilder::Position BlockBuilder::seen_from_next(Position position) const {
  return position >= kBefore - kReach ? position - size_ : kBefore - (size_ - position - 1);
}

BlockBuilder::Position BlockBuilder::repeat(std::uint32_t block, std::uint32_t count) {
  const Position first = size_;
  auto* last = block_.items.empty() ? nullptr : std::get_if<ProgramRepeat>(&block_.items.back());
  if (last != nullptr && last->block == block) {
    last->count += count;
  } else if (count > 0) {
    block_.items.emplace_back(ProgramRepeat{block, count});
  }
  size_ += static_cast<Position>(builder_.block_size(block) * count);
  return first;
}

void fail_program(const std::string& file, const std::string& path, const std::string& message) {
  throw InputError(Place{file, 0, 0, path}, message);
}

}  // namespace netsim
