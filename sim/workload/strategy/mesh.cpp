#include "sim/workload/strategy/mesh.h"

namespace netsim {

Mesh::Mesh(const std::vector<ProgramAxis>& axes) : axes_(axes), grid_(axes) {
  for (std::uint32_t i = 0; i < axes.size(); ++i) parts_[axes[i].name] = {i};
}

void Mesh::combine(const std::string& name, const std::vector<std::string>& axes) {
  std::vector<std::uint32_t> parts;
  for (const std::string& axis : axes) {
    const auto& more = parts_.at(axis);
    parts.insert(parts.end(), more.begin(), more.end());
  }
  parts_[name] = std::move(parts);
}

std::uint32_t Mesh::size(const std::string& axis) const {
  const auto found = parts_.find(axis);
  std::uint32_t size = 1;
  if (found == parts_.end()) return size;
  for (const std::uint32_t part : found->second) size *= axes_[part].size;
  return size;
}

std::uint32_t Mesh::coordinate(std::uint32_t rank, const std::string& axis) const {
  std::uint32_t coordinate = 0, stride = 1;
  for (const std::uint32_t part : parts_.at(axis)) {
    coordinate += grid_.coordinate(rank, part) * stride;
    stride *= axes_[part].size;
  }
  return coordinate;
}

std::uint32_t Mesh::moved(std::uint32_t rank, const std::string& axis, std::uint32_t coordinate) const {
  for (const std::uint32_t part : parts_.at(axis)) {
    rank = grid_.moved(rank, part, coordinate % axes_[part].size);
    coordinate /= axes_[part].size;
  }
  return rank;
}

std::vector<std::uint32_t> Mesh::group_of(std::uint32_t rank, const std::string& axis) const {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t i = 0; i < size(axis); ++i) ranks.push_back(moved(rank, axis, i));
  return ranks;
}

void Mesh::declare(ProgramBuilder& builder) const {
  for (const ProgramAxis& axis : axes_) builder.axis(axis.name, axis.size);
}

GroupExpression Mesh::along(const std::vector<std::string>& axes, std::uint32_t communicator) const {
  GroupExpression group;
  for (const std::string& axis : axes) {
    for (const std::uint32_t part : parts_.at(axis)) group.axes.push_back({part, {}});
  }
  group.communicator = communicator;
  return group;
}

GroupExpression Mesh::along(const std::vector<std::string>& axes, const std::string& plain_axis,
                            const std::vector<std::uint32_t>& members) const {
  GroupExpression group = along(axes);
  group.axes.push_back({index(plain_axis), members});
  return group;
}

}  // namespace netsim
