#include "sim/workload/routing/token_counts.h"

#include <utility>

#include "sim/core/errors.h"

namespace netsim {

std::int64_t TokenCounts::received(std::uint32_t member) const {
  std::int64_t sum = 0;
  for (std::uint32_t source = 0; source < members_; ++source) sum += copies(source, member);
  return sum;
}

std::int64_t TokenCounts::sent(std::uint32_t source) const {
  std::int64_t sum = 0;
  for (std::uint32_t member = 0; member < members_; ++member) sum += copies(source, member);
  return sum;
}

void TokenCounts::add(std::uint32_t source, const std::vector<std::uint32_t>& members_of_copies) {
  ++added_;
  for (const std::uint32_t member : members_of_copies) {
    const std::uint32_t host = member / host_;
    ++copies_[at(source, member)];
    if (std::exchange(last_[member], added_) != added_) ++tokens_[at(source, member)];
    if (std::exchange(last_of_host_[host], added_) != added_)
      ++to_hosts_[std::size_t{source} * hosts_ + host];
  }
}

TokenCounts count_tokens(const Router& router, const RoutingShape& shape, std::uint32_t host,
                         std::uint32_t layer, std::uint32_t iteration) {
  TokenCounts counts(shape.sources, host);
  const std::uint32_t of_member = shape.experts / shape.sources;
  const std::int64_t capacity = shape.capacity > 0 ? shape.capacity : INT64_MAX;
  for (std::uint32_t source = 0; source < shape.sources; ++source) {
    const std::vector<std::uint32_t> chosen = router.route(shape, layer, iteration, source);
    NETSIM_CHECK(chosen.size() == std::size_t{shape.tokens} * shape.top_k, "a router left out tokens");
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

BlockCounts once_each(const TokenCounts& counts, Bytes token) {
  const std::uint32_t members = counts.members();
  TokenBytes tokens{token, counts.host(), {}, {}};
  std::vector<Bytes> rows;
  rows.reserve(std::size_t{members} * members);
  tokens.copies.reserve(rows.capacity());
  tokens.to_hosts.reserve(std::size_t{members} * counts.hosts());
  for (std::uint32_t source = 0; source < members; ++source) {
    for (std::uint32_t member = 0; member < members; ++member) {
      rows.push_back(token * counts.tokens(source, member));
      tokens.copies.push_back(token * counts.copies(source, member));
    }
    for (std::uint32_t host = 0; host < counts.hosts(); ++host)
      tokens.to_hosts.push_back(token * counts.to_host(source, host));
  }
  return {members, std::move(rows), std::move(tokens)};
}

BlockCounts every_copy(const TokenCounts& counts, Bytes copy, bool back) {
  const std::uint32_t members = counts.members();
  std::vector<Bytes> rows;
  rows.reserve(std::size_t{members} * members);
  for (std::uint32_t from = 0; from < members; ++from) {
    for (std::uint32_t to = 0; to < members; ++to)
      rows.push_back(copy * (back ? counts.copies(to, from) : counts.copies(from, to)));
  }
  return {members, std::move(rows)};
}

}  // namespace netsim
