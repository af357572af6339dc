// The queues of a port whose discipline schedules them itself.
#include "sim/network/port_queues.h"

#include <gtest/gtest.h>

#include <vector>

namespace netsim::port_queues_test {
namespace {

// Two classes in two virtual channels, with 40 queues each: more queues than a word of bits has.
class PortQueuesTest : public testing::Test {
 protected:
  PortQueuesTest() {
    packets_.enable_tags();
    queues_.set_packets(packets_);
  }
  std::uint32_t packet(std::uint32_t bytes, std::uint64_t flow = 0) {
    const std::uint32_t index = packets_.allocate();
    packets_[index] = {};
    packets_[index].bytes = bytes;
    packets_.tag(index).flow = flow;
    return index;
  }
  std::vector<std::uint32_t> sendable() const {
    std::vector<std::uint32_t> found;
    queues_.for_each([&](std::uint32_t queue) { found.push_back(queue); });
    return found;
  }

  PacketArena packets_;
  PortQueues queues_{2, 4, 40};
};

TEST_F(PortQueuesTest, KeepTheOrderOfEachQueueAndItsBytes) {
  const std::uint32_t a = packet(100, 7), b = packet(200, 8), c = packet(300, 9);
  queues_.push(5, a);
  queues_.push(5, b);
  queues_.push(6, c);
  EXPECT_EQ(queues_.size(), 160u);
  EXPECT_EQ(queues_.packets(5), 2u);
  EXPECT_EQ(queues_.bytes(5), 300);
  EXPECT_EQ(queues_.head(5).bytes, 100);
  EXPECT_EQ(queues_.head(5).tag.flow, 7u);
  EXPECT_EQ(queues_.pop(5), a);
  EXPECT_EQ(queues_.front(5), b);
  EXPECT_EQ(queues_.pop(5), b);
  EXPECT_EQ(queues_.bytes(5), 0);
  EXPECT_EQ(queues_.front(5), kNoIndex);
  queues_.push(5, a);  // a queue that was empty
  EXPECT_EQ(queues_.pop(5), a);
  EXPECT_EQ(queues_.pop(6), c);
  EXPECT_TRUE(sendable().empty());
}

TEST_F(PortQueuesTest, FindWhatMaySendInTurn) {
  for (const std::uint32_t queue : {3U, 63U, 64U, 130U}) queues_.push(queue, packet(1));
  EXPECT_EQ(sendable(), (std::vector<std::uint32_t>{3, 63, 64, 130}));
  EXPECT_EQ(queues_.next(0), 3u);
  EXPECT_EQ(queues_.next(4), 63u);
  EXPECT_EQ(queues_.next(64), 64u);
  EXPECT_EQ(queues_.next(131), 3u) << "from the beginning again";
  queues_.set_ready(0b1001);  // data queues 1 (40 to 79) and 2 are held back
  EXPECT_EQ(sendable(), (std::vector<std::uint32_t>{3, 130}));
  EXPECT_EQ(queues_.next(4), 130u);
  EXPECT_FALSE(queues_.may_send(63));
  EXPECT_FALSE(queues_.may_send(4)) << "empty";
}

TEST_F(PortQueuesTest, NameTheClassOfEachQueue) {
  EXPECT_EQ(queues_.traffic_class(39), 0u);
  EXPECT_EQ(queues_.traffic_class(40), 1u);
  EXPECT_EQ(queues_.traffic_class(80), 0u) << "class 0 in channel 1";
  EXPECT_EQ(queues_.traffic_class(159), 1u);
}

}  // namespace
}  // namespace netsim::port_queues_test
