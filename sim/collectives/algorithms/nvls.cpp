// NVLS: NCCL's collectives by NVLink SHARP (src/device/all_reduce.h and its neighbours, from 2.17 on).
// Switches add and copy. Every rank is the head of 1 / p of the buffer. In an all-reduce of more than 32
// ranks the first 32 are heads of 1 / 32. An all-reduce is a reduction of each part to its head and a
// multicast of the sum to all.
//
// An all-gather is the multicast alone, a reduce-scatter the reduction. NCCL has these for up to 32 ranks;
// here every rank is a head for any number of ranks. A head's own contribution and result pass the switch
// like all others. So n(1 + 1/p) bytes cross each GPU's port in each direction for an all-reduce, n and n/p
// for the others.
//
// Thread blocks correspond to NCCL's groups of warps. The first ones send their data of each part to its head
// (scatter). NCCL's warps fill the buffers of all heads in advance and then signal them all; each head reads
// at its own time. Therefore there are several such thread blocks, which copy in parallel.
//
// The next thread block is the head's. Without a reduction it sends its own part to all. Otherwise it
// receives its part's sum and, in an all-reduce, sends it to all (reduce and broadcast). The last thread
// block receives what heads send (gather).
//
// - latencies, channels and copies: nvls_kernels.h.
// - chunk: NCCL_NVLS_CHUNKSIZE, 128 KiB. It is 64, 32 or 16 KiB where fewer than 64, 8 or 2 of the size
//   before would come for each channel and head (src/enqueue.cc).
#include <algorithm>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/regular_plan.h"
#include "sim/collectives/library/kernel_model.h"
#include "sim/collectives/library/nccl/nccl_traits.h"
#include "sim/collectives/library/nccl/nvls_kernels.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

Parameters<NvlsParameters> nvls_parameters() {
  using P = NvlsParameters;
  const Range<Time> latency{0, kSecond};
  return Parameters<P>()
      .time("base_latency", &P::base_latency, latency,
            "latency before the first step (NCCL tuning.cc hwLatencies, NVLS: 25 us, without an all-reduce's "
            "two hops)")
      .time("hop_latency", &P::hop_latency, latency,
            "latency of each message that a switch adds up or copies (NCCL tuning.cc hwLatencies, "
            "CollNetDirect)")
      .integer("channels", &P::channels, {0, 1024},
               "channels, timed together (NCCL_NVLS_NCHANNELS); 0: 16 on Hopper, on Blackwell 24")
      .bytes("chunk", &P::chunk, {kKibibyte, kGibibyte},
             "largest message of one channel (NCCL_NVLS_CHUNKSIZE); less for small buffers")
      .integer("slots", &P::slots, {0, 1 << 20},
               "messages of a multicast that each receiver can buffer (NCCL_STEPS); 0: any number, without "
               "credits")
      .flag("copies", &P::copies, P::kCopiesDoc);
}

constexpr std::uint32_t nvls_heads(CollectiveKind kind, std::uint32_t ranks) {
  return kind == CollectiveKind::all_reduce ? std::min(ranks, kMostNvlsHeads) : ranks;
}

constexpr std::uint32_t nvls_scatters(std::uint32_t heads) {
  constexpr std::uint32_t kMost = 8;
  return std::min(heads, kMost);
}

class NvlsPlan final : public RegularPlan {
 public:
  NvlsPlan(CollectiveKind kind, std::uint32_t ranks)
      : RegularPlan("nvls", kind, ranks),
        reduces_(kind != CollectiveKind::all_gather),
        gathers_(kind != CollectiveKind::reduce_scatter),
        heads_(nvls_heads(kind, ranks)),
        scatters_(reduces_ ? nvls_scatters(heads_) : 0) {}
  std::uint32_t chunks() const override { return heads_; }
  bool in_place() const override { return true; }
  std::uint32_t blocks(std::uint32_t) const override { return scatters_ + 1 + (gathers_ ? 1 : 0); }
  std::uint32_t steps(std::uint32_t rank, std::uint32_t block) const override {
    if (block == head_block()) return rank < heads_ ? 1 : 0;
    return block > head_block() ? heads_ : (heads_ - block + scatters_ - 1) / scatters_;
  }
  // Reductions have the first numbers.
  std::uint32_t aggregations() const override { return heads_ * ((reduces_ ? 1 : 0) + (gathers_ ? 1 : 0)); }
  AggregationGroup aggregation(std::uint32_t number) const override {
    AggregationGroup aggregation;
    aggregation.head = number % heads_;
    aggregation.head_block = head_block();
    aggregation.members = ranks_;
    aggregation.block = reduces_ && number < heads_ ? number % scatters_ : head_block() + 1;
    return aggregation;
  }
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override {
    if (block == head_block()) return as_head(rank);
    Step step;
    if (block < head_block()) {
      const std::uint32_t head = block + index * scatters_;
      step.kind = Step::Kind::send;
      step.source = {Buffer::input, head};
      step.to = Partner::of_aggregation(head);
    } else {
      step.kind = Step::Kind::receive;
      step.destination = {Buffer::output, index};
      step.from = multicast(index);
    }
    return step;
  }

 private:
  std::uint32_t head_block() const { return scatters_; }
  Partner multicast(std::uint32_t head) const {
    return Partner::of_aggregation(head + (reduces_ ? heads_ : 0));
  }

  Step as_head(std::uint32_t rank) const {
    Step step;
    step.kind = !reduces_   ? Step::Kind::send
                : !gathers_ ? Step::Kind::receive
                            : Step::Kind::receive_copy_send;
    step.destination = {Buffer::output, gathers_ ? rank : 0};
    if (reduces_) step.from = Partner::of_aggregation(rank);
    if (gathers_) step.to = multicast(rank);
    return step;
  }

  bool reduces_, gathers_;
  std::uint32_t heads_;
  std::uint32_t scatters_;  // number of scatter thread blocks
};

class Nvls final : public CollectiveAlgorithm, public WithKernels, public WithNcclTraits {
 public:
  explicit Nvls(const NvlsParameters& p) : p_(p) {}
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
           kind == CollectiveKind::reduce_scatter;
  }
  NcclTraits nccl_traits() const override { return {.family = CostFamily::nvls}; }
  PlanTraits traits() const override { return {.protocol = Protocol::simple, .nvswitches = true}; }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    return std::make_unique<NvlsPlan>(kind, shape.ranks);
  }
  KernelModel kernel_model(const KernelLoad& load) const override {
    static constexpr NvlsChunkLimit kLimits[] = {
        {64, 64 * kKibibyte}, {8, 32 * kKibibyte}, {2, 16 * kKibibyte}};
    const std::uint32_t heads = nvls_heads(load.kind, load.ranks);
    return nvls_kernels(p_, load,
                        {.heads = heads,
                         .scatters = nvls_scatters(heads),
                         .copy_rate = nvls_copy_rate(load.generation),
                         .chunk = p_.chunk,
                         .limits = kLimits});
  }

 private:
  NvlsParameters p_;
};

const Registration<CollectiveAlgorithm> kNvls{
    "nvls", "NVLink SHARP: switches add up the part of each rank and copy the sum to all ranks (NCCL NVLS)",
    nvls_parameters(), [](const NvlsParameters& p, const ConfigNode&) { return std::make_unique<Nvls>(p); }};

}  // namespace
}  // namespace netsim
