#include "sim/collectives/library/nccl/nccl_tuning.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "sim/collectives/library/chunking.h"
#include "sim/collectives/library/nccl/nvls_kernels.h"

namespace netsim {
namespace {

// Caps on bandwidth in GB/s, by generation and by nodes: one, two, more.
using Caps = std::array<std::array<double, 3>, 4>;
constexpr std::array kMaxLlInside = {39.0, 87.7, 141.0, 282.0};
// Caps between nodes, by CPU (Intel, AMD) and by nodes (two, more).
constexpr std::array<std::array<double, 2>, 2> kMaxLlBetween = {{{39, 20.4}, {22.5, 19}}};
constexpr Caps kMaxRingLl128 = {{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {40, 40, 40}}};
constexpr Caps kMaxTreeLl128 = {{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}}};
// NCCL's perChMaxNVLSTreeBws.
constexpr Caps kMaxNvlsTree = {{{0, 0, 0}, {0, 0, 0}, {0, 57.7, 45.5}, {0, 96, 80}}};
constexpr Caps kMaxTree = {{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}}};

// Fraction of their bandwidth that trees reach, by powers of two from 64 B on.
constexpr std::size_t kTreeSizes = 24;
constexpr std::array<std::array<double, kTreeSizes>, 3> kTreeCorrection = {
    {{.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
      .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9},                                            // Simple
     {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},     // LL
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1}}};  // LL128

double tree_correction(Bytes size, Protocol protocol) {
  const auto lines = static_cast<std::uint64_t>(size / 64);
  const int index = static_cast<int>(std::bit_width(lines)) - 1;
  if (index < 0 || index >= static_cast<int>(kTreeSizes)) return 1;
  return kTreeCorrection[static_cast<std::size_t>(protocol)][static_cast<std::size_t>(index)];
}

constexpr double highest(const Caps& caps, GpuGeneration generation) {
  double found = 0;
  for (const double one : caps[static_cast<std::size_t>(generation)]) found = std::max(found, one);
  return found;
}

double cap(const Caps& caps, const TuningCase& one) {
  return caps[static_cast<std::size_t>(one.generation)][std::min<std::size_t>(one.nodes, 3) - 1];
}

// Returns whether the CPUs are AMD's. Among NVIDIA's own hosts DGX A100 has AMD CPUs; the others have Intel
// CPUs. The generation decides, so aws_p4de counts as AMD too. Its sister p4d has Intel's Xeon 8275CL
// ("Amazon EC2 P4d instances deep dive", AWS Compute Blog, November 2020).
bool has_amd(const TuningCase& one) { return one.generation == GpuGeneration::ampere; }

double ll_cap(const TuningCase& one) {
  if (one.nodes == 1) return kMaxLlInside[static_cast<std::size_t>(one.generation)];
  return kMaxLlBetween[has_amd(one) ? 1 : 0][one.nodes == 2 ? 0 : 1];
}

bool is_tree(const TuningCase& one) {
  return one.family == CostFamily::tree && one.kind == CollectiveKind::all_reduce;
}

double tree_bandwidth(const TuningCase& one, Protocol protocol) {
  const double channels = one.channels;
  // From Hopper on all of a node's traffic in a tree goes through one GPU, which reaches a fraction of .85.
  const double all_by_one = one.nodes > 1 && one.generation >= GpuGeneration::hopper ? .85 : 1;
  const double whole = std::min(one.bandwidth * .92, channels * cap(kMaxTree, one));
  double bandwidth = whole;
  if (protocol == Protocol::ll) bandwidth = std::min(whole / 3.8, ll_cap(one));
  if (protocol == Protocol::ll128)
    bandwidth =
        std::min(whole * (one.nodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0), channels * cap(kMaxTreeLl128, one));
  return bandwidth * tree_correction(one.bytes, protocol) * all_by_one / 2;
}

double steps_of(const TuningCase& one) {
  const double others = one.ranks - 1.0;
  switch (one.kind) {
    case CollectiveKind::all_reduce:
      return 2 * others;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
      return others;
    default:
      return one.ranks;
  }
}

