#include "sim/workload/program/rank_grid.h"

#include <algorithm>

#include "sim/core/errors.h"

namespace netsim {

std::vector<RankAxis> rank_axes(const Program& program) {
  std::vector<RankAxis> axes;
  for (const ProgramAxis& axis : program.axes) axes.push_back({axis.name, axis.size});
  return axes;
}

RankGrid::RankGrid(const std::vector<ProgramAxis>& axes, const std::vector<std::vector<std::int64_t>>* tables)
    : tables_(tables) {
  for (const ProgramAxis& axis : axes) {
    size_.push_back(axis.size);
    stride_.push_back(ranks_);
    ranks_ *= axis.size;
  }
}

std::optional<RankId> RankGrid::peer(RankId rank, const PeerExpression& expression) const {
  if (expression.kind == PeerExpression::Kind::rank) {
    if (expression.rank >= ranks_) return std::nullopt;
    return expression.rank;
  }
  if (expression.kind == PeerExpression::Kind::table) {
    if (tables_ == nullptr || expression.table >= tables_->size()) return std::nullopt;
    const std::vector<std::int64_t>& table = (*tables_)[expression.table];
    if (rank >= table.size() || table[rank] < 0 || table[rank] >= std::int64_t{ranks_}) return std::nullopt;
    return RankId(static_cast<std::uint32_t>(table[rank]));
  }
  if (expression.axis >= size_.size()) return std::nullopt;
  const std::int64_t extent = size_[expression.axis];
  std::int64_t there = std::int64_t{coordinate(rank, expression.axis)} + expression.offset;
  if (expression.wrap) there = (there % extent + extent) % extent;
  if (there < 0 || there >= extent) return std::nullopt;
  return moved(rank, expression.axis, static_cast<std::uint32_t>(there));
}

GroupTable::GroupTable(const Program& program, const RankGrid& grid, const std::string& file)
    : program_(program), grid_(grid), file_(file) {
  for (std::uint32_t i = 0; i < program.groups.size(); ++i) {
    const GroupExpression& expression = program.groups[i];
    total_ += grid.ranks();
    if (total_ > ProgramLimits::kGroupMembers) fail(i, "", "too many groups for this many ranks");
    ids_.emplace_back(grid.ranks());
    const int ways = (expression.ranks.empty() ? 0 : 1) + (expression.axes.empty() ? 0 : 1) +
                     (expression.lists.empty() ? 0 : 1);
    if (ways != 1) fail(i, "", "a group is either axes or a list of ranks, or one of several lists");
    if (!expression.axes.empty()) add_grid(expression, i);
    if (!expression.ranks.empty()) add_absolute(expression.ranks, i, ".ranks");
    for (std::size_t list = 0; list < expression.lists.size(); ++list)
      add_absolute(expression.lists[list], i, ".lists[" + std::to_string(list) + "]");
  }
  known_.clear();
}

void GroupTable::fail(std::uint32_t index, const std::string& path, const std::string& message) const {
  fail_program(file_, "groups[" + std::to_string(index) + "]" + path, message);
}

void GroupTable::add_absolute(const std::vector<RankId>& ranks, std::uint32_t index,
                              const std::string& path) {
  if (ranks.empty()) fail(index, path, "no rank is named");
  for (const RankId rank : ranks) {
    if (rank >= grid_.ranks()) {
      fail(index, path,
           "rank " + std::to_string(rank) + " is out of range: there are " + std::to_string(grid_.ranks()) +
               " ranks");
    }
  }
  const GroupId id = intern(program_.groups[index].communicator, ranks);
  for (const RankId rank : ranks) {
    if (!ids_[index][rank].is_none()) fail(index, path, "rank " + std::to_string(rank) + " is named twice");
    ids_[index][rank] = id;
  }
}

void GroupTable::check_axes(const GroupExpression& expression, std::uint32_t index) const {
  std::vector<bool> named(grid_.axes(), false);
  for (std::size_t i = 0; i < expression.axes.size(); ++i) {
    const auto& [axis, members] = expression.axes[i];
    const std::string path = ".axes[" + std::to_string(i) + "]";
    if (axis >= grid_.axes()) fail(index, path + ".axis", std::to_string(axis) + " is not an axis");
    if (named[axis]) fail(index, path + ".axis", "axis " + std::to_string(axis) + " is named twice");
    named[axis] = true;
    std::vector<bool> seen(grid_.size(axis), false);
    for (const std::uint32_t member : members) {
      if (member >= grid_.size(axis)) {
        fail(index, path + ".members",
             std::to_string(member) + " is out of range: the axis has " + std::to_string(grid_.size(axis)));
      }
      if (seen[member]) fail(index, path + ".members", std::to_string(member) + " is named twice");
      seen[member] = true;
    }
  }
}

void GroupTable::add_grid(const GroupExpression& expression, std::uint32_t index) {
  check_axes(expression, index);
  grid_.each_group(expression.axes, [&](std::vector<RankId> members) {
    const GroupId id = intern(expression.communicator, members);
    for (const RankId member : members) ids_[index][member] = id;
  });
}

GroupId GroupTable::intern(std::uint32_t communicator, std::vector<RankId> members) {
  const auto [it, added] =
      known_.try_emplace({communicator, members}, static_cast<std::uint32_t>(members_.size()));
  if (added) members_.push_back(std::move(members));
  return it->second;
}

}  // namespace netsim
