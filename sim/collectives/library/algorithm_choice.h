// AlgorithmChoice: which algorithm executes which kind of collective. It owns the algorithms, which the
// configuration made with the user's parameters. The library gets all plans of configured algorithms from
// these objects.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/library/collectives_parameters.h"
#include "sim/collectives/own_algorithm.h"

namespace netsim {

// Returns the kind of the plans with which an algorithm executes `kind`. An algorithm that supports no
// barriers executes one as an all-reduce of one element. PyTorch's ProcessGroupNCCL::barrier does the same,
// because NCCL has no barrier.
CollectiveKind plan_kind_of(const CollectiveAlgorithm& algorithm, CollectiveKind kind);

// AlgorithmRule: an entry of `choices` in the section `collectives`. It applies to one kind from `least` to
// `most` bytes (CollectiveKindInfo::bytes), both included. A nullopt matches any number.
struct AlgorithmRule {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes least = 0, most = 0;
  std::optional<std::int64_t> ranks, domains;
  std::unique_ptr<CollectiveAlgorithm> algorithm;
  Place place;
};

class AlgorithmChoice {
 public:
  // Throws ConfigError for an unknown algorithm, a wrong parameter, or an algorithm that does not support its
  // kind.
  explicit AlgorithmChoice(const CollectivesParameters& parameters);
  // Returns the algorithm of a kind; a barrier without one uses that of all_reduce. Throws InputError for a
  // kind that has no default and for which none was chosen.
  const CollectiveAlgorithm& of(CollectiveKind kind) const;
  // Returns the default algorithm of a kind, which hosts run without switches; null: the kind has none.
  const CollectiveAlgorithm* default_of(CollectiveKind kind) const {
    return defaults_[static_cast<std::size_t>(kind)].get();
  }
  // Returns the first entry of `choices` that matches. Null: none does, and the algorithm of the kind
  // applies. `domains` is the number of domains of the group.
  const AlgorithmRule* rule(CollectiveKind kind, Bytes bytes, std::size_t ranks, std::uint32_t domains) const;
  // Returns whether the configuration names the algorithm of this kind.
  bool is_configured(CollectiveKind kind) const { return configured_[static_cast<std::size_t>(kind)]; }
  // Returns whether any algorithm leaves a choice among candidates to the library.
  bool has_candidates() const;

 private:
  std::array<std::unique_ptr<CollectiveAlgorithm>, kCollectiveKindCount> algorithms_;
  std::array<std::unique_ptr<CollectiveAlgorithm>, kCollectiveKindCount> defaults_;
  std::array<bool, kCollectiveKindCount> configured_{};
  std::vector<AlgorithmRule> rules_;
};

}  // namespace netsim
