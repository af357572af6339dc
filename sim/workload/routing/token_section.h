// TokenSection: the section `tokens` of a workload that dispatches tokens to experts, or combines their
// results, outside of a training job. It says how many tokens each rank has, to how many experts they go, and
// which router chooses these. The bytes between ranks and hosts are counted as in a job (token_counts.h).
#pragma once

#include <cstdint>

#include "sim/collectives/block_counts.h"
#include "sim/core/config.h"
#include "sim/core/parameters.h"
#include "sim/core/units.h"
#include "sim/workload/routing/experts.h"

namespace netsim {

// TokenExperts: the defaults of DeepSeek-V3.
struct TokenExperts : RoutedExperts {
  TokenExperts() {
    count = 256;
    top_k = 8;
  }
};

// The defaults are those of DeepEP's tests: 4,096 tokens of 7168 hidden elements of a byte (FP8) and their 56
// scales.
struct TokenSection {
  std::int64_t per_rank = 4096;
  Bytes bytes = 7168 + 56 * 4;
  std::int64_t ranks_per_host = 8;
  TokenExperts experts;
  ConfigNode router;
};
const Parameters<TokenSection>& token_section_parameters();
inline constexpr const char* kTokensDoc = "for a dispatch or combine: the number of tokens and their experts";

// Returns the section `tokens` of a collective's section, or the latter itself if it has none.
const ConfigNode& tokens_node(const ConfigNode& section);

// Returns the counts of a group of `members`, to which experts are assigned in blocks of equal size. Throws
// ConfigError at `where` for experts that cannot be divided evenly and for a top_k above their number. It
// also refuses a router that changes from iteration to iteration, because a collective has no iterations.
BlockCounts count_tokens(const TokenSection& section, std::uint32_t members, const ConfigNode& where);

}  // namespace netsim
