// What ranks that share the experts of a layer send each other, counted token by token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/workload/model/experts.h"
#include "sim/workload/strategy/router.h"

namespace netsim {

// Of `members` ranks, each of which has as many experts, in the order of the ranks, and the tokens of one
// source. `group` ranks each, in their order, are a group.
class TokenCounts {
 public:
  TokenCounts(std::uint32_t members, std::uint32_t group) : members_(members), group_(group) {
    copies_.resize(std::size_t{members} * members);
    tokens_.resize(copies_.size());
    to_groups_.resize(std::size_t{members} * (members / group));
    last_.resize(members, 0);
    last_of_group_.resize(members / group, 0);
  }
  std::uint32_t members() const { return members_; }
  std::uint32_t group() const { return group_; }

  // Copies of tokens of a source for experts of a member, one for each expert; tokens of which there is one
  // at least.
  std::int64_t copies(std::uint32_t source, std::uint32_t member) const {
    return copies_[at(source, member)];
  }
  std::int64_t tokens(std::uint32_t source, std::uint32_t member) const {
    return tokens_[at(source, member)];
  }
  // Tokens of a source of which there is a copy for a member of a group.
  std::int64_t to_group(std::uint32_t source, std::uint32_t group) const {
    return to_groups_[std::size_t{source} * (members_ / group_) + group];
  }
  // What a member's experts get.
  std::int64_t received(std::uint32_t member) const;

  // Counts a token of a source with copies for experts of these members, one or more for each.
  void add(std::uint32_t source, const std::vector<std::uint32_t>& members_of_copies);

 private:
  std::size_t at(std::uint32_t source, std::uint32_t member) const {
    return std::size_t{source} * members_ + member;
  }

  std::uint32_t members_, group_;
  std::vector<std::int64_t> copies_, tokens_, to_groups_;
  // Tokens so far, and which of them went to a member and a group last.
  std::uint64_t added_ = 0;
  std::vector<std::uint64_t> last_, last_of_group_;
};

// The shape's sources are the members. With a capacity, an expert takes the first tokens of each source.
TokenCounts count_tokens(const Router& router, const RoutingShape& shape, const ExpertsModel& experts,
                         std::uint32_t group, std::uint32_t layer, std::uint32_t iteration);

}  // namespace netsim
