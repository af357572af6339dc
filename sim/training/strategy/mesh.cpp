#include "sim/training/strategy/mesh.h"

#include <algorithm>
#include <utility>

#include "sim/core/errors.h"

namespace netsim {
namespace {

// Span: an axis, from `begin` to `end` ranks.
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

// Returns the span that a piece lies in.
const Span& around(const std::vector<Span>& spans, std::uint64_t begin, std::uint64_t end) {
  return *std::find_if(spans.begin(), spans.end(),
                       [&](const Span& span) { return span.begin <= begin && end <= span.end; });
}

}  // namespace

Mesh::Mesh(const std::vector<ProgramAxis>& axes) : axes_(axes), grid_(axes) {
  for (std::uint32_t i = 0; i < axes.size(); ++i) plain_axes_[axes[i].name] = {i};
}

void Mesh::combine(const std::string& name, const std::vector<std::string>& axes) {
  std::vector<std::uint32_t> parts;
  for (const std::string& axis : axes) {
    const auto& more = plain_axes_.at(axis);
    parts.insert(parts.end(), more.begin(), more.end());
  }
  plain_axes_[name] = std::move(parts);
}

std::uint32_t Mesh::size(const std::string& axis) const {
  const auto found = plain_axes_.find(axis);
  std::uint32_t size = 1;
  if (found == plain_axes_.end()) return size;
  for (const std::uint32_t part : found->second) size *= axes_[part].size;
  return size;
}

std::uint32_t Mesh::coordinate(RankId rank, const std::string& axis) const {
  std::uint32_t coordinate = 0, stride = 1;
  for (const std::uint32_t part : plain_axes_.at(axis)) {
    coordinate += grid_.coordinate(rank, part) * stride;
    stride *= axes_[part].size;
  }
  return coordinate;
}

RankId Mesh::moved(RankId rank, const std::string& axis, std::uint32_t coordinate) const {
  for (const std::uint32_t part : plain_axes_.at(axis)) {
    rank = grid_.moved(rank, part, coordinate % axes_[part].size);
    coordinate /= axes_[part].size;
  }
  return rank;
}

std::vector<RankId> Mesh::group_of(RankId rank, const std::string& axis) const {
  std::vector<RankId> ranks;
  ranks.reserve(size(axis));
  for (std::uint32_t i = 0; i < size(axis); ++i) ranks.push_back(moved(rank, axis, i));
  return ranks;
}

void Mesh::lay_out(std::vector<StageStart> starts) {
  NETSIM_CHECK(starts.size() == axes_.back().size, "a start for each stage of a mesh");
  starts_ = std::move(starts);
}

RankId Mesh::job_rank(RankId rank) const {
  if (!laid_out()) return rank;
  const std::uint32_t of_stage = ranks() / axes_.back().size;
  return starts_[rank / of_stage].first + rank % of_stage;
}

std::uint32_t Mesh::stage(RankId rank) const {
  const std::uint32_t coordinate = rank / (ranks() / axes_.back().size);
  return laid_out() ? starts_[coordinate].stage : coordinate;
}

bool Mesh::has_stage(std::uint32_t stage) const {
  return !laid_out() || std::any_of(starts_.begin(), starts_.end(),
                                    [stage](const StageStart& p) { return p.stage == stage; });
}

void Mesh::declare(ProgramBuilder& builder) const {
  if (laid_out()) return;
  for (const ProgramAxis& axis : axes_) builder.axis(axis.name, axis.size);
}

// Returns the groups that the program would make of the mesh's axes, as lists of the job's ranks.
GroupExpression Mesh::in_job(GroupExpression group) const {
  if (!laid_out()) return group;
  grid_.each_group(group.axes, [&](std::vector<RankId> members) {
    for (RankId& member : members) member = job_rank(member);
    group.lists.push_back(std::move(members));
  });
  group.axes.clear();
  return group;
}

GroupExpression Mesh::whole(const std::vector<std::string>& axes) const {
  GroupExpression group;
  for (const std::string& axis : axes) {
    for (const std::uint32_t part : plain_axes_.at(axis)) group.axes.push_back({part, {}});
  }
  return group;
}

GroupExpression Mesh::along(const std::vector<std::string>& axes, std::uint32_t communicator) const {
  GroupExpression group = whole(axes);
  group.communicator = communicator;
  return in_job(std::move(group));
}

GroupExpression Mesh::along(const std::vector<std::string>& axes,
                            const std::vector<std::uint32_t>& stages) const {
  GroupExpression group = whole(axes);
  std::vector<std::uint32_t> members;
  for (const std::uint32_t stage : stages) {
    const auto start = std::find_if(starts_.begin(), starts_.end(),
                                    [stage](const StageStart& p) { return p.stage == stage; });
    NETSIM_CHECK(!laid_out() || start != starts_.end(), "a stage of another mesh");
    members.push_back(laid_out() ? static_cast<std::uint32_t>(start - starts_.begin()) : stage);
  }
  group.axes.push_back({static_cast<std::uint32_t>(axes_.size() - 1), std::move(members)});
  return in_job(std::move(group));
}

PeerExpression Mesh::next(ProgramBuilder& builder, const std::string& plain_axis, std::int32_t offset) const {
  const std::uint32_t axis = index(plain_axis);
  const PeerExpression along{PeerExpression::Kind::offset, true, axis, offset, 0};
  if (!laid_out()) return along;
  std::vector<std::int64_t> table(rank_count(builder.program()));
  for (RankId rank = 0; rank < ranks(); ++rank) table[job_rank(rank)] = job_rank(*grid_.peer(rank, along));
  return {PeerExpression::Kind::table, false, 0, 0, 0, builder.table(std::move(table))};
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
