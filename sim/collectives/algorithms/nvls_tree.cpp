// NVLS tree: NCCL's all-reduce over several hosts whose NVSwitches add and copy (src/device/all_reduce.h,
// NVLS_TREE, from 2.18 on). In each host every rank is the head of its part of the buffer, as with nvls. Two
// binary trees over the hosts join the heads with the same number, each with half of the part.
//
// A sum that the switches have made goes up its tree. The result comes down, and each head's switches copy it
// to all ranks of its host. So of n bytes n/k cross each NIC of k about once in each direction, and n(1 +
// 1/k) cross each port.
//
// Thread blocks: the first ones send their data of each part to its head. Then each tree has one that
// receives the host's sum, adds those of the hosts below and passes it up. Each tree also has one that passes
// the result down, to the hosts below and to the host's ranks. The last one receives what heads send.
//
// - latencies, channels and copies: nvls_kernels.h; and 20.9 us for each step between hosts (tuning.cc,
//   hwLatencies, NVLS_TREE).
// - chunk: NCCL_NVLS_CHUNKSIZE, from four hosts on at most 64 KiB (NCCL_NVLSTREE_MAX_CHUNKSIZE). It is 64 or
//   32 KiB where fewer than 4 or 1 of them would come for each channel and head (calcCollChunking in
//   src/enqueue.cc).
#include <algorithm>
#include <string>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/double_binary_tree.h"
#include "sim/collectives/algorithms/grouping.h"
#include "sim/collectives/algorithms/regular_plan.h"
#include "sim/collectives/library/kernel_model.h"
#include "sim/collectives/library/nccl/nccl_traits.h"
#include "sim/collectives/library/nccl/nvls_kernels.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

struct NvlsTreeParameters : HostGroupParameters, NvlsParameters {
  Time hop_latency_net = 20'900 * kNanosecond;
};

Parameters<NvlsTreeParameters> nvls_tree_parameters() {
  using P = NvlsTreeParameters;
  const Range<Time> latency{0, kSecond};
  return Parameters<P>()
      .integer("group", &P::group, {0, 1 << 20}, std::string("ranks that NVSwitches join") + P::kZeroMeans)
      .time("base_latency", &P::base_latency, latency,
            "latency before the first step (NCCL tuning.cc hwLatencies, NVLS_TREE: 25 us, without two hops)")
      .time("hop_latency", &P::hop_latency, latency,
            "latency of each message that a switch adds up or copies")
      .time("hop_latency_net", &P::hop_latency_net, latency,
            "latency of each message between hosts (NCCL tuning.cc hwLatencies, NET NVLS_TREE)")
      .integer("channels", &P::channels, {0, 1024},
               "channels, timed together (NCCL_NVLS_NCHANNELS); 0: 16 on Hopper, on Blackwell 32")
      .bytes("chunk", &P::chunk, {kKibibyte, kGibibyte},
             "largest message of one channel (NCCL_NVLS_CHUNKSIZE); less for small buffers and many hosts")
      .integer("slots", &P::slots, {kSlots, 1 << 20},
               "messages of a connection that the receiver can buffer (NCCL_STEPS)")
      .flag("copies", &P::copies, P::kCopiesDoc);
}

class NvlsTreePlan final : public RegularPlan {
 public:
  NvlsTreePlan(std::uint32_t ranks, std::uint32_t group)
      : RegularPlan("nvls_tree", CollectiveKind::all_reduce, ranks),
        group_(group),
        scatters_(scatters_of(group)) {}
  static constexpr std::uint32_t kTrees = 2;
  // Returns the number of thread blocks that send data to the heads, in a host of `group` ranks.
  static std::uint32_t scatters_of(std::uint32_t group) { return std::min(kTrees * group, kMostScatters); }
  // Each head has a chunk for each tree.
  std::uint32_t chunks() const override { return kTrees * group_; }
  bool in_place() const override { return true; }
  std::uint32_t blocks(std::uint32_t) const override { return gather() + 1; }
  std::uint32_t steps(std::uint32_t rank, std::uint32_t block) const override {
    if (block < scatters_) return (chunks() - block + scatters_ - 1) / scatters_;
    if (block == gather()) return chunks();
    const TreeNode node = node_of(rank, tree_of(block));
    return node.child_count + (node.is_root() ? 1 : 2);
  }
  // Reductions have the first numbers.
  std::uint32_t aggregations() const override { return 2 * kTrees * ranks_; }
  AggregationGroup aggregation(std::uint32_t number) const override {
    const bool reduces = number < kTrees * ranks_;
    const std::uint32_t tree = number % kTrees;
    AggregationGroup aggregation;
    aggregation.head = number % (kTrees * ranks_) / kTrees;
    aggregation.head_block = reduces ? up(tree) : down(tree);
    aggregation.first = aggregation.head / group_ * group_;
    aggregation.members = group_;
    aggregation.block = reduces ? chunk_of(aggregation.head, tree) % scatters_ : gather();
    return aggregation;
  }
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override {
    Step step;
    if (block < scatters_ || block == gather()) {
      const std::uint32_t chunk = block == gather() ? index : block + index * scatters_;
      const std::uint32_t head = rank / group_ * group_ + chunk / kTrees;
      step.source = step.destination = {Buffer::input, chunk};
      if (block == gather()) {
        step.kind = Step::Kind::receive;
        step.from = multicast(head, chunk % kTrees);
      } else {
        step.kind = Step::Kind::send;
        step.to = reduction(head, chunk % kTrees);
      }
      return step;
    }
    const std::uint32_t tree = tree_of(block);
    step.source = step.destination = {Buffer::input, chunk_of(rank, tree)};
    return block == up(tree) ? go_up(rank, tree, index, step) : go_down(rank, tree, index, step);
  }

