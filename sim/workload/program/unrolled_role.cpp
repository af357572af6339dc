#include "sim/workload/program/unrolled_role.h"

#include <algorithm>
#include <map>

#include "sim/core/errors.h"

namespace netsim {
namespace {

using Edge = std::pair<std::uint32_t, std::uint32_t>;

}  // namespace

OperationList::OperationList(const Program& program) {
  for (std::uint32_t b = 0; b < program.blocks.size(); ++b) {
    begin_.push_back(index_.size());
    const auto& items = program.blocks[b].items;
    for (std::uint32_t i = 0; i < items.size(); ++i) {
      index_.push_back(static_cast<std::uint32_t>(ops_.size()));
      if (const auto* op = std::get_if<ProgramOp>(&items[i])) {
        ops_.push_back(op);
        place_.emplace_back(b, i);
      }
    }
  }
}

std::string OperationList::path(std::uint32_t index) const {
  const auto& [block, item] = place_[index];
  return "blocks[" + std::to_string(block) + "].items[" + std::to_string(item) + "].op";
}

UnrolledRole::UnrolledRole(const Program& program, const OperationList& operations, const ProgramRole& role,
                           const std::string& file) {
  unroll(program, operations, role.block);
  line_up(operations, file);
  connect(operations, file);
  connect_iterations(operations, file);
  for (std::uint32_t i = 0; i < size(); ++i) {
    if (within_[i] == 0) (queue_[i] == kNoQueue ? unordered_roots_ : ordered_roots_).push_back(i);
  }
}

// Unrolls a block. Its sizes were checked before: the program is finite and fits, and no repeated block is
// empty.
void UnrolledRole::unroll(const Program& program, const OperationList& operations, std::uint32_t root) {
  struct Frame {
    std::uint32_t block;
    std::uint32_t repetitions;
    std::size_t item;
  };
  std::vector<Frame> stack{{root, 1, 0}};
  while (!stack.empty()) {
    Frame& frame = stack.back();
    const auto& items = program.blocks[frame.block].items;
    if (frame.item == items.size()) {
      frame.item = 0;
      if (--frame.repetitions == 0) stack.pop_back();
      continue;
    }
    const std::size_t item = frame.item++;
    if (const auto* repeat = std::get_if<ProgramRepeat>(&items[item])) {
      stack.push_back({repeat->block, repeat->count, 0});
    } else {
      operation_.push_back(operations.at(frame.block, item));
    }
  }
}

std::span<const std::uint32_t> UnrolledRole::tasks_at(std::uint32_t queue, std::uint32_t place) const {
  const std::vector<std::uint32_t>& tasks = queues_[queue];
  // Most queues have one task per place; then it is at the place's index.
  const auto before = [&](std::uint32_t task, std::uint32_t wanted) { return place_[task] < wanted; };
  const auto first = std::lower_bound(tasks.begin(), tasks.end(), place, before);
  auto end = first;
  while (end != tasks.end() && place_[*end] == place) ++end;
  return {first, end};
}

std::uint32_t UnrolledRole::together(std::uint32_t index) const {
  return static_cast<std::uint32_t>(tasks_at(queue_[index], place_[index]).size());
}

void UnrolledRole::line_up(const OperationList& operations, const std::string& file) {
  std::map<std::pair<Stream, std::uint32_t>, std::uint32_t> known;
  queue_.assign(size(), kNoQueue);
  place_.assign(size(), 0);
  const auto may_be_joined = [](TaskKind kind) { return is_communication(kind) && !is_of_host(kind); };
  for (std::uint32_t i = 0; i < size(); ++i) {
    const ProgramOp& op = operations[operation_[i]];
    const auto refuse_joining = [&](const std::string& why) {
      fail_program(file, operations.path(operation_[i]) + ".joins", why);
    };
    if (op.joins && !may_be_joined(op.kind)) refuse_joining("only communications are called together");
    if (op.joins && op.unordered) refuse_joining("an unordered operation has none before it");
    if (op.unordered) continue;
    const auto [it, added] = known.try_emplace({op.stream, op.queue}, queues());
    if (added) queues_.emplace_back();
    queue_[i] = it->second;
    std::vector<std::uint32_t>& queue = queues_[it->second];
    if (op.joins && queue.empty())
      refuse_joining("it is the first of its stream and queue: there is nothing to join");
    if (!queue.empty()) place_[i] = place_[queue.back()] + (op.joins ? 0 : 1);
    if (op.joins && !may_be_joined(operations[operation_[queue.back()]].kind))
      refuse_joining("the operation before it is no communication");
    queue.push_back(i);
  }
}

void UnrolledRole::connect(const OperationList& operations, const std::string& file) {
  std::vector<Edge> edges;
  std::vector<std::uint32_t> before;
  within_.resize(size());
  for (std::uint32_t i = 0; i < size(); ++i) {
    before.clear();
    for (const std::uint32_t distance : operations[operation_[i]].after) {
      if (distance == 0 || distance > i) {
        fail_program(file, operations.path(operation_[i]) + ".after",
                     std::to_string(distance) + " reaches out of the program: task " + std::to_string(i) +
                         " has " + std::to_string(i) + " before it");
      }
      before.push_back(i - distance);
      if (queue_[i] != kNoQueue && queue_[i - distance] == queue_[i] && place_[i - distance] == place_[i])
        fail_program(file, operations.path(operation_[i]) + ".after",
                     "it waits for an operation of its own call");
    }
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    within_[i] = static_cast<std::uint32_t>(before.size());
    for (const std::uint32_t predecessor : before) edges.emplace_back(predecessor, i);
    if (edges.size() > ProgramLimits::kDependencies) fail_program(file, "blocks", "too many dependencies");
  }
  successors_.build(size(), edges);
}

// Connects the iterations. If no task names one of the previous iteration, iterations follow one another as a
// whole. Otherwise only tasks without a dependency and a queue within their iteration wait for the whole
// previous one. All other tasks continue across iterations.
void UnrolledRole::connect_iterations(const OperationList& operations, const std::string& file) {
  std::vector<Edge> edges;
  for (std::uint32_t i = 0; i < size(); ++i) {
    for (const std::int32_t distance : operations[operation_[i]].after_previous) {
      const std::int64_t predecessor = std::int64_t{i} - distance;
      if (predecessor < 0 || predecessor >= size()) {
        fail_program(file, operations.path(operation_[i]) + ".after_previous",
                     std::to_string(distance) + " reaches out of the program: task " + std::to_string(i) +
                         " of " + std::to_string(size()));
      }
      edges.emplace_back(static_cast<std::uint32_t>(predecessor), i);
    }
    if (edges.size() > ProgramLimits::kDependencies) fail_program(file, "blocks", "too many dependencies");
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  if (!edges.empty()) across_.assign(size(), 0);
  for (const Edge& edge : edges) ++across_[edge.second];
  gated_.assign(size(), false);
  for (std::uint32_t i = 0; i < size(); ++i) {
    const bool named = !edges.empty() && across_[i] > 0;
    const bool behind = !edges.empty() && queue_[i] != kNoQueue && place_[i] > 0;
    gated_[i] = within_[i] == 0 && !named && !behind;
  }
  if (!edges.empty()) next_.build(size(), edges);
}

}  // namespace netsim
