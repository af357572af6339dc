// Do the collectives of a grouped call share the channels of one kernel, each with as many as it has of their
// traffic?
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/collectives/execution/executor.h"
#include "tests/collectives/fake_endpoint.h"
#include "tests/collectives/packet_collectives.h"

namespace netsim::grouped_test {
namespace {

using test::request_of;
using ::testing::Each;
using ::testing::SizeIs;

// All-reduces with given numbers of bytes in one call, of all GPUs of two hosts of `per_host`, and the
// channels of each.
struct Call {
  Call(std::uint32_t per_host, const std::vector<Bytes>& sizes, const std::string& section,
       bool grouped = true)
      : members(everyone(2 * per_host)),
        endpoint(loop, 2 * per_host, per_host, {}, {8 * kGbps, 1000}),
        done(loop),
        executor(Executor::create(loop, endpoint, parse_config(section, "test.yaml"), 100'000)) {
    executor->set_listener(&done);
    Bytes all = 0, before = 0;
    for (const Bytes bytes : sizes) all += traffic_of(CollectiveKind::all_reduce, bytes);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      CommunicationRequest request = request_of(CollectiveKind::all_reduce, members, sizes[i]);
      request.communication = i;
      if (grouped) request.grouped = {before, all};
      before += traffic_of(CollectiveKind::all_reduce, sizes[i]);
      chosen.push_back(executor->choice(request).channels);
      for (request.index = 0; request.index < members.size(); ++request.index) {
        executor->for_each_batch(request.index, request, [&](const MessageBatch& batch) {
          predicted += batch.bytes * static_cast<Bytes>(batch.count);
        });
        executor->start(request.index, request);
      }
    }
    loop.run();
    channels.resize(sizes.size());
    for (const auto& [message, time] : endpoint.sent) {
      channels[message.communication].insert(message.traits.channel);
      sent += message.bytes;
    }
  }
  EventLoop loop;
  std::vector<GpuId> members;
  FakeEndpoint endpoint;
  Completions done;
  std::unique_ptr<Executor> executor;
  std::vector<std::uint32_t> chosen;
  std::vector<std::set<std::uint32_t>> channels;
  Bytes predicted = 0, sent = 0;
};

TEST(GroupedCalls, OfEqualOnesEachHasHalfOfTheChannels) {
  const Call alone(8, {64 * kMebibyte}, "{}");
  EXPECT_THAT(alone.channels, Each(SizeIs(32)));
  for (const char* section : {"{}", "{all_reduce: tree, scale_out_channels: 4}"}) {
    const Call call(8, {64 * kMebibyte, 64 * kMebibyte}, section);
    EXPECT_EQ(call.chosen, (std::vector<std::uint32_t>{16, 16})) << section;
    EXPECT_THAT(call.channels, Each(SizeIs(16)));
    std::set<std::uint32_t> all = call.channels[0];
    all.insert(call.channels[1].begin(), call.channels[1].end());
    EXPECT_EQ(all.size(), 32U) << "no channel has two";
    EXPECT_EQ(call.done.done.size(), 32U);
  }
  const Call apart(8, {64 * kMebibyte, 64 * kMebibyte}, "{}", false);
  EXPECT_THAT(apart.channels, Each(SizeIs(32)));
}

// A channel moves 32 KiB at least: of small ones many share none.
TEST(GroupedCalls, SmallOnesTakeAChannelEach) {
  const Call call(4, {16 * kKibibyte, 16 * kKibibyte, 16 * kKibibyte}, "{}");
  EXPECT_EQ(call.chosen, (std::vector<std::uint32_t>{1, 1, 1}));
  std::set<std::uint32_t> all;
  for (const auto& channels : call.channels) all.insert(channels.begin(), channels.end());
  EXPECT_EQ(all.size(), 3U);
}

// Whatever their sizes: channels in order, each has one at least, all end, and what is predicted is sent.
TEST(GroupedCalls, ShareOutAllChannels) {
  EXPECT_TRUE(rc::check("channels", [] {
    const auto count = *rc::gen::inRange<std::size_t>(1, 6);
    const auto sizes = *rc::gen::container<std::vector<Bytes>>(count, rc::gen::inRange<Bytes>(1, 4'000'000));
    const std::string algorithm = *rc::gen::element<std::string>("ring", "tree", "double_binary_tree");
    const Call call(4, sizes, "{all_reduce: " + algorithm + "}");
    RC_ASSERT(call.done.done.size() == count * 8);
    RC_ASSERT(call.executor->waiting(1).empty());
    RC_ASSERT(call.predicted == call.sent);
    for (const std::uint32_t channels : call.chosen) RC_ASSERT(channels >= 1);
  }));
}

}  // namespace
}  // namespace netsim::grouped_test
