// PACE fuses consecutive tensors by dynamic programming, which judges them by the time of its preemptive
// schedule. Source: Bao et al., "Preemptive All-reduce Scheduling", INFOCOM 2020, of which only the abstract
// was at hand.
#pragma once

#include <span>

#include "sim/core/units.h"
#include "sim/scheduling/task/fusion.h"

namespace netsim {

// Returns the end of the preemptive schedule of these buckets, from the begin of the iteration. At every
// instant the ready bucket with the longest tail runs. A bucket is ready with the last of its tensors. It
// takes `startup` and their transfers, and has their longest tail. The end is the latest end of a tail.
Time preemptive_end(std::span<const FusionTensor> tensors, const FusionMap& map, Time startup);

// Returns the buckets of consecutive tensors with the least preemptive_end(), and of these the most buckets.
// `tensors` are in the order in which they become ready. The result is exact where no tensor has a longer
// tail than one that is ready later, as on a chain of layers. Elsewhere the rule takes the longest tail so
// far, and its result is at most the end without fusion.
//
// The end is that of the latest tail alone, so tensors with shorter tails may be fused without changing it.
// They would wait for one another up to that end, and whatever takes longer than estimated would delay it.
FusionMap pace_fusion(std::span<const FusionTensor> tensors, Time startup);

}  // namespace netsim
