// AlgorithmChoice: which algorithm does which kind of collective. Owns the algorithms, as the configuration
// made them, with the parameters that the user gave them; whoever needs a plan asks these objects.
#pragma once

#include <array>
#include <memory>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/execution/collectives_parameters.h"
#include "sim/collectives/own_algorithm.h"

namespace netsim {

// The kind of the plans by which an algorithm does `kind`.
CollectiveKind plan_kind_of(const CollectiveAlgorithm& algorithm, CollectiveKind kind);

class AlgorithmChoice {
 public:
  // ConfigError for an unknown algorithm, a wrong parameter of one, or one that does not do its kind.
  explicit AlgorithmChoice(const CollectivesParameters& parameters);
  // InputError for a kind that has no default and for which none was chosen. Of a barrier that of all_reduce.
  const CollectiveAlgorithm& of(CollectiveKind kind) const;
  // Of which kind its plans are: a barrier's algorithm may be one that does all-reduces, of one element then
  // (as PyTorch's ProcessGroupNCCL::barrier, because NCCL has none).
  CollectiveKind plan_kind(CollectiveKind kind) const;
  // Whether the configuration names it.
  bool is_configured(CollectiveKind kind) const { return configured_[static_cast<std::size_t>(kind)]; }
  // Whether one of them leaves something to choose.
  bool has_candidates() const;

 private:
  std::array<std::unique_ptr<CollectiveAlgorithm>, kCollectiveKindCount> algorithms_;
  std::array<bool, kCollectiveKindCount> configured_{};
};

}  // namespace netsim