 private:
  static constexpr std::uint32_t kMostScatters = 16;
  std::uint32_t up(std::uint32_t tree) const { return scatters_ + 2 * tree; }
  std::uint32_t down(std::uint32_t tree) const { return up(tree) + 1; }
  std::uint32_t tree_of(std::uint32_t block) const { return (block - scatters_) / 2; }
  std::uint32_t gather() const { return scatters_ + 2 * kTrees; }
  std::uint32_t chunk_of(std::uint32_t head, std::uint32_t tree) const {
    return head % group_ * kTrees + tree;
  }
  Partner reduction(std::uint32_t head, std::uint32_t tree) const {
    return Partner::of_aggregation(head * kTrees + tree);
  }
  Partner multicast(std::uint32_t head, std::uint32_t tree) const {
    return Partner::of_aggregation((ranks_ + head) * kTrees + tree);
  }

  // Returns the node of a rank's host in a tree over all hosts.
  TreeNode node_of(std::uint32_t rank, std::uint32_t tree) const {
    const std::uint32_t hosts = ranks_ / group_;
    return hosts == 1 ? TreeNode() : double_binary_node(hosts, rank / group_, tree);
  }
  // Returns the rank with the same number in another host.
  std::uint32_t counterpart(std::uint32_t rank, std::uint32_t host) const {
    return host * group_ + rank % group_;
  }

  Step go_up(std::uint32_t rank, std::uint32_t tree, std::uint32_t index, Step step) const {
    const TreeNode node = node_of(rank, tree);
    if (index == 0) {
      step.kind = Step::Kind::receive;
      step.from = reduction(rank, tree);
    } else if (index <= node.child_count) {
      step.kind = Step::Kind::receive_reduce_copy;
      step.from = {counterpart(rank, node.children[index - 1]), up(tree)};
    } else {
      step.kind = Step::Kind::send;
      step.to = {counterpart(rank, node.parent), up(tree)};
    }
    return step;
  }
  // The result overwrites the sum that went up; at the root it is that sum.
  Step go_down(std::uint32_t rank, std::uint32_t tree, std::uint32_t index, Step step) const {
    const TreeNode node = node_of(rank, tree);
    if (index == 0) {
      step.after_block = up(tree);
      step.after_step = steps(rank, up(tree)) - 1;
    }
    const std::uint32_t received = node.is_root() ? 0 : 1;
    if (index < received) {
      step.kind = Step::Kind::receive;
      step.from = {counterpart(rank, node.parent), down(tree)};
      return step;
    }
    step.kind = Step::Kind::send;
    const std::uint32_t child = index - received;
    step.to = child < node.child_count ? Partner{counterpart(rank, node.children[child]), down(tree)}
                                       : multicast(rank, tree);
    return step;
  }

  std::uint32_t group_;
  std::uint32_t scatters_;  // number of scatter thread blocks
};

class NvlsTree final : public CollectiveAlgorithm, public WithKernels, public WithNcclTraits {
 public:
  explicit NvlsTree(const NvlsTreeParameters& p) : p_(p) {}
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  NcclTraits nccl_traits() const override { return {.family = CostFamily::nvls_tree}; }
  PlanTraits traits() const override {
    return {.protocol = Protocol::simple, .hosts = p_.group == 0, .nvswitches = true};
  }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    const std::uint32_t group =
        group_of(p_.group_size(shape, "nvls_tree", kind), "nvls_tree", kind, shape.ranks);
    return std::make_unique<NvlsTreePlan>(shape.ranks, group);
  }
  KernelModel kernel_model(const KernelLoad& load) const override {
    static constexpr NvlsChunkLimit kLimits[] = {
        {32, 256 * kKibibyte}, {16, 128 * kKibibyte}, {4, 64 * kKibibyte}, {1, 32 * kKibibyte}};
    const std::uint32_t heads = p_.group_size(load), hosts = load.ranks / heads;
    const Bytes chunk = hosts >= 4 ? std::min(p_.chunk, 64 * kKibibyte) : p_.chunk;
    KernelModel kernels = nvls_kernels(p_, load,
                                       {.domains = std::max(load.domains, 2U),
                                        .heads = heads,
                                        .scatters = NvlsTreePlan::scatters_of(heads),
                                        .trees = NvlsTreePlan::kTrees,
                                        .copy_rate = nvls_tree_copy_rate(load.generation),
                                        .chunk = chunk,
                                        .limits = kLimits});
    kernels.hop_latency_net = p_.hop_latency_net;
    kernels.proxied = true;
    return kernels;
  }

 private:
  NvlsTreeParameters p_;
};

const Registration<CollectiveAlgorithm> kNvlsTree{
    "nvls_tree",
    "runs all-reduce over hosts with NVLink SHARP; switches add up in each host, and binary trees join the "
    "hosts (NCCL NVLS tree)",
    nvls_tree_parameters(),
    [](const NvlsTreeParameters& p, const ConfigNode&) { return std::make_unique<NvlsTree>(p); }};

}  // namespace
}  // namespace netsim
