// Token routing: which experts the tokens of each rank go to, drawn at random, and what that makes of bytes
// between ranks and hosts (block_counts.h). For workloads of a dispatch or a combine, and for whoever builds
// layers of experts.
//
// Experts are dealt out to the members of a group in blocks of equal size. A router gives each token a score
// for each expert; the token goes to the `top_k` experts with the highest ones among those of at most
// `host_limit` hosts, which are the hosts with the highest scores (node-limited routing: DeepSeek-V3,
// arXiv 2412.19437, section 2.1.2). Here scores are equally distributed and independent, so experts are
// loaded alike but for chance, as in DeepEP's own tests (tests/test_internode.py there).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/block_counts.h"
#include "sim/core/config.h"
#include "sim/core/parameters.h"
#include "sim/core/random.h"
#include "sim/core/units.h"

namespace netsim {

// The defaults are DeepSeek-V3's and DeepEP's: 7168 hidden elements of a byte (FP8) and their 56 scales.
struct TokenRoutingParameters {
  std::int64_t per_rank = 4096;
  Bytes bytes = 7168 + 56 * 4;
  std::int64_t experts = 256;
  std::int64_t top_k = 8;
  std::int64_t ranks_per_host = 8;
  std::int64_t host_limit = 4;
  std::int64_t seed = 0;
};
const Parameters<TokenRoutingParameters>& token_routing_parameters();
inline constexpr const char* kTokensDoc =
    "of a dispatch or combine: how many tokens there are, and to how many experts they go";

// Where the section of a collective has them; the section itself where it leaves them to the defaults.
const ConfigNode& tokens_node(const ConfigNode& section);

class TokenRouter {
 public:
  // Of a group of `members`, experts dealt out to them. `seed`: the run's, where the parameters have none.
  // ConfigError at `where` for experts that cannot be dealt out evenly, and more chosen ones than there are.
  TokenRouter(const TokenRoutingParameters& parameters, std::uint32_t members, std::uint64_t seed,
              const ConfigNode& where);

  std::uint32_t members() const { return members_; }
  std::uint32_t hosts() const { return (members_ + per_host_ - 1) / per_host_; }
  std::uint32_t member_of(std::uint32_t expert) const { return expert / each_; }
  std::uint32_t host_of(std::uint32_t member) const { return member / per_host_; }

  // The experts of each token of a member: [token * top_k + i], by falling scores.
  std::vector<std::uint32_t> experts_of(std::uint32_t member) const;
  // All of it counted.
  BlockCounts counts() const;

 private:
  TokenRoutingParameters parameters_;
  std::uint32_t members_, per_host_;
  std::uint32_t each_ = 1;  // experts of a member
  std::uint64_t seed_;
};

}  // namespace netsim
