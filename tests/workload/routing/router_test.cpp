// Tests tokens of collectives. The router chooses as the section states: a given number of experts for a
// token, in a limited number of groups, all equally likely. The counts are those of its choice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/workload/routing/router.h"
#include "sim/workload/routing/token_section.h"

namespace netsim::router_test {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TokenSection section(const std::string& text) {
  return token_section_parameters().parse(parse_config("{" + text + "}", "test.yaml"));
}
BlockCounts counts_of(const std::string& text, std::uint32_t members) {
  return count_tokens(section(text), members, ConfigNode());
}
constexpr const char* kChance = "router: {kind: zipf, exponent: 0}";

TEST(TokenSection, CountsWhatTheRouterChose) {
  const std::string text =
      "per_rank: 50, bytes: 100 B, ranks_per_host: 4, experts: {count: 40, top_k: 5, groups: 8, group_limit: "
      "2}, router: {kind: zipf, exponent: 0.5, seed: 3}";
  const TokenSection tokens = section(text);
  const auto router = Registry<Router>::instance().create(tokens.router, "uniform");
  const RoutingShape shape = routing_shape(tokens.experts, 10, tokens.per_rank);
  const BlockCounts counts = counts_of(text, 10);
  ASSERT_EQ(counts.hosts(), 3U);  // the last one has two ranks
  Bytes busiest = 0;
  for (std::uint32_t member = 0; member < 10; ++member) {
    const auto experts = router->route(shape, 0, 0, member);
    std::vector<Bytes> rows(10, 0), copies(10, 0), to_hosts(3, 0);
    for (std::size_t token = 0; token < 50; ++token) {
      std::set<std::uint32_t> members, hosts, groups;
      for (std::size_t i = 0; i < 5; ++i) {
        const std::uint32_t to = experts[5 * token + i] / 4;
        copies[to] += 100;
        members.insert(to);
        hosts.insert(to / 4);
        groups.insert(experts[5 * token + i] / 5);
      }
      EXPECT_LE(groups.size(), 2U);
      for (const std::uint32_t to : members) rows[to] += 100;
      for (const std::uint32_t host : hosts) to_hosts[host] += 100;
    }
    for (std::uint32_t to = 0; to < 10; ++to) {
      EXPECT_EQ(counts.of(member, to), rows[to]);
      EXPECT_EQ(counts.copies(member, to), copies[to]);
    }
    for (std::uint32_t host = 0; host < 3; ++host) EXPECT_EQ(counts.to_host(member, host), to_hosts[host]);
    busiest = std::max(busiest, to_hosts[0] + to_hosts[1] + to_hosts[2]);
  }
  EXPECT_EQ(counts.busiest(), busiest);
  EXPECT_EQ(counts.tokens().token, 100);
}

// For k experts drawn without repetition from E on m equal places, m (1 - C(E - E/m, k) / C(E, k)) places are
// hit on average.
double places_hit(double experts, double places, int k) {
  double missed = 1;
  for (int i = 0; i < k; ++i) missed *= (experts - experts / places - i) / (experts - i);
  return places * (1 - missed);
}

TEST(TokenSection, LoadsExpertsAlikeButForChance) {
  const BlockCounts counts = counts_of(kChance, 32);
  const double all = 32 * 4096.0 * 7392;
  double ranks = 0, hosts = 0, copies = 0;
  for (std::uint32_t from = 0; from < 32; ++from) {
    for (std::uint32_t to = 0; to < 32; ++to) {
      ranks += static_cast<double>(counts.of(from, to));
      copies += static_cast<double>(counts.copies(from, to));
    }
    for (std::uint32_t host = 0; host < 4; ++host) hosts += static_cast<double>(counts.to_host(from, host));
  }
  EXPECT_DOUBLE_EQ(copies / all, 8);
  EXPECT_NEAR(ranks / all, places_hit(256, 32, 8), 0.02);
  EXPECT_NEAR(hosts / all, places_hit(256, 4, 8), 0.02);
}

// Random scores of all experts; the groups with the highest ones; the best experts in these: as DeepEP's test
// chooses, written out.
TEST(Routers, ChooseTheBestExpertsOfTheBestGroups) {
  constexpr std::uint32_t kTokens = 4000, kExperts = 64, kGroups = 8, kLimit = 4, kTop = 8;
  std::map<std::size_t, double> expected, chosen;  // by groups that a token reaches, tokens
  std::uint64_t state = 88172645463325252ULL;
  const auto next = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
  };
  for (std::uint32_t token = 0; token < kTokens; ++token) {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> experts, groups(kGroups, {0, 0});
    for (std::uint32_t e = 0; e < kExperts; ++e) {
      experts.emplace_back(next(), e);
      auto& group = groups[e / (kExperts / kGroups)];
      group = std::max(group, {experts.back().first, e / (kExperts / kGroups)});
    }
    std::sort(groups.rbegin(), groups.rend());
    std::set<std::uint32_t> allowed, reached;
    for (std::uint32_t g = 0; g < kLimit; ++g) allowed.insert(groups[g].second);
    std::sort(experts.rbegin(), experts.rend());
    std::uint32_t taken = 0;
    for (const auto& [score, e] : experts) {
      if (taken == kTop || allowed.count(e / (kExperts / kGroups)) == 0) continue;
      reached.insert(e / (kExperts / kGroups));
      ++taken;
    }
    ++expected[reached.size()];
  }
  const auto router =
      Registry<Router>::instance().create(parse_config("{kind: zipf, exponent: 0}", "test.yaml"), "uniform");
  RoutingShape shape;
  shape.tokens = kTokens;
  shape.experts = kExperts;
  shape.top_k = kTop;
  shape.groups = kGroups;
  shape.group_limit = kLimit;
  const auto experts = router->route(shape, 0, 0, 0);
  for (std::uint32_t token = 0; token < kTokens; ++token) {
    std::set<std::uint32_t> reached;
    for (std::uint32_t i = 0; i < kTop; ++i)
      reached.insert(experts[std::size_t{token} * kTop + i] / (kExperts / kGroups));
    ++chosen[reached.size()];
  }
  for (const std::size_t groups : {2U, 3U, 4U})  // of 4,000: five standard errors are 158 at most
    EXPECT_NEAR(chosen[groups], expected[groups], 160) << groups;
  EXPECT_GT(expected[4], 3000);
}

