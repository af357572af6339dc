// Tests that the executor runs plans as its header states. Covers exact times on ideal and simple networks,
// sizes, channels, slots, early and late ranks, several operations at once, wrong parameters and stall
// reports.
#include "sim/collectives/execution/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <memory>
#include <set>

#include "sim/collectives/algorithm.h"
#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/transport/ideal_endpoint.h"
#include "tests/collectives/fake_endpoint.h"
#include "tests/collectives/table_plan.h"

namespace netsim::executor_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr std::uint32_t kExecutorOrigins = 100'000;
constexpr std::uint32_t kTimerOrigin = 200'000;

// A loop, an endpoint, an executor and a listener; operations can be started at any time.
class Bench {
 public:
  EventLoop loop;
  std::unique_ptr<Endpoint> endpoint;
  FakeEndpoint* fake = nullptr;  // the endpoint, if it is one
  Completions recorder;
  std::unique_ptr<Executor> executor;

  Bench(std::uint32_t gpus, Time ideal_delay, const std::string& section = "")
      : endpoint(std::make_unique<IdealEndpoint>(loop, gpus, ideal_delay, 0)), recorder(loop) {
    finish_setup(section);
  }
  Bench(std::uint32_t gpus, std::uint32_t per_host, FakeEndpoint::Link up, FakeEndpoint::Link out,
        const std::string& section = "")
      : recorder(loop) {
    auto made = std::make_unique<FakeEndpoint>(loop, gpus, per_host, up, out);
    fake = made.get();
    endpoint = std::move(made);
    finish_setup(section);
  }

  void start_at(Time time, std::uint32_t gpu, const CommunicationRequest& request) {
    loop.schedule(time, timer_, EventKind::job, gpu, starts_.size());
    starts_.push_back(request);
  }
  // All members at once, at time 0.
  void start_all(CommunicationRequest request) {
    for (request.index = 0; request.index < request.members->size(); ++request.index) {
      start_at(0, (*request.members)[request.index], request);
    }
  }
  Time run() {
    loop.run();
    return recorder.last();
  }

 private:
  Origin timer_{kTimerOrigin};
  std::vector<CommunicationRequest> starts_;
  void finish_setup(const std::string& section) {
    executor = Executor::create(loop, *endpoint, parse_config(section, "test.yaml"), kExecutorOrigins);
    executor->set_listener(&recorder);
    loop.set_handler(
        EventKind::job,
        [](void* self, const Event& e) {
          Bench& bench = *static_cast<Bench*>(self);
          bench.executor->start(e.target, bench.starts_[e.argument]);
        },
        this);
  }
};

CommunicationRequest request_of(CollectiveKind kind, const std::vector<GpuId>& members, Bytes bytes,
                                std::uint64_t communication = 1) {
  CommunicationRequest request;
  request.kind = kind;
  request.members = &members;
  request.bytes = bytes;
  request.communication = communication;
  return request;
}

constexpr const char* kNoLatency =
    "{base_latency_ring: 0, base_latency_tree: 0, hop_latency_nvlink_ring: 0, hop_latency_nvlink_tree: 0, "
    "hop_latency_net_ring: 0, hop_latency_net_tree: 0";
std::string without_latency(const std::string& more) { return kNoLatency + more + "}"; }

// ---- Closed forms on the ideal network

struct Form {
  CollectiveKind kind;
  std::uint32_t per_rank;  // steps = per_rank * (p - 1)
};
class ClosedForm : public ::testing::TestWithParam<Form> {};