double ring_bandwidth(const TuningCase& one, Protocol protocol) {
  double bandwidth = one.bandwidth;
  if (protocol == Protocol::ll) bandwidth = std::min(ll_cap(one), bandwidth / 2);
  if (protocol == Protocol::ll128)
    bandwidth = std::min(bandwidth * .92, one.channels * cap(kMaxRingLl128, one));
  return bandwidth * one.ranks / steps_of(one);
}

// Fraction of a port's rate that NVSwitch reaches, by generation (nvlsEfficiency).
constexpr std::array kNvlsEfficiency = {0.0, 0.0, 0.85, 0.74};

// Returns the bandwidth of NVLS in GB/s: the ports' efficiency for all heads but one. An all-reduce uses both
// directions; in other kinds a rank already has its own part. Over several nodes a channel has a cap, and on
// two of them a byte crosses the NICs once.
double nvls_bandwidth(const TuningCase& one) {
  const double heads = one.channels, ranks = one.ranks, in_node = ranks / one.nodes;
  const double factor = one.kind == CollectiveKind::all_reduce ? 2 : (in_node - 1) / in_node;
  const double inside = one.bandwidth * kNvlsEfficiency[static_cast<std::size_t>(one.generation)] *
                        (heads - 1) / heads * factor;
  double bandwidth = inside;
  if (one.family == CostFamily::nvls_collnet) bandwidth = std::min(inside, one.bandwidth_between);
  if (one.family == CostFamily::nvls_tree) {
    const double between = one.bandwidth_between * (one.nodes == 2 ? 2 : 1);
    bandwidth = std::min({inside, between, heads * cap(kMaxNvlsTree, one)});
    if (one.generation == GpuGeneration::blackwell && !one.grace)
      bandwidth *= tree_correction(one.bytes, Protocol::simple);
  }
  return bandwidth * ranks / steps_of(one);
}

double microseconds(Time time) { return static_cast<double>(time) / static_cast<double>(kMicrosecond); }

double hop_inside(const TuningCase& one, const ProtocolParameters& costs, bool tree) {
  if (one.nvlink) return microseconds(tree ? costs.hop_latency_nvlink_tree : costs.hop_latency_nvlink_ring);
  return microseconds(tree ? costs.hop_latency_pcie_tree : costs.hop_latency_pcie_ring);
}

// Returns the latency of a hop between nodes in microseconds. With one rank a node nothing hides the
// network's latency; the trees' latency then counts. The latency of the network plug-in is added, with Simple
// twice, because data is flushed to the GPU.
double hop_between(const TuningCase& one, const CollectivesParameters& parameters, Protocol protocol,
                   bool tree) {
  const ProtocolParameters& costs = parameters.of(protocol);
  return microseconds(tree || one.ranks == one.nodes ? costs.hop_latency_net_tree
                                                     : costs.hop_latency_net_ring) +
         (protocol == Protocol::simple ? 2 : 1) * microseconds(parameters.plugin_latency);
}

double tree_latency(const TuningCase& one, Protocol protocol, const CollectivesParameters& parameters) {
  const ProtocolParameters& costs = parameters.of(protocol);
  const double levels = static_cast<double>(std::bit_width(one.nodes)) - 1;
  const std::uint32_t in_node = one.ranks / one.nodes;
  const double below = in_node - 1.0;
  return microseconds(costs.base_latency_tree) +
         2 * (below * hop_inside(one, costs, true) + levels * hop_between(one, parameters, protocol, true));
}

