// What ranks that share the experts of a layer send each other, counted token by token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/collectives/block_counts.h"
#include "sim/core/units.h"
#include "sim/workload/routing/router.h"

namespace netsim {

// Of `members` ranks, each of which has as many experts, in the order of the ranks, and the tokens of one
// source. `host` ranks each, in their order, are on a host; the last one may have fewer.
class TokenCounts {
 public:
  TokenCounts(std::uint32_t members, std::uint32_t host)
      : members_(members), host_(host), hosts_((members + host - 1) / host) {
    copies_.resize(std::size_t{members} * members);
    tokens_.resize(copies_.size());
    to_hosts_.resize(std::size_t{members} * hosts_);
    last_.resize(members, 0);
    last_of_host_.resize(hosts_, 0);
  }
  std::uint32_t members() const { return members_; }
  std::uint32_t host() const { return host_; }
  std::uint32_t hosts() const { return hosts_; }

  // Copies of tokens of a source for experts of a member, one for each expert; tokens of which there is one
  // at least.
  std::int64_t copies(std::uint32_t source, std::uint32_t member) const {
    return copies_[at(source, member)];
  }
  std::int64_t tokens(std::uint32_t source, std::uint32_t member) const {
    return tokens_[at(source, member)];
  }
  // Tokens of a source of which there is a copy for a member on a host.
  std::int64_t to_host(std::uint32_t source, std::uint32_t host) const {
    return to_hosts_[std::size_t{source} * hosts_ + host];
  }
  // What a member's experts get, and what it has for all experts.
  std::int64_t received(std::uint32_t member) const;
  std::int64_t sent(std::uint32_t source) const;

  // Counts a token of a source with copies for experts of these members, one or more for each.
  void add(std::uint32_t source, const std::vector<std::uint32_t>& members_of_copies);

 private:
  std::size_t at(std::uint32_t source, std::uint32_t member) const {
    return std::size_t{source} * members_ + member;
  }

  std::uint32_t members_, host_, hosts_;
  std::vector<std::int64_t> copies_, tokens_, to_hosts_;
  // Tokens so far, and which of them went to a member and a host last.
  std::uint64_t added_ = 0;
  std::vector<std::uint64_t> last_, last_of_host_;
};

// The shape's sources are the members. With a capacity, an expert takes the first tokens of each source.
TokenCounts count_tokens(const Router& router, const RoutingShape& shape, std::uint32_t host,
                         std::uint32_t layer, std::uint32_t iteration);

// The counts of a dispatch of tokens of so many bytes, and of the combine that belongs to it: a token once
// for each expert, each member and each host, whichever the algorithm sends by.
BlockCounts once_each(const TokenCounts& counts, Bytes token);
// The counts of an all_to_all_v that takes each copy to its expert, or (`back`) home again.
BlockCounts every_copy(const TokenCounts& counts, Bytes copy, bool back);

}  // namespace netsim
