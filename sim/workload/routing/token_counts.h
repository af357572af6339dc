// TokenCounts: the traffic between ranks that share the experts of a layer, counted token by token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/collectives/block_counts.h"
#include "sim/core/units.h"
#include "sim/workload/routing/router.h"

namespace netsim {

// TokenCounts: the counts of `members` ranks, which have equally many experts in the order of the ranks. Each
// member is also a source of tokens. `host` consecutive ranks are on a host; the last host may have fewer.
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

  // copies() returns the number of copies of a source's tokens for experts of a member, one for each expert.
  // tokens() returns the number of tokens with at least one copy for the member.
  std::int64_t copies(std::uint32_t source, std::uint32_t member) const {
    return copies_[at(source, member)];
  }
  std::int64_t tokens(std::uint32_t source, std::uint32_t member) const {
    return tokens_[at(source, member)];
  }
  // Returns the number of tokens of a source with a copy for a member on a host.
  std::int64_t to_host(std::uint32_t source, std::uint32_t host) const {
    return to_hosts_[std::size_t{source} * hosts_ + host];
  }
  // received() returns the copies that a member's experts get, sent() those that a source has for all
  // experts.
  std::int64_t received(std::uint32_t member) const;
  std::int64_t sent(std::uint32_t source) const;

  // Counts a token of a source that has copies for experts of these members. A member occurs once for each
  // copy.
  void add(std::uint32_t source, const std::vector<std::uint32_t>& members_of_copies);

 private:
  std::size_t at(std::uint32_t source, std::uint32_t member) const {
    return std::size_t{source} * members_ + member;
  }

  std::uint32_t members_, host_, hosts_;
  std::vector<std::int64_t> copies_, tokens_, to_hosts_;
  // Number of tokens so far, and by member and host the last token that went there.
  std::uint64_t added_ = 0;
  std::vector<std::uint64_t> last_, last_of_host_;
};

// Returns the counts of a layer's tokens. The shape's sources are the members. With a capacity, an expert
// takes the first tokens of each source.
TokenCounts count_tokens(const Router& router, const RoutingShape& shape, std::uint32_t host,
                         std::uint32_t layer, std::uint32_t iteration);

// Returns the counts of a dispatch of tokens of so many bytes, and of its combine. A token counts once for
// each expert, each member and each host, because the algorithm may send it in any of these ways.
BlockCounts once_each(const TokenCounts& counts, Bytes token);
// Returns the counts of an all_to_all_v that takes each copy to its expert, or, with `back`, to its source.
BlockCounts every_copy(const TokenCounts& counts, Bytes copy, bool back);

}  // namespace netsim