// Returns the latency of a ring. A message to the network costs its sender a microsecond with Intel's CPUs
// and two with AMD's. With Simple it costs three times as much (getNetOverhead).
double ring_latency(const TuningCase& one, Protocol protocol, const CollectivesParameters& parameters) {
  const ProtocolParameters& costs = parameters.of(protocol);
  const double base = microseconds(costs.base_latency_ring);
  const double steps = steps_of(one);
  if (one.kind == CollectiveKind::broadcast ||
      one.kind == CollectiveKind::reduce)  // broadcast and reduce: a chain whose hops overlap
    return base +
           (one.nodes > 1 ? hop_between(one, parameters, protocol, false) : hop_inside(one, costs, false));
  const double posting = (has_amd(one) ? 2 : 1) * (protocol == Protocol::simple ? 3 : 1);
  const double overhead = one.nodes == 1 ? 0 : posting;
  const double between = (one.nodes - 1.0) * (one.kind == CollectiveKind::all_reduce ? 2 : 1);
  return base + (steps - between) * std::max(hop_inside(one, costs, false), overhead) +
         between * hop_between(one, parameters, protocol, false);
}

// Returns the latency of a path through the fabric. The latency of the network plug-in is added twice,
// because data is flushed to the GPU. With one rank a node nothing hides the network's latency; the trees'
// latency then counts.
double through_fabric(const TuningCase& one, double latency, const CollectivesParameters& parameters) {
  const double alone = microseconds(parameters.of(Protocol::simple).hop_latency_net_tree);
  return (one.ranks == one.nodes ? alone : latency) + 2 * microseconds(parameters.plugin_latency);
}

// Returns the bandwidth of CollNet in GB/s, by which the model divides the bytes; 0: the kind is not
// supported. The data of a node's GPUs goes to those that have NICs, directly or along a chain. From there it
// goes into the network, which adds it up.
//
// With the direct algorithm GPUs without a NIC slow down those with one by half of their number. An
// all-gather or a reduce-scatter needs a NIC for each GPU of a node.
double collnet_bandwidth(const TuningCase& one) {
  const double in_node = static_cast<double>(one.ranks) / one.nodes, channels = one.channels;
  if (one.family == CostFamily::collnet_chain)
    return one.kind == CollectiveKind::all_reduce ? one.bandwidth / 2 : 0;
  if (!one.nvswitches) return 0;
  switch (one.kind) {
    case CollectiveKind::all_reduce: {
      const double gpus_each = in_node / channels, factor = gpus_each - (gpus_each - 1) / 2;
      return one.bandwidth / factor * (one.generation >= GpuGeneration::hopper ? .85 : 1) / 2;
    }
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
      return in_node > one.heads ? 0
                                 : in_node / channels * std::min(one.bandwidth, one.bandwidth_between * .9);
    default:
      return 0;
  }
}

double collnet_latency(const TuningCase& one, const CollectivesParameters& parameters) {
  // hwLatencies of CollNetDirect and CollNetChain, for any links within a node and for NET; and the latency
  // of each further GPU.
  constexpr double kDirect = 3.7, kDirectNet = 31, kChain = 2.8, kChainNet = 30, kEach = .4;
  const double others = static_cast<double>(one.ranks) / one.nodes - 1;
  if (one.family == CostFamily::collnet_chain)
    return 2 * others * kChain + through_fabric(one, kChainNet, parameters);
  return 2 * (std::min(1.0, others) * kDirect + others * kEach) + through_fabric(one, kDirectNet, parameters);
}

// Returns the time of PAT: one GPU a node, all-gather and reduce-scatter with Simple (ncclPatEnable). A step
// costs the network's latency, most of it hidden, and each rank's chunk has a latency too. The bandwidth is
// three quarters of the trees'.
std::optional<double> pat_time(const TuningCase& one, Protocol protocol,
                               const CollectivesParameters& parameters) {
  const bool does = one.kind == CollectiveKind::all_gather || one.kind == CollectiveKind::reduce_scatter;
  if (!does || protocol != Protocol::simple || one.nodes != one.ranks) return std::nullopt;
  const double steps = static_cast<double>(std::bit_width(one.nodes)) - 1;
  const double latency = microseconds(parameters.pat_latency(one.ranks)) +
                         steps * pat_step(hop_between(one, parameters, protocol, true));
  return latency + static_cast<double>(one.bytes) / (1000 * .75 * one.bandwidth);
}

