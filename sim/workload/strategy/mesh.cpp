#include "sim/workload/strategy/mesh.h"

#include <algorithm>

namespace netsim {
namespace {

// An axis from `begin` to `end` ranks.
struct Span {
  std::string name;
  std::uint64_t begin, end;
};

std::vector<Span> spans_of(const std::vector<ProgramAxis>& axes) {
  std::vector<Span> spans;
  std::uint64_t ranks = 1;
  for (const ProgramAxis& axis : axes) {
    spans.push_back({axis.name, ranks, ranks * axis.size});
    ranks *= axis.size;
  }
  return spans;
}

// The span that a piece lies in.
const Span& around(const std::vector<Span>& spans, std::uint64_t begin, std::uint64_t end) {
  return *std::find_if(spans.begin(), spans.end(),
                       [&](const Span& span) { return span.begin <= begin && end <= span.end; });
}

}  // namespace

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

std::optional<Mesh> folded_mesh(const std::vector<ProgramAxis>& one, const std::vector<ProgramAxis>& other,
                                const ProgramAxis& outer) {
  const std::vector<Span> of_one = spans_of(one), of_other = spans_of(other);
  std::vector<std::uint64_t> ends{1};
  for (const std::vector<Span>* spans : {&of_one, &of_other}) {
    for (const Span& span : *spans) ends.push_back(span.end);
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  std::vector<ProgramAxis> axes;
  std::map<std::string, std::vector<std::string>> made_of;
  for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
    const std::uint64_t begin = ends[i], end = ends[i + 1];
    if (end % begin != 0) return std::nullopt;
    const Span &a = around(of_one, begin, end), &b = around(of_other, begin, end);
    const auto whole = [&](const Span& span) { return span.begin == begin && span.end == end; };
    const std::string name = whole(a) ? a.name : whole(b) ? b.name : a.name + "_" + b.name;
    axes.push_back({name, static_cast<std::uint32_t>(end / begin)});
    made_of[a.name].push_back(name);
    made_of[b.name].push_back(name);
  }
  axes.push_back(outer);
  Mesh mesh(axes);
  for (const std::vector<Span>* spans : {&of_one, &of_other}) {
    for (const Span& span : *spans) mesh.combine(span.name, made_of[span.name]);
  }
  return mesh;
}

}  // namespace netsim
