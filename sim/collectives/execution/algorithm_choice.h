// AlgorithmChoice: which algorithm does which kind of collective. Owns the algorithms, as the configuration
// made them, with the parameters that the user gave them; whoever needs a plan asks these objects.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/execution/collectives_parameters.h"
#include "sim/collectives/own_algorithm.h"

namespace netsim {

// The kind of the plans by which an algorithm does `kind`: a barrier's may be one that does all-reduces, of
// one element then (as PyTorch's ProcessGroupNCCL::barrier, because NCCL has none).
CollectiveKind plan_kind_of(const CollectiveAlgorithm& algorithm, CollectiveKind kind);

// An entry of `choices` in the section `collectives`: of one kind, from `least` to `most` bytes
// (CollectiveKindInfo::bytes), both included; nothing: whatever the number.
struct AlgorithmRule {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes least = 0, most = 0;
  std::optional<std::int64_t> ranks, domains;
  std::unique_ptr<CollectiveAlgorithm> algorithm;
  Place place;
};

class AlgorithmChoice {
 public:
  // ConfigError for an unknown algorithm, a wrong parameter of one, or one that does not do its kind.
  explicit AlgorithmChoice(const CollectivesParameters& parameters);
  // InputError for a kind that has no default and for which none was chosen. Of a barrier that of all_reduce.
  const CollectiveAlgorithm& of(CollectiveKind kind) const;
  // The first entry of `choices` that fits; null: none does, and it is that of the kind. `domains`: of the
  // group.
  const AlgorithmRule* rule(CollectiveKind kind, Bytes bytes, std::size_t ranks, std::uint32_t domains) const;
  // Whether the configuration names it.
  bool is_configured(CollectiveKind kind) const { return configured_[static_cast<std::size_t>(kind)]; }
  // Whether one of them leaves something to choose.
  bool has_candidates() const;

 private:
  std::array<std::unique_ptr<CollectiveAlgorithm>, kCollectiveKindCount> algorithms_;
  std::array<bool, kCollectiveKindCount> configured_{};
  std::vector<AlgorithmRule> rules_;
};

}  // namespace netsim
