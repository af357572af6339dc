// Rendezvous: members continue together, whatever else waits.
#include "sim/jobs/rendezvous.h"

#include <gtest/gtest.h>

namespace netsim::rendezvous_test {
namespace {

std::vector<std::uint32_t> ranks_of(const std::vector<MemberArrival>& arrivals) {
  std::vector<std::uint32_t> ranks;
  for (const MemberArrival& arrival : arrivals) ranks.push_back(arrival.rank);
  return ranks;
}

TEST(Rendezvous, ReturnsAllArrivalsWithTheLast) {
  Rendezvous rendezvous;
  EXPECT_TRUE(rendezvous.add(7, {0, 2, 5}, 3).empty());
  EXPECT_TRUE(rendezvous.add(8, {0, 9, 1}, 2).empty());  // another communication
  EXPECT_TRUE(rendezvous.add(7, {0, 0, 4}, 3).empty());
  const std::vector<MemberArrival> all = rendezvous.add(7, {0, 1, 3}, 3);
  EXPECT_EQ(ranks_of(all), (std::vector<std::uint32_t>{2, 0, 1}));
  EXPECT_EQ(all[0].slot, 5u);
  EXPECT_EQ(ranks_of(rendezvous.add(8, {0, 1, 1}, 2)), (std::vector<std::uint32_t>{9, 1}));
}

TEST(Rendezvous, ForgetsACommunicationThatIsComplete) {
  Rendezvous rendezvous;
  EXPECT_EQ(ranks_of(rendezvous.add(1, {0, 3, 0}, 1)), (std::vector<std::uint32_t>{3}));
  EXPECT_TRUE(rendezvous.add(1, {0, 4, 0}, 2).empty());
}

}  // namespace
}  // namespace netsim::rendezvous_test
