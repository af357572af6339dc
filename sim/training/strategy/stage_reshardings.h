// StageReshardings: how activations, and their gradients, come from one stage of a pipeline to another that
// has them divided in another way: where stages have meshes of their own (Alpa: Zheng et al., OSDI 2022;
// AlpaComm: Zhuang et al., MLSys 2023, arXiv 2211.05322).
//
// What passes between two stages is a tensor of samples x what a sample has. Data parallelism divides the
// samples; sequence parallelism divides the rest among tensor-parallel ranks, which all have it whole
// otherwise. Ranks of one context coordinate have the same tokens in every stage, so that each coordinate is
// a tensor of its own. As many replicas as both stages' numbers of them have in common as a divisor are
// blocks that have nothing to do with each other: a ReshardingPlan is made for one block, and is that of all
// whose ranks lie on hosts in the same way.
//
// Gradients of parameters that both ends of the model share are exchanged in the same way where the ends are
// on unlike stages, before replicas sum theirs up: what each replica of one end has goes to one replica of
// the other, which adds it to its own.
//
// Ranks of a stage may do different things then: one sends, others have a copy that nobody needs. Those that
// do the same are one class, and one role of the program. The steps of a plan are coloured so that a rank is
// in one step of a colour at most: each colour is one table of peers, or one expression of groups, whatever
// the number of ranks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "sim/core/units.h"
#include "sim/training/strategy/pipeline_placement.h"
#include "sim/training/strategy/resharding_plan.h"
#include "sim/workload/program/program.h"

namespace netsim {

// The ranks of a stage: tensor fastest, then context and data, from `first` on.
struct StageLayout {
  std::uint32_t first = 0, tensor = 1, context = 1, data = 1;
  std::uint32_t ranks() const { return tensor * context * data; }
  bool same_mesh(const StageLayout& other) const {
    return tensor == other.tensor && context == other.context && data == other.data;
  }
};

// What passes between stages.
struct StageBoundaries {
  std::int64_t samples = 1;            // of a microbatch, in all replicas together
  std::vector<std::int64_t> elements;  // of a sample, for the ranks of one context coordinate: behind each
                                       // part of the model
  Bytes element = 2;
  bool sequence = false;  // tensor-parallel ranks divide it
};

// Parameters that two stages have copies of, as tensor-parallel ranks divide their rows.
struct SharedParameters {
  std::uint32_t first = 0, last = 0;  // stages
  std::int64_t rows = 1, columns = 1;
  Bytes element = 2;  // of a gradient
};

struct StageResharding {
  ReshardingStrategy strategy = ReshardingStrategy::broadcast;
  ReshardingBalance balance = ReshardingBalance::order;
  std::int64_t ranks_per_host = 8;  // so many ranks behind each other are on a host
};

class StageReshardings {
 public:
  // Plans what passes between the parts of the model that lie on different meshes, both ways. `builder` has
  // the job's axis, and outlives this. All numbers of replicas divide the samples. `shared`: of two unlike
  // stages.
  StageReshardings(ProgramBuilder& builder, const PipelinePlacement& placement,
                   std::vector<StageLayout> stages, StageBoundaries boundaries,
                   const std::optional<SharedParameters>& shared, StageResharding how);

  bool reshards(std::uint32_t from, std::uint32_t to) const { return !stages_[from].same_mesh(stages_[to]); }
  // How far a stage of the same mesh is, in ranks of the job.
  std::int32_t distance(std::uint32_t from, std::uint32_t to) const {
    return static_cast<std::int32_t>(stages_[to].first) - static_cast<std::int32_t>(stages_[from].first);
  }

  // Ranks of a stage that do the same, ascending, by class; classes in the order of their first ranks.
  const std::vector<std::vector<std::uint32_t>>& classes(std::uint32_t stage) const {
    return classes_[stage];
  }

  // One communication of a rank.
  struct Call {
    ReshardingStep::Kind kind = ReshardingStep::Kind::message;
    bool sends = false;       // it has what is sent, of a message or a broadcast
    Bytes bytes = 0;          // of a gather: all of it
    std::uint32_t color = 0;  // of the steps of its kind
    auto operator<=>(const Call&) const = default;
  };
  // In the place of a part: the gradients of shared parameters.
  static constexpr std::uint32_t kShared = UINT32_MAX;
  // From one stage to the other, what lies behind `part`: those of a rank of a class of `stage`, which is one
  // of the two, in the order of the plan.
  const std::vector<Call>& calls(std::uint32_t from, std::uint32_t to, std::uint32_t part,
                                 std::uint32_t stage, std::uint32_t rank_class) const;
  // Of a message; and of a broadcast (whose root is member 0) or a gather, which is called independently of
  // those with another communicator.
  PeerExpression peer(std::uint32_t from, std::uint32_t to, std::uint32_t part, const Call& call) const;
  std::uint32_t group(std::uint32_t from, std::uint32_t to, std::uint32_t part, const Call& call,
                      std::uint32_t communicator) const;

 private:
  using Ranks = std::vector<std::uint32_t>;
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::int64_t>;  // from, to, elements of a sample or -1
  struct Transfer {
    std::vector<std::uint32_t> tables;                 // of peers, by colour of messages
    std::vector<std::vector<Ranks>> groups;            // by colour of broadcasts and gathers
    std::map<std::uint32_t, std::vector<Call>> calls;  // by rank of the job
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
  std::vector<std::vector<Ranks>> classes_;  // by stage
};

}  // namespace netsim