// Returns a correction: large all-reduces in rings over several nodes reach their full bandwidth late.
double plateau(const TuningCase& one, Protocol protocol) {
  const bool late = protocol == Protocol::simple && one.nodes > 1 && one.kind == CollectiveKind::all_reduce &&
                    one.bytes / (Bytes{one.channels} * one.ranks) >= 64;
  return !late ? 1 : one.generation == GpuGeneration::volta ? 1.9 : 1.4;
}

// Speeds of a channel in GB/s that the search tries where NICs matter (speedArrayInter, sm90SpeedArrayInter,
// sm100SpeedArrayInter in src/graph/search.cc).
constexpr std::array kSpeeds = {48.0, 30.0, 28.0, 24.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0,
                                7.0,  6.0,  5.0,  4.0,  3.0,  2.4,  1.2,  0.24, 0.12};
constexpr std::array kHopperSpeeds = {48.0, 45.0, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5,
                                      15.0, 12.0, 6.0,  3.0,  2.4,  1.2,  0.24, 0.12};
constexpr std::array kBlackwellSpeeds = {96.0, 80.0, 48.0, 45.1, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0,
                                         17.5, 15.0, 12.0, 6.0,  3.0,  2.4,  1.2,  0.24, 0.12};

std::span<const double> speeds_of(GpuGeneration generation) {
  if (generation == GpuGeneration::blackwell) return kBlackwellSpeeds;
  if (generation == GpuGeneration::hopper) return kHopperSpeeds;
  return kSpeeds;
}

// Speeds that it tries within a node, for NVLS.
constexpr std::array kHopperSpeedsInside = {60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 11.0, 6.0, 3.0};
constexpr std::array kBlackwellSpeedsInside = {90.0, 80.0, 70.0, 60.0, 50.0, 45.0,
                                               40.0, 30.0, 24.0, 20.0, 19.0, 18.0};

std::span<const double> speeds_inside(GpuGeneration generation) {
  if (generation == GpuGeneration::blackwell) return kBlackwellSpeedsInside;
  return kHopperSpeedsInside;
}

// Returns the highest speed that is available.
double speed_of_search(double there_is, std::span<const double> speeds) {
  const auto found =
      std::find_if(speeds.begin(), speeds.end(), [&](double speed) { return speed <= there_is; });
  return found == speeds.end() ? 0 : *found;
}

// Returns the speed within a node. The search has found a tree whose channels carry `outside` between nodes.
// It then tries higher speeds within a node, one after the other, until one is not available or is twice
// `outside`.
double speed_inside(double outside, double there_is, GpuGeneration generation) {
  const std::span<const double> speeds = speeds_of(generation);
  double found = outside;
  for (auto speed = speeds.rbegin(); speed != speeds.rend() && found < 2 * outside; ++speed) {
    if (*speed > there_is) break;
    found = std::max(found, *speed);
  }
  return found;
}

// Returns the highest speed at which a head's links carry one channel more than there are heads.
double speed_of_head(double links, std::uint32_t heads, GpuGeneration generation) {
  return speed_of_search(links / (heads + 1), speeds_inside(generation));
}

// Returns the bandwidth of the channels that the search finds between GPUs that NVSwitches join. It finds 6
// on Hopper and 8 on Blackwell, at one of its speeds. Before Hopper 6 get all of the links.
double bandwidth_inside(double links, GpuGeneration generation) {
  if (generation < GpuGeneration::hopper) return links;
  const double channels = generation == GpuGeneration::hopper ? 6 : 8;
  const double speed = speed_of_search(links / channels, speeds_inside(generation));
  return speed > 0 ? channels * speed : links;
}

constexpr double kBitsPerGigabyte = 8e9;
constexpr double kAnySpeed = 1e9;  // GB/s, for a GPU that is alone in its node

// Returns the rate of a domain's NICs in GB/s, as the model counts it.
double model_nics(const CommunicatorLayout& layout) {
  return static_cast<double>(layout.nic_rate) / kBitsPerGigabyte * 12 / 12.5;
}

}  // namespace

