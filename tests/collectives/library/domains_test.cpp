// Are the hosts, domains and rails of a group's members found?
#include "sim/collectives/library/domains.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/collectives/fake_endpoint.h"

namespace netsim::domains_test {
namespace {

TEST(Domains, AreTheHostsInTheOrderOfTheirFirstMembers) {
  EventLoop loop;
  const FakeEndpoint endpoint(loop, 12, 4, {}, {});
  const std::vector<Domain> domains = domains_of({5, 0, 4, 1, 2}, endpoint);
  ASSERT_EQ(domains.size(), 2U);
  EXPECT_EQ(domains[0].places, (std::vector<std::uint32_t>{0, 2}));
  EXPECT_EQ(domains[1].places, (std::vector<std::uint32_t>{1, 3, 4}));
  EXPECT_EQ(sizes_of(domains), (DomainSizes{2, 3}));
  EXPECT_FALSE(follow_each_other(domains));
}

TEST(Domains, GiveEachMemberItsHostAndRail) {
  EventLoop loop;
  const FakeEndpoint endpoint(loop, 12, 4, {}, {});  // a NIC a GPU
  const std::vector<RankSite> expected{{0, 1}, {1, 0}, {0, 0}, {1, 3}, {2, 3}};
  EXPECT_EQ(sites_of({5, 0, 4, 3, 11}, endpoint), expected);
  EXPECT_EQ(device_number(endpoint, 11), 3U);
}

}  // namespace
}  // namespace netsim::domains_test
