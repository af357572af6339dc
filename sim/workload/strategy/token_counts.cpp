#include "sim/workload/strategy/token_counts.h"

#include <utility>

#include "sim/core/errors.h"

namespace netsim {

std::int64_t TokenCounts::received(std::uint32_t member) const {
  std::int64_t sum = 0;
  for (std::uint32_t source = 0; source < members_; ++source) sum += copies(source, member);
  return sum;
}

void TokenCounts::add(std::uint32_t source, const std::vector<std::uint32_t>& members_of_copies) {
  ++added_;
  for (const std::uint32_t member : members_of_copies) {
    const std::uint32_t group = member / group_;
    ++copies_[at(source, member)];
    if (std::exchange(last_[member], added_) != added_) ++tokens_[at(source, member)];
    if (std::exchange(last_of_group_[group], added_) != added_)
      ++to_groups_[std::size_t{source} * (members_ / group_) + group];
  }
}

TokenCounts count_tokens(const Router& router, const RoutingShape& shape, const ExpertsModel& experts,
                         std::uint32_t group, std::uint32_t layer, std::uint32_t iteration) {
  TokenCounts counts(shape.sources, group);
  const std::uint32_t of_member = shape.experts / shape.sources;
  const std::int64_t capacity = experts.capacity > 0 ? experts.capacity_for(shape.tokens) : INT64_MAX;
  for (std::uint32_t source = 0; source < shape.sources; ++source) {
    const std::vector<std::uint32_t> chosen = router.route(shape, layer, iteration, source);
    NETSIM_CHECK(chosen.size() == std::size_t{shape.tokens} * shape.top_k, "a router left tokens out");
    std::vector<std::int64_t> taken(shape.experts, 0);
    std::vector<std::uint32_t> members;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (++taken[chosen[i]] <= capacity) members.push_back(chosen[i] / of_member);
      if ((i + 1) % shape.top_k != 0) continue;
      counts.add(source, members);
      members.clear();
    }
  }
  return counts;
}

}  // namespace netsim
