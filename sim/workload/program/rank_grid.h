// RankGrid: coordinates of ranks on a program's axes, and the groups and peers that expressions mean for a
// rank.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/ids.h"
#include "sim/core/index.h"
#include "sim/workload/program/program.h"
#include "sim/workload/task_source.h"

namespace netsim {

// Returns the axes of a program, for placements.
std::vector<RankAxis> rank_axes(const Program& program);

class RankGrid {
 public:
  // `tables` are those of the program, in which peers are looked up. They must outlive this.
  explicit RankGrid(const std::vector<ProgramAxis>& axes,
                    const std::vector<std::vector<std::int64_t>>* tables = nullptr);
  std::uint32_t ranks() const { return ranks_; }
  std::size_t axes() const { return size_.size(); }
  std::uint32_t size(std::uint32_t axis) const { return size_[axis]; }
  std::uint32_t coordinate(RankId rank, std::uint32_t axis) const {
    return rank / stride_[axis] % size_[axis];
  }
  // Returns the rank with another coordinate on one axis.
  RankId moved(RankId rank, std::uint32_t axis, std::uint32_t coordinate_there) const {
    return rank + (coordinate_there - coordinate(rank, axis)) * stride_[axis];
  }
  // Returns the peer of a rank, or nothing where the expression leaves the grid. An axis out of range counts
  // as that, as does a table that does not exist or is too short.
  std::optional<RankId> peer(RankId rank, const PeerExpression& expression) const;
  // Calls take(members) for each group along the axes, in the order of their first ranks. A group has the
  // ranks that agree on all axes that are not named, first named axis fastest. An axis without members is
  // whole; no axis may be named twice.
  template <class Take>
  void each_group(const std::vector<GroupExpression::AxisSubset>& axes, Take take) const;

 private:
  std::vector<std::uint32_t> size_, stride_;
  std::uint32_t ranks_ = 1;
  const std::vector<std::vector<std::int64_t>>* tables_ = nullptr;
};

template <class Take>
void RankGrid::each_group(const std::vector<GroupExpression::AxisSubset>& axes, Take take) const {
  std::vector<std::vector<std::uint32_t>> chosen;  // coordinates, by named axis
  for (const auto& [axis, members] : axes) {
    chosen.push_back(members);
    for (std::uint32_t c = 0; members.empty() && c < size(axis); ++c) chosen.back().push_back(c);
  }
  for (RankId rank = 0; rank < ranks(); ++rank) {
    bool first = true;  // each group is made once, at its first member
    for (std::size_t i = 0; i < chosen.size(); ++i)
      first = first && coordinate(rank, axes[i].axis) == chosen[i].front();
    if (!first) continue;
    std::vector<RankId> members{rank};
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      std::vector<RankId> next;
      next.reserve(members.size() * chosen[i].size());
      for (const std::uint32_t c : chosen[i]) {
        for (const RankId member : members) next.push_back(moved(member, axes[i].axis, c));
      }
      members = std::move(next);
    }
    take(std::move(members));
  }
}

// GroupTable: all groups of a program. Equal members and communicator are one group, however they were
// written.
class GroupTable {
 public:
  // Throws InputError with the path for expressions that do not make groups, or more members than the limit.
  GroupTable(const Program& program, const RankGrid& grid, const std::string& file);
  // Returns the group that an expression means for a rank, or none where the rank is not a member.
  GroupId id(std::uint32_t expression, RankId rank) const { return ids_[expression][rank]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(members_.size()); }
  const std::vector<RankId>& members(GroupId id) const { return members_[id]; }

 private:
  using Key = std::pair<std::uint32_t, std::vector<RankId>>;  // communicator, members
  void add_absolute(const std::vector<RankId>& ranks, std::uint32_t index, const std::string& path);
  void add_grid(const GroupExpression& expression, std::uint32_t index);
  void check_axes(const GroupExpression& expression, std::uint32_t index) const;
  GroupId intern(std::uint32_t communicator, std::vector<RankId> members);
  [[noreturn]] void fail(std::uint32_t index, const std::string& path, const std::string& message) const;

  const Program& program_;
  const RankGrid& grid_;
  const std::string& file_;
  std::vector<std::vector<GroupId>> ids_;  // by expression and rank
  std::vector<std::vector<RankId>> members_;
  std::map<Key, GroupId> known_;
  std::uint64_t total_ = 0;
};

}  // namespace netsim
