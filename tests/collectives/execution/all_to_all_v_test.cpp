// Tests that an all_to_all_v moves exactly the blocks of its counts, in the time of the busiest port. Tests
// also that a barrier releases no rank before the last has arrived, at the cost of its parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>

#include "sim/collectives/block_counts.h"
#include "sim/collectives/execution/executor.h"
#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "tests/collectives/fake_endpoint.h"
#include "tests/collectives/packet_collectives.h"

namespace netsim::all_to_all_v_test {
namespace {

using test::PacketCollectives;
using test::request_of;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr Time kAlpha = 5 * kMicrosecond;
constexpr BitRate kRate = 8 * kGbps;  // 1 ns a byte
constexpr const char* kNoLatencies =
    "base_latency_ring: 0\nbase_latency_tree: 0\nhop_latency_net_ring: 0\nhop_latency_nvlink_ring: 0\n"
    "hop_latency_net_tree: 0\nhop_latency_nvlink_tree: 0\n";

BlockCounts counts_of(std::uint32_t members,
                      const std::function<Bytes(std::uint32_t, std::uint32_t)>& block) {
  std::vector<Bytes> rows;
  for (std::uint32_t source = 0; source < members; ++source) {
    for (std::uint32_t destination = 0; destination < members; ++destination)
      rows.push_back(block(source, destination));
  }
  return {members, std::move(rows)};
}

// One communication of GPUs 0, 1, ... with a port each to send on.
struct Played {
  Played(const BlockCounts* counts, CommunicationRequest request, const std::string& section,
         std::uint32_t per_host = 1)
      : members(everyone(static_cast<std::uint32_t>(request.members->size()))),
        endpoint(loop, static_cast<std::uint32_t>(members.size()), per_host, {kRate, kAlpha},
                 {kRate, kAlpha}),
        done(loop),
        executor(Executor::create(loop, endpoint, parse_config(section, "test.yaml"), 100'000)) {
    executor->set_listener(&done);
    request.members = &members;
    request.counts = counts;
    if (counts != nullptr) request.bytes = counts->busiest();
    for (request.index = 0; request.index < members.size(); ++request.index) {
      executor->start(members[request.index], request);
      promised.push_back(executor->scale_out_bytes(members[request.index], request));
    }
    loop.run();
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, Bytes> moved() const {
    std::map<std::pair<std::uint32_t, std::uint32_t>, Bytes> bytes;
    for (const auto& [message, time] : endpoint.sent) {
      if (!message.credit) bytes[{message.source, message.destination}] += message.bytes;
    }
    return bytes;
  }

  EventLoop loop;
  std::vector<GpuId> members;
  FakeEndpoint endpoint;
  Completions done;
  std::unique_ptr<Executor> executor;
  std::vector<Bytes> promised;
};

TEST(AllToAllV, MovesEachBlockOnceAndWhole) {
  EXPECT_TRUE(rc::check("bytes between any two ranks are the counts", [] {
    const auto ranks = *rc::gen::inRange<std::uint32_t>(2, 12);
    const BlockCounts counts = counts_of(ranks, [&](std::uint32_t, std::uint32_t) -> Bytes {
      return *rc::gen::oneOf(rc::gen::just<Bytes>(0), rc::gen::inRange<Bytes>(1, 10),
                             rc::gen::inRange<Bytes>(1, 100'000), rc::gen::inRange<Bytes>(1, 3'000'000));
    });
    RC_PRE(counts.busiest() > 0);
    const auto members = everyone(ranks);
    const std::string algorithm = *rc::gen::element<std::string>("direct", "pairwise");
    const std::string section =
        "all_to_all_v: " + algorithm +
        "\nslice: " + *rc::gen::element<std::string>("1 KiB", "64 KiB", "1 MiB") +
        "\nleast_slice: 1 KiB\nslices_per_chunk: " + *rc::gen::element<std::string>("1", "2") +
        "\nscale_out_channels: " + *rc::gen::element<std::string>("1", "4") + "\n";
    const auto per_host = *rc::gen::inRange<std::uint32_t>(1, 4);
    const Played played(&counts, request_of(CollectiveKind::all_to_all_v, members, 1), section, per_host);
    RC_ASSERT(played.done.done.size() == ranks);
    RC_ASSERT(played.executor->waiting(1).empty());
    const auto moved = played.moved();
    std::vector<Bytes> out(ranks, 0);
    for (std::uint32_t source = 0; source < ranks; ++source) {
      for (std::uint32_t destination = 0; destination < ranks; ++destination) {
        const auto block = moved.find({source, destination});
        const Bytes bytes = block == moved.end() ? 0 : block->second;
        RC_ASSERT(bytes == (source == destination ? 0 : counts.of(source, destination)));
      }
    }
    for (const auto& [message, time] : played.endpoint.sent) {
      if (played.endpoint.reach(message.source, message.destination) == Reach::scale_out)
        out[message.source] += message.bytes;
    }
    RC_ASSERT(out == played.promised);
  }));
}

// Whatever the counts: the busiest port is never idle until it has sent all.
TEST(AllToAllV, DirectTakesTheTimeOfTheBusiestPort) {
  RandomStream random(7, "counts");
  for (const std::uint32_t ranks : {2U, 3U, 8U, 16U, 33U}) {
    const BlockCounts counts = counts_of(ranks, [&](std::uint32_t, std::uint32_t) {
      return random.below(3) == 0 ? 0 : static_cast<Bytes>(random.below(5'000'000));
    });
    Bytes most = 0;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      Bytes sum = 0;
      for (std::uint32_t other = 0; other < ranks; ++other) sum += other == rank ? 0 : counts.of(rank, other);
      most = std::max(most, sum);
    }
    const auto members = everyone(ranks);
    const Played played(&counts, request_of(CollectiveKind::all_to_all_v, members, 1),
                        kNoLatencies + std::string("slots: 0\nslices_per_chunk: 1\nscale_out_channels: 1\n"));
    EXPECT_EQ(played.done.last(), kAlpha + most * kNanosecond) << ranks;
  }
}

constexpr const char* kStar =
    "topology: {kind: star, hosts: 8, rate: 100 Gbps}\nhost: single_nic\nhosts: 8\n";

// Over packets the port of a rank that gets much counts as well: 7 ranks send it what one could.
TEST(AllToAllV, CountsWhatPortsGet) {
  const auto members = everyone(8);
  const auto time_of = [&](const BlockCounts& counts) {
    PacketCollectives star(
        kStar +
        std::string("transport: {congestion_control: none, mtu: 4096 B, acknowledge: {every: 64}}\n"));
    auto request = request_of(CollectiveKind::all_to_all_v, members, counts.busiest());
    request.counts = &counts;
    const Time end = star.run(request);
    Bytes all = 0;
    for (std::uint32_t rank = 0; rank < 8; ++rank) {
      for (std::uint32_t other = 0; other < 8; ++other) all += other == rank ? 0 : counts.of(rank, other);
    }
    EXPECT_GE(star.packets.network->counters().bytes_delivered, all);
    return static_cast<double>(end);
  };
  static constexpr Bytes kBlock = 14 * kMegabyte;
  // 82 bytes of headers, preamble and gap beside 4,096 of payload.
  const double wire = static_cast<double>(transmission_time(7 * kBlock, 100 * kGbps)) * 4178 / 4096;
  const double in = time_of(counts_of(8, [](auto, auto to) { return to == 0 ? kBlock : 0; }));
  const double out = time_of(counts_of(8, [](auto from, auto) { return from == 0 ? kBlock : 0; }));
  const double each = time_of(counts_of(8, [](auto, auto) { return kBlock; }));
  for (const double time : {in, out, each}) {
    EXPECT_GE(time, wire);
    EXPECT_LE(time, 1.02 * wire);  // latencies, and credits of the other direction
  }
}

TEST(AllToAllV, ARankWithoutBlocksIsDoneAtOnce) {
  const BlockCounts counts = counts_of(
      4, [](std::uint32_t from, std::uint32_t to) -> Bytes { return from == 1 && to == 2 ? 1000 : 0; });
  const auto members = everyone(4);
  for (const char* algorithm : {"direct", "pairwise"}) {
    const Played played(
        &counts, request_of(CollectiveKind::all_to_all_v, members, 1),
        kNoLatencies + ("all_to_all_v: " + std::string(algorithm)) + "\nslots: 0\nscale_out_channels: 1\n");
    EXPECT_EQ(played.done.of(0, 5).ended, 0) << algorithm;
    EXPECT_EQ(played.done.of(3, 5).ended, 0) << algorithm;
    EXPECT_EQ(played.done.of(2, 5).ended, kAlpha + 1000 * kNanosecond) << algorithm;
    EXPECT_EQ(played.endpoint.sent.size(), 1U) << algorithm;
  }
}

// As the lockstep of pairwise exchanges has it: each step takes what its largest block takes.
TEST(AllToAllV, PairwiseWaitsForTheLargestBlockOfAStep) {
  const auto members = everyone(4);
  const BlockCounts even = counts_of(4, [](auto, auto) { return Bytes{1000}; });
  const Played played(&even, request_of(CollectiveKind::all_to_all_v, members, 1),
                      kNoLatencies + std::string("all_to_all_v: pairwise\nslots: 0\nslices_per_chunk: 1\n"
                                                 "scale_out_channels: 1\n"));
  EXPECT_EQ(played.done.last(), 3 * (kAlpha + 1000 * kNanosecond));
}

// ---- Barriers

TEST(Barrier, LetsNobodyGoBeforeTheLastHasCome) {
  for (const std::string algorithm : {"ring", "bruck", "recursive_doubling", "double_binary_tree"}) {
    for (const std::uint32_t ranks : {2U, 3U, 8U, 13U}) {
      for (std::uint32_t late = 0; late < ranks; ++late) {
        EventLoop loop;
        FakeEndpoint endpoint(loop, ranks, 1, {kRate, kAlpha}, {kRate, kAlpha});
        Completions done(loop);
        const auto executor =
            Executor::create(loop, endpoint, parse_config("barrier: " + algorithm, ""), 100'000);
        executor->set_listener(&done);
        const auto members = everyone(ranks);
        auto request = request_of(CollectiveKind::barrier, members, kBarrierBytes);
        for (request.index = 0; request.index < ranks; ++request.index) {
          if (request.index != late) executor->start(request.index, request);
        }
        loop.run();
        EXPECT_TRUE(done.done.empty()) << algorithm << " of " << ranks << " without " << late;
        request.index = late;
        executor->start(late, request);
        loop.run();
        EXPECT_EQ(done.done.size(), ranks) << algorithm;
      }
    }
  }
}

TEST(Barrier, IsAnAllReduceOfOneElementUnlessToldOtherwise) {
  const auto members = everyone(8);
  const std::string latencies = kNoLatencies;
  const auto barrier = request_of(CollectiveKind::barrier, members, kBarrierBytes);
  const auto sum = request_of(CollectiveKind::all_reduce, members, kBarrierBytes);
  for (const std::string all_reduce : {"ring", "halving_doubling"}) {
    const std::string section = latencies + "all_reduce: " + all_reduce + "\n";
    EXPECT_EQ(Played(nullptr, barrier, section).done.last(), Played(nullptr, sum, section).done.last());
  }
  const Played own(nullptr, barrier, latencies + "barrier: recursive_doubling\n");
  EXPECT_EQ(own.executor->choice(barrier).algorithm, "recursive_doubling");
  EXPECT_EQ(own.executor->choice(sum).algorithm, "ring");
}

// ceil(log2 p) messages of a flag one after the other.
TEST(Barrier, DisseminationTakesTheLogarithmOfSteps) {
  for (const auto& [ranks, steps] : {std::pair{2U, 1}, {3U, 2}, {8U, 3}, {9U, 4}, {64U, 6}}) {
    const auto members = everyone(ranks);
    const Played played(nullptr, request_of(CollectiveKind::barrier, members, kBarrierBytes),
                        kNoLatencies + std::string("barrier: bruck\nslots: 0\nscale_out_channels: 1\n"));
    EXPECT_GE(played.done.last(), steps * kAlpha) << ranks;
    EXPECT_LE(played.done.last(), steps * (kAlpha + 4 * kNanosecond)) << ranks;
  }
}

TEST(Barrier, NeedsAnAlgorithmThatMakesAllWait) {
  const auto make = [](const char* section) {
    EventLoop loop;
    FakeEndpoint endpoint(loop, 2, 1, {}, {});
    return Executor::create(loop, endpoint, parse_config(section, "test.yaml"), 100'000);
  };
  EXPECT_THAT([&] { make("barrier: pairwise"); },
              ThrowsMessage<ConfigError>(HasSubstr("'pairwise' does not do barrier (allowed: ")));
  EXPECT_NO_THROW(make("barrier: tree"));
}

}  // namespace
}  // namespace netsim::all_to_all_v_test
