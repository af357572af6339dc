// Mesh: the ranks of a job as a grid of named axes ("tp", "dp", "pp"). A rank is a mixed radix number, whose
// first axis is the fastest. Everything is arithmetic on coordinates: nothing is stored per rank.
//
// An axis may also be a product of others. Where experts are divided among the ranks that hold copies of
// everything else, "dp" is the product of "ep" and "edp". A strategy names an axis, and the mesh knows its
// factors.
//
// A mesh may belong to some stages of a job only, while other stages have meshes of other sizes (lay_out()).
// Its groups and peers are then lists of the job's ranks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/ids.h"
#include "sim/workload/program/program.h"
#include "sim/workload/program/rank_grid.h"

namespace netsim {

class Mesh {
 public:
  explicit Mesh(const std::vector<ProgramAxis>& axes);
  // Declares axis `name` as the product of `axes`, the first of them the fastest. These have to exist, plain
  // or as products.
  void combine(const std::string& name, const std::vector<std::string>& axes);

  // StageStart: the stage of the job that a coordinate of the mesh's last axis stands for, and the first of
  // that stage's ranks.
  struct StageStart {
    std::uint32_t stage = 0, first = 0;
  };
  // Sets the stages by coordinate of the last axis, in ascending order. Groups and peers that are made from
  // then on refer to the job's ranks and stages. All other functions here still count the mesh's own ranks.
  void lay_out(std::vector<StageStart> starts);
  bool laid_out() const { return !starts_.empty(); }
  // Return the job's rank and the job's stage of a rank of the mesh.
  RankId job_rank(RankId rank) const;
  std::uint32_t stage(RankId rank) const;
  // Returns whether the stage is one of the mesh's.
  bool has_stage(std::uint32_t stage) const;

  std::uint32_t ranks() const { return grid_.ranks(); }
  const std::vector<ProgramAxis>& axes() const { return axes_; }  // only the plain axes
  // Returns the number of ranks along an axis; 1 for an axis that the mesh does not have.
  std::uint32_t size(const std::string& axis) const;
  std::uint32_t coordinate(RankId rank, const std::string& axis) const;
  // Returns the rank with another coordinate on one axis and the same on all others.
  RankId moved(RankId rank, const std::string& axis, std::uint32_t coordinate) const;
  // Returns the ranks that agree with a rank on all other axes, by coordinate.
  std::vector<RankId> group_of(RankId rank, const std::string& axis) const;

  // Declares the plain axes in a program, which numbers ranks in the same order. Declares nothing for a mesh
  // that is laid out, whose ranks are numbered along the one axis of its job.
  void declare(ProgramBuilder& builder) const;
  bool is_plain(const std::string& axis) const { return plain_axes_.at(axis).size() == 1; }
  std::uint32_t index(const std::string& plain_axis) const { return plain_axes_.at(plain_axis).front(); }
  // Returns the group of each rank along the product of the axes. Groups with the same members and different
  // communicators are called independently.
  GroupExpression along(const std::vector<std::string>& axes, std::uint32_t communicator = 0) const;
  // Returns the groups of these stages only, which are the mesh's coordinates of the last axis.
  GroupExpression along(const std::vector<std::string>& axes, const std::vector<std::uint32_t>& stages) const;
  // Returns the next rank on a ring along a plain axis (`offset` 1), or the one before (`offset` -1).
  PeerExpression next(ProgramBuilder& builder, const std::string& plain_axis, std::int32_t offset) const;

 private:
  GroupExpression whole(const std::vector<std::string>& axes) const;
  GroupExpression in_job(GroupExpression group) const;

  std::vector<ProgramAxis> axes_;
  RankGrid grid_;
  std::map<std::string, std::vector<std::uint32_t>>
      plain_axes_;                  // by axis: the plain axes that it is a product of, fastest first
  std::vector<StageStart> starts_;  // empty: the mesh is that of the whole job
};

// Returns a mesh of ranks that are counted in two ways, as in Megatron-Core's parallel folding (Liu et al.,
// arXiv 2504.14960). The two lists of axes have the same product, first axis fastest, and `outer` comes
// behind both. The plain axes of the mesh are common factors of both lists. Returns nothing where there are
// none. The number of ranks up to the end of an axis has to divide, or be divided by, that of every other
// axis.
std::optional<Mesh> folded_mesh(const std::vector<ProgramAxis>& one, const std::vector<ProgramAxis>& other,
                                const ProgramAxis& outer);

}  // namespace netsim