TEST_P(ClosedForm, OnTheIdealNetworkIsStepsTimesDelay) {
  for (const std::uint32_t p : {2U, 3U, 4U, 7U, 8U, 33U}) {
    for (const Time delay : {Time{0}, Time{1}, 5 * kMicrosecond}) {
      Bench bench(p, delay);
      const auto members = everyone(p);
      bench.start_all(request_of(GetParam().kind, members, 64 * kMebibyte));
      EXPECT_EQ(bench.run(), GetParam().per_rank * (p - 1) * delay) << p;
      EXPECT_EQ(bench.recorder.done.size(), p);
      EXPECT_THAT(bench.executor->waiting(10), IsEmpty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, ClosedForm,
    ::testing::Values(Form{CollectiveKind::all_reduce, 2}, Form{CollectiveKind::all_gather, 1},
                      Form{CollectiveKind::reduce_scatter, 1}, Form{CollectiveKind::all_to_all, 1},
                      Form{CollectiveKind::broadcast, 1}, Form{CollectiveKind::reduce, 1}),
    [](const auto& named) { return std::string(to_string(named.param.kind)); });

std::uint32_t tree_height(const Plan& tree, std::uint32_t t) {
  std::uint32_t height = 0;
  for (std::uint32_t rank = 0; rank < tree.ranks(); ++rank) {
    std::uint32_t depth = 0;
    for (std::uint32_t at = rank;; ++depth) {
      const Step last = tree.step(at, 2 * t, tree.steps(at, 2 * t) - 1);
      if (last.kind == Step::Kind::receive_reduce_copy_send) break;  // the root's, which goes down
      at = last.to.rank;
    }
    height = std::max(height, depth);
  }
  return height;
}

TEST(Executor, TreeOnTheIdealNetworkGoesUpAndDown) {
  const auto algorithm = Registry<CollectiveAlgorithm>::instance().create("double_binary_tree");
  for (const std::uint32_t p : {2U, 3U, 8U, 13U, 64U}) {
    const auto tree = algorithm->plan(CollectiveKind::all_reduce, {p, 0});
    const auto members = everyone(p);
    Bench bench(p, kMicrosecond, "{all_reduce: double_binary_tree}");
    bench.start_all(request_of(CollectiveKind::all_reduce, members, 1000));
    EXPECT_EQ(bench.run(), 2 * std::max(tree_height(*tree, 0), tree_height(*tree, 1)) * kMicrosecond);
  }
}

TEST(Executor, RingEndsAtAllRanksAtOnce) {
  Bench bench(5, kMicrosecond);
  const auto members = everyone(5);
  bench.start_all(request_of(CollectiveKind::all_reduce, members, 1000));
  bench.run();
  for (std::uint32_t gpu = 0; gpu < 5; ++gpu) {
    EXPECT_EQ(bench.recorder.of(gpu), (Completions::Done{gpu, 1, 0, 8 * kMicrosecond}));
  }
}

TEST(Executor, ChainEndsRankByRank) {
  Bench bench(5, kMicrosecond);
  const auto members = everyone(5);
  auto request = request_of(CollectiveKind::broadcast, members, 1000);
  request.root = 2;
  bench.start_all(request);
  bench.run();
  const Time ends[5] = {3, 4, 0, 1, 2};  // a rank is done when it has sent on what it received
  for (std::uint32_t gpu = 0; gpu < 5; ++gpu)
    EXPECT_EQ(bench.recorder.of(gpu).ended, ends[gpu] * kMicrosecond);
}

// The chain of a reduce ends at its root: 3, 4, 0, 1, 2.
TEST(Executor, ReduceEndsAtItsRoot) {
  Bench bench(5, kMicrosecond);
  const auto members = everyone(5);
  auto request = request_of(CollectiveKind::reduce, members, 1000);
  request.root = 2;
  bench.start_all(request);
  bench.run();
  const Time ends[5] = {2, 3, 4, 0, 1};
  for (std::uint32_t gpu = 0; gpu < 5; ++gpu)
    EXPECT_EQ(bench.recorder.of(gpu).ended, ends[gpu] * kMicrosecond);
}

// Time of step s at rank r of a ring whose ranks start when they like: max-plus.
std::vector<Time> ring_ends(const std::vector<Time>& starts, std::size_t steps, Time delay) {
  const std::size_t p = starts.size();
  std::vector<Time> ready = starts;
  for (std::size_t s = 0; s < steps; ++s) {
    const std::vector<Time> sent = ready;
    for (std::size_t r = 0; r < p; ++r) ready[r] = std::max(sent[r], sent[(r + p - 1) % p] + delay);
  }
  return ready;
}

TEST(Executor, LateRanksDelayARingAsMaxPlusSays) {
  EXPECT_TRUE(rc::check("late ranks", [] {
    const auto p = *rc::gen::inRange<std::uint32_t>(2, 12);
    const auto starts = *rc::gen::container<std::vector<Time>>(p, rc::gen::inRange<Time>(0, 100));
    const auto delay = *rc::gen::inRange<Time>(0, 20);
    const bool both = *rc::gen::arbitrary<bool>();
    Bench bench(p, delay);
    const auto members = everyone(p);
    auto request =
        request_of(both ? CollectiveKind::all_reduce : CollectiveKind::reduce_scatter, members, 1 << 20);
    for (request.index = 0; request.index < p; ++request.index) {
      bench.start_at(starts[request.index], request.index, request);
    }
    bench.run();
    const auto ends = ring_ends(starts, (both ? 2U : 1U) * (p - 1), delay);
    for (std::uint32_t gpu = 0; gpu < p; ++gpu) {
      RC_ASSERT(bench.recorder.of(gpu) == (Completions::Done{gpu, 1, starts[gpu], ends[gpu]}));
    }
  }));
}

// ---- Point-to-point

TEST(PointToPoint, ReportsTheSendersStartAtBothEnds) {
  const std::vector<GpuId> pair{4, 1};
  for (const Time receiver_start : {Time{0}, Time{7}, Time{12}, Time{50}}) {
    Bench bench(5, 10);
    auto request = request_of(CollectiveKind::point_to_point, pair, 1000, 9);
    bench.start_at(5, 4, request);
    request.index = 1;
    bench.start_at(receiver_start, 1, request);
    bench.run();
    EXPECT_EQ(bench.recorder.of(4, 9), (Completions::Done{4, 9, 5, 15}));
    EXPECT_EQ(bench.recorder.of(1, 9), (Completions::Done{1, 9, 5, std::max<Time>(15, receiver_start)}));
  }
}

TEST(PointToPoint, PaysTheHopButNoBase) {
  const std::vector<GpuId> inside{0, 1}, outside{1, 2};
  Bench bench(4, 2, {8 * kGbps, kMicrosecond}, {8 * kGbps, 2 * kMicrosecond});
  bench.start_all(request_of(CollectiveKind::point_to_point, inside, 1000, 1));  // 1 byte a ns
  bench.start_all(request_of(CollectiveKind::point_to_point, outside, 4000, 2));
  bench.run();
  EXPECT_EQ(bench.recorder.of(1, 1).ended, 3'400 * kNanosecond + kMicrosecond + kMicrosecond);
  EXPECT_EQ(bench.recorder.of(0, 1).ended, 3'400 * kNanosecond + kMicrosecond + kMicrosecond);
  EXPECT_EQ(bench.recorder.of(2, 2).ended, 14 * kMicrosecond + 4 * kMicrosecond + 2 * kMicrosecond);
  EXPECT_EQ(bench.recorder.of(1, 2).ended, 14 * kMicrosecond + 4 * kMicrosecond + 4 * kMicrosecond);
}

TEST(PointToPoint, RawIsOneMessage) {
  const std::vector<GpuId> pair{0, 1};
  Bench bench(2, 1, {}, {8 * kGbps, kMicrosecond});
  auto request = request_of(CollectiveKind::point_to_point, pair, kGigabyte);
  request.raw = true;
  request.traits.job = 3;
  bench.start_all(request);
  EXPECT_EQ(bench.executor->scale_out_bytes(0, request), kGigabyte);
  bench.run();
  ASSERT_EQ(bench.fake->sent.size(), 1U);
  EXPECT_EQ(bench.fake->sent[0].time, 0);
  EXPECT_EQ(bench.fake->sent[0].message.bytes, kGigabyte);
  EXPECT_EQ(bench.fake->sent[0].message.traits.channel, 0U);
  EXPECT_EQ(bench.fake->sent[0].message.traits.job, 3U);
  EXPECT_EQ(bench.recorder.of(1).ended, kSecond + kMicrosecond);
}

TEST(PointToPoint, FillsTheSlotsAndNoMore) {
  const std::vector<GpuId> pair{0, 1};
  for (const std::uint32_t slots : {2U, 4U, 7U}) {
    Bench bench(2, 1, {}, {200 * kGbps, kMillisecond},
                "{slices_per_chunk: 1, slots: " + std::to_string(slots) + "}");
    bench.start_all(request_of(CollectiveKind::point_to_point, pair, 100 * kMebibyte));
    bench.run();
    EXPECT_EQ(bench.fake->most_in_flight(), slots);
    EXPECT_EQ(bench.fake->sent.size(), 2U * 100);  // 4 channels of 25 slices, and a credit for each
  }
}

// ---- Latencies, channels, slices

// 2(p-1) steps of hop + wire + n/(pB), and the base once (papers: NCCL's tuning model, Patarasuk & Yuan).
TEST(Executor, RingInAHostFollowsNcclsModel) {
  const std::uint32_t p = 8;
  const auto members = everyone(p);
  for (const Bytes piece : {64 * kKibibyte, kMebibyte, 4 * kMebibyte, 24 * kMebibyte}) {
    Bench bench(p, p, {2400 * kGbps, 500 * kNanosecond}, {}, "{slices_per_chunk: 1, slots: 0}");
    bench.start_all(request_of(CollectiveKind::all_reduce, members, piece * p));
    const Time step = 3'400 * kNanosecond + 500 * kNanosecond + transmission_time(piece, 2400 * kGbps);
    EXPECT_EQ(bench.run(), 8'400 * kNanosecond + 2 * (p - 1) * step);
    EXPECT_EQ(bench.fake->sent.size(), std::size_t{2} * (p - 1) * p);  // 24 channels in one message
  }
}

// A step forwards its first slice while the second still arrives. The wire is always busy once a slice takes
// longer than the hop and the wire's latency.
TEST(Executor, SlicesOfAStepOverlap) {
  const std::uint32_t p = 8;
  const auto members = everyone(p);
  const Bytes piece = 24 * kMebibyte, slice = piece / 2;
  Bench bench(p, p, {2400 * kGbps, 500 * kNanosecond}, {}, "{slots: 0}");
  bench.start_all(request_of(CollectiveKind::all_reduce, members, piece * p));
  const Time latency = 3'400 * kNanosecond + 500 * kNanosecond, wire = transmission_time(slice, 2400 * kGbps);
  ASSERT_GT(wire, latency);
  // There are 2(p-1) steps of two slices on the wire, and no rank waits for them. The latency counts once at
  // the start and once at the end.
  EXPECT_EQ(bench.run(), 8'400 * kNanosecond + 2 * (p - 1) * 2 * wire + latency);
}

TEST(Executor, TreeIsChargedAsATree) {
  const auto members = everyone(2);
  Bench bench(2, 2, {8 * kGbps, 0}, {}, "{all_reduce: double_binary_tree, base_latency_tree: 3 us}");
  bench.start_all(request_of(CollectiveKind::all_reduce, members, 4000));
  // Each half goes to its root and comes back.
  EXPECT_EQ(bench.run(), 3 * kMicrosecond + 2 * (4 * kMicrosecond + 2 * kMicrosecond));
}

TEST(Executor, UsesTheChannelsOfItsReach) {
  const auto members = everyone(4);
  const auto channels_of = [&](std::uint32_t per_host) {
    Bench bench(4, per_host, {}, {});
    bench.start_all(request_of(CollectiveKind::all_reduce, members, 40 * kMegabyte));
    bench.run();
    std::set<std::uint32_t> channels;
    for (const auto& sent : bench.fake->sent) channels.insert(sent.message.traits.channel);
    return channels;
  };
  EXPECT_THAT(channels_of(4), ElementsAre(0));
  EXPECT_THAT(channels_of(2), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));  // two rings, of two NICs a host
  EXPECT_THAT(channels_of(1), ElementsAre(0, 1, 2, 3));
}

TEST(Executor, CutsIntoTheFewestRoundsThatFitASlice) {
  const auto members = everyone(4);
  Bench bench(4, 1, {}, {}, "{scale_out_channels: 2, slice: 50 kB, slots: 0}");
  bench.start_all(
      request_of(CollectiveKind::reduce_scatter, members, 2'000'001));  // 1,000,001 > 2 x 4 x 100 kB
  bench.run();
  Bytes largest = 0, smallest = kGigabyte;
  for (const auto& sent : bench.fake->sent) {
    largest = std::max(largest, sent.message.bytes);
    smallest = std::min(smallest, sent.message.bytes);
  }
  EXPECT_EQ(bench.fake->sent.size(), 4U * 3 * 2 * 3 * 2);  // ranks, steps, channels, rounds, slices
  EXPECT_LE(largest, 41'667);
  EXPECT_GE(smallest, 41'666);
}

// Slice behind slice: (p - 2 + R) slices and p - 1 latencies.
TEST(Executor, BroadcastAndReduceArePipelines) {
  for (const auto& [p, kind] :
       std::vector<std::pair<std::uint32_t, CollectiveKind>>{{2, CollectiveKind::broadcast},
                                                             {3, CollectiveKind::broadcast},
                                                             {9, CollectiveKind::broadcast},
                                                             {2, CollectiveKind::reduce},
                                                             {3, CollectiveKind::reduce},
                                                             {9, CollectiveKind::reduce}}) {
    const auto members = everyone(p);
    Bench bench(p, 1, {}, {8 * kGbps, kMicrosecond},
                without_latency(", scale_out_channels: 1, slice: 2 kB, slices_per_chunk: 1, slots: 0"));
    bench.start_all(request_of(kind, members, 20 * 2000));
    EXPECT_EQ(bench.run(), (p - 2 + 20) * 2 * kMicrosecond + (p - 1) * kMicrosecond);
  }
}

// A collective hands its last sends over; its communication number is free again once they are acknowledged.
TEST(Executor, DoesNotWaitForAcknowledgementsOfACollective) {
  const std::vector<GpuId> pair{0, 1};
  Bench bench(2, 1, {}, {8 * kGbps, kMillisecond}, without_latency(", scale_out_channels: 1"));
  bench.start_all(request_of(CollectiveKind::broadcast, pair, 1000, 1));
  bench.start_all(request_of(CollectiveKind::point_to_point, pair, 1000, 2));
  bench.run();
  EXPECT_EQ(bench.recorder.of(0, 1).ended, 0);
  EXPECT_EQ(bench.recorder.of(0, 2).ended, 2 * kMillisecond + 2 * kMicrosecond);
  EXPECT_THAT(bench.executor->waiting(10), IsEmpty());
  const auto ended = bench.recorder.done.size();
  auto again = request_of(CollectiveKind::broadcast, pair, 1000, 1);
  for (again.index = 0; again.index < 2; ++again.index) bench.executor->start(again.index, again);
  bench.run();
  EXPECT_EQ(bench.recorder.done.size(), ended + 2);
}

// As NCCL's, which waits for a flag whatever the size.
TEST(Executor, SendsTheFlagOfAnEmptyChunk) {
  const auto members = everyone(8);
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::all_to_all, CollectiveKind::all_gather}) {
    Bench bench(8, 1, {}, {8 * kGbps, kMicrosecond}, "{slots: 0}");
    bench.start_all(request_of(kind, members, 3));
    bench.run();
    EXPECT_EQ(bench.recorder.done.size(), 8U);
    const std::size_t steps = kind == CollectiveKind::all_reduce ? 14 : 7;
    EXPECT_EQ(bench.fake->sent.size(), 3 * 8 * steps);  // channels that have a byte
    for (const auto& sent : bench.fake->sent) EXPECT_EQ(sent.message.bytes, 1);
  }
}

TEST(Executor, LetsAGroupOfOneBeDoneAtOnce) {
  const std::vector<GpuId> alone{2};
  Bench bench(4, 1, {}, {});
  const auto request = request_of(CollectiveKind::all_reduce, alone, 1000);
  bench.start_at(17, 2, request);
  bench.run();
  EXPECT_EQ(bench.recorder.of(2), (Completions::Done{2, 1, 17, 17}));
  EXPECT_EQ(bench.executor->scale_out_bytes(2, request), 0);
}

TEST(Executor, NeverCallsBackFromStart) {
  const std::vector<GpuId> pair{0, 1};
  Bench bench(2, 0);
  auto request = request_of(CollectiveKind::point_to_point, pair, 10);
  bench.executor->start(0, request);
  bench.loop.run();
  request.index = 1;
  bench.executor->start(1, request);  // the message is there already
  EXPECT_EQ(bench.recorder.of(1).ended, -1);
  bench.loop.run();
  EXPECT_EQ(bench.recorder.of(1).ended, 0);
}

// ---- Conservation

struct Scenario {
  CollectiveKind kind;
  std::uint32_t ranks, per_host, root;
  Bytes bytes;
  std::string section;
};

Scenario any_scenario() {
  Scenario s;
  s.kind =
      *rc::gen::element(CollectiveKind::all_reduce, CollectiveKind::all_gather,
                        CollectiveKind::reduce_scatter, CollectiveKind::all_to_all, CollectiveKind::broadcast,
                        CollectiveKind::reduce, CollectiveKind::point_to_point);
  s.ranks = s.kind == CollectiveKind::point_to_point ? 2 : *rc::gen::inRange<std::uint32_t>(2, 14);
  s.per_host = *rc::gen::inRange<std::uint32_t>(1, 9);
  s.root = *rc::gen::inRange<std::uint32_t>(0, s.ranks);
  s.bytes = *rc::gen::oneOf(rc::gen::inRange<Bytes>(1, 100), rc::gen::inRange<Bytes>(1, 500'000));
  const auto slices = *rc::gen::inRange(1, 4);
  s.section = "{slice: " + std::to_string(*rc::gen::inRange(1024, 40'000)) +
              " B, scale_out_channels: " + std::to_string(*rc::gen::inRange(1, 6)) +
              ", scale_up_channels: " + std::to_string(*rc::gen::inRange(1, 4)) +
              " , slices_per_chunk: " + std::to_string(slices) +
              ", least_slice: " + std::to_string(*rc::gen::inRange(1, 2000)) + " B" +
              ", slots: " + std::to_string(*rc::gen::inRange(2, 6) * slices) +
              ", all_reduce: " + *rc::gen::element<std::string>("ring", "double_binary_tree") + "}";
  return s;
}

Bytes total_bytes(const Scenario& s) {
  const Bytes once = (s.ranks - 1) * s.bytes;
  return s.kind == CollectiveKind::all_reduce ? 2 * once : once;
}

TEST(Executor, SendsEveryByteOnceWhateverTheCutting) {
  EXPECT_TRUE(rc::check("bytes are conserved, everyone is done", [] {
    const Scenario s = any_scenario();
    Bench bench(s.ranks, s.per_host, {2400 * kGbps, 100 * kNanosecond}, {100 * kGbps, 3 * kMicrosecond},
                s.section);
    bench.fake->channel_skew = *rc::gen::inRange<Time>(0, 10 * kMicrosecond);
    const auto members = *rc::gen::exec([&] {
      auto order = everyone(s.ranks);
      for (std::size_t i = order.size(); i > 1; --i)
        std::swap(order[i - 1], order[*rc::gen::inRange<std::size_t>(0, i)]);
      return order;
    });
    auto request = request_of(s.kind, members, s.bytes, 77);
    request.root = s.root;
    for (request.index = 0; request.index < s.ranks; ++request.index) {
      bench.start_at(*rc::gen::inRange<Time>(0, 200 * kMicrosecond), members[request.index], request);
    }
    bench.run();
    RC_ASSERT(bench.recorder.done.size() == s.ranks);
    RC_ASSERT(bench.executor->waiting(1).empty());
    Bytes sum = 0;
    std::vector<Bytes> out(s.ranks, 0);
    for (const auto& [sent, time] : bench.fake->sent) {
      RC_ASSERT(sent.bytes > 0);
      if (!sent.credit) sum += sent.bytes;
      if (bench.fake->reach(sent.source, sent.destination) == Reach::scale_out)
        out[sent.source] += sent.bytes;
    }
    // Empty chunks travel as a byte.
    if (s.bytes >= 10'000) RC_ASSERT(sum == total_bytes(s));
    RC_ASSERT(sum >= total_bytes(s));
    for (request.index = 0; request.index < s.ranks; ++request.index) {
      const std::uint32_t gpu = members[request.index];
      RC_ASSERT(bench.executor->scale_out_bytes(gpu, request) == out[gpu]);
    }
  }));
}

TEST(Executor, RunsOperationsOfOverlappingGroupsAtOnce) {
  const std::vector<GpuId> rows[2] = {{0, 1, 2}, {3, 4, 5}}, columns[3] = {{0, 3}, {4, 1}, {2, 5}};
  Bench alone(6, 3, {80 * kGbps, kMicrosecond}, {});
  alone.start_all(request_of(CollectiveKind::all_reduce, rows[0], 9'000'000, 1));
  const Time expected = alone.run();

  Bench bench(6, 3, {80 * kGbps, kMicrosecond}, {80 * kGbps, kMicrosecond});
  for (std::uint64_t i = 0; i < 2; ++i)
    bench.start_all(request_of(CollectiveKind::all_reduce, rows[i], 9'000'000, i));
  for (std::uint64_t i = 0; i < 3; ++i) {
    bench.start_all(request_of(CollectiveKind::all_to_all, columns[i], 500'000, 100 + i));
    bench.start_all(request_of(CollectiveKind::all_gather, columns[i], 500'000, 200 + i));
  }
  bench.run();
  EXPECT_EQ(bench.recorder.done.size(), 6U * 3);
  for (std::uint32_t gpu = 0; gpu < 6; ++gpu) EXPECT_EQ(bench.recorder.of(gpu, gpu / 3).ended, expected);
  EXPECT_THAT(bench.executor->waiting(10), IsEmpty());
}

// Two jobs count their communications alike; each runs as if it were alone.
TEST(Executor, KeepsJobsWithEqualCommunicationsApart) {
  const auto members = everyone(4);
  Bench bench(4, kMicrosecond);
  auto broadcast = request_of(CollectiveKind::broadcast, members, 1000);
  broadcast.traits.job = 1;
  bench.start_all(request_of(CollectiveKind::all_reduce, members, 64 * kMebibyte));
  bench.start_all(broadcast);
  bench.run();
  std::multiset<Time> ends;
  for (const Completions::Done& done : bench.recorder.done) ends.insert(done.ended / kMicrosecond);
  EXPECT_THAT(ends, ElementsAre(0, 1, 2, 3, 6, 6, 6, 6));  // a chain of 4, and a ring of 2 x 3 steps
  EXPECT_THAT(bench.executor->waiting(10), IsEmpty());
}

TEST(Executor, IsReentrant) {
  const std::uint32_t p = 4, rounds = 50;
  const auto members = everyone(p);
  Bench bench(p, kMicrosecond);
  bench.recorder.then = [&](std::uint32_t gpu, std::uint64_t communication) {
    if (communication >= rounds) return;
    auto request = request_of(CollectiveKind::all_reduce, members, 1000, communication + 1);
    request.index = gpu;
    bench.executor->start(gpu, request);
  };
  bench.start_all(request_of(CollectiveKind::all_reduce, members, 1000, 1));
  EXPECT_EQ(bench.run(), Time{rounds} * 2 * (p - 1) * kMicrosecond);
  EXPECT_EQ(bench.recorder.done.size(), std::size_t{p} * rounds);
}

TEST(Executor, RepeatsItselfExactly) {
  const auto members = everyone(12);
  const auto run = [&] {
    Bench bench(12, 4, {2400 * kGbps, 100 * kNanosecond}, {100 * kGbps, kMicrosecond});
    bench.start_all(request_of(CollectiveKind::all_reduce, members, 30 * kMegabyte, 1));
    bench.start_all(request_of(CollectiveKind::all_to_all, members, 30 * kMegabyte, 2));
    bench.run();
    return bench.recorder.done;
  };
  EXPECT_EQ(run(), run());
}

// ---- Stall reports

TEST(Waiting, SaysWhatIsMissing) {
  const auto members = everyone(4);
  Bench bench(4, 1, {}, {8 * kGbps, kMicrosecond});
  auto request = request_of(CollectiveKind::all_reduce, members, 8'000'000, 0xab);
  for (request.index = 0; request.index < 3; ++request.index) bench.start_at(0, request.index, request);
  bench.loop.run();  // GPU 3 never comes
  const auto lines = bench.executor->waiting(10);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(
      lines[0],
      "gpu 0: all_reduce 0xab round 1 of 1: channel 0 thread block 0 waits to reduce chunk 3 of the input "
      "from gpu 3");
  EXPECT_EQ(
      lines[1],
      "gpu 1: all_reduce 0xab round 1 of 1: channel 0 thread block 0 waits to reduce chunk 3 of the input "
      "from gpu 0");
  EXPECT_EQ(lines[3], "gpu 3: 16 messages of all_reduce 0xab arrived, which the GPU has not started");
  EXPECT_EQ(bench.executor->waiting(2).size(), 2U);
}

TEST(Waiting, NamesLatencySlotsAndAcknowledgements) {
  const std::vector<GpuId> pair{0, 1};
  Bench bench(2, 1, {}, {8 * kGbps, kMillisecond},
              "{scale_out_channels: 1, hop_latency_net_ring: 0, slices_per_chunk: 1}");
  bench.start_all(request_of(CollectiveKind::broadcast, pair, 6 * kMebibyte, 1));
  bench.loop.run(kMicrosecond);
  EXPECT_EQ(bench.executor->waiting(1)[0], "gpu 0: broadcast 0x1 is in its base latency");
  bench.loop.run(kMillisecond);
  EXPECT_EQ(
      bench.executor->waiting(1)[0],
      "gpu 0: broadcast 0x1 round 5 of 6: channel 0 thread block 0 waits to send chunk 0 of the input to gpu "
      "1 (4 slots filled there)");
  bench.loop.run(8 * kMillisecond + 100 * kMicrosecond);
  EXPECT_THAT(bench.executor->waiting(1)[0],
              StartsWith("gpu 0: broadcast 0x1 waits for the acknowledgement of"));
}

TEST(Waiting, NamesTheJob) {
  const auto members = everyone(2);
  Bench bench(2, kMicrosecond);
  auto request = request_of(CollectiveKind::all_reduce, members, 1000, 7);
  request.traits.job = 3;
  bench.start_at(0, 0, request);
  bench.run();
  const auto lines = bench.executor->waiting(2);
  EXPECT_THAT(lines[0], StartsWith("gpu 0: all_reduce 0x7 of job 3 round 1 of 1"));
  EXPECT_EQ(lines[1], "gpu 1: 1 messages of all_reduce 0x7 of job 3 arrived, which the GPU has not started");
}

TEST(Waiting, NamesTheCommunicationOfAPart) {
  const auto members = everyone(2);
  Bench bench(2, kMicrosecond);
  auto request = request_of(CollectiveKind::all_reduce, members, 1000, 0xc7);
  request.part = 4;
  request.whole = 7;
  bench.start_at(0, 0, request);
  bench.run();
  const auto lines = bench.executor->waiting(2);
  EXPECT_THAT(lines[0], StartsWith("gpu 0: part 4 of all_reduce 0x7 round 1 of 1"));
  EXPECT_EQ(lines[1], "gpu 1: 1 messages of part 4 of all_reduce 0x7 arrived, which the GPU has not started");
}

// ---- Parameters

// A broadcast down a tree in which every rank has a given number of children.
struct WideTreeParameters {
  std::int64_t children = 1;
};

std::unique_ptr<Plan> wide_tree(std::uint32_t ranks, std::uint32_t root, std::uint32_t children) {
  auto plan = std::make_unique<TablePlan>(CollectiveKind::broadcast, ranks, 1, 1);
  plan->set_root(root);
  const auto at = [&](std::uint32_t place) { return Partner{(root + place) % ranks, 0}; };
  for (std::uint32_t place = 1; place < ranks; ++place) {
    const Partner parent = at((place - 1) / children), child = at(place);
    plan->list(parent.rank, 0).push_back(send(input(0), child));
    auto& steps = plan->list(child.rank, 0);
    steps.insert(steps.begin(), receive(input(0), parent));
  }
  return plan;
}

class WideTree final : public CollectiveAlgorithm {
 public:
  explicit WideTree(const WideTreeParameters& p) : children_(static_cast<std::uint32_t>(p.children)) {}
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::broadcast; }
  std::unique_ptr<Plan> plan(CollectiveKind, const GroupShape& shape) const override {
    return wide_tree(shape.ranks, shape.root, children_);
  }

 private:
  std::uint32_t children_;
};

const Registration<CollectiveAlgorithm> kWideTree{
    "test_wide_tree", "broadcast: each rank passes the data on to several",
    Parameters<WideTreeParameters>().integer("children", &WideTreeParameters::children, {1, 64},
                                             "of each rank"),
    [](const WideTreeParameters& p, const ConfigNode&) { return std::make_unique<WideTree>(p); }};

TEST(ExecutorParameters, ReachTheAlgorithm) {
  const auto members = everyone(13);
  const auto end = [&](const std::string& algorithm) {
    Bench bench(13, kMicrosecond, "{broadcast: " + algorithm + "}");
    bench.start_all(request_of(CollectiveKind::broadcast, members, 1000));
    return bench.run() / kMicrosecond;
  };
  EXPECT_EQ(end("test_wide_tree"), 12);  // a chain
  EXPECT_EQ(end("{kind: test_wide_tree, children: 3}"), 2);
  EXPECT_EQ(end("{kind: test_wide_tree, children: 12}"), 1);
}

// A prediction counts the messages of the plans that a run uses, with the algorithm's parameters.
TEST(ExecutorParameters, ReachThePrediction) {
  const auto members = everyone(13);
  Bench bench(13, 1, {}, {}, "{slots: 0, broadcast: {kind: test_wide_tree, children: 4}}");
  const auto request = request_of(CollectiveKind::broadcast, members, 1000);
  EXPECT_EQ(bench.executor->scale_out_bytes(0, request), 4000);
  std::uint64_t messages = 0;
  bench.executor->for_each_batch(0, request, [&](const MessageBatch& batch) { messages += batch.count; });
  EXPECT_EQ(messages, 4U * 4);  // channels
}

std::string error_of(const std::string& section) {
  try {
    Bench bench(2, 1, {}, {}, section);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ExecutorParameters, RefuseWhatIsWrong) {
  EXPECT_THAT(error_of("{all_reduce: rign}"),
              AllOf(HasSubstr("test.yaml:1:"), HasSubstr("'rign'"), HasSubstr("did you mean 'ring'"),
                    HasSubstr("double_binary_tree")));
  EXPECT_THAT(error_of("{all_to_all: ring}"),
              AllOf(HasSubstr("test.yaml:1:14"),
                    HasSubstr("'ring' does not do all_to_all (allowed: bruck, direct, ")));
  EXPECT_THAT(error_of("{all_reduce: {kind: chain}}"),
              AllOf(HasSubstr("(allowed: "), HasSubstr("bidirectional_ring, ")));
  EXPECT_THAT(error_of("{all_reduce: {kind: ring, root: 3}}"), HasSubstr("root"));
  EXPECT_THAT(error_of("{chanels: 3}"), HasSubstr("chanels"));
  EXPECT_THAT(error_of("{slotss: 4}"), HasSubstr("slots"));
  EXPECT_THAT(error_of("{slots: -1}"), HasSubstr("slots"));
  EXPECT_THAT(
      error_of("{slots: 3}"),
      AllOf(HasSubstr("test.yaml:1:1"), HasSubstr("3 are too few for 2 slices"), HasSubstr("4 and more")));
  EXPECT_EQ(error_of("{slots: 2, slices_per_chunk: 1}"), "");
  EXPECT_THAT(error_of("{ll: {slots: 1}}"),
              AllOf(HasSubstr("test.yaml:1:6"), HasSubstr("1 are too few for 1 slices")));
  EXPECT_THAT(error_of("{protocol: ll64}"), HasSubstr("ll128"));
  EXPECT_THAT(error_of("{scale_out_channels: 2000}"), HasSubstr("1024"));
  EXPECT_THAT(error_of("{slice: 5 us}"), HasSubstr("5 us"));
  EXPECT_THAT(error_of("{base_latency_ring: 2 s}"), HasSubstr("base_latency_ring"));
  EXPECT_EQ(error_of("{all_reduce: {kind: ring}, broadcast: chain}"), "");
}

TEST(ExecutorParameters, DefaultToNcclsConstants) {
  std::map<std::string, std::string> defaults;
  for (const auto& info : Executor::parameter_table()) defaults[info.name] = info.default_text;
  EXPECT_EQ(defaults["all_reduce"], "ring");
  EXPECT_EQ(defaults["base_latency_ring"], format_time(8'400 * kNanosecond));
  EXPECT_EQ(defaults["base_latency_tree"], format_time(8'400 * kNanosecond));
  EXPECT_EQ(defaults["hop_latency_nvlink_ring"], format_time(3'400 * kNanosecond));
  EXPECT_EQ(defaults["hop_latency_nvlink_tree"], format_time(4 * kMicrosecond));
  EXPECT_EQ(defaults["hop_latency_net_ring"], format_time(14 * kMicrosecond));
  EXPECT_EQ(defaults["hop_latency_net_tree"], format_time(14 * kMicrosecond));
  EXPECT_EQ(defaults["scale_up_channels"], "");
  EXPECT_EQ(defaults["scale_out_channels"], "4");
  EXPECT_EQ(defaults["slice"], "1 MiB");
  EXPECT_EQ(defaults["slices_per_chunk"], "2");
  EXPECT_EQ(defaults["least_slice"], "32 KiB");
  EXPECT_EQ(defaults["slots"], "4");
  EXPECT_EQ(defaults["protocol"], "simple");
  EXPECT_EQ(defaults["launch_latency"], "0 ps");
}

// ---- Members that disagree, and met before anyone could say so

// Returns the error of a run in which the two ends of a message do not match. `change` alters the receiver's
// request, which comes 1 s after the sender's.
std::string refusal(Bytes bytes, void (*change)(CommunicationRequest&)) {
  Bench bench(2, 1, {0, 10}, {0, 10});
  const auto members = everyone(2);
  CommunicationRequest request = request_of(CollectiveKind::point_to_point, members, bytes);
  bench.start_at(0, 0, request);
  request.index = 1;
  change(request);
  bench.start_at(kSecond, 1, request);
  try {
    bench.run();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Executor, RefusesMessagesThatAMemberCannotExpect) {
  const auto same = [](CommunicationRequest&) {};
  const auto raw = [](CommunicationRequest& request) { request.raw = true; };
  const auto less = [](CommunicationRequest& request) { request.bytes = 4; };
  EXPECT_EQ(refusal(64 * kMebibyte, same), "");
  EXPECT_THAT(refusal(64 * kMebibyte, raw), HasSubstr("its members disagree on bytes or group"));
  EXPECT_THAT(refusal(64 * kMebibyte, less), HasSubstr("gpu 1: point_to_point 0x1"));
}

// The second message comes while the receiver, which has one thread block, still waits for the first.
TEST(Executor, RefusesAMessageOfAThreadBlockThatAMemberDoesNotHave) {
  Bench bench(2, 1, {0, 10}, {0, 10});
  bench.fake->channel_skew = -1;  // the last channel first
  const auto members = everyone(2);
  CommunicationRequest request = request_of(CollectiveKind::point_to_point, members, kMebibyte);
  bench.start_at(0, 0, request);
  request.index = 1;
  request.raw = true;
  bench.start_at(0, 1, request);
  EXPECT_THROW(bench.run(), InputError);
}

}  // namespace
}  // namespace netsim::executor_test
