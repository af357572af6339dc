// Tests which session serves a message through an aggregation group. When a link of a tree goes down, members
// may have sent different numbers of messages.
#include "sim/transport/connections/aggregation_table.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace netsim::aggregation_table_test {
namespace {

AggregationKey key_of(std::uint64_t communication) {
  return {.aggregation = 3, .use = AggregationUse::allreduce, .communication = communication, .tag = 1};
}

// Sends a member's message, on a new session if none is idle. Returns its session.
std::uint32_t send(AggregationTable& table, std::uint64_t communication, std::uint32_t member) {
  const AggregationKey key = key_of(communication);
  std::uint32_t session = table.find(key, member);
  if (session == kNone) {
    session = table.add(2);
    table.bind_new(session, key);
  }
  table.begin(session, member, 1);
  return session;
}

TEST(AggregationTable, IdleSessionsServeOtherCommunications) {
  AggregationTable table;
  EXPECT_EQ(send(table, 1, 0), 0U);
  EXPECT_EQ(send(table, 2, 0), 1U) << "session 0 has a message in flight";
  EXPECT_EQ(send(table, 1, 1), 0U);
  table.end(0, 2);
  EXPECT_TRUE(table.is_idle(0));
  EXPECT_EQ(send(table, 3, 1), 0U);
  EXPECT_EQ(send(table, 2, 1), 1U);
  EXPECT_EQ(send(table, 1, 1), 2U) << "its session serves another communication";
}

TEST(AggregationTable, AClosedSessionTakesWhatTheFirstMemberHadSent) {
  AggregationTable table;
  EXPECT_EQ(send(table, 1, 0), 0U);
  EXPECT_EQ(send(table, 1, 0), 0U);
  EXPECT_EQ(send(table, 1, 1), 0U);
  table.close([](std::uint32_t) { return true; });
  EXPECT_EQ(send(table, 1, 0), 1U);
  EXPECT_EQ(send(table, 1, 1), 0U) << "the other member's second message is there";
  EXPECT_EQ(send(table, 1, 1), 1U);
  table.end(0, 4);
  EXPECT_EQ(send(table, 2, 0), 2U) << "a closed session serves no other communication";
}

TEST(AggregationTable, SessionsOfOtherTreesStayOpen) {
  AggregationTable table;
  EXPECT_EQ(send(table, 1, 0), 0U);
  EXPECT_EQ(send(table, 2, 0), 1U);
  table.close([](std::uint32_t session) { return session == 1; });
  EXPECT_EQ(send(table, 1, 0), 0U);
  EXPECT_EQ(send(table, 2, 0), 2U);
}

TEST(AggregationTable, ARetiredSessionIsNotFound) {
  AggregationTable table;
  EXPECT_EQ(send(table, 1, 0), 0U);
  table.end(0, 1);
  table.retire(0);
  EXPECT_EQ(table.find(key_of(1), 0), kNone);
}

}  // namespace
}  // namespace netsim::aggregation_table_test
