// Mesh: the ranks of a job as a grid of named axes ("tp", "dp", "pp"): rank = mixed radix number, first axis
// fastest. Everything is arithmetic on coordinates: nothing is kept for each rank.
//
// An axis may also be made of others ("dp" of "ep" and "edp", where experts are divided among the ranks that
// hold copies of everything else): a strategy names what it means, and the mesh knows what it is made of.
//
// A mesh may be that of some stages of a job only, whose other stages have meshes of other sizes (lay_out()):
// its groups and peers are lists of the job's ranks then.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/workload/program/program.h"
#include "sim/workload/program/rank_grid.h"

namespace netsim {

class Mesh {
 public:
  explicit Mesh(const std::vector<ProgramAxis>& axes);
  // `name`: the product of `axes`, the first of them fastest. They exist, plain or made of others.
  void combine(const std::string& name, const std::vector<std::string>& axes);

  // Which stage of the job a coordinate of the mesh's last axis is, and the first of that stage's ranks.
  struct StageStart {
    std::uint32_t stage = 0, first = 0;
  };
  // By coordinate of the last axis, stages ascending. What is declared from then on is about the job's ranks,
  // and names its stages; everything else here still counts the mesh's own.
  void lay_out(std::vector<StageStart> starts);
  bool laid_out() const { return !starts_.empty(); }
  // Of the job: for a rank of the mesh.
  std::uint32_t job_rank(std::uint32_t rank) const;
  std::uint32_t stage(std::uint32_t rank) const;
  // Whether the stage is one of the mesh's.
  bool has_stage(std::uint32_t stage) const;

  std::uint32_t ranks() const { return grid_.ranks(); }
  const std::vector<ProgramAxis>& axes() const { return axes_; }  // the plain ones
  // Ranks along an axis; 1 for one that the mesh does not have.
  std::uint32_t size(const std::string& axis) const;
  std::uint32_t coordinate(std::uint32_t rank, const std::string& axis) const;
  // The rank with another coordinate on one axis.
  std::uint32_t moved(std::uint32_t rank, const std::string& axis, std::uint32_t coordinate) const;
  // The ranks that agree with a rank on all other axes, by coordinate.
  std::vector<std::uint32_t> group_of(std::uint32_t rank, const std::string& axis) const;

  // For programs: declares the plain axes, which a program numbers in the same order; of a mesh that is laid
  // out nothing, whose ranks are numbered along the one axis of its job.
  void declare(ProgramBuilder& builder) const;
  bool is_plain(const std::string& axis) const { return parts_.at(axis).size() == 1; }
  std::uint32_t index(const std::string& plain_axis) const { return parts_.at(plain_axis).front(); }
  // The group of each rank along the axes together. Groups with the same members and another communicator
  // are called independently.
  GroupExpression along(const std::vector<std::string>& axes, std::uint32_t communicator = 0) const;
  // The same, of some stages, which are coordinates of the last axis. All are the mesh's.
  GroupExpression along(const std::vector<std::string>& axes, const std::vector<std::uint32_t>& stages) const;
  // The next rank on a ring along a plain axis, or the one before (`offset` 1 or -1).
  PeerExpression next(ProgramBuilder& builder, const std::string& plain_axis, std::int32_t offset) const;

 private:
  GroupExpression whole(const std::vector<std::string>& axes) const;
  GroupExpression in_job(GroupExpression group) const;

  std::vector<ProgramAxis> axes_;
  RankGrid grid_;
  std::map<std::string, std::vector<std::uint32_t>> parts_;  // plain axes of each axis, fastest first
  std::vector<StageStart> starts_;                           // empty: the mesh is that of the whole job
};

// A mesh of ranks that are counted in two ways, as Megatron-Core's parallel folding does (Liu et al., arXiv
// 2504.14960): by the axes of one list and by those of the other, whose products are the same, first axis
// fastest, and behind both by `outer`. Its plain axes are what both can be made of. Nothing where there are
// none: the ranks up to the end of an axis divide, or are divided by, those up to the end of every other.
std::optional<Mesh> folded_mesh(const std::vector<ProgramAxis>& one, const std::vector<ProgramAxis>& other,
                                const ProgramAxis& outer);

}  // namespace netsim
