// NCCL's choice of algorithm, protocol and channels for a collective, with its reason.
#pragma once

#include <optional>
#include <string>

#include "sim/collectives/library/nccl/nccl_settings.h"
#include "sim/collectives/library/nccl/nccl_traits.h"
#include "sim/collectives/library/standard_config.h"

namespace netsim {

// NcclReason: why NCCL made its choice.
struct NcclReason {
  // Time that NCCL's cost model estimates, in microseconds, for the algorithm of `family`; nullopt: the model
  // was not used.
  std::optional<double> estimate;
  CostFamily family = CostFamily::ring;
  struct Next {
    CostFamily family = CostFamily::ring;
    Protocol protocol = Protocol::simple;
    double estimate = 0;
  };
  std::optional<Next> next;               // the second best estimate
  const NcclRules::Line* rule = nullptr;  // rule of a tuner that replaced the model's choice
  bool graph = false;                     // whether the orders of the ranks come from an NCCL graph file
  const char* without_nvls = nullptr;     // why NVLS was no candidate, where the algorithm has it as one
  const char* without_collnet = nullptr;  // why CollNet was no candidate, where a fabric aggregates
};
// Returns the reason in words, after `named`, which says where the algorithm is named.
std::string text_of(const NcclReason& reason, std::string named);

struct NcclChoice {
  ChosenAlgorithm chosen;  // without `place`, `latencies` and `chunk`
  NcclTraits traits;       // those of the chosen algorithm
  NcclReason reason;
};
// Returns the choice for a collective whose algorithm is named. An algorithm with candidates leaves the
// choice to NCCL; for any other one the protocol and the channels are chosen. Throws InputError where no
// candidate is allowed.
NcclChoice nccl_choice(const NcclSettings& settings, const LibraryRequest& request,
                       const CollectiveAlgorithm& named);

}  // namespace netsim