TEST(TokenSection, DependsOnTheRoutersSeedAlone) {
  const auto of = [](const std::string& seed) {
    return counts_of("per_rank: 20, router: {kind: zipf, exponent: 0, seed: " + seed + "}", 64);
  };
  EXPECT_EQ(of("1"), of("1"));
  EXPECT_NE(of("1"), of("2"));
  EXPECT_NE(of("1").digest(), of("2").digest());
}

// Where every expert gets as many, so does every rank, and every host.
TEST(TokenSection, IsEvenUnlessSaidOtherwise) {
  const BlockCounts counts = counts_of("per_rank: 64, bytes: 1 B", 32);
  for (std::uint32_t from = 0; from < 32; ++from) {
    for (std::uint32_t to = 0; to < 32; ++to) EXPECT_EQ(counts.copies(from, to), 64 * 8 / 32);
  }
}

TEST(TokenSection, RefusesWhatCannotBe) {
  const auto refuses = [](const std::string& text, std::uint32_t members, const char* why) {
    EXPECT_THAT([&] { counts_of(text, members); }, ThrowsMessage<ConfigError>(HasSubstr(why))) << text;
  };
  EXPECT_NO_THROW(counts_of("experts: {count: 64, top_k: 32, groups: 8, group_limit: 4}", 64));
  refuses("per_rank: 1", 48, "256 experts cannot be divided evenly among 48 ranks");
  refuses("experts: {count: 64, top_k: 33, groups: 8, group_limit: 4}", 64, "hold the 33 experts of a token");
  refuses("experts: {count: 64, top_k: 65}", 64, "cannot go to 65 of 64 experts");
  refuses("experts: {count: 0}", 64, "tokens need experts");
  refuses("router: drift", 64, "which a collective does not have");
}

}  // namespace
}  // namespace netsim::router_test
