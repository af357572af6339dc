#include "sim/workload/strategy/token_counts.h"

#include <algorithm>

#include "sim/core/errors.h"

namespace netsim {

std::int64_t TokenCounts::received(std::uint32_t member) const {
  std::int64_t sum = 0;
  for (std::uint32_t source = 0; source < members_; ++source) sum += copies(source, member);
  return sum;
}

void TokenCounts::add(std::uint32_t source, const std::vector<std::uint32_t>& members_of_copies) {
  const auto first_of = [&](std::size_t i, std::uint32_t size) {
    return std::none_of(members_of_copies.begin(), members_of_copies.begin() + static_cast<std::ptrdiff_t>(i),
                        [&](std::uint32_t other) { return other / size == members_of_copies[i] / size; });
  };
  for (std::size_t i = 0; i < members_of_copies.size(); ++i) {
    const std::uint32_t member = members_of_copies[i];
    ++copies_[at(source, member)];
    if (first_of(i, 1)) ++tokens_[at(source, member)];
    if (first_of(i, group_)) ++to_groups_[std::size_t{source} * (members_ / group_) + member / group_];
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
