// Mixture of experts: in some layers the MLP is many, of which every token goes to a few (Shazeer et al.,
// arXiv 1701.06538; GShard: Lepikhin et al., arXiv 2006.16668). What of it a model's hyper-parameters say,
// and how many copies of tokens follow from them.
#pragma once

#include <cstdint>

#include "sim/core/parameters.h"

namespace netsim {

// What of it decides where tokens go.
struct RoutedExperts {
  std::int64_t count = 0;  // routed experts of a layer; 0: there are none
  std::int64_t top_k = 2;  // of them, those that a token goes to
  // Node-limited routing (DeepSeek-V3, arXiv 2412.19437, section 2.1.2): the experts lie in so many groups,
  // and those of a token in at most `group_limit` of them.
  std::int64_t groups = 1, group_limit = 1;
  // Of an expert, for each rank that tokens come from: so many times its even share of their copies; what is
  // beyond it is dropped (GShard, section 2.2). 0: nothing is dropped.
  double capacity = 0;

  // Copies of its tokens that an expert takes from a rank with so many; of no use without a capacity.
  std::int64_t capacity_for(std::int64_t tokens) const;
};

struct ExpertsModel : RoutedExperts {
  std::int64_t inner = 0;  // of each; 0: that of the dense MLP
  std::int64_t shared =
      0;  // experts of the same size that every token goes to (DeepSeekMoE, arXiv 2401.06066)
  std::int64_t every = 1;        // layers i with i % every == 0 have experts,
  std::int64_t first_dense = 0;  // but for the first ones
  bool padded = false;           // what an expert gets is filled up to its capacity

  bool in_layer(std::int64_t layer) const { return count > 0 && layer >= first_dense && layer % every == 0; }
  // Copies of so many tokens of a rank that all experts take together, where all get as many.
  std::int64_t copies_of(std::int64_t tokens) const;
};

// Of a section that has them, P being RoutedExperts and more, or with other defaults.
template <class P>
Parameters<P> routed_experts_parameters() {
  using Number = std::int64_t P::*;
  return Parameters<P>()
      .integer("count", static_cast<Number>(&P::count), {0, 100'000},
               "routed experts of a layer; 0: the model is dense")
      .integer("top_k", static_cast<Number>(&P::top_k), {1, 1000}, "experts that a token goes to")
      .integer("groups", static_cast<Number>(&P::groups), {1, 100'000}, "groups of experts (nodes)")
      .integer("group_limit", static_cast<Number>(&P::group_limit), {1, 100'000},
               "of them, as many as a token's experts may lie in")
      .real("capacity", static_cast<double P::*>(&P::capacity), {0, 1000},
            "what an expert takes of a rank's tokens, in even shares; the rest is dropped; 0: it takes all");
}
// ConfigError for what does not fit together; `section`: what the parameters were read from.
void check_routed_experts(const RoutedExperts& experts, const ConfigNode& section);

// The section `experts` of a model, without what makes them fit.
const Parameters<ExpertsModel>& experts_parameters();
// ConfigError for what does not fit together; `section`: what the parameters were read from.
void check_experts(const ExpertsModel& experts, const ConfigNode& section);

}  // namespace netsim
