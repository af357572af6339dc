// Does the cost model say what NCCL's tables give by hand, and choose accordingly?
#include "sim/collectives/library/nccl/nccl_tuning.h"
#include "sim/collectives/library/nccl/copy_rates.h"

#include <gtest/gtest.h>

namespace netsim::nccl_tuning_test {
namespace {

Protocol chosen_protocol(const TuningCase& one) {
  return best_estimate(one, kProtocols, collectives_parameters().parse({})).value().protocol;
}

const CollectivesParameters& nccl() {
  static const CollectivesParameters parameters = collectives_parameters().parse({});
  return parameters;
}

// 12 NVLinks of 20 GB/s.
TuningCase dgx_a100(Bytes bytes) {
  TuningCase one;
  one.bytes = bytes;
  one.ranks = 8;
  one.channels = 24;
  one.bandwidth = 240;
  return one;
}

// Each with 8 NICs of 24 GB/s.
TuningCase dgx_a100_hosts(std::uint32_t hosts, Bytes bytes) {
  TuningCase one = dgx_a100(bytes);
  one.ranks = 8 * hosts;
  one.nodes = hosts;
  one.channels = 32;
  one.bandwidth = 192;
  return one;
}

void expect_time(const TuningCase& one, Protocol protocol, double microseconds) {
  const std::optional<double> time = estimated_time(one, protocol, nccl());
  ASSERT_TRUE(time.has_value());
  EXPECT_NEAR(*time, microseconds, 1e-6 * microseconds) << to_string(protocol);
}

// 14 hops, and the bus bandwidth times 8 / 14: of LL 87.7 GB/s, of LL128 0.92 x 240, of Simple 240.
TEST(NcclTuning, TimesARingWithinAHost) {
  expect_time(dgx_a100(65'536), Protocol::ll, 6.6 + 8.4 + 65.536 / (87.7 * 8 / 14));
  expect_time(dgx_a100(4'194'304), Protocol::ll128, 14 + 26.6 + 4'194.304 / (220.8 * 8 / 14));
  expect_time(dgx_a100(67'108'864), Protocol::simple, 8.4 + 47.6 + 67'108.864 / (240.0 * 8 / 14));
}

// There are 28 hops inside, which cost at least as much as posting on AMD's CPUs, and 2 between. From 64
// bytes a channel and rank on, Simple's latency counts 1.4 times.
TEST(NcclTuning, TimesARingOverTwoHosts) {
  expect_time(dgx_a100_hosts(2, 65'536), Protocol::ll, 6.6 + 28 * 2 + 2 * 2.7 + 65.536 / 12);
  expect_time(dgx_a100_hosts(2, 1 << 20), Protocol::ll128, 14 + 28 * 2 + 2 * 4 + 1'048.576 / 94.208);
  expect_time(dgx_a100_hosts(2, 1 << 30), Protocol::simple,
              1.4 * (8.4 + 28 * 6 + 2 * 14) + 1'073'741.824 / 102.4);
  expect_time(dgx_a100_hosts(2, 16'384), Protocol::simple, 8.4 + 28 * 6 + 2 * 14 + 16.384 / 102.4);
}

// There are 16 nodes of one GPU each with 24 GB/s. PAT takes four steps of 14 / 3.5 us, 2.8 us for each rank,
// and three quarters of the bandwidth. 1,000 nodes take as many steps as 512. The plug-in's latency counts
// twice, because data is flushed.
TEST(NcclTuning, TimesPat) {
  TuningCase one;
  one.kind = CollectiveKind::all_gather;
  one.family = CostFamily::pat;
  one.bytes = 1 << 20;
  one.ranks = one.nodes = 16;
  one.channels = 2;
  one.nvlink = false;
  one.bandwidth = 24;
  expect_time(one, Protocol::simple, 8 + 4 * 4 + 16 * 2.8 + 1'048.576 / 18);
  one.kind = CollectiveKind::reduce_scatter;
  expect_time(one, Protocol::simple, 8 + 4 * 4 + 16 * 2.8 + 1'048.576 / 18);
  CollectivesParameters slow = nccl();
  slow.plugin_latency = 7 * kMicrosecond;
  EXPECT_NEAR(*estimated_time(one, Protocol::simple, slow) - *estimated_time(one, Protocol::simple, nccl()),
              4 * 14 / 3.5, 1e-9);
  one.ranks = one.nodes = 1000;
  expect_time(one, Protocol::simple, 8 + 9 * 4 + 1000 * 2.8 + 1'048.576 / 18);
  for (const Protocol protocol : {Protocol::ll, Protocol::ll128})
    EXPECT_FALSE(estimated_time(one, protocol, nccl()).has_value());
  one.nodes = 500;
  EXPECT_FALSE(estimated_time(one, Protocol::simple, nccl()).has_value());
  one.nodes = 1000;
  one.kind = CollectiveKind::all_reduce;
  EXPECT_FALSE(estimated_time(one, Protocol::simple, nccl()).has_value());
}

// 7 hops in the host and 4 levels between hosts, up and down; half of 0.92 of the bandwidth, half again at 1
// MiB.
TEST(NcclTuning, TimesATree) {
  TuningCase one = dgx_a100_hosts(16, 1 << 20);
  one.family = CostFamily::tree;
  expect_time(one, Protocol::simple, 8.4 + 2 * (7 * 4 + 4 * 14) + 1'048.576 / 44.16);
  one.kind = CollectiveKind::all_gather;  // no tree does that: the ring's figures
  one.family = CostFamily::ring;
  expect_time(one, Protocol::simple, 8.4 + 112 * 6 + 15 * 14 + 1'048.576 / (192.0 * 128 / 127));
}

TEST(NcclTuning, ChoosesBySize) {
  EXPECT_EQ(chosen_protocol(dgx_a100(1 << 10)), Protocol::ll);
  EXPECT_EQ(chosen_protocol(dgx_a100(1 << 20)), Protocol::ll);
  EXPECT_EQ(chosen_protocol(dgx_a100(4 << 20)), Protocol::ll128);
  EXPECT_EQ(chosen_protocol(dgx_a100(64 << 20)), Protocol::simple);
}

TEST(NcclTuning, KeepsLl128FromPcie) {
  TuningCase one = dgx_a100(4 << 20);
  one.nvlink = false;
  EXPECT_FALSE(estimated_time(one, Protocol::ll128, nccl()).has_value());
  EXPECT_NE(chosen_protocol(one), Protocol::ll128);
}

TEST(NcclTuning, TakesTheNarrowerOfNvlinkAndNics) {
  CommunicatorLayout layout;
  layout.local_rate = 1920 * kGbps;
  layout.nic_rate = 1600 * kGbps;
  const auto of_ring = [&] { return model_bandwidth(layout, CostFamily::ring, GpuGeneration::ampere); };
  EXPECT_DOUBLE_EQ(of_ring(), 240);
  layout.domains = 2;
  EXPECT_DOUBLE_EQ(of_ring(), 192);
  layout.nic_rate = 3200 * kGbps;
  EXPECT_DOUBLE_EQ(of_ring(), 240);
  layout.nearest = Reach::scale_out;  // a member a host
  EXPECT_DOUBLE_EQ(of_ring(), 384);
}

// Two p4de: four chains, each with a NIC of 12 GB/s and as much NVLink as the search tries, twice that.
TEST(NcclTuning, CountsWhatATreeOfTwoNodesGetsInside) {
  CommunicatorLayout layout;
  layout.local_rate = 1920 * kGbps;
  layout.nic_rate = 400 * kGbps;
  layout.domains = 2;
  layout.chains.resize(8);  // of both trees
  const auto of = [&](CostFamily family) { return model_bandwidth(layout, family, GpuGeneration::ampere); };
  EXPECT_DOUBLE_EQ(of(CostFamily::ring), 48);
  EXPECT_DOUBLE_EQ(of(CostFamily::tree), 96);
  layout.domains = 3;
  EXPECT_DOUBLE_EQ(of(CostFamily::tree), 48);
  layout.domains = 2;  // of two DGX A100 the next speed is beyond what 12 NVLinks give eight chains
  layout.nic_rate = 1600 * kGbps;
  layout.chains.resize(16);
  EXPECT_DOUBLE_EQ(of(CostFamily::tree), 240);
}

// By Simple also where what came is flushed to the GPU.
TEST(NcclTuning, AddsWhatThePluginReports) {
  CollectivesParameters slow = nccl();
  slow.plugin_latency = 75 * kMicrosecond;
  TuningCase one = dgx_a100_hosts(2, 1024);
  one.family = CostFamily::tree;
  EXPECT_NEAR(*estimated_time(one, Protocol::ll, slow) - *estimated_time(one, Protocol::ll, nccl()), 150,
              1e-9);
  EXPECT_NEAR(*estimated_time(one, Protocol::simple, slow) - *estimated_time(one, Protocol::simple, nccl()),
              300, 1e-9);
}

// A channel of LL has at least 512 threads of 8 bytes each, on a ring times the ranks. Channels that would
// move less than 32 KiB are not used.
TEST(NcclTuning, UsesFewChannelsForLittle) {
  TuningCase one = dgx_a100_hosts(2, 64 * kKibibyte);
  EXPECT_EQ(tuned_channels(one, Protocol::ll, 32), 1U);
  one.family = CostFamily::tree;
  EXPECT_EQ(tuned_channels(one, Protocol::ll, 32), 16U);
  EXPECT_EQ(tuned_channels(one, Protocol::ll, 8), 8U);
  EXPECT_EQ(tuned_channels(one, Protocol::ll128, 32), 4U);   // 128 KiB to move
  EXPECT_EQ(tuned_channels(one, Protocol::simple, 32), 2U);  // 512 threads of 64 bytes
  one.bytes = 8;
  EXPECT_EQ(tuned_channels(one, Protocol::ll, 32), 1U);
  one.bytes = kGibibyte;
  EXPECT_EQ(tuned_channels(one, Protocol::simple, 32), 32U);
}

// There are eight heads of 40 GB/s, the highest speed of the search that nine of them allow. NVLS reaches .85
// of that, but for one head, twice, and times 8 / 14: 272 GB/s. Beyond some 4 MB it is faster than a ring of
// 14 steps.
TEST(NcclTuning, TimesSwitchesThatAddUp) {
  CommunicatorLayout layout;
  layout.sizes = {8};
  TuningCase one = dgx_a100(64 << 20);
  one.generation = GpuGeneration::hopper;
  one.family = CostFamily::nvls;
  one.channels = nvls_heads(layout);
  EXPECT_EQ(one.channels, 8U);
  one.bandwidth = 320;
  expect_time(one, Protocol::simple, 25 + 67'108.864 / (320 * .85 * 7 / 8 * 2 * 8 / 14));
  EXPECT_FALSE(estimated_time(one, Protocol::ll, nccl()).has_value());
  one.nodes = 2;
  EXPECT_FALSE(estimated_time(one, Protocol::simple, nccl()).has_value());
  one.nodes = 1;
  one.generation = GpuGeneration::ampere;
  EXPECT_FALSE(estimated_time(one, Protocol::simple, nccl()).has_value());
}

// The switches of the hosts, and what joins these.
void use_switches(TuningCase& one, CostFamily family, const CommunicatorLayout& layout) {
  one.family = family;
  one.channels = nvls_heads(layout);
  one.bandwidth = model_bandwidth(layout, one.family, one.generation);
  one.bandwidth_between = nvls_tree_bandwidth_between(layout, one.generation);
}

// There are eight heads of 40 GB/s within a DGX H100 and 48 between two of them, which a byte crosses once. A
// channel reaches at most 57.7 on two nodes and 45.5 on more. Latencies are 25 us, and 20.9 up and down each
// level of the trees.
TEST(NcclTuning, TimesTreesOfSwitchesThatAddUp) {
  CommunicatorLayout layout;
  layout.sizes = {8};
  layout.local_rate = 2'966'400 * (kGbps / 1000);
  layout.nic_rate = 3200 * kGbps;
  TuningCase one = dgx_a100_hosts(2, 64 << 20);
  one.generation = GpuGeneration::hopper;
  use_switches(one, CostFamily::nvls_tree, layout);
  EXPECT_DOUBLE_EQ(one.bandwidth, 8 * 40);
  EXPECT_DOUBLE_EQ(one.bandwidth_between, 8 * 48);
  expect_time(one, Protocol::simple, 25 + 2 * 20.9 + 67'108.864 / (8 * 57.7 * 16 / 30));
  EXPECT_FALSE(estimated_time(one, Protocol::ll128, nccl()).has_value());
  one.nodes = 8;
  one.ranks = 64;
  expect_time(one, Protocol::simple, 25 + 6 * 20.9 + 67'108.864 / (8 * 45.5 * 64 / 126));
  one.generation = GpuGeneration::blackwell;  // the NICs of 48; with CPUs of x86 .7 of it at 64 MiB
  expect_time(one, Protocol::simple, 25 + 6 * 20.9 + 67'108.864 / (.8 * 8 * 48 * 64 / 126));
  one.grace = true;
  expect_time(one, Protocol::simple, 25 + 6 * 20.9 + 67'108.864 / (8 * 48 * 64 / 126.0));
  one.nodes = 1;
  EXPECT_FALSE(estimated_time(one, Protocol::simple, nccl()).has_value());
}

// `gpus` of a host, with `nics` of `nic` Gb/s near them and `local` GB/s of NVLink each.
CommunicatorLayout hosts_of(std::uint32_t gpus, std::uint32_t nics, BitRate nic, double local) {
  CommunicatorLayout layout;
  layout.domains = 4;
  layout.sizes = {gpus};
  layout.local_rate = static_cast<BitRate>(local * 8e9);
  layout.rate_of_nic = nic * kGbps;
  layout.nic_rate = nics * layout.rate_of_nic;
  layout.chains.resize(std::size_t{2} * nics);
  return layout;
}

TuningCase direct_case(const CommunicatorLayout& layout, GpuGeneration generation, Bytes bytes) {
  const CollnetGraph graph = collnet_direct_graph(layout, generation);
  TuningCase one;
  one.family = CostFamily::collnet_direct;
  one.bytes = bytes;
  one.nodes = layout.domains;
  one.ranks = layout.domains * layout.sizes.front();
  one.generation = generation;
  one.nvswitches = true;
  one.channels = graph.channels;
  one.heads = graph.heads;
  one.bandwidth = graph.channels * graph.inside;
  one.bandwidth_between = graph.channels * graph.between;
  return one;
}

void expect_graph(const CommunicatorLayout& layout, GpuGeneration generation, std::uint32_t heads,
                  std::uint32_t channels, double between, double inside) {
  const CollnetGraph graph = collnet_direct_graph(layout, generation);
  EXPECT_EQ(graph.heads, heads);
  EXPECT_EQ(graph.channels, channels);
  EXPECT_DOUBLE_EQ(graph.between, between);
  EXPECT_DOUBLE_EQ(graph.inside, inside);
}

// A channel a NIC, of the highest speed that the search knows for it, and within the host up to twice that.
// Channels of 25 GB/s and more are doubled, up to one a GPU; from Hopper on only few of them, or from 50.
TEST(NcclTuning, FindsHeadsOfCollNet) {
  const auto ampere = GpuGeneration::ampere, hopper = GpuGeneration::hopper;
  expect_graph(hosts_of(8, 8, 200, 240), ampere, 8, 8, 24, 48);                 // DGX A100
  expect_graph(hosts_of(8, 4, 100, 240), ampere, 4, 4, 12, 24);                 // p4de
  expect_graph(hosts_of(8, 8, 400, 370.8), hopper, 8, 8, 48, 48);               // DGX H100
  expect_graph(hosts_of(8, 4, 400, 370.8), hopper, 4, 8, 24, 48);               // half of its NICs
  expect_graph(hosts_of(4, 4, 400, 370.8), hopper, 4, 4, 48, 48);               // half of its GPUs
  expect_graph(hosts_of(1, 1, 200, 240), ampere, 1, 1, 24, 48);                 // one of them
  expect_graph(hosts_of(16, 8, 100, 120), GpuGeneration::volta, 8, 8, 12, 24);  // DGX-2
  expect_graph(hosts_of(8, 8, 200, 30), ampere, 8, 8, 15, 15);  // GPUs that hardly reach each other
}

// 2 (3.7 + 7 x 0.4) us and 31 for the network, half of what the channels have, and from Hopper on .85 of
// that. Two GPUs a NIC divide by 1.5. To gather or scatter, .9 of the NICs, of which there is one a GPU.
TEST(NcclTuning, TimesCollNetDirect) {
  const double mib = 1'048.576;
  TuningCase a100 = direct_case(hosts_of(8, 8, 200, 240), GpuGeneration::ampere, 1 << 20);
  expect_time(a100, Protocol::simple, 13 + 31 + mib / (8 * 48 / 2.0));
  EXPECT_FALSE(estimated_time(a100, Protocol::ll, nccl()).has_value());
  EXPECT_FALSE(estimated_time(a100, Protocol::ll128, nccl()).has_value());
  a100.kind = CollectiveKind::all_gather;
  expect_time(a100, Protocol::simple, 13 + 31 + mib / (8 * 24 * .9));
  a100.kind = CollectiveKind::reduce_scatter;
  expect_time(a100, Protocol::simple, 13 + 31 + mib / (8 * 24 * .9));
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce}) {
    a100.kind = kind;
    EXPECT_FALSE(estimated_time(a100, Protocol::simple, nccl()).has_value());
  }
  const TuningCase h100 = direct_case(hosts_of(8, 8, 400, 370.8), GpuGeneration::hopper, 1 << 20);
  expect_time(h100, Protocol::simple, 13 + 31 + mib / (8 * 48 * .85 / 2));
  TuningCase p4de = direct_case(hosts_of(8, 4, 100, 240), GpuGeneration::ampere, 1 << 20);
  expect_time(p4de, Protocol::simple, 13 + 31 + mib / (4 * 24 / 1.5 / 2));
  p4de.kind = CollectiveKind::all_gather;
  EXPECT_FALSE(estimated_time(p4de, Protocol::simple, nccl()).has_value());
  // With a GPU a host the network's latency is that of trees, and nothing is done within.
  const TuningCase alone = direct_case(hosts_of(1, 1, 200, 240), GpuGeneration::ampere, 1 << 20);
  expect_time(alone, Protocol::simple, 14 + mib / 24);
  TuningCase pcie = direct_case(hosts_of(8, 8, 200, 240), GpuGeneration::ampere, 1 << 20);
  pcie.nvswitches = false;
  EXPECT_FALSE(estimated_time(pcie, Protocol::simple, nccl()).has_value());
  CollectivesParameters slow = nccl();
  slow.plugin_latency = 10 * kMicrosecond;
  EXPECT_NEAR(*estimated_time(h100, Protocol::simple, slow) - *estimated_time(h100, Protocol::simple, nccl()),
              20, 1e-9);
}

// Latencies are 2.8 us for each of seven ranks up and down, and 30 for the network. The bandwidth is half of
// what eight chains have within the host. 30 GB/s is the highest speed that 240 give each. With one GPU a
// host it is twice its NIC's rate.
TEST(NcclTuning, TimesCollNetChain) {
  const CommunicatorLayout layout = hosts_of(8, 8, 200, 240);
  TuningCase one = direct_case(layout, GpuGeneration::ampere, 1 << 20);
  one.family = CostFamily::collnet_chain;
  one.nvswitches = false;
  one.bandwidth = model_bandwidth(layout, one.family, one.generation);
  EXPECT_DOUBLE_EQ(one.bandwidth, 8 * 30);
  expect_time(one, Protocol::simple, 2 * 7 * 2.8 + 30 + 1'048.576 / 120);
  EXPECT_FALSE(estimated_time(one, Protocol::ll, nccl()).has_value());
  one.kind = CollectiveKind::all_gather;
  EXPECT_FALSE(estimated_time(one, Protocol::simple, nccl()).has_value());
  one.kind = CollectiveKind::all_reduce;
  one.nodes = 1;
  EXPECT_FALSE(estimated_time(one, Protocol::simple, nccl()).has_value());
  CommunicatorLayout alone = hosts_of(1, 1, 200, 240);
  alone.nearest = Reach::scale_out;
  alone.chains.clear();
  EXPECT_DOUBLE_EQ(model_bandwidth(alone, CostFamily::collnet_chain, GpuGeneration::ampere), 48);
}

// 25 us within the hosts and 18 for the network. The bandwidth is that of NVSwitches, or of the NICs if that
// is less.
TEST(NcclTuning, TimesNvlsOverCollNet) {
  CommunicatorLayout layout = hosts_of(8, 8, 400, 370.8);
  TuningCase one = direct_case(layout, GpuGeneration::hopper, 1 << 20);
  use_switches(one, CostFamily::nvls_collnet, layout);
  EXPECT_DOUBLE_EQ(one.bandwidth, 8 * 40);
  EXPECT_DOUBLE_EQ(one.bandwidth_between, 8 * 48);
  expect_time(one, Protocol::simple, 25 + 18 + 1'048.576 / (8 * 48 * 32 / 62.0));
  one.bandwidth = 8 * 20;
  expect_time(one, Protocol::simple, 25 + 18 + 1'048.576 / (8 * 20 * .85 * 7 / 8 * 2 * 32 / 62));
  // In the other kinds a rank already has its own part, an eighth of what it gets within its host. They need
  // a NIC for each GPU.
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    one.kind = kind;
    expect_time(one, Protocol::simple, 25 + 18 + 1'048.576 / (8 * 20 * .85 * 7 / 8 * 7 / 8 * 32 / 31));
    one.heads = 4;
    EXPECT_FALSE(estimated_time(one, Protocol::simple, nccl()).has_value());
    one.heads = 8;
  }
  one.kind = CollectiveKind::all_reduce;
  one.nodes = 1;
  EXPECT_FALSE(estimated_time(one, Protocol::simple, nccl()).has_value());
  one.nodes = 4;
  one.generation = GpuGeneration::ampere;
  EXPECT_FALSE(estimated_time(one, Protocol::simple, nccl()).has_value());
}

TEST(NcclTuning, TakesASpeedThatTheSearchKnows) {
  CommunicatorLayout layout;
  layout.local_rate = 2'966'400 * (kGbps / 1000);  // 18 NVLinks of 20.6 GB/s
  layout.sizes = {8};
  EXPECT_DOUBLE_EQ(model_bandwidth(layout, CostFamily::nvls, GpuGeneration::hopper), 320);
  layout.local_rate = 5'774'400 * (kGbps / 1000);  // 18 of 40.1
  EXPECT_DOUBLE_EQ(model_bandwidth(layout, CostFamily::nvls, GpuGeneration::blackwell), 640);
  layout.sizes = {72};
  EXPECT_EQ(nvls_heads(layout), 32U);
  EXPECT_DOUBLE_EQ(model_bandwidth(layout, CostFamily::nvls, GpuGeneration::blackwell), 640);
}

// 32 heads among 72 GPUs have 33 times 20 GB/s of 18 x 40.1. As many heads as GPUs have all of it. Links
// faster than all speeds of the search count in full. The model's limit for a head of a tree over several
// hosts applies to no port.
TEST(NcclTuning, KnowsWhatHeadsHaveOfPorts) {
  CommunicatorLayout layout;
  layout.local_rate = 5'774'400 * (kGbps / 1000);
  layout.sizes = {72};
  EXPECT_NEAR(nvls_share(layout, GpuGeneration::blackwell), 660 / 721.8, 1e-9);
  layout.local_rate *= 5;
  EXPECT_EQ(nvls_share(layout, GpuGeneration::blackwell), 1);
  layout.sizes = {32};
  EXPECT_EQ(nvls_share(layout, GpuGeneration::blackwell), 1);
  layout.local_rate = 2'966'400 * (kGbps / 1000);
  layout.sizes = {8, 8, 8, 8};
  layout.domains = 4;
  EXPECT_EQ(nvls_share(layout, GpuGeneration::hopper), 1);
}

// GB/s of data. A channel of the search is two thread blocks, and a byte of a tree passes each twice. By
// Simple a chunk of 512 KiB and the fence before the next one take as long as the table has it. The fence
// takes 4 us by NVLink and 14 us over the network. A multiprocessor has one rate on any number of
// nodes: Blackwell's is 70, and not the 24 of three nodes and more.
TEST(NcclTuning, KnowsWhatAThreadBlockMoves) {
  const auto rate = [](CostFamily family, Protocol protocol, GpuGeneration generation) {
    return static_cast<double>(thread_block_rate(family, protocol, generation)) / 8e9;
  };
  const auto with_fence = [](double own, double fence) { return 524.288 / (524.288 / own + fence); };
  using enum GpuGeneration;
  EXPECT_NEAR(with_fence(rate(CostFamily::tree, Protocol::simple, volta), 4), 26.5 / 4, 1e-6);
  EXPECT_NEAR(with_fence(rate(CostFamily::tree, Protocol::simple, ampere), 14), 23.6 / 4, 1e-6);
  EXPECT_NEAR(with_fence(rate(CostFamily::tree, Protocol::simple, hopper), 14), 41.4 / 4, 1e-6);
  EXPECT_NEAR(with_fence(rate(CostFamily::tree, Protocol::simple, blackwell), 4), 70.0 / 4, 1e-6);
  EXPECT_NEAR(rate(CostFamily::ring, Protocol::simple, ampere), 24, 1e-6);
  EXPECT_NEAR(rate(CostFamily::ring, Protocol::ll128, hopper), 36.7 / 2, 1e-6);
  EXPECT_NEAR(rate(CostFamily::tree, Protocol::ll128, blackwell), 55.6 / 4, 1e-6);
  EXPECT_NEAR(rate(CostFamily::ring, Protocol::ll, ampere), 12, 1e-6);
  EXPECT_NEAR(rate(CostFamily::ring, Protocol::ll, hopper), 38.7 / 2, 1e-6);
  EXPECT_NEAR(rate(CostFamily::tree, Protocol::ll, ampere), 24 / 3.8 / 4, 1e-6);
}

// A thread block moves half of the lesser figure of trees on one node and two. It copies faster than that.
TEST(NcclTuning, KnowsWhatAThreadBlockMovesAndCopiesInAHost) {
  const auto gigabytes = [](BitRate rate) { return static_cast<double>(rate) / 8e9; };
  using enum GpuGeneration;
  EXPECT_NEAR(gigabytes(simple_rate_inside(volta)), 18.5 / 2, 1e-6);
  EXPECT_NEAR(gigabytes(simple_rate_inside(ampere)), 23.6 / 2, 1e-6);
  EXPECT_NEAR(gigabytes(simple_rate_inside(hopper)), 38.7 / 2, 1e-6);
  EXPECT_NEAR(gigabytes(simple_rate_inside(blackwell)), 42.8 / 2, 1e-6);
  EXPECT_EQ(copy_rate(volta), 0);
  for (const GpuGeneration one : {ampere, hopper, blackwell})
    EXPECT_GT(copy_rate(one), simple_rate_inside(one));
  EXPECT_NEAR(gigabytes(ring_copy_rate(ampere)), 18.6, 1e-6);
  for (const GpuGeneration one : {volta, hopper, blackwell}) EXPECT_EQ(ring_copy_rate(one), copy_rate(one));
  EXPECT_EQ(ll_copy_rate(volta), 0);
  for (const GpuGeneration one : {ampere, hopper, blackwell})
    EXPECT_LT(2 * ll_copy_rate(one), copy_rate(one));
}

// 0.6 of NVLink on A100, in a tree half of it each way; no limit of their own elsewhere.
TEST(NcclTuning, KnowsWhatLinesOfLl128GetOfNvlink) {
  using enum GpuGeneration;
  const BitRate links = 1920 * kGbps;
  EXPECT_EQ(store_rate(links, CostFamily::ring, Protocol::ll128, ampere), 1152 * kGbps);
  EXPECT_EQ(store_rate(links, CostFamily::tree, Protocol::ll128, ampere), 576 * kGbps);
  EXPECT_EQ(store_rate(links, CostFamily::ring, Protocol::simple, ampere), 0);
  EXPECT_EQ(store_rate(links, CostFamily::ring, Protocol::ll, ampere), 0);
  EXPECT_EQ(store_rate(links, CostFamily::ring, Protocol::ll128, volta), 0);
  EXPECT_EQ(store_rate(links, CostFamily::ring, Protocol::ll128, hopper), 0);
}

TEST(NcclTuning, KnowsGpusByTheirNames) {
  EXPECT_EQ(generation_of("a100_80gb"), GpuGeneration::ampere);
  EXPECT_EQ(generation_of("h100_sxm"), GpuGeneration::hopper);
  EXPECT_EQ(generation_of("gb200"), GpuGeneration::blackwell);
  EXPECT_FALSE(generation_of("").has_value());
}

TEST(Protocol, HasNcclsLatenciesAndSlots) {
  const ProtocolParameters ll = nccl_parameters(Protocol::ll), ll128 = nccl_parameters(Protocol::ll128);
  EXPECT_EQ(ll.hop_latency_nvlink_ring, 600 * kNanosecond);
  EXPECT_EQ(ll.slice, 32 * kKibibyte);  // 512 threads of 8 lines with 8 bytes
  EXPECT_EQ(ll128.hop_latency_net_tree, 8'500 * kNanosecond);
  EXPECT_EQ(ll128.slice, 640 * 120 * 8 / 16 * 15);
  EXPECT_EQ(ll.slots, 8);
  EXPECT_EQ(ll128.slots, 8);
}

TEST(Protocol, PutsFlagsBesideData) {
  EXPECT_EQ(bytes_on_wire(Protocol::ll, 1), 16);
  EXPECT_EQ(bytes_on_wire(Protocol::ll, 8), 16);
  EXPECT_EQ(bytes_on_wire(Protocol::ll, kMebibyte), 2 * kMebibyte);
  EXPECT_EQ(bytes_on_wire(Protocol::ll128, 120), 128);
  EXPECT_EQ(bytes_on_wire(Protocol::ll128, 121), 256);
  EXPECT_EQ(bytes_on_wire(Protocol::simple, 121), 121);
}

}  // namespace
}  // namespace netsim::nccl_tuning_test
