// The section `tokens` of a workload that dispatches tokens to experts, or combines what comes back, outside
// of a training job: how many tokens each rank has, to how many experts they go, and which router says to
// which. What that makes of bytes between ranks and hosts is counted as in a job (token_counts.h).
#pragma once

#include <cstdint>

#include "sim/collectives/block_counts.h"
#include "sim/core/config.h"
#include "sim/core/parameters.h"
#include "sim/core/units.h"
#include "sim/workload/routing/experts.h"

namespace netsim {

// DeepSeek-V3's.
struct TokenExperts : RoutedExperts {
  TokenExperts() {
    count = 256;
    top_k = 8;
  }
};

// The defaults are DeepEP's tests': 4,096 tokens of 7168 hidden elements of a byte (FP8) and their 56 scales.
struct TokenSection {
  std::int64_t per_rank = 4096;
  Bytes bytes = 7168 + 56 * 4;
  std::int64_t ranks_per_host = 8;
  TokenExperts experts;
  ConfigNode router;
};
const Parameters<TokenSection>& token_section_parameters();
inline constexpr const char* kTokensDoc =
    "of a dispatch or combine: how many tokens there are, and to which experts they go";

// Where the section of a collective has them; the section itself where it leaves them to the defaults.
const ConfigNode& tokens_node(const ConfigNode& section);

// What is counted of a group of `members`, experts dealt out to them in blocks of equal size. ConfigError at
// `where` for experts that cannot be dealt out evenly, more chosen ones than there are, and a router whose
// tokens differ from iteration to iteration, because a collective has none.
BlockCounts count_tokens(const TokenSection& section, std::uint32_t members, const ConfigNode& where);

}  // namespace netsim
