// Does the router choose as it says: so many experts of a token, on so many hosts at most, all alike but for
// chance; and are its counts those of its choice?
#include "sim/workload/traffic/token_routing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "sim/core/errors.h"

namespace netsim {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TokenRouter router_of(const TokenRoutingParameters& parameters, std::uint32_t members,
                      std::uint64_t seed = 1) {
  return {parameters, members, seed, ConfigNode()};
}

TokenRoutingParameters tokens(std::int64_t per_rank, std::int64_t host_limit) {
  TokenRoutingParameters p;
  p.per_rank = per_rank;
  p.host_limit = host_limit;
  return p;
}

TEST(TokenRouter, ChoosesDifferentExpertsOnFewHosts) {
  for (const std::uint32_t members : {8U, 32U, 64U, 256U}) {
    for (const std::int64_t limit : {0, 1, 4}) {
      const TokenRouter router = router_of(tokens(200, limit), members);
      const auto experts = router.experts_of(members - 1);
      ASSERT_EQ(experts.size(), 200U * 8);
      for (std::size_t token = 0; token < 200; ++token) {
        std::set<std::uint32_t> chosen, hosts;
        for (std::size_t i = 0; i < 8; ++i) {
          const std::uint32_t expert = experts[8 * token + i];
          ASSERT_LT(expert, 256U);
          chosen.insert(expert);
          hosts.insert(router.host_of(router.member_of(expert)));
        }
        EXPECT_EQ(chosen.size(), 8U);
        EXPECT_LE(hosts.size(), limit == 0 ? members / 8 : static_cast<std::size_t>(limit));
      }
    }
  }
}

TEST(TokenRouter, CountsWhatItChose) {
  TokenRoutingParameters p = tokens(50, 2);
  p.bytes = 100;
  p.ranks_per_host = 4;
  p.experts = 40;
  p.top_k = 5;
  const TokenRouter router = router_of(p, 10);  // the last host has two
  const BlockCounts counts = router.counts();
  ASSERT_EQ(router.hosts(), 3U);
  Bytes busiest = 0;
  for (std::uint32_t member = 0; member < 10; ++member) {
    const auto experts = router.experts_of(member);
    std::vector<Bytes> rows(10, 0), copies(10, 0), to_hosts(3, 0);
    for (std::size_t token = 0; token < 50; ++token) {
      std::set<std::uint32_t> members, hosts;
      for (std::size_t i = 0; i < 5; ++i) {
        const std::uint32_t to = experts[5 * token + i] / 4;
        copies[to] += 100;
        members.insert(to);
        hosts.insert(to / 4);
      }
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

// Of k experts drawn without repetition from E on m equal places, m (1 - C(E - E/m, k) / C(E, k)) places are
// hit in the mean.
double places_hit(double experts, double places, int k) {
  double missed = 1;
  for (int i = 0; i < k; ++i) missed *= (experts - experts / places - i) / (experts - i);
  return places * (1 - missed);
}

TEST(TokenRouter, LoadsExpertsAlikeButForChance) {
  const BlockCounts counts = router_of(tokens(4096, 0), 32).counts();
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

TEST(TokenRouter, DependsOnTheSeedAlone) {
  const auto of = [](std::int64_t own, std::uint64_t run) {
    TokenRoutingParameters p = tokens(20, 4);
    p.seed = own;
    return router_of(p, 64, run).counts();
  };
  EXPECT_EQ(of(0, 1), of(0, 1));
  EXPECT_NE(of(0, 1), of(0, 2));
  EXPECT_EQ(of(3, 1), of(3, 2));
  EXPECT_NE(of(0, 1).digest(), of(0, 2).digest());
}

TEST(TokenRouter, RefusesWhatCannotBe) {
  const auto make = [](std::int64_t experts, std::int64_t top_k, std::int64_t limit, std::uint32_t members) {
    TokenRoutingParameters p = tokens(1, limit);
    p.experts = experts;
    p.top_k = top_k;
    router_of(p, members);
  };
  EXPECT_NO_THROW(make(64, 32, 4, 64));
  EXPECT_THAT([&] { make(256, 8, 4, 48); },
              ThrowsMessage<ConfigError>(HasSubstr("256 cannot be dealt out evenly to 48 ranks")));
  EXPECT_THAT([&] { make(64, 33, 4, 64); },
              ThrowsMessage<ConfigError>(HasSubstr("top_k: 33 of a token where it may choose among 32")));
  EXPECT_THAT([&] { make(10, 4, 1, 10); },  // 8 ranks and 2: the last host has two experts
              ThrowsMessage<ConfigError>(HasSubstr("choose among 2 experts")));
}

}  // namespace
}  // namespace netsim
