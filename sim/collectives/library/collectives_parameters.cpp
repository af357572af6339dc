#include "sim/collectives/library/collectives_parameters.h"

#include <fmt/format.h>

#include <string>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/library/collective_library.h"

namespace netsim {
namespace {

using C = CollectivesParameters;

void add_algorithms(Parameters<C>& p) {
  for (const CollectiveKindInfo& info : kCollectiveKinds) {
    p.component(
        info.name, C::member(info.kind), CollectiveAlgorithm::kComponentKind, info.default_algorithm,
        info.kind == CollectiveKind::barrier
            ? "algorithm of barrier, or of an all-reduce of one element that does for it; default: that "
              "of all_reduce"
        : is_collective(info.kind)
            ? std::string("algorithm of ") + info.name
            : "algorithm of single sends and receives: direct, or nccl_p2p with NCCL's channels and PXN");
  }
}

template <class P>
void add_latencies(Parameters<P>& p) {
  const Range<Time> latency{0, kSecond};
  p.time("base_latency_ring", &P::base_latency_ring, latency,
         "start of a ring, chain or pairwise collective (NCCL tuning.cc baseLatencies, Ring)")
      .time("base_latency_tree", &P::base_latency_tree, latency,
            "start of a tree collective (NCCL tuning.cc baseLatencies, Tree)")
      .time(
          "hop_latency_nvlink_ring", &P::hop_latency_nvlink_ring, latency,
          "per step over NVLink, the links' delay included, ring (NCCL tuning.cc hwLatencies, NVLINK Ring); "
          "also point-to-point")
      .time("hop_latency_nvlink_tree", &P::hop_latency_nvlink_tree, latency,
            "per step over NVLink, the links' delay included, tree (NCCL tuning.cc hwLatencies, NVLINK Tree)")
      .time("hop_latency_pcie_ring", &P::hop_latency_pcie_ring, latency,
            "per step over the host's PCIe, the links' delay included, ring (NCCL tuning.cc hwLatencies, PCI "
            "Ring); also point-to-point")
      .time("hop_latency_pcie_tree", &P::hop_latency_pcie_tree, latency,
            "per step over the host's PCIe, the links' delay included, tree (NCCL tuning.cc hwLatencies, PCI "
            "Tree)")
      .time("hop_latency_net_ring", &P::hop_latency_net_ring, latency,
            "per step between hosts, besides the fabric, ring (NCCL tuning.cc hwLatencies, NET Ring); also "
            "point-to-point")
      .time("hop_latency_net_tree", &P::hop_latency_net_tree, latency,
            "per step between hosts, besides the fabric, tree (NCCL tuning.cc hwLatencies, NET Tree)");
}

template <class P>
void add_chunking(Parameters<P>& p) {
  p.bytes("slice", &P::slice, {kKibibyte, kGibibyte},
          "largest message of one channel, in bytes of data (NCCL Simple: 4 MiB buffer / 8 steps x 2 steps)")
      .integer(
          "slices_per_chunk", &P::slices_per_chunk, {1, 1024},
          "messages into which a step's chunk is divided, sent in sequence (NCCL Simple: 4 steps a chunk "
          "/ 2)")
      .bytes("least_slice", &P::least_slice, {1, kGibibyte},
             "a chunk is not cut into smaller messages than this (NCCL Simple: 1/32 of the largest slice)")
      .integer("slots", &P::slots, {0, 1 << 20},
               "messages of a connection that its receiver has room for (NCCL: 8 steps / steps a slice); 0: "
               "any number, without credits");
}

template <class P>
Parameters<P> protocol_parameters() {
  Parameters<P> p;
  add_latencies(p);
  add_chunking(p);
  return p;
}

void add_protocols(Parameters<C>& p) {
  add_latencies(p);
  add_chunking(p);
  p.section("ll", &C::ll, protocol_parameters<ProtocolSection<Protocol::ll>>(),
            "the same parameters for protocol LL; those outside of this section are Simple's")
      .section("ll128", &C::ll128, protocol_parameters<ProtocolSection<Protocol::ll128>>(),
               "the same parameters for protocol LL128")
      .choice("protocol", &C::protocol,
              {{"simple", Protocol::simple},
               {"ll", Protocol::ll},
               {"ll128", Protocol::ll128},
               {"auto", std::nullopt}},
              "how kernels move data; auto: by size and group, as NCCL's cost model chooses (tuning.cc)")
      .list("choices", &C::choices,
            "algorithms by size and group: [{collective: all_reduce, from: 0 B, to: 64 KiB, ranks: 16, "
            "domains: 2, algorithm: tree}]; the first entry that fits is used, and the algorithm given for "
            "the kind where none fits")
      .list("nccl_algo", &C::nccl_algo,
            "algorithms that NCCL may choose, as NCCL_ALGO has them: '^tree,nvls', "
            "'allreduce:ring;broadcast:tree'")
      .list("nccl_proto", &C::nccl_proto, "protocols that NCCL may choose, as NCCL_PROTO has them: '^ll128'")
      .list("tuner", &C::tuner,
            "a file of rules for NCCL's choice, as its example tuner plug-in reads it (ext-tuner/example): "
            "collective_type, min_bytes, max_bytes, algorithm, protocol, channels, nNodes, nRanks, ...")
      .list("graph", &C::graph,
            "a file of rings and trees that NCCL found (NCCL_GRAPH_FILE; --write-graph writes one); a group "
            "that has all GPUs of the file in each of its hosts uses them and searches for none")
      .integer("nvls_groups", &C::nvls_groups, {0, 1024},
               "multicast groups that a communicator takes of each host's or rack's NVSwitches, where hosts "
               "limit these (NCCL src/transport/nvls.cc: one for buffers, one for credits; a user counted "
               "about 10 with NCCL 2.29.7). Without any left its collectives run without NVLS; 0: none")
      .choice("format", &C::format,
              {{"any", std::nullopt},
               {"int8", NumberFormat::int8},
               {"int32", NumberFormat::int32},
               {"fp8", NumberFormat::fp8},
               {"fp16", NumberFormat::fp16},
               {"bf16", NumberFormat::bf16},
               {"fp32", NumberFormat::fp32},
               {"fp64", NumberFormat::fp64}},
              "number format of what collectives add. Where switches of the fabric would add up and lack it "
              "(network.switch.aggregation_formats), the default algorithm of the kind runs instead; any: "
              "one that all switches have")
      .choice("gpu_generation", &C::gpu_generation,
              {{"of_hosts", std::nullopt},
               {"volta", GpuGeneration::volta},
               {"ampere", GpuGeneration::ampere},
               {"hopper", GpuGeneration::hopper},
               {"blackwell", GpuGeneration::blackwell}},
              "the GPUs for which the cost model's tables are read")
      .time("launch_latency", &C::launch_latency, {0, kSecond},
            "latency before the kernel of a collective runs, in addition to the base latency; a property of "
            "the machine, to be measured")
      .time("net_overhead", &C::net_overhead, {0, kSecond},
            "time that a GPU's proxy thread takes to post one message to the network, three times as long "
            "for Simple (NCCL_NET_OVERHEAD: 1 us with Intel's CPUs, 2 us with AMD's); 0: it posts all "
            "messages at once")
      .time("base_latency_pat", &C::base_latency_pat, {0, kSecond},
            "start of an all-gather or reduce-scatter by PAT (NCCL tuning.cc, 'Base time')")
      .time("rank_latency_pat", &C::rank_latency_pat, {0, kSecond},
            "additional cost of PAT for each rank (NCCL tuning.cc, 'a linear part')")
      .time("plugin_latency", &C::plugin_latency, {0, kSecond},
            "network latency that the plug-in reports: the cost model adds it to a step between hosts (AWS's "
            "EFA on p4d and p4de: 75 us)");
}

void add_channels(Parameters<C>& p) {
  const Range<std::int64_t> channels{1, 1024};
  p.integer("scale_up_channels", &C::scale_up_channels, channels, "24, and 32 on Blackwell",
            "channels of a group within one host, at least one for each ring (NCCL on A100 with NVSwitch: "
            "24); the channels of one ring are timed together")
      .integer("scale_out_channels", &C::scale_out_channels, channels,
               "channels of a group on several hosts; each has its own chain of messages")
      .flag("in_place", &C::in_place,
            "input and output of all-gathers and broadcasts are one buffer; false: a rank's first step of a "
            "ring within a host also stores its own block (nccl-tests, out of place)")
      .flag("channels_apart", &C::channels_apart,
            "simulates each channel of a group within one host as its own chain of messages, which "
            "multiplies their number");
}

void check_slots(const ConfigNode& section, const ProtocolParameters& parameters) {
  const std::int64_t least = kSlots * parameters.slices_per_chunk;
  if (parameters.slots == 0 || parameters.slots >= least) return;
  section.fail(
      fmt::format("slots: {} are too few for {} slices a chunk: rings need room for {} chunks (allowed: {} "
                  "and more)",
                  parameters.slots, parameters.slices_per_chunk, kSlots, least));
}

}  // namespace

// A step's buffer of LL has 512 threads x 8 lines of 16 bytes, half of which is data. A buffer of LL128 has
// 640 threads x 120 words of 8 bytes, 15 / 16 of which is data. (NCCL_LL_MAX_NTHREADS,
// NCCL_LL_LINES_PER_THREAD, NCCL_LL128_MAX_NTHREADS, NCCL_LL128_ELEMS_PER_THREAD in src/include/device.h.) In
// both a chunk is one step, and there are NCCL_STEPS = 8 slots.
//
// Simple has a buffer of 4 MiB with 8 steps of 512 KiB. A chunk of a ring is 4 of them and travels as 2
// slices (ALLREDUCE_CHUNKSTEPS, ALLREDUCE_SLICESTEPS), so that 8 / 2 slices fit. A slice is at least 1 / 32
// of the largest one (src/device/prims_simple.h).
ProtocolParameters nccl_parameters(Protocol protocol) {
  constexpr Time kNs = kNanosecond;
  switch (protocol) {
    case Protocol::ll:
      return {6'600 * kNs, 6'800 * kNs, 600 * kNs, 600 * kNs, 1'000 * kNs, 1'000 * kNs,
              2'700 * kNs, 5'000 * kNs, 32'768,    1,         1,           8};
    case Protocol::ll128:
      return {14'000 * kNs, 14'000 * kNs, 1'900 * kNs, 1'250 * kNs, 2'500 * kNs, 1'900 * kNs,
              4'000 * kNs,  8'500 * kNs,  576'000,     1,           1,           8};
    case Protocol::simple:
      break;
  }
  return {8'400 * kNs,  8'400 * kNs,  3'400 * kNs, 4'000 * kNs, 5'700 * kNs,    4'000 * kNs,
          14'000 * kNs, 14'000 * kNs, kMebibyte,   2,           32 * kKibibyte, 4};
}

const ProtocolParameters& CollectivesParameters::of(Protocol of_protocol) const {
  if (of_protocol == Protocol::ll) return ll;
  if (of_protocol == Protocol::ll128) return ll128;
  return *this;
}

const Parameters<CollectivesParameters>& collectives_parameters() {
  static const auto declared = [] {
    Parameters<C> p;
    p.component("library", &C::library, CollectiveLibrary::kComponentKind, "nccl",
                "the library that decides how each communication runs: algorithm, protocol, channels, costs");
    add_algorithms(p);
    add_protocols(p);
    add_channels(p);
    return p;
  }();
  return declared;
}

CollectivesParameters parse_collectives(const ConfigNode& section) {
  CollectivesParameters parameters = collectives_parameters().parse(section);
  check_slots(section, parameters);
  if (const ConfigNode* node = section.find("ll"); node != nullptr) check_slots(*node, parameters.ll);
  if (const ConfigNode* node = section.find("ll128"); node != nullptr) check_slots(*node, parameters.ll128);
  return parameters;
}

}  // namespace netsim