std::optional<double> estimated_time(const TuningCase& one, Protocol protocol,
                                     const CollectivesParameters& parameters) {
  if (protocol == Protocol::ll128 && !one.nvlink) return std::nullopt;
  if (by_switches(one.family)) {
    // hwLatencies: NVLINK of NVLS, NET of NVLS, NET of NVLS_TREE.
    constexpr double kLatency = 25, kLatencyFabric = 18, kLatencyBetween = 20.9;
    const double bandwidth = nvls_bandwidth(one);
    const bool several = one.family != CostFamily::nvls;
    if (protocol != Protocol::simple || (one.nodes > 1) != several || bandwidth == 0) return std::nullopt;
    const bool parts = one.kind != CollectiveKind::all_reduce;
    if (one.family == CostFamily::nvls_collnet && parts && one.ranks > one.nodes * one.heads)
      return std::nullopt;  // each GPU needs a NIC
    if (one.family == CostFamily::nvls_collnet)
      return kLatency + through_fabric(one, kLatencyFabric, parameters) +
             static_cast<double>(one.bytes) / (1000 * bandwidth);
    const double levels = static_cast<double>(std::bit_width(one.nodes)) - 1;
    const double between = kLatencyBetween + 2 * microseconds(parameters.plugin_latency);
    return kLatency + 2 * levels * between + static_cast<double>(one.bytes) / (1000 * bandwidth);
  }
  if (by_fabric(one.family)) {
    const double bandwidth = collnet_bandwidth(one);
    if (protocol != Protocol::simple || one.nodes == 1 || bandwidth == 0) return std::nullopt;
    return collnet_latency(one, parameters) + static_cast<double>(one.bytes) / (1000 * bandwidth);
  }
  if (one.family == CostFamily::pat) return pat_time(one, protocol, parameters);
  const bool tree = is_tree(one);
  const double latency = tree ? tree_latency(one, protocol, parameters)
                              : ring_latency(one, protocol, parameters) * plateau(one, protocol);
  const double bandwidth = tree ? tree_bandwidth(one, protocol) : ring_bandwidth(one, protocol);
  return latency + static_cast<double>(one.bytes) / (1000 * bandwidth);
}

std::optional<Estimate> best_estimate(const TuningCase& one, std::span<const Protocol> protocols,
                                      const CollectivesParameters& parameters) {
  std::optional<Estimate> best;
  for (const Protocol protocol : protocols) {
    const std::optional<double> time = estimated_time(one, protocol, parameters);
    if (time && (!best || *time < best->microseconds)) best = {protocol, *time};
  }
  return best;
}

std::uint32_t tuned_channels(const TuningCase& one, Protocol protocol, std::uint32_t channels) {
  // Least bytes of a channel: its threads times the bytes for each.
  const bool slow_ring = protocol == Protocol::ll && !is_tree(one);
  const Bytes least = protocol == Protocol::simple  ? 512 * Bytes{64}
                      : protocol == Protocol::ll128 ? 640 * Bytes{8}
                                                    : 512 * Bytes{8} * (slow_ring ? one.ranks : 1);
  const auto busy = static_cast<std::uint32_t>(std::clamp<Bytes>(one.bytes / least, 1, channels));
  // Least traffic of a channel. An all-reduce moves the buffer twice; LL moves four times as much.
  constexpr Bytes kLeastTraffic = 32 * kKibibyte;
  const Bytes traffic =
      one.bytes * (one.kind == CollectiveKind::all_reduce ? 2 : 1) * (protocol == Protocol::ll ? 4 : 1);
  const Bytes cells = std::max<Bytes>(1, traffic / kLeastTraffic);
  const Bytes each = (cells + busy - 1) / busy;
  return static_cast<std::uint32_t>((cells + each - 1) / each);
}

