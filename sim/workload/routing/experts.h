// Mixture of experts: some layers have many MLPs, the experts, and every token goes to a few of them. Sources
// are Shazeer et al. (arXiv 1701.06538) and GShard (Lepikhin et al., arXiv 2006.16668). This header has the
// hyper-parameters, and the number of token copies that follows from them.
#pragma once

#include <cstdint>

#include "sim/core/parameters.h"

namespace netsim {

// RoutedExperts: the hyper-parameters that decide where tokens go.
struct RoutedExperts {
  std::int64_t count = 0;  // number of routed experts of a layer; 0: there are none
  std::int64_t top_k = 2;  // number of experts that a token goes to
  // Node-limited routing (DeepSeek-V3, arXiv 2412.19437, section 2.1.2). The experts form `groups` groups.
  // The experts of a token are in at most `group_limit` of them.
  std::int64_t groups = 1, group_limit = 1;
  // Capacity of an expert for each source rank, as a multiple of its even share of the rank's copies. Copies
  // beyond it are dropped (GShard, section 2.2). 0: nothing is dropped.
  double capacity = 0;

  // Returns the number of copies that an expert takes from a rank with so many tokens. It is only meaningful
  // with a capacity.
  std::int64_t capacity_for(std::int64_t tokens) const;
};

struct ExpertsModel : RoutedExperts {
  std::int64_t inner = 0;  // inner size of each expert; 0: that of the dense MLP
  std::int64_t shared =
      // Number of experts of the same size that every token goes to (DeepSeekMoE, arXiv 2401.06066).
      0;
  std::int64_t every = 1;        // layers i with i % every == 0 have experts
  std::int64_t first_dense = 0;  // number of first layers without experts
  bool padded = false;           // an expert's tokens are padded to its capacity

  bool in_layer(std::int64_t layer) const { return count > 0 && layer >= first_dense && layer % every == 0; }
  // Returns the number of copies of a rank's tokens that all experts take together, where all take equally
  // many.
  std::int64_t copies_of(std::int64_t tokens) const;
};

// Returns the parameters of a section with routed experts. P is derived from RoutedExperts and may have other
// defaults.
template <class P>
Parameters<P> routed_experts_parameters() {
  using Number = std::int64_t P::*;
  return Parameters<P>()
      .integer("count", static_cast<Number>(&P::count), {0, 100'000},
               "routed experts of a layer; 0: the model is dense")
      .integer("top_k", static_cast<Number>(&P::top_k), {1, 1000}, "experts that a token goes to")
      .integer("groups", static_cast<Number>(&P::groups), {1, 100'000}, "groups of experts (nodes)")
      .integer("group_limit", static_cast<Number>(&P::group_limit), {1, 100'000},
               "largest number of groups that a token's experts belong to")
      .real("capacity", static_cast<double P::*>(&P::capacity), {0, 1000},
            "largest number of tokens that an expert accepts from a rank, as a multiple of an even share; "
            "further tokens are dropped; 0: no limit");
}
// Throws ConfigError if the parameters contradict each other. `section` is where they were read.
void check_routed_experts(const RoutedExperts& experts, const ConfigNode& section);

// Returns the parameters of the section `experts` of a model. They are not checked against each other.
const Parameters<ExpertsModel>& experts_parameters();
// Throws ConfigError if the parameters contradict each other. `section` is where they were read.
void check_experts(const ExpertsModel& experts, const ConfigNode& section);

}  // namespace netsim
