// The clock cycles of fused attention by its thread blocks.
//
// Each block computes 128 queries of one head with all keys that they see (FlashAttention-3: Shah et al.,
// arXiv 2407.08608, and cuDNN alike). With a causal mask the blocks are unequal, and they start in no special
// order. So the last blocks leave multiprocessors (SMs) idle. List scheduling takes the mean load of an SM,
// plus the longest block. The mean time that a running block has left, E[L^2] / 2 E[L], is subtracted.
#pragma once

#include <cstdint>

#include "sim/compute/kernel.h"

namespace netsim {

// AttentionRates: how fast an SM computes attention.
struct AttentionRates {
  double flops_per_cycle = 4096;  // of an SM
  double efficiency = 1;          // share of that inside a block
  double fill_keys = 0;           // keys whose time a block takes to begin and end
};

// Returns the cycles of the kernel on `multiprocessors` SMs. `Kernel::n` is the mean number of keys of a
// query. If a query sees fewer keys than there are queries, the mask is taken to be causal.
double attention_cycles(const Kernel& attention, const AttentionRates& rates, std::int64_t multiprocessors);

}  // namespace netsim
