#include "sim/workload/traffic/token_routing.h"

#include <algorithm>
#include <string>
#include <utility>

namespace netsim {
namespace {

struct Score {
  std::uint64_t score = 0;
  std::uint32_t of = 0;  // an expert, or a host
  // The highest first; of equal ones the first.
  bool operator<(const Score& other) const {
    return score != other.score ? score > other.score : of < other.of;
  }
};

void keep_best(std::vector<Score>& scores, std::size_t count) {
  if (scores.size() <= count) count = scores.size();
  std::partial_sort(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(count), scores.end());
  scores.resize(count);
}

// Which of `count` something is the first time; true: it was none of those before.
class Seen {
 public:
  explicit Seen(std::uint32_t count) : last_(count, 0) {}
  void next() { ++now_; }
  bool is_new(std::uint32_t index) { return std::exchange(last_[index], now_) != now_; }

 private:
  std::vector<std::uint64_t> last_;
  std::uint64_t now_ = 0;
};

}  // namespace

const Parameters<TokenRoutingParameters>& token_routing_parameters() {
  using P = TokenRoutingParameters;
  static const auto p =
      Parameters<P>()
          .integer("per_rank", &P::per_rank, {1, 1 << 24}, "tokens of each rank")
          .bytes("bytes", &P::bytes, {1, kGigabyte},
                 "of a token (DeepEP: 7168 in FP8 and 56 scales of 4 B; 14336 B in half precision)")
          .integer("experts", &P::experts, {1, 1 << 20}, "of all ranks together, each has as many")
          .integer("top_k", &P::top_k, {1, 1024}, "experts of a token")
          .integer("ranks_per_host", &P::ranks_per_host, {1, 1 << 20},
                   "so many ranks behind each other are on a host")
          .integer("host_limit", &P::host_limit, {0, 1 << 20},
                   "a token's experts are on so many hosts at most (DeepSeek-V3: 4); 0: any number")
          .integer("seed", &P::seed, {0, INT64_MAX}, "of the tokens' experts; 0: the run's --seed");
  return p;
}

const ConfigNode& tokens_node(const ConfigNode& section) {
  const ConfigNode* node = section.is_map() ? section.find("tokens") : nullptr;
  return node == nullptr ? section : *node;
}

TokenRouter::TokenRouter(const TokenRoutingParameters& parameters, std::uint32_t members, std::uint64_t seed,
                         const ConfigNode& where)
    : parameters_(parameters),
      members_(members),
      per_host_(static_cast<std::uint32_t>(std::min<std::int64_t>(parameters.ranks_per_host, members))),
      seed_(parameters.seed == 0 ? seed : static_cast<std::uint64_t>(parameters.seed)) {
  if (parameters.experts % members != 0) {
    where.fail("experts: " + std::to_string(parameters.experts) + " cannot be dealt out evenly to " +
               std::to_string(members) + " ranks");
  }
  each_ = static_cast<std::uint32_t>(parameters.experts / members);
  // Where the last host has fewer ranks it may be among those chosen.
  const std::uint32_t rest = members % per_host_;
  const std::int64_t limit =
      parameters.host_limit == 0 ? hosts() : std::min<std::int64_t>(parameters.host_limit, hosts());
  const std::int64_t least = (limit * per_host_ - (rest == 0 ? 0 : per_host_ - rest)) * each_;
  if (parameters.top_k > least) {
    where.fail("top_k: " + std::to_string(parameters.top_k) + " of a token where it may choose among " +
               std::to_string(least) + " experts");
  }
  parameters_.host_limit = limit;
}

std::vector<std::uint32_t> TokenRouter::experts_of(std::uint32_t member) const {
  RandomStream random(seed_, "workload.tokens", member);
  const auto experts = static_cast<std::uint32_t>(parameters_.experts);
  const auto top_k = static_cast<std::size_t>(parameters_.top_k);
  std::vector<std::uint32_t> chosen;
  chosen.reserve(static_cast<std::size_t>(parameters_.per_rank) * top_k);
  std::vector<Score> scores, best;
  std::vector<bool> allowed;
  for (std::int64_t token = 0; token < parameters_.per_rank; ++token) {
    scores.clear();
    best.assign(hosts(), {});
    for (std::uint32_t host = 0; host < hosts(); ++host) best[host].of = host;
    for (std::uint32_t expert = 0; expert < experts; ++expert) {
      scores.push_back({random.bits(), expert});
      std::uint64_t& highest = best[host_of(member_of(expert))].score;
      highest = std::max(highest, scores.back().score);
    }
    if (parameters_.host_limit < hosts()) {
      keep_best(best, static_cast<std::size_t>(parameters_.host_limit));
      allowed.assign(hosts(), false);
      for (const Score& host : best) allowed[host.of] = true;
      std::erase_if(scores, [&](const Score& score) { return !allowed[host_of(member_of(score.of))]; });
    }
    keep_best(scores, top_k);
    for (const Score& score : scores) chosen.push_back(score.of);
  }
  return chosen;
}

BlockCounts TokenRouter::counts() const {
  std::vector<Bytes> rows(std::size_t{members_} * members_, 0);
  TokenBytes tokens{parameters_.bytes, per_host_, rows,
                    std::vector<Bytes>(std::size_t{members_} * hosts(), 0)};
  const auto top_k = static_cast<std::size_t>(parameters_.top_k);
  for (std::uint32_t member = 0; member < members_; ++member) {
    Seen members(members_), hosts_seen(hosts());
    const std::vector<std::uint32_t> experts = experts_of(member);
    for (std::size_t i = 0; i < experts.size(); ++i) {
      if (i % top_k == 0) {
        members.next();
        hosts_seen.next();
      }
      const std::uint32_t to = member_of(experts[i]);
      tokens.copies[std::size_t{member} * members_ + to] += parameters_.bytes;
      if (members.is_new(to)) rows[std::size_t{member} * members_ + to] += parameters_.bytes;
      if (hosts_seen.is_new(host_of(to)))
        tokens.to_hosts[std::size_t{member} * hosts() + host_of(to)] += parameters_.bytes;
    }
  }
  return {members_, std::move(rows), std::move(tokens)};
}

}  // namespace netsim
