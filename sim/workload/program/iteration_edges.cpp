#include "sim/workload/program/iteration_edges.h"

#include <algorithm>
#include <map>
#include <utility>

namespace netsim {
namespace {

using Position = BlockBuilder::Position;

// IterationRoots: finds the operations that depend on nothing in their iteration and are in no order behind
// another operation of it.
class IterationRoots {
 public:
  explicit IterationRoots(const Program& program) : program_(program) {}

  std::vector<Position> of(std::uint32_t block) {
    walk(block);
    return std::move(roots_);
  }

 private:
  void walk(std::uint32_t block) {
    for (const auto& item : program_.blocks[block].items) {
      if (const auto* repeat = std::get_if<ProgramRepeat>(&item)) {
        for (std::uint32_t i = 0; i < repeat->count; ++i) walk(repeat->block);
      } else {
        visit(std::get<ProgramOp>(item));
      }
    }
  }
  void visit(const ProgramOp& op) {
    const Position position = next_++;
    bool first = true;
    if (!op.unordered) {
      const auto [queue, added] = place_.try_emplace({op.stream, op.queue}, 0);
      if (!added && !op.joins) ++queue->second;
      first = queue->second == 0;
    }
    if (first && op.after.empty() && op.after_previous.empty()) roots_.push_back(position);
  }

  const Program& program_;
  Position next_ = 0;
  std::map<std::pair<Stream, std::uint32_t>, std::uint32_t> place_;  // by queue: place of its last operation
  std::vector<Position> roots_;
};

// EdgeWriter: copies the blocks into which edges lead.
class EdgeWriter {
 public:
  // The distances of ProgramOp::after_previous, by position.
  using Distances = std::map<Position, std::vector<std::int32_t>>;

  EdgeWriter(ProgramBuilder& builder, const Distances& distances)
      : builder_(builder), distances_(distances) {}

  // Returns a copy of the block, whose first operation is at position `begin`.
  std::uint32_t copy(std::uint32_t number, Position begin) {
    const ProgramBlock block = builder_.program().blocks[number];
    ProgramBlock result{block.name, {}};
    Position at = begin;
    for (const auto& item : block.items) {
      if (const auto* repeat = std::get_if<ProgramRepeat>(&item)) {
        at = copy_repeat(*repeat, at, result);
      } else {
        ProgramOp op = std::get<ProgramOp>(item);
        if (const auto found = distances_.find(at); found != distances_.end())
          op.after_previous.insert(op.after_previous.end(), found->second.begin(), found->second.end());
        result.items.emplace_back(std::move(op));
        ++at;
      }
    }
    return builder_.block(std::move(result));
  }

 private:
  // Appends the repetitions of a nested block. Those into which no edge leads stay together. Returns the
  // position behind them.
  Position copy_repeat(const ProgramRepeat& repeat, Position at, ProgramBlock& result) {
    const auto size = static_cast<Position>(builder_.block_size(repeat.block));
    const Position end = at + size * repeat.count;
    while (at < end) {
      const auto next = distances_.lower_bound(at);
      const Position edge = next == distances_.end() ? end : std::min(next->first, end);
      const std::uint32_t unchanged = (edge - at) / size;
      if (unchanged > 0) result.items.emplace_back(ProgramRepeat{repeat.block, unchanged});
      at += unchanged * size;
      if (at == end) break;
      result.items.emplace_back(ProgramRepeat{copy(repeat.block, at), 1});
      at += size;
    }
    return end;
  }

  ProgramBuilder& builder_;
  const Distances& distances_;
};

}  // namespace

std::uint32_t connect_iterations(ProgramBuilder& builder, std::uint32_t block,
                                 const std::vector<IterationEdge>& edges, Position last) {
  EdgeWriter::Distances distances;
  const auto add = [&](Position position, Position previous) {
    distances[position].push_back(static_cast<std::int32_t>(position) - static_cast<std::int32_t>(previous));
  };
  for (const IterationEdge& edge : edges) add(edge.position, edge.previous);
  for (const Position root : IterationRoots(builder.program()).of(block)) {
    if (distances.count(root) == 0) add(root, last);
  }
  for (auto& [position, of_position] : distances) {
    std::sort(of_position.begin(), of_position.end());
    of_position.erase(std::unique(of_position.begin(), of_position.end()), of_position.end());
  }
  return EdgeWriter(builder, distances).copy(block, 0);
}

}  // namespace netsim
