#include "sim/workload/routing/token_section.h"

#include <algorithm>
#include <memory>
#include <string>

#include "sim/core/config_entries.h"
#include "sim/core/registry.h"
#include "sim/workload/routing/token_counts.h"

namespace netsim {

const Parameters<TokenSection>& token_section_parameters() {
  using P = TokenSection;
  static const auto experts = routed_experts_parameters<TokenExperts>();
  static const auto p =
      Parameters<P>()
          .integer("per_rank", &P::per_rank, {1, 1 << 24}, "tokens of each rank")
          .bytes("bytes", &P::bytes, {1, kGigabyte},
                 "size of a token (DeepEP: 7168 in FP8 and 56 scales of 4 B; 14336 B in half precision)")
          .integer("ranks_per_host", &P::ranks_per_host, {1, 1 << 20}, "consecutive ranks on a host")
          .section("experts", &P::experts, experts,
                   "experts of all ranks together; each rank has equally many")
          .component("router", &P::router, "router", "uniform", "choice of the experts of each token");
  return p;
}

const ConfigNode& tokens_node(const ConfigNode& section) { return entry_or_self(section, "tokens"); }

BlockCounts count_tokens(const TokenSection& section, std::uint32_t members, const ConfigNode& where) {
  const ConfigNode& experts = entry_or_self(where, "experts");
  const ConfigNode& count = entry_or_self(experts, "count");
  if (section.experts.count == 0) count.fail("tokens need experts to go to");
  if (section.experts.count % members != 0) {
    count.fail(std::to_string(section.experts.count) + " experts cannot be divided evenly among " +
               std::to_string(members) + " ranks");
  }
  check_routed_experts(section.experts, experts);
  const std::unique_ptr<Router> router = Registry<Router>::instance().create(section.router, "uniform");
  if (router->changes()) {
    entry_or_self(where, "router")
        .fail("this router changes with the iterations of a job, which a collective does not have");
  }
  const RoutingShape shape = routing_shape(section.experts, members, section.per_rank);
  router->check(shape, 1);
  const auto host = static_cast<std::uint32_t>(std::min<std::int64_t>(section.ranks_per_host, members));
  return once_each(count_tokens(*router, shape, host, 0, 0), section.bytes);
}

}  // namespace netsim
