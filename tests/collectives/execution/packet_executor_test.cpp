// Collectives on the packet network: NVSwitch rings against NCCL's formula, and bytes over real queue pairs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/collectives/execution/executor.h"
#include "sim/collectives/library/nccl/nccl_tuning.h"
#include "sim/collectives/programs/named_plan.h"
#include "tests/collectives/packet_collectives.h"
#include "tests/report/fixtures.h"
#include "tests/support/test_size.h"

namespace netsim::packet_executor_test {
namespace {

using test::every;
using test::PacketCollectives;
using test::request_of;

// Returns how long the 24 thread blocks of an A100 copy received bytes of a ring out of their buffers.
Time copied_by_a100(Bytes bytes, BitRate block_bytes = 18'600'000'000) {
  return transmission_time(bytes, 24 * block_bytes * 8);
}

// 2(p-1)(a + n/(pB)): a is NCCL's hop plus two NVLinks and the switch stage, B = 240 GB/s. The last piece is
// copied out of its buffer.
TEST(PacketExecutor, RingOnNvswitchFollowsTheClosedForm) {
  const auto members = every(1, 8);
  for (const Bytes piece : {64 * kKibibyte, 256 * kKibibyte, kMebibyte, 4 * kMebibyte}) {
    PacketCollectives dgx(
        "topology: {kind: star, hosts: 16, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 2\n"
        "collectives: {base_latency_ring: 0, hop_latency_nvlink_ring: 3.5 us, slices_per_chunk: 1}\n");
    const Time end = dgx.run(request_of(CollectiveKind::all_reduce, members, 8 * piece));
    const Time hop = 3'500 * kNanosecond;  // NVLinks and NVSwitch included
    const Time expected = 14 * (hop + transmission_time(piece, 8 * 240 * kGbps)) + copied_by_a100(piece);
    EXPECT_NEAR(static_cast<double>(end), static_cast<double>(expected), 0.01 * static_cast<double>(expected))
        << piece;
    EXPECT_EQ(dgx.packets.network->counters().flows_started, 0U);
  }
}

constexpr const char* kTwoDgx =
    "topology: {kind: star, hosts: 16, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 2\n";

// A group in one host has NCCL's 24 channels, though they are timed together. Between hosts it has those that
// the network sees.
TEST(PacketExecutor, StartTellsHowManyChannelsTheKernelHas) {
  const auto eight = every(1, 8), sixteen = every(1, 16);
  const std::vector<GpuId> rail{0, 8}, alone{3};
  PacketCollectives dgx(kTwoDgx);
  const auto started = [&](const std::vector<GpuId>& members, std::uint64_t communication) {
    auto request = request_of(CollectiveKind::all_gather, members, 24 * kMebibyte);
    request.communication = communication;
    return std::pair(dgx.executor->start(members[0], request),
                     members.size() > 1 ? dgx.executor->choice(request).channels : 0);
  };
  EXPECT_EQ(started(eight, 1), std::pair(24U, 24U));
  const auto [over_all_nics, as_seen] = started(sixteen, 2);
  EXPECT_GT(over_all_nics, 4U);
  EXPECT_EQ(over_all_nics, as_seen);
  EXPECT_EQ(started(rail, 3), std::pair(4U, 4U));
  EXPECT_EQ(started(alone, 4), std::pair(0U, 0U));
}

// A thread block handles one slice after the other, with the hop's latency between any two.
TEST(PacketExecutor, SlicesWithinAHostCostTheirLatencyEach) {
  const auto members = every(1, 8);
  for (const Bytes slice : {kMebibyte, 4 * kMebibyte, 24 * kMebibyte}) {
    PacketCollectives dgx(
        kTwoDgx + std::string("collectives: {base_latency_ring: 0, hop_latency_nvlink_ring: 3.5 us}\n"));
    const Time end = dgx.run(request_of(CollectiveKind::all_reduce, members, 8 * 2 * slice));
    const auto expected =
        static_cast<double>(14 * 2 * (3'500 * kNanosecond + transmission_time(slice, 8 * 240 * kGbps)) +
                            copied_by_a100(2 * slice));
    EXPECT_NEAR(static_cast<double>(end), expected, 0.005 * expected) << slice;
  }
}

// LL sends twice the bytes, LL128 16 / 15 of them, and each its own latency once a step. An A100's lines of
// LL128 get 144 of the 240 GB/s that its NVLinks carry. LL and Simple copy the last piece as it was on the
// wire, LL at 11.4 GB/s a thread block.
TEST(PacketExecutor, ProtocolsCostTheirFlagsAndLatencies) {
  const auto members = every(1, 8);
  const Bytes piece = 120 * kKibibyte;
  const std::tuple<const char*, Bytes, Time, int, Time> protocols[] = {
      {"ll", 2 * piece, 700 * kNanosecond, 240, copied_by_a100(2 * piece, 11'400'000'000)},
      {"ll128", piece / 15 * 16, 1'500 * kNanosecond, 144, 0},
      {"simple", piece, 3'500 * kNanosecond, 240, copied_by_a100(piece)}};
  for (const auto& [protocol, wire, latency, rate, copied] : protocols) {
    PacketCollectives dgx(
        kTwoDgx + std::string("collectives: {protocol: ") + protocol +
        ", base_latency_ring: 0, hop_latency_nvlink_ring: 3.5 us, "
        "ll: {base_latency_ring: 0, hop_latency_nvlink_ring: 0.7 us}, ll128: {base_latency_ring: "
        "0}}\n");
    const Time end = dgx.run(request_of(CollectiveKind::all_reduce, members, 8 * piece));
    const auto expected =
        static_cast<double>(14 * (latency + transmission_time(wire, 8 * rate * kGbps)) + copied);
    EXPECT_NEAR(static_cast<double>(end), expected, 0.01 * expected) << protocol;
  }
}

// LL128 forwards lines in a tree within a host as they arrive. An A100 stores 144 GB/s, a quarter each for
// two trees up and down; this limits only the first hop. With Simple a chunk takes its time at each of 14
// hops. Each tree has half of the channels and bytes; now and then they meet on a link.
TEST(PacketExecutor, LinesPassThroughATreeAsTheyComeIn) {
  const auto members = every(1, 8);
  const Bytes bytes = 24 * 30 * kKibibyte;  // a chunk on each of the channels
  const auto time = [&](const char* protocol) {
    PacketCollectives dgx(kTwoDgx + std::string("collectives: {all_reduce: tree, protocol: ") + protocol +
                          ", base_latency_tree: 0, ll128: {base_latency_tree: 0}}\n");
    return static_cast<double>(dgx.run(request_of(CollectiveKind::all_reduce, members, bytes)));
  };
  const Bytes half = bytes / 2, wire = half / 15 * 16;
  const auto link = static_cast<double>(transmission_time(wire, 8 * 240 * kGbps));
  const auto block = static_cast<double>(transmission_time(wire, 8 * 144 / 4 * kGbps));
  const auto hop = static_cast<double>(1'250 * kNanosecond);
  const double expected = 14 * (hop + link) + block - link;
  EXPECT_NEAR(time("ll128"), expected, 0.03 * expected);
  EXPECT_GT(14 * (hop + block), 1.3 * expected);
  EXPECT_GT(time("simple"), 14 * static_cast<double>(transmission_time(bytes, 24 * 8 * 7 * kGbps)));
}

TEST(PacketExecutor, TheCostModelChoosesTheProtocol) {
  const std::pair<Bytes, const char*> sizes[] = {
      {64 * kKibibyte, "ll"}, {4 * kMebibyte, "ll128"}, {64 * kMebibyte, "simple"}};
  const auto members = every(1, 8);
  for (const auto& [bytes, protocol] : sizes) {
    PacketCollectives chosen(kTwoDgx + std::string("collectives: {protocol: auto, launch_latency: 5 us}\n"));
    PacketCollectives fixed(kTwoDgx + std::string("collectives: {protocol: ") + protocol + "}\n");
    const auto request = request_of(CollectiveKind::all_reduce, members, bytes);
    EXPECT_EQ(chosen.run(request), fixed.run(request) + 5 * kMicrosecond) << protocol;
  }
}

// Compares an all-reduce of all members with measured times, each within its tolerance. Returns the geometric
// mean of the errors, without the first, from which the launch time was taken.
double expect_measured(const std::string& yaml, const std::vector<GpuId>& members,
                       const std::vector<std::tuple<Bytes, double, double>>& measured) {
  double logarithms = 0;
  for (const auto& [bytes, microseconds, tolerance] : measured) {
    PacketCollectives machine(yaml);
    const auto ours =
        static_cast<double>(machine.run(request_of(CollectiveKind::all_reduce, members, bytes)));
    const double ratio = ours / static_cast<double>(kMicrosecond) / microseconds;
    EXPECT_NEAR(ratio, 1, tolerance) << bytes;
    logarithms += std::abs(std::log(ratio));
  }
  return std::exp(logarithms / static_cast<double>(measured.size() - 1)) - 1;
}

// Sizes from the first one on, each twice the one before, measured in microseconds; all within `tolerance`
// but the first.
std::vector<std::tuple<Bytes, double, double>> doubling(Bytes first, std::span<const double> times,
                                                        double tolerance) {
  std::vector<std::tuple<Bytes, double, double>> measured;
  Bytes bytes = first;
  for (const double time : times) {
    measured.emplace_back(bytes, time, bytes == first ? 0.01 : tolerance);
    bytes *= 2;
  }
  return measured;
}

// NCCL 2.18.5 on eight A100 (Azure AI benchmarking guide, in place). One constant, the cost of a launch,
// belongs to the machine. It is taken at the first size.
TEST(PacketExecutor, AnAllReduceOfADgxTakesWhatNcclTakes) {
  const auto time = [](Bytes bytes, double bus) { return 1.75 * static_cast<double>(bytes) / bus / 1e3; };
  const std::vector<std::tuple<Bytes, double, double>> measured = {
      {64 * kKibibyte, time(64 * kKibibyte, 2.70), 0.01},
      {256 * kKibibyte, time(256 * kKibibyte, 10.11), 0.15},
      {kMebibyte, time(kMebibyte, 36.22), 0.15},
      {4 * kMebibyte, time(4 * kMebibyte, 71.43), 0.15},
      {16 * kMebibyte, time(16 * kMebibyte, 109.22), 0.15},
      {64 * kMebibyte, time(64 * kMebibyte, 166.63), 0.15},
      {256 * kMebibyte, time(256 * kMebibyte, 213.87), 0.15},
      {kGibibyte, time(kGibibyte, 228.10), 0.03},
      {8 * kGibibyte, time(8 * kGibibyte, 231.58), 0.03}};
  EXPECT_LT(expect_measured(kTwoDgx + std::string("collectives: {all_reduce: nccl, protocol: auto, "
                                                  "launch_latency: 14.1 us}\n"),
                            every(1, 8), measured),
            0.08);
}

// Another eight A100, of 40 GB (nccl-tests of one process, in place; Hetu-Galvatron's
// tests/profiler/test_hardware_profile.py). The rate of LL128 lines over NVLink (store_rate()) is from its
// times at 8 and 16 MiB.
TEST(PacketExecutor, AnAllReduceOfAnotherA100HostTakesWhatNcclTakes) {
  const double times[] = {81.31, 108.2, 131.0, 180.7, 289.4, 414.5, 657.7, 1'262.3, 2'334, 4'517, 8'201.6};
  EXPECT_LT(expect_measured(kTwoDgx + std::string("collectives: {all_reduce: nccl, protocol: auto, "
                                                  "launch_latency: 42.2 us}\n"),
                            every(1, 8), doubling(kMebibyte, times, 0.12)),
            0.08);
}

// Eight H100 of a DGX, 8 B to 16 GiB (nccl-tests, in place): rings by LL up to 1 MiB, then NVLink SHARP.
// Up to 32 B few ranks' chunks have data, and NCCL is faster than netsim, where the flags of all chunks
// travel.
TEST(PacketExecutor, AnAllReduceOfADgxH100TakesWhatNcclTakes) {
  const double times[] = {13.03, 13.07,   13.52,   14.72,   15.79,   15.77,  16.01,  16.17,
                          16.43, 16.46,   16.83,   17.24,   18.68,   18.85,  19.19,  19.50,
                          19.70, 26.93,   42.09,   53.82,   82.03,   123.0,  198.9,  324.7,
                          586.0, 1'113.4, 2'149.3, 4'016.4, 7'938.0, 15'754, 31'328, 62'636};
  auto measured = doubling(8, times, 0.15);
  std::get<2>(measured[0]) = std::get<2>(measured[1]) = 0.2;
  for (std::size_t i = measured.size() - 5; i < measured.size(); ++i) std::get<2>(measured[i]) = 0.03;
  EXPECT_LT(expect_measured("topology: {kind: star, hosts: 8, rate: 400 Gbps}\nhost: dgx_h100\nhosts: 1\n"
                            "collectives: {all_reduce: nccl, protocol: auto}\n",
                            every(1, 8), test::share_of(measured, 3, 6)),
            0.08);
}

// NCCL on two p4de (nccl-tests, in place). EFA orders no 128 bytes, so its plug-in allows only Simple and
// reports 75 us (aws-ofi-nccl). A NIC gives 89 of its 100 Gb/s (configs/collectives/nccl.yaml). The tree
// reaches more bandwidth than the NICs give a ring.
TEST(PacketExecutor, AnAllReduceOfTwoP4deTakesWhatNcclTakes) {
  const double times[] = {163.3, 160.6,   160.9,   160.6,   161.2,   161.5,   161.5,  164.8,  178.5, 170.0,
                          175.7, 192.5,   223.7,   225.5,   226.8,   235.5,   259.9,  307.3,  397.4, 530.3,
                          760.7, 1'190.4, 1'540.7, 2'647.2, 3'932.8, 7'227.9, 13'548, 26'194, 51'406};
  auto measured = doubling(8, times, 0.15);
  std::get<2>(measured.back()) = std::get<2>(measured.end()[-2]) = 0.03;
  EXPECT_LT(expect_measured("topology: {kind: star, hosts: 8, rate: 89 Gbps, delay: 1 us}\nhost: aws_p4de\n"
                            "hosts: 2\nnetwork: {switch: {buffer: 64 MB}}\n"
                            "collectives: {all_reduce: nccl, protocol: simple, plugin_latency: 75 us, "
                            "launch_latency: 65.6 us}\n",
                            every(1, 16), measured),
            0.08);
}

// NCCL 2.17 on two ND96amsr_A100_v4 (in place), which are like two DGX A100. It uses trees by LL and LL128,
// rings by LL128 from 16 MiB on and by Simple from 128 MiB on. Its tables' figures are for two thread blocks.
// With a whole one for each, rings by LL128 would be more than a third too fast.
TEST(PacketExecutor, AnAllReduceOfTwoA100HostsTakesWhatNcclTakes) {
  const double times[] = {34.44, 33.94, 33.57, 33.99, 34.42,   34.77,   35.15,   37.37, 39.49, 40.85,
                          42.78, 55.03, 56.11, 59.40, 63.33,   68.67,   79.70,   96.73, 127.8, 146.5,
                          207.8, 330.8, 626.3, 929.6, 1'676.3, 3'004.6, 5'705.8, 11'089};
  EXPECT_LT(expect_measured(kTwoDgx + std::string("collectives: {all_reduce: nccl, protocol: auto, "
                                                  "launch_latency: 4 us}\n"),
                            every(1, 16), doubling(8, times, 0.26)),
            0.1);
}

// NCCL's broadcast and reduce use all of its rings. Each NIC carries its part out of the host or into it,
// except those by which a ring would return to its root.
TEST(PacketExecutor, ABroadcastAndAReduceUseAllNics) {
  const Bytes n = 256 * kMebibyte;
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce}) {
    for (const std::uint32_t root : {0U, 5U, 14U}) {
      PacketCollectives dgx(kTwoDgx + std::string("collectives: {broadcast: nccl, reduce: nccl}\n"));
      const std::vector<GpuId> members = every(1, 16);
      CommunicationRequest request = request_of(kind, members, n);
      request.root = root;
      const auto seconds = static_cast<double>(dgx.run(request)) / 1e12;
      // Each NIC carries an eighth. The time of the first slices down the rings is added.
      EXPECT_GE(static_cast<double>(n) / seconds, 0.5 * 8 * 25e9);
      double out = 0;
      for (std::uint32_t nic = 0; nic < 16; ++nic) {
        const std::string name = "host" + std::to_string(nic / 8) + "/nic" + std::to_string(nic % 8);
        const auto bytes =
            static_cast<double>(dgx.packets.network->port_counters(dgx.fabric_port(name)).wire_bytes);
        out += bytes;
        EXPECT_LE(bytes, 1.03 * n / 8) << name;
      }
      EXPECT_GE(out, 15.0 * n / 8);
    }
  }
}

// Over 2 to 16 hosts the choice is the algorithm and protocol with the lowest estimate of the cost model.
TEST(PacketExecutor, NcclTakesWhatItsModelSays) {
  for (const std::uint32_t hosts : {2U, 4U, 16U}) {
    const PacketCollectives dgx("topology: {kind: star, hosts: " + std::to_string(8 * hosts) +
                                ", rate: 200 Gbps}\nhost: dgx_a100\nhosts: " + std::to_string(hosts) +
                                "\ncollectives: {all_reduce: nccl, protocol: auto}\n");
    const auto members = every(1, 8 * hosts);
    std::set<std::string> taken;
    for (Bytes bytes = kKibibyte; bytes <= 4 * kGibibyte; bytes *= 2) {
      TuningCase one;
      one.bytes = bytes;
      one.ranks = 8 * hosts;
      one.nodes = hosts;
      one.channels = 8;
      std::string best;
      double least = std::numeric_limits<double>::max();
      for (const CostFamily family : {CostFamily::ring, CostFamily::tree}) {
        one.family = family;
        one.bandwidth = family == CostFamily::tree && hosts == 2 ? 240 : 192;
        for (const Protocol protocol : kProtocols) {
          const double time = *estimated_time(one, protocol, collectives_parameters().parse({}));
          if (time >= least) continue;
          least = time;
          best = std::string(family == CostFamily::tree ? "tree " : "ring ") + to_string(protocol);
        }
      }
      const LibraryChoice choice =
          dgx.executor->choice(request_of(CollectiveKind::all_reduce, members, bytes));
      EXPECT_EQ(choice.algorithm + " " + to_string(choice.protocol), best) << hosts << " hosts, " << bytes;
      taken.insert(best);
    }
    EXPECT_GE(taken.size(), 3U);
  }
}

// NCCL's bus bandwidth on two DGX A100 at 1 GiB is 180 to 232 GB/s.
TEST(PacketExecutor, NcclsChoiceOverTwoHostsIsAsFastAsMeasured) {
  const auto members = every(1, 16);
  PacketCollectives dgx(kTwoDgx + std::string("collectives: {all_reduce: nccl, protocol: auto}\n"));
  const Time end = dgx.run(request_of(CollectiveKind::all_reduce, members, kGibibyte));
  const double bus = 2.0 * 15 / 16 * static_cast<double>(kGibibyte) / static_cast<double>(end) * 1e3;  // GB/s
  EXPECT_GT(bus, 180);
  EXPECT_LT(bus, 232);
}

// A host sends each byte once over its NICs, up or down one of the two trees, where a ring sends it 1.9
// times.
TEST(PacketExecutor, ATreeOverTwoHostsSendsLessThanARing) {
  const auto members = every(1, 16);
  const Bytes bytes = 64 * kMebibyte;
  PacketCollectives dgx(kTwoDgx + std::string("collectives: {all_reduce: tree}\n"));
  const Time end = dgx.run(request_of(CollectiveKind::all_reduce, members, bytes));
  EXPECT_GT(end, transmission_time(bytes, 8 * 200 * kGbps));
  const Graph& graph = dgx.packets.cluster.graph;
  Bytes least = bytes, most = 0;
  for (const HostPort& nic : dgx.packets.cluster.nics) {
    for (const PortId port : graph.ports_of(nic.nic)) {
      if (graph.port_name(port).find("switch0") == std::string::npos) continue;
      least = std::min(least, dgx.packets.network->port_counters(port).wire_bytes);
      most = std::max(most, dgx.packets.network->port_counters(port).wire_bytes);
    }
  }
  EXPECT_GT(least, bytes / 8);
  EXPECT_LT(most, bytes / 8 + bytes / 8 / 20);  // headers, ACKs and credits
}

TEST(PacketExecutor, AProgramRunsByItsOwnProtocol) {
  const test::Directory directory;
  const std::string path = directory.path() + "/ring.xml";
  PlanName ring;
  ring.text = "ring";
  ring.ranks = 8;
  std::string text = program_named(ring);
  text.replace(text.find("Simple"), 6, "LL");
  std::ofstream(path) << text;
  const auto members = every(1, 8);
  const auto request = request_of(CollectiveKind::all_reduce, members, kMebibyte);
  PacketCollectives program(kTwoDgx + std::string("collectives: {all_reduce: {kind: msccl, file: ") + path +
                            "}}\n");
  PacketCollectives own(kTwoDgx + std::string("collectives: {protocol: ll}\n"));
  EXPECT_EQ(program.run(request), own.run(request));
}

TEST(PacketExecutor, TheCostModelNeedsToKnowTheGpus) {
  const std::string star = "topology: {kind: star, hosts: 2}\n";
  const auto make = [&](const char* section) { const PacketCollectives made(star + section); };
  EXPECT_THAT([&] { make("collectives: {protocol: auto}\n"); },
              ::testing::ThrowsMessage<ConfigError>(::testing::HasSubstr("gpu_generation")));
  EXPECT_NO_THROW(make("collectives: {protocol: auto, gpu_generation: hopper}\n"));
}

TEST(PacketExecutor, SendsTheBytesThatItPromises) {
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                    CollectiveKind::all_to_all, CollectiveKind::broadcast}) {
    for (const std::uint32_t stride : {1U, 4U, 8U}) {  // 16, 4 and 2 members on two hosts
      const char* const protocol = stride == 4 ? "ll128" : stride == 8 ? "ll" : "simple";
      PacketCollectives dgx(kTwoDgx + std::string("collectives: {protocol: ") + protocol + "}\n");
      const auto members = every(stride, 16 / stride);
      auto request = request_of(kind, members, 3'000'001);
      Bytes promised = 0;
      for (request.index = 0; request.index < members.size(); ++request.index) {
        promised += dgx.executor->scale_out_bytes(members[request.index], request);
      }
      dgx.run(request);
      EXPECT_EQ(dgx.packets.network->counters().bytes_delivered, promised);
      EXPECT_GT(promised, 0);
    }
  }
}

// Two GPUs on two hosts: 2 steps, each at least n/2 over 200 Gb/s, and never faster than that.
TEST(PacketExecutor, RingBetweenHostsIsNearTheBandwidthBound) {
  const auto members = every(8, 2);
  PacketCollectives dgx("topology: {kind: star, hosts: 16, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 2\n");
  const Bytes bytes = 256 * kMebibyte;
  const Time end = dgx.run(request_of(CollectiveKind::all_reduce, members, bytes));
  const Time bound = transmission_time(bytes, 200 * kGbps);  // 2n(p-1)/p = n
  EXPECT_GT(end, bound);
  EXPECT_LT(end, bound + bound / 4);
  EXPECT_EQ(dgx.packets.network->counters().drops, 0U);
}

// Eight rings use different NICs, so that all sixteen are busy. NCCL's bus bandwidth with the ring on two
// such hosts is 170 to 195 GB/s of 200.
TEST(PacketExecutor, RingOverTwoHostsUsesAllNics) {
  const auto members = every(1, 16);
  PacketCollectives dgx("topology: {kind: star, hosts: 16, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 2\n");
  const Bytes bytes = 256 * kMebibyte;
  const Time end = dgx.run(request_of(CollectiveKind::all_reduce, members, bytes));
  const double bus = 2.0 * 15 / 16 * static_cast<double>(bytes) / static_cast<double>(end) * 1e3;  // GB/s
  EXPECT_GT(bus, 170);
  EXPECT_LT(bus, 195);
  const Graph& graph = dgx.packets.cluster.graph;
  for (const HostPort& nic : dgx.packets.cluster.nics) {
    for (const PortId port : graph.ports_of(nic.nic)) {
      if (graph.port_name(port).find("switch0") == std::string::npos) continue;
      EXPECT_GT(dgx.packets.network->port_counters(port).wire_bytes, bytes / 8) << nic.nic;
      EXPECT_GT(dgx.packets.network->port_counters(port ^ 1).wire_bytes, bytes / 8) << nic.nic;
    }
  }
}

// Some algorithms communicate with other hosts at few ranks: the leader of a host, or the ends of a part of a
// tree or ring. On each channel another member of each host has this role. So all sixteen NICs send and
// receive about equally much.
TEST(PacketExecutor, PlansOverDomainsUseAllNics) {
  const auto members = every(1, 16);
  for (const char* algorithm :
       {"{kind: hierarchical, group: 8}", "bidirectional_ring", "{kind: multi_ring, rings: 2}",
        "double_binary_tree", "binary_tree", "chained_trees", "binomial_tree"}) {
    PacketCollectives dgx(kTwoDgx + std::string("collectives: {all_reduce: ") + algorithm + "}\n");
    dgx.run(request_of(CollectiveKind::all_reduce, members, 64 * kMebibyte));
    std::set<Bytes> out, in;
    for (const HostPort& nic : dgx.packets.cluster.nics) {
      const PortId port = dgx.fabric_port(dgx.packets.cluster.graph.node(nic.nic).name);
      out.insert(dgx.packets.network->port_counters(port).wire_bytes);
      in.insert(dgx.packets.network->port_counters(port ^ 1).wire_bytes);
    }
    EXPECT_GT(2 * *out.begin(), *out.rbegin()) << algorithm;
    EXPECT_GT(2 * *in.begin(), *in.rbegin()) << algorithm;
    EXPECT_GT(*out.begin(), 4 * kMebibyte) << algorithm;
  }
}

// With few bytes PAT takes the time of NCCL's cost model. That is a base, a part for each rank, and a part of
// the latency between hosts for each step. The time of the fabric is added.
TEST(PacketExecutor, PatCostsWhatTheModelSays) {
  for (const std::uint32_t ranks : {2U, 7U, 8U, 64U}) {
    for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
      const auto members = every(1, ranks);
      PacketCollectives hosts(
          "topology: {kind: star, hosts: 64, rate: 400 Gbps, delay: 1 ns}\nhost: single_nic\n"
          "network: {switch: {latency: 0}}\ntransport: {congestion_control: none}\ncollectives: "
          "{all_gather: pat, reduce_scatter: pat, scale_out_channels: 1}\n");
      const Time end = hosts.run(request_of(kind, members, ranks));
      const double steps = std::ceil(std::log2(ranks));
      const double expected = 8 + 2.8 * ranks + 4 * steps;
      EXPECT_NEAR(static_cast<double>(end) / 1e6, expected, 0.01 * expected) << ranks;
    }
  }
}

// MSCCL's two-step all-to-all on 64 hosts of 8 GPUs with a NIC each, 1 MB a GPU, over packets. Between hosts
// it sends 63 messages of 16 KB instead of 504 of 2 KB. Its baseline, the direct one, sends to each rank and
// receives from each at once.
TEST(LongPacketExecutor, TwoStepsAreFasterThanOneForLittle) {
  const auto members = every(1, 512);
  const auto time = [&](const std::string& algorithm) {
    PacketCollectives dgx(
        "topology: {kind: star, hosts: 512, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 64\n"
        "collectives: {protocol: auto, all_to_all: " +
        algorithm + "}\n");
    return static_cast<double>(dgx.run(request_of(CollectiveKind::all_to_all, members, kMegabyte)));
  };
  EXPECT_GE(time("direct") / time("{kind: two_step, group: 8}"), 1.2);
}

TEST(PacketExecutor, RawTransferIsOneFlow) {
  const std::vector<GpuId> pair{3, 11};
  PacketCollectives dgx("topology: {kind: star, hosts: 16, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 2\n");
  auto request = request_of(CollectiveKind::point_to_point, pair, 10 * kMegabyte);
  request.raw = true;
  dgx.run(request);
  EXPECT_EQ(dgx.packets.network->counters().flows_done, 1U);
  EXPECT_EQ(dgx.packets.flows.at(0).bytes, 10 * kMegabyte);
}

}  // namespace
}  // namespace netsim::packet_executor_test
