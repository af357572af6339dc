// WithCandidates: an algorithm that stands for several, of which a library chooses one for each operation by
// size and group (`nccl`).
#pragma once

#include <vector>

#include "sim/collectives/algorithm.h"

namespace netsim {

class WithCandidates {
 public:
  virtual ~WithCandidates() = default;
  // Returns the algorithms for a kind, which live as long as this. Any thread may call it.
  virtual std::vector<const CollectiveAlgorithm*> candidates(CollectiveKind kind) const = 0;
};

// Returns the candidates that an algorithm stands for; empty: it stands for itself.
inline std::vector<const CollectiveAlgorithm*> candidates_of(const CollectiveAlgorithm& algorithm,
                                                             CollectiveKind kind) {
  const auto* several = dynamic_cast<const WithCandidates*>(&algorithm);
  return several == nullptr ? std::vector<const CollectiveAlgorithm*>() : several->candidates(kind);
}

}  // namespace netsim
