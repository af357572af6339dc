// Collectives that switches do: bytes on links, times against closed forms and against what is measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "sim/collectives/gpu_generation.h"
#include "sim/collectives/library/nccl/nvls_kernels.h"
#include "sim/collectives/programs/named_plan.h"
#include "sim/core/errors.h"
#include "tests/collectives/algorithms/algorithm_cases.h"
#include "tests/collectives/packet_collectives.h"
#include "tests/collectives/table_plan.h"
#include "tests/support/test_size.h"

namespace netsim::nvls_test {
namespace {

using test::every;
using test::PacketCollectives;
using test::request_of;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string all_by(const std::string& nvls) {
  return "collectives: {all_reduce: " + nvls + ", all_gather: " + nvls + ", reduce_scatter: " + nvls + "}\n";
}
std::string dgx(const std::string& host, const std::string& nvls) {
  return "topology: {kind: star, hosts: 16, rate: 400 Gbps}\nhosts: 2\nhost: " + host + "\n" + all_by(nvls);
}
std::string rack(const std::string& parameters, const std::string& nvls) {
  return "fabrics:\n  rack: {kind: nvl_rack" + parameters +
         "}\n  scale_out: {kind: star, hosts: 72, rate: 400 Gbps}\nhost: gb200\n" + all_by(nvls);
}

constexpr const char* kFullRate = "{kind: dgx_h100, nvls_efficiency: 1}";
constexpr const char* kNoLatency = "{kind: nvls, base_latency: 0, hop_latency: 0, copies: false}";
constexpr CollectiveKind kKinds[] = {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                     CollectiveKind::reduce_scatter};

// Bytes out of each GPU, and into it; of an all-reduce of more than 32 of each head.
std::pair<Bytes, Bytes> form(CollectiveKind kind, Bytes n, std::uint32_t p) {
  if (kind == CollectiveKind::all_reduce) return {n + n / std::min(p, 32U), n + n / std::min(p, 32U)};
  return kind == CollectiveKind::all_gather ? std::pair(n / p, n) : std::pair(n, n / p);
}

TEST(Nvls, EachPortCarriesWhatTheFormSays) {
  for (const CollectiveKind kind : kKinds) {
    for (std::uint32_t p = 2; p <= 8; ++p) {
      PacketCollectives host(dgx(kFullRate, "{kind: nvls, slots: 0}"));  // without credits
      const auto members = every(1, p);
      const Bytes n = p * 16 * kMebibyte;  // whole chunks
      host.run(request_of(kind, members, n));
      for (std::uint32_t gpu = 0; gpu < p; ++gpu) {
        const std::string name = "host0/gpu" + std::to_string(gpu);
        const auto [out, in] = form(kind, n, p);
        EXPECT_EQ(host.packets.at(name, "host0/nvswitch").wire_bytes, out) << to_string(kind) << " of " << p;
        EXPECT_EQ(host.packets.at("host0/nvswitch", name).wire_bytes, in) << to_string(kind) << " of " << p;
      }
      EXPECT_EQ(host.packets.network->counters().flows_started, 0U);
    }
  }
}

// An all-reduce takes at least n(1 + 1/p) / B, the others n / B. The difference is the path of the first
// chunk to its head and of the last one from it.
TEST(Nvls, TakesTheTimeOfThePorts) {
  const double rate = 0.824 * 18 * 25e9;
  const Bytes n = Bytes{840} << 20;
  for (const CollectiveKind kind : kKinds) {
    for (std::uint32_t p = 2; p <= 8; ++p) {
      PacketCollectives host(dgx(kFullRate, kNoLatency));
      const auto members = every(1, p);
      const auto [out, in] = form(kind, n, p);
      const double bound = static_cast<double>(std::max(out, in)) / rate * 1e12;
      const double chunk = p * 16 * 128 * 1024 / rate * 1e12;
      const auto time = static_cast<double>(host.run(request_of(kind, members, n)));
      EXPECT_GE(time, bound) << to_string(kind) << " of " << p;
      EXPECT_LE(time, bound * 1.02 + chunk) << to_string(kind) << " of " << p;
    }
  }
}

TEST(Nvls, JoinsARackOf72) {
  const Bytes n = 72 * 8 * kMebibyte;
  const double rate = 0.802 * 18 * 50e9;
  for (const CollectiveKind kind : kKinds) {
    PacketCollectives gb200(rack(", nvls_efficiency: 1, nvls_piece: 64 KiB", kNoLatency));
    const auto members = every(1, 72);
    const auto [out, in] = form(kind, n, 72);
    const double bound = static_cast<double>(std::max(out, in)) / rate * 1e12;
    const auto time = static_cast<double>(gb200.run(request_of(kind, members, n)));
    EXPECT_GE(time, bound) << to_string(kind);
    EXPECT_LE(time, 1.25 * bound) << to_string(kind);  // few chunks: the first and the last show
  }
}

// The model's 25 us of an all-reduce, and the two NVLinks and the switch of each of the two messages.
TEST(Nvls, ASmallOneTakesTheModelsLatency) {
  PacketCollectives host(dgx("dgx_h100", "nvls"));
  const auto members = every(1, 8);
  const auto time = static_cast<double>(host.run(request_of(CollectiveKind::all_reduce, members, 8)));
  EXPECT_NEAR(time / 1e6, 25 + 2 * 0.15, 0.01);
}

// In a round of one channel, 128 KiB, the data for eight heads is copied side by side. The data from them is
// copied one after the other. At least the copy of the last one adds to the time, and at most all of them.
TEST(Nvls, CopiesTakeTime) {
  const auto members = every(1, 8);
  const Bytes n = 8 * 16 * kKibibyte;
  const auto time_of = [&](const std::string& copies) {
    PacketCollectives host(
        dgx("dgx_h100", "{kind: nvls, channels: 1, chunk: 16 KiB, copies: " + copies + "}"));
    return static_cast<double>(host.run(request_of(CollectiveKind::all_reduce, members, n)));
  };
  const double copy = static_cast<double>(n) / (38.7e9 / 2) * 1e12, more = time_of("true") - time_of("false");
  EXPECT_GE(more, copy * 1.125 - 1e3);
  EXPECT_LE(more, copy * 2 + 1e3);
}

// Thread blocks that copy meet at a barrier after each round of all heads, and continue a hop's latency
// later. A channel that copies more slowly than links carry takes that time in each round.
TEST(Nvls, CopyingPausesBetweenRounds) {
  const auto members = every(1, 8);
  constexpr Bytes kChunk = 64 * kKibibyte;
  const auto time_of = [&](std::int64_t rounds, const char* hop_latency) {
    PacketCollectives host(
        dgx("dgx_h100",
            std::string("{kind: nvls, channels: 1, chunk: 64 KiB, hop_latency: ") + hop_latency + "}"));
    return host.run(request_of(CollectiveKind::all_reduce, members, rounds * 8 * kChunk));
  };
  const Time copy = transmission_time(8 * kChunk, nvls_copy_rate(GpuGeneration::hopper));
  for (const auto& [text, pause] :
       {std::pair("3.7 us", 3'700 * kNanosecond), std::pair("9 us", 9 * kMicrosecond)}) {
    const Time round = (time_of(40, text) - time_of(20, text)) / 20;
    EXPECT_NEAR(static_cast<double>(round) / static_cast<double>(copy + pause), 1, 1e-3) << text;
  }
}

TEST(Nvls, HasChannelsAndHeadsAsNccl) {
  EXPECT_EQ(nvls_channels(std::nullopt, 1), 16U);
  EXPECT_EQ(nvls_channels(GpuGeneration::hopper, 2), 16U);
  EXPECT_EQ(nvls_channels(GpuGeneration::blackwell, 1), 24U);
  EXPECT_EQ(nvls_channels(GpuGeneration::blackwell, 2), 32U);
  const auto plan = test::make_plan("nvls", CollectiveKind::all_reduce, 72);
  EXPECT_EQ(plan->chunks(), 32U);
  EXPECT_EQ(plan->aggregations(), 64U);
  EXPECT_EQ(test::make_plan("nvls", CollectiveKind::all_gather, 72)->aggregations(), 72U);
}

// Half of a port's rate is another's while both are there.
TEST(Nvls, SharesPortsWithOtherTraffic) {
  const Bytes n = 256 * kMebibyte;
  const auto members = every(1, 8);
  PacketCollectives alone(dgx(kFullRate, kNoLatency)), both(dgx(kFullRate, kNoLatency));
  const Time undisturbed = alone.run(request_of(CollectiveKind::all_reduce, members, n));
  const std::vector<GpuId> two{0, 1};
  CommunicationRequest other = request_of(CollectiveKind::point_to_point, two, n);
  other.raw = true;
  other.communication = 6;
  for (other.index = 0; other.index < 2; ++other.index) both.executor->start(two[other.index], other);
  CommunicationRequest request = request_of(CollectiveKind::all_reduce, members, n);
  for (request.index = 0; request.index < 8; ++request.index) both.executor->start(request.index, request);
  both.packets.loop.run();
  const Bytes moved = n + n + n / 8;
  const double rate = 0.824 * 18 * 25e9;
  EXPECT_GE(static_cast<double>(both.recorder.last()), static_cast<double>(moved) / rate * 1e12);
  EXPECT_GT(both.recorder.last(), undisturbed + undisturbed / 3);
}

// Two communications of one group that its members begin in different orders do not add up each other's.
TEST(Nvls, CommunicationsDoNotMeet) {
  PacketCollectives host(dgx(kFullRate, "{kind: nvls, slots: 0}"));
  const auto members = every(1, 8);
  CommunicationRequest one = request_of(CollectiveKind::all_reduce, members, 8 * 1000),
                       two = request_of(CollectiveKind::all_reduce, members, 8 * 300'000);
  two.communication = 6;
  for (std::uint32_t gpu = 0; gpu < 8; ++gpu) {
    one.index = two.index = gpu;
    host.executor->start(gpu, gpu % 2 == 0 ? one : two);
    host.executor->start(gpu, gpu % 2 == 0 ? two : one);
  }
  host.packets.loop.run();
  EXPECT_EQ(host.recorder.done.size(), 16U);
  EXPECT_TRUE(host.executor->waiting(1).empty());
  EXPECT_EQ(host.packets.at("host0/gpu3", "host0/nvswitch").wire_bytes, 9 * 301'000);
}

TEST(Nvls, NeedsASwitchThatCan) {
  const auto starts = [](const std::string& yaml, std::uint32_t ranks) {
    PacketCollectives made(yaml);
    const auto members = every(1, ranks);
    made.executor->start(0, request_of(CollectiveKind::all_reduce, members, 1000));
  };
  EXPECT_THAT(
      [&] { starts(dgx("dgx_a100", "nvls"), 8); },
      ThrowsMessage<InputError>(HasSubstr("host0/nvswitch of a dgx_a100 neither copies nor adds up")));
  EXPECT_THAT([&] { starts(dgx("dgx_h100", "nvls"), 16); },
              ThrowsMessage<InputError>(HasSubstr("no switch joins host0/gpu0 and host1/gpu0 directly")));
  EXPECT_THAT([&] { starts(dgx("dgx_1v", "nvls"), 8); },
              ThrowsMessage<InputError>(HasSubstr("no switch joins")));
  for (const char* host : {"dgx_h100", "dgx_h200", "dgx_b200"})
    EXPECT_NO_THROW(starts(dgx(host, "nvls"), 8)) << host;
}

// With three ranks thread block b sends part b to aggregation group b, and 3 is the head's.
TEST(Nvls, WrongFansAreRefused) {
  const auto verdict = [](auto change) {
    TablePlan plan(*test::make_plan("nvls", CollectiveKind::all_reduce, 3));
    change(plan.list(1, 0));
    return prove(plan);
  };
  using Steps = std::vector<Step>;
  EXPECT_EQ(verdict([](Steps&) {}), "");
  EXPECT_EQ(verdict([](Steps& steps) { steps.clear(); }),
            "deadlock: rank 0 thread block 3 step 0: receive chunk 0 of the output from aggregation group 0 "
            "and send it on to "
            "aggregation group 3: waits for a message from rank 1 thread block 0, which has finished");
  EXPECT_THAT(verdict([](Steps& steps) { steps.push_back(Step(steps[0])); }),
              HasSubstr("nothing orders the two"));  // the second one and what the head sends back
  EXPECT_THAT(verdict([](Steps& steps) { steps[0].source.chunk = 1; }),
              HasSubstr("adds contributions {0} of chunk 0 to contributions {1} of chunk 1"));
  EXPECT_THAT(verdict([](Steps& steps) { steps[0].to = Partner::of_aggregation(1); }),
              HasSubstr("it is neither the head nor a member of the aggregation group"));
  EXPECT_THAT(verdict([](Steps& steps) { steps[0].to = Partner::of_aggregation(6); }),
              HasSubstr("the plan has 6 aggregation groups"));
}

// A head with two members that contribute what it has itself counts its own twice.
TEST(Nvls, AContributionIsCountedOnce) {
  TablePlan plan(CollectiveKind::reduce, 2, 2, 1);
  plan.add_group({.head = 0, .head_block = 1, .first = 0, .members = 2, .stride = 1, .block = 0});
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    plan.list(rank, 0) = {send(input(0), Partner::of_aggregation(0))};
  plan.list(0, 1) = {receive(output(0), Partner::of_aggregation(0))};
  EXPECT_EQ(prove(plan), "");
  plan.list(0, 1) = {receive_reduce(input(0), Partner::of_aggregation(0))};
  EXPECT_THAT(prove(plan), HasSubstr("some of them twice"));
  plan.add_group({.head = 0, .head_block = 1, .first = 0, .members = 3, .stride = 1, .block = 0});
  EXPECT_EQ(prove(plan), "aggregation group 1: there are 2 ranks");
}

TEST(Nvls, IsNoProgramOfMsccl) {
  PlanName name;
  name.text = "nvls";
  name.ranks = 8;
  EXPECT_THAT([&] { program_named(name); },
              ThrowsMessage<InputError>(HasSubstr("switches that copy and add up")));
}

// nccl-tests on a DGX H100, in place: microseconds at the sizes for which NCCL's model takes NVLS. No launch
// is charged: the model's latency alone is more than what small ones take.
TEST(Nvls, AnAllReduceOfAnH100TakesWhatNcclTakes) {
  const std::tuple<Bytes, double, double> measured[] = {
      {2 * kMebibyte, 42.09, 0.15},   {4 * kMebibyte, 53.82, 0.15},    {8 * kMebibyte, 82.03, 0.15},
      {16 * kMebibyte, 123.0, 0.15},  {32 * kMebibyte, 198.9, 0.15},   {64 * kMebibyte, 324.7, 0.15},
      {128 * kMebibyte, 586.0, 0.15}, {256 * kMebibyte, 1113.4, 0.15}, {512 * kMebibyte, 2149.3, 0.15},
      {kGibibyte, 4016.4, 0.06},      {4 * kGibibyte, 15754, 0.03}};
  const auto members = every(1, 8);
  double logarithms = 0;
  for (const auto& [bytes, microseconds, tolerance] : measured) {
    PacketCollectives host(dgx("dgx_h100", "nvls"));
    const Time time = host.run(request_of(CollectiveKind::all_reduce, members, bytes));
    const double ratio = static_cast<double>(time) / 1e6 / microseconds;
    EXPECT_NEAR(ratio, 1, tolerance) << bytes;
    logarithms += std::abs(std::log(ratio));
  }
  EXPECT_LT(std::exp(logarithms / std::size(measured)), 1.04);
}

// GB/s of the buffer by five to eight GPUs of a DGX H100 (NCCL's issue 1455): one rate of a port.
TEST(Nvls, FewerGpusGetAsMuchOfTheirPorts) {
  const std::pair<std::uint32_t, double> measured[] = {{5, 258}, {6, 265}, {7, 270}, {8, 273}};
  for (const auto& [gpus, rate] : measured) {
    PacketCollectives host(dgx("dgx_h100", "nvls"));
    const auto members = every(1, gpus);
    const Time time = host.run(request_of(CollectiveKind::all_reduce, members, 2 * kGibibyte));
    EXPECT_NEAR(static_cast<double>(2 * kGibibyte) / (static_cast<double>(time) / 1e3) / rate, 1, 0.03)
        << gpus;
  }
}

// nccl-tests on racks, in place: microseconds. The launch is taken at the smallest size.
void expect_rack(const std::string& yaml, std::uint32_t gpus, Bytes smallest, double takes,
                 std::initializer_list<std::tuple<Bytes, double, double>> measured) {
  const auto members = every(1, gpus);
  const auto microseconds = [&](Bytes bytes) {
    PacketCollectives gb200(yaml);
    return static_cast<double>(gb200.run(request_of(CollectiveKind::all_reduce, members, bytes))) / 1e6;
  };
  const double launch = smallest > 0 ? takes - microseconds(smallest) : 0;
  double logarithms = 0;
  for (const auto& [bytes, time, tolerance] : measured) {
    const double ratio = (launch + microseconds(bytes)) / time;
    EXPECT_NEAR(ratio, 1, tolerance) << bytes;
    logarithms += std::abs(std::log(ratio));
  }
  EXPECT_LT(std::exp(logarithms / static_cast<double>(measured.size())), 1.04);
}

// The 72 GPUs of a GB200 NVL72. The plateau is 5.3 % fast (docs/evidence/validation.md has what speaks for
// that).
TEST(Nvls, AnAllReduceOfARackTakesWhatNcclTakes) {
  expect_rack(rack("", "nvls"), 72, 512 * kMebibyte, 1835.9, {{kGibibyte, 2924.7, 0.03}});
}
TEST(LongNvls, AnAllReduceOfARackTakesWhatNcclTakes) {
  expect_rack(rack("", "nvls"), 72, 512 * kMebibyte, 1835.9,
              {{kGibibyte, 2924.7, 0.03},
               {2 * kGibibyte, 5474.6, 0.05},
               {4 * kGibibyte, 10141, 0.05},
               {8 * kGibibyte, 20006, 0.06}});
}

// GB300 has the NVLinks of GB200. The groups are eight GPUs of a rack, and 64; there is no launch time.
TEST(Nvls, EightOfARackTakeWhatNcclTakes) {
  expect_rack(rack(", gpus: 8", "nvls"), 8, 0, 0, {{8 * kGibibyte, 17928, 0.03}});
}
TEST(LongNvls, SixtyFourOfARackTakeWhatNcclTakes) {
  expect_rack(rack(", gpus: 64", "nvls"), 64, 0, 0,
              {{8 * kGibibyte, 18790, 0.03}, {16 * kGibibyte, 36345, 0.03}});
}

// ---- NVLS tree

std::string h100_hosts(std::uint32_t hosts, const std::string& all_reduce) {
  const std::string number = std::to_string(hosts);
  return "topology: {kind: rail_optimized, hosts_per_leaf: " + number + ", units: 1, spines: " + number +
         ", link: infiniband, rate: 400 Gbps}\nhost: {kind: dgx_h100, nvls_efficiency: 1}\nhosts: " + number +
         "\nnetwork: {switch: {flow_control: credits, marker: none}}\ntransport: {framing: infiniband, "
         "congestion_control: none}\ncollectives: {all_reduce: " +
         all_reduce + "}\n";
}

// A host of a tree sends its sum up, and the result to each of those below: over both trees, N - 1 of each.
// Over NVLink n(1 + 1/k), as within a host, of the part that heads have of it. Credits are 64 B of each
// message.
TEST(NvlsTree, EachNicCarriesItsHeadsPart) {
  const std::vector<std::uint32_t> few{2, 3};
  for (const std::uint32_t hosts : test::by_size<std::vector<std::uint32_t>>({2, 3, 4, 5}, few, few)) {
    PacketCollectives cluster(h100_hosts(hosts, "nvls_tree"));
    const auto members = every(1, 8 * hosts);
    const Bytes n = 256 * kMebibyte;
    auto request = request_of(CollectiveKind::all_reduce, members, n);
    Bytes data = 0;
    for (request.index = 0; request.index < members.size(); ++request.index) {
      cluster.executor->for_each_batch(members[request.index], request, [&](const MessageBatch& batch) {
        if (batch.credit || batch.reach != Reach::scale_out) return;
        EXPECT_EQ(batch.destination % 8, members[request.index] % 8);  // on its rail
        data += batch.bytes * static_cast<Bytes>(batch.count);
      });
    }
    EXPECT_EQ(data, 2 * (hosts - 1) * n);
    cluster.run(request);
    for (std::uint32_t gpu = 0; gpu < 8 * hosts; ++gpu) {
      const std::string host = "host" + std::to_string(gpu / 8),
                        name = host + "/gpu" + std::to_string(gpu % 8);
      const auto out = static_cast<double>(cluster.packets.at(name, host + "/nvswitch").wire_bytes);
      EXPECT_NEAR(out, 1.125 * n, 0.01 * n) << name;
    }
  }
}

// On two hosts n/8 crosses each NIC. NVLink takes longer, and the warps that copy all of n on 16 channels the
// longest. The ring has 30 steps that follow from each other.
TEST(NvlsTree, IsLimitedByCopiesOnTwoHostsAndHasFewSteps) {
  const Bytes n = kGibibyte;
  const auto members = every(1, 16);
  const auto time_of = [&](const std::string& all_reduce, Bytes bytes) {
    PacketCollectives cluster(h100_hosts(2, all_reduce));
    return static_cast<double>(cluster.run(request_of(CollectiveKind::all_reduce, members, bytes)));
  };
  const double port = 1.125 * n / (0.824 * 18 * 25e9) * 1e12;
  const auto copies =
      static_cast<double>(transmission_time(n / 16, nvls_tree_copy_rate(GpuGeneration::hopper)));
  EXPECT_GT(copies, port);
  const double whole = time_of("nvls_tree", n);
  EXPECT_GE(whole, copies);
  EXPECT_LE(whole, 1.15 * copies);
  EXPECT_LT(time_of("nvls_tree", 16 * kMebibyte), 0.65 * time_of("ring", 16 * kMebibyte));
}

// For small buffers a tree has fewer steps at the NICs. For large ones NVLS tree sends less. If hosts have
// different numbers of GPUs, or GPUs not in order, rings and trees are used.
TEST(NvlsTree, IsWhatNcclTakesForMuch) {
  PacketCollectives hosts(h100_hosts(3, "nccl, protocol: auto"));
  const auto choice = [&](const std::vector<GpuId>& members, Bytes bytes) {
    return hosts.executor->choice(request_of(CollectiveKind::all_reduce, members, bytes));
  };
  const std::vector<GpuId> two = every(1, 16), uneven = every(1, 12);
  EXPECT_EQ(choice(two, 64 * kKibibyte).algorithm, "tree");
  EXPECT_EQ(choice(two, 256 * kMebibyte).algorithm, "nvls_tree");
  EXPECT_THAT(choice(two, 256 * kMebibyte).why, HasSubstr("next ring"));
  EXPECT_EQ(choice(every(1, 24), 256 * kMebibyte).algorithm, "nvls_tree");
  EXPECT_NE(choice(uneven, 256 * kMebibyte).algorithm, "nvls_tree");
  EXPECT_THAT(choice(uneven, 256 * kMebibyte).why, HasSubstr("not as many GPUs of each host"));
  EXPECT_THAT(choice({0, 8, 1, 9}, 256 * kMebibyte).why,
              HasSubstr("the GPUs of a host do not follow each other"));
  const std::vector<GpuId> pairs = {0, 1, 8, 9};
  EXPECT_EQ(choice(pairs, 256 * kMebibyte).why.find("no NVLS"), std::string::npos);
}

// GB/s of bus bandwidth. Two DGX H100 reach 440.6 at 8 GiB (coreweave/nccl-tests, pull request 92); their
// five copying warps are the limit. Over four hosts an inner host of a tree sends 2n / 8 by each NIC of 50
// GB/s, which would come to 387.
TEST(NvlsTree, TakesWhatWarpsAndNicsDo) {
  const auto busbw = [](const char* host, std::uint32_t hosts, Bytes bytes) {
    PacketCollectives cluster("topology: {kind: star, hosts: 32, rate: 400 Gbps, delay: 1 us}\nhost: " +
                              std::string(host) + "\nhosts: " + std::to_string(hosts) +
                              "\ntransport: {congestion_control: none, framing: infiniband}\nnetwork: "
                              "{switch: {buffer: 64 MB}}\ncollectives: {all_reduce: nvls_tree}\n");
    const auto members = every(1, 8 * hosts);
    const Time time = cluster.run(request_of(CollectiveKind::all_reduce, members, bytes));
    const double ranks = 8.0 * hosts;
    return static_cast<double>(bytes) / (static_cast<double>(time) / 1e3) * 2 * (ranks - 1) / ranks;
  };
  EXPECT_NEAR(busbw("dgx_h100", 2, kGibibyte) / 440.6, 1, 0.05);
  EXPECT_NEAR(busbw("dgx_b200", 4, kGibibyte / 2) / 387, 1, 0.15);
}

// On two B200 hosts of Google (A4, GKE, not in place) 32 MiB take 291 us and 64 MiB 483 us. Each round of 256
// chunks of 64 KiB adds 96 us, and each GPU posts 32 of them. NCCL counts 3 us for posting one with Intel's
// CPUs (getNetOverhead in src/graph/tuning.cc: three times 1 us by Simple).
TEST(NvlsTree, ProxiesPostAChunkAfterTheOther) {
  const auto microseconds = [](const std::string& overhead, Bytes bytes) {
    PacketCollectives cluster(
        "topology: {kind: star, hosts: 16, rate: 400 Gbps, delay: 1 us}\nhost: dgx_b200\nhosts: 2\n"
        "transport: {congestion_control: none, framing: infiniband}\nnetwork: {switch: {buffer: 64 MB}}\n"
        "collectives: {all_reduce: nvls_tree, net_overhead: " +
        overhead + "}\n");
    const auto members = every(1, 16);
    return static_cast<double>(cluster.run(request_of(CollectiveKind::all_reduce, members, bytes))) / 1e6;
  };
  const double two_rounds = microseconds("1 us", 32 * kMebibyte),
               four_rounds = microseconds("1 us", 64 * kMebibyte);
  EXPECT_NEAR((four_rounds - two_rounds) / 2, 96, 5);
  EXPECT_LT(microseconds("0 us", 64 * kMebibyte), 0.75 * four_rounds);
}

// NCCL's own number, each a thread block: timed together or not, in one domain or over several.
TEST(NvlsTree, TellsNcclsChannels) {
  const auto channels = [](const std::string& yaml, std::uint32_t ranks) {
    PacketCollectives cluster(yaml);
    const auto members = every(1, ranks);
    return cluster.executor->choice(request_of(CollectiveKind::all_reduce, members, kGibibyte)).channels;
  };
  EXPECT_EQ(channels(dgx("dgx_h100", "nvls"), 8), 16U);
  EXPECT_EQ(channels(dgx("dgx_b200", "nvls"), 8), 24U);
  const std::string hosts =
      "topology: {kind: star, hosts: 16}\nhosts: 2\ncollectives: {all_reduce: nvls_tree}\n";
  EXPECT_EQ(channels(hosts + "host: dgx_h100\n", 16), 16U);
  EXPECT_EQ(channels(hosts + "host: dgx_b200\n", 16), 32U);
  const std::string together = dgx("dgx_h100", "ring");
  EXPECT_EQ(channels(together, 8), 24U);
  EXPECT_EQ(channels(together, 16), 32U);
}

TEST(NvlsTree, NeedsSwitchesThatAddUp) {
  PacketCollectives hosts(
      "topology: {kind: star, hosts: 16, rate: 200 Gbps}\nhosts: 2\nhost: dgx_a100\n"
      "collectives: {all_reduce: nvls_tree}\n");
  const auto members = every(1, 16);
  EXPECT_THAT([&] { hosts.run(request_of(CollectiveKind::all_reduce, members, kMebibyte)); },
              ThrowsMessage<InputError>(HasSubstr("all_reduce of 16 GPUs by nvls_tree")));
}

}  // namespace
}  // namespace netsim::nvls_test
