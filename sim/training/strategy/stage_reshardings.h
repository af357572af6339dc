// StageReshardings: the transfer of activations and their gradients between pipeline stages with different
// meshes, which divide them in different ways. Sources are Alpa (Zheng et al., OSDI 2022) and AlpaComm
// (Zhuang et al., MLSys 2023, arXiv 2211.05322).
//
// The tensor between two stages has one dimension of samples and one of the data of a sample. Data
// parallelism divides the samples. Sequence parallelism divides the rest among tensor-parallel ranks; without
// it each of them has all of it. Ranks of one context coordinate have the same tokens in every stage, so each
// coordinate is a tensor of its own.
//
// The replicas form independent blocks, as many as the greatest common divisor of both stages' numbers of
// replicas. A MeshResharding is made for one block and used for all blocks whose ranks lie on hosts in the
// same way.
//
// Gradients of parameters that both ends of the model share are exchanged in the same way where the ends'
// stages have different meshes. This precedes the sum over replicas. The gradients of each replica of one end
// go to one replica of the other, which adds them to its own.
//
// Ranks of a stage may then do different things: one sends, while others have a copy that nobody needs. Ranks
// that do the same are one class, and one role of the program. The steps of a plan are coloured so that a
// rank is in at most one step of a colour. So each colour is one table of peers or one expression of groups,
// whatever the number of ranks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "sim/core/ids.h"
#include "sim/core/units.h"
#include "sim/training/strategy/mesh_resharding.h"
#include "sim/training/strategy/pipeline_placement.h"
#include "sim/workload/program/program.h"

namespace netsim {

// The ranks of a stage, from `first` on. Tensor is the fastest dimension, then context and data.
struct StageLayout {
  RankId first = 0;
  std::uint32_t tensor = 1, context = 1, data = 1;
  std::uint32_t ranks() const { return tensor * context * data; }
  bool same_mesh(const StageLayout& other) const {
    return tensor == other.tensor && context == other.context && data == other.data;
  }
};

// StageBoundaries: the tensors between stages.
struct StageBoundaries {
  std::int64_t samples = 1;  // samples of a microbatch, in all replicas together
  // Elements of a sample for the ranks of one context coordinate, by part of the model that precedes the
  // boundary.
  std::vector<std::int64_t> elements;
  Bytes element = 2;
  bool sequence = false;  // tensor-parallel ranks divide the elements
};

// SharedParameters: parameters that two stages have copies of. Tensor-parallel ranks divide their rows.
struct SharedParameters {
  std::uint32_t first = 0, last = 0;  // stages
  std::int64_t rows = 1, columns = 1;
  Bytes element = 2;  // bytes of a gradient
};

struct StageResharding {
  ReshardingStrategy strategy = ReshardingStrategy::broadcast;
  ReshardingBalance balance = ReshardingBalance::order;
  std::int64_t ranks_per_host = 8;  // number of consecutive ranks on one host
};

class StageReshardings {
 public:
  // Plans the transfers between the parts of the model that lie on different meshes, in both directions.
  // `builder` has the job's axis and must outlive this. Every stage's number of replicas must divide the
  // samples. `shared` is for two stages with different meshes.
  StageReshardings(ProgramBuilder& builder, const PipelinePlacement& placement,
                   std::vector<StageLayout> stages, StageBoundaries boundaries,
                   const std::optional<SharedParameters>& shared, StageResharding how);

  bool reshards(std::uint32_t from, std::uint32_t to) const { return !stages_[from].same_mesh(stages_[to]); }
  // Returns how far a stage of the same mesh is, in ranks of the job.
  std::int32_t distance(std::uint32_t from, std::uint32_t to) const {
    return static_cast<std::int32_t>(stages_[to].first) - static_cast<std::int32_t>(stages_[from].first);
  }

  // Returns the classes of a stage, each with its ranks in ascending order. Ranks of a class do the same.
  // Classes are in the order of their first ranks.
  const std::vector<std::vector<RankId>>& classes(std::uint32_t stage) const { return classes_[stage]; }

  // Call: one communication of a rank.
  struct Call {
    ReshardingStep::Kind kind = ReshardingStep::Kind::message;
    bool sends = false;       // the rank has the data that a message or a broadcast sends
    Bytes bytes = 0;          // bytes of the call; for a gather those of the whole result
    std::uint32_t color = 0;  // colour among the steps of its kind
    auto operator<=>(const Call&) const = default;
  };
  // Stands for a part where gradients of shared parameters are transferred.
  static constexpr std::uint32_t kShared = UINT32_MAX;
  // Returns the calls of a rank of a class of `stage`, which is `from` or `to`, in the order of the plan.
  // They transfer the tensor behind `part` from one stage to the other.
  const std::vector<Call>& calls(std::uint32_t from, std::uint32_t to, std::uint32_t part,
                                 std::uint32_t stage, std::uint32_t rank_class) const;
  // peer() returns the peer of a message. group() returns the group of a broadcast, whose root is member 0,
  // or of a gather. Groups with another communicator are called independently.
  PeerExpression peer(std::uint32_t from, std::uint32_t to, std::uint32_t part, const Call& call) const;
  std::uint32_t group(std::uint32_t from, std::uint32_t to, std::uint32_t part, const Call& call,
                      std::uint32_t communicator) const;

 private:
  using Ranks = std::vector<RankId>;
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::int64_t>;  // from, to, elements of a sample or -1
  struct Transfer {
    std::vector<std::uint32_t> tables;          // tables of peers, by colour of messages
    std::vector<std::vector<Ranks>> groups;     // groups by colour of broadcasts and gathers
    std::map<RankId, std::vector<Call>> calls;  // calls by rank of the job
  };
  class Maker;

  Key key(std::uint32_t from, std::uint32_t to, std::uint32_t part) const {
    return {from, to, part == kShared ? -1 : boundaries_.elements[part]};
  }
  const Transfer& transfer(std::uint32_t from, std::uint32_t to, std::uint32_t part) const {
    return transfers_.at(key(from, to, part));
  }
  void plan(std::uint32_t from, std::uint32_t to, std::uint32_t part);
  void exchange(const SharedParameters& shared, std::uint32_t from, std::uint32_t to);
  void classify(std::uint32_t stage);

  ProgramBuilder& builder_;
  std::vector<StageLayout> stages_;
  StageBoundaries boundaries_;
  StageResharding how_;
  std::map<Key, Transfer> transfers_;
  std::vector<std::vector<Ranks>> classes_;
};

}  // namespace netsim