// A channel of the search is two of the library (ncclTopoPostset in src/graph/connect.cc). A byte of a tree
// passes its thread block twice.
BitRate thread_block_rate(CostFamily family, Protocol protocol, GpuGeneration generation) {
  const auto bits = [](double gigabytes) { return static_cast<BitRate>(gigabytes * 8e9); };
  const double by_ll = kMaxTree[static_cast<std::size_t>(generation)].front();
  if (family != CostFamily::tree) {
    if (protocol == Protocol::ll128) return bits(highest(kMaxRingLl128, generation) / 2);
    return bits(protocol == Protocol::ll ? by_ll / 2 : highest(kMaxTree, generation));
  }
  if (protocol == Protocol::ll128) return bits(highest(kMaxTreeLl128, generation) / 4);
  if (protocol == Protocol::ll) return bits(by_ll / 3.8 / 4);
  const ProtocolParameters costs = nccl_parameters(protocol);
  const Bytes chunk = costs.slice * costs.slots / kBufferSteps;
  const double kilobytes = static_cast<double>(chunk) / 1e3;  // GB/s x us
  double most = 0;
  for (std::uint32_t nodes = 1; nodes <= 3; ++nodes) {
    const double with_fence = kMaxTree[static_cast<std::size_t>(generation)][nodes - 1] / 4;
    const double fence =
        microseconds(nodes == 1 ? costs.hop_latency_nvlink_tree : costs.hop_latency_net_tree);
    most = std::max(most, kilobytes / (kilobytes / with_fence - fence));
  }
  return bits(most);
}

BitRate simple_rate_inside(GpuGeneration generation) {
  const auto& caps = kMaxTree[static_cast<std::size_t>(generation)];
  return static_cast<BitRate>(std::min(caps[0], caps[1]) / 2 * kBitsPerGigabyte);
}

BitRate store_rate(BitRate local_rate, CostFamily family, Protocol protocol, GpuGeneration generation) {
  if (protocol != Protocol::ll128 || generation != GpuGeneration::ampere) return 0;
  const BitRate all = local_rate / 5 * 3;
  return family == CostFamily::tree ? all / 2 : all;
}

double model_bandwidth(const CommunicatorLayout& layout, CostFamily family, GpuGeneration generation) {
  const double local = static_cast<double>(layout.local_rate) / kBitsPerGigabyte;
  if (by_switches(family)) {
    const std::uint32_t heads = nvls_heads(layout);
    if (family == CostFamily::nvls) return heads * speed_of_head(local, heads, generation);
    return heads *
           speed_of_search(std::min(local / (heads + 1), model_nics(layout) / heads), speeds_of(generation));
  }
  const double nics = model_nics(layout);
  // Each of its trees becomes two.
  const double channels = search_channels(layout, generation).search;
  const auto raised = [&](double all, double there_is) {
    return channels * speed_inside(all / channels, there_is / channels, generation);
  };
  if (family == CostFamily::collnet_chain) {
    const bool alone = layout.nearest == Reach::scale_out || local == 0;
    return alone ? raised(nics, kAnySpeed) : raised(std::min(local, nics), local);
  }
  const bool trees = family == CostFamily::tree || family == CostFamily::pat;
  const CommunicatorLayout::Given& given = layout.given(trees ? RankOrder::chains : RankOrder::rings);
  if (given.channels > 0) return given.bandwidth;
  if (layout.domains == 1) return layout.nvswitches ? bandwidth_inside(local, generation) : local;
  if (layout.nearest == Reach::scale_out || local == 0) return nics;
  const double ring = std::min(local, nics);
  return !trees || layout.domains > 2 ? ring : raised(ring, local);
}

// A GPU that is the head of m of c channels carries these to the other GPUs. It also carries its part of the
// others' channels, in both directions.
CollnetGraph collnet_direct_graph(const CommunicatorLayout& layout, GpuGeneration generation) {
  constexpr std::uint32_t kMostHeads = 8;
  constexpr double kFast = 25, kFastSinceHopper = 50;
  constexpr std::uint32_t kFew = 4;
  const std::uint32_t gpus = layout.sizes.front();
  const auto nics =
      layout.rate_of_nic > 0 ? static_cast<std::uint32_t>(layout.nic_rate / layout.rate_of_nic) : 1U;
  CollnetGraph graph;
  graph.heads = graph.channels = std::clamp(nics, 1U, std::min(kMostHeads, gpus));
  const auto there_is = [&] {
    const double own = static_cast<double>(graph.channels) / graph.heads;
    return gpus == 1 ? kAnySpeed
                     : static_cast<double>(layout.local_rate) / kBitsPerGigabyte /
                           (own + (graph.channels - own) / (gpus - 1));
  };
  graph.between =
      speed_of_search(std::min(model_nics(layout) / graph.heads, there_is()), speeds_of(generation));
  const bool many = graph.channels > kFew && graph.between < kFastSinceHopper;
  if (graph.between >= kFast && !(generation > GpuGeneration::ampere && many)) {
    graph.channels = std::min({2 * graph.channels, kMostHeads, gpus});
    const std::uint32_t times = (graph.channels + graph.heads - 1) / graph.heads;
    graph.between /= times;
  }
  graph.inside = speed_inside(graph.between, there_is(), generation);
  return graph;
}

double nvls_tree_bandwidth_between(const CommunicatorLayout& layout, GpuGeneration generation) {
  const double heads = nvls_heads(layout);
  const double inside = model_bandwidth(layout, CostFamily::nvls_tree, generation);
  const double most = std::min(model_nics(layout), 2 * inside);
  return std::max(inside, heads * speed_of_search(most / heads, speeds_of(generation)));
}

double nvls_share(const CommunicatorLayout& layout, GpuGeneration generation) {
  const double local = static_cast<double>(layout.local_rate) / kBitsPerGigabyte;
  const std::uint32_t heads = nvls_heads(layout);
  if (local == 0 || layout.sizes.front() <= heads) return 1;
  const double speed = speed_of_head(local, heads, generation);
  if (speed == 0 || speed == speeds_inside(generation).front()) return 1;
  return speed * (heads + 1) / local;
}

std::uint32_t nvls_heads(const CommunicatorLayout& layout) {
  return std::min(kMostNvlsHeads, layout.sizes.front());
}

SearchChannels search_channels(const CommunicatorLayout& layout, std::optional<GpuGeneration> generation) {
  constexpr std::uint32_t kMostOfSearch = 32;  // MAXCHANNELS / 2
  constexpr double kFast = 25, kFastSinceHopper = 50, kTwiceAgain = 45;
  constexpr std::uint32_t kFew = 4, kEnough = 16;
  const CommunicatorLayout::Given& given = layout.given_rings;
  SearchChannels channels;
  const std::size_t rings = layout.rings.empty() ? layout.chains.size() / 2 : layout.rings.size();
  channels.search = given.channels > 0
                        ? given.channels
                        : static_cast<std::uint32_t>(std::clamp<std::size_t>(rings, 1, kMostOfSearch));
  channels.library = 2 * channels.search;
  if (!generation || *generation < GpuGeneration::hopper || layout.domains == 1) return channels;
  double speed = given.speed_inside;
  if (given.channels == 0) {
    const bool alone = layout.nearest == Reach::scale_out || layout.local_rate == 0;
    const double nics = model_nics(layout), local = static_cast<double>(layout.local_rate) / kBitsPerGigabyte;
    speed = speed_of_search((alone ? nics : std::min(nics, local)) / channels.search, speeds_of(*generation));
    if (speed >= kFast && (speed >= kFastSinceHopper || channels.search <= kFew)) {
      const std::uint32_t doubled = std::min(2 * channels.search, kMostOfSearch);
      const std::uint32_t times = (doubled + channels.search - 1) / channels.search;
      speed /= times;
      channels.search = doubled;
    }
  }
  channels.library = 2 * channels.search;
  if (speed > kTwiceAgain && channels.library < kEnough) channels.library *= 2;
  return channels;
}

}  // namespace netsim
