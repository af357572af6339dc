// SHARP: collectives over hosts whose network adds and copies, with aggregation trees in the switches of the
// fabric. The sources are Graham et al., Scalable Hierarchical Aggregation Protocol (SHArP), COMHPC 2016, and
// for streaming aggregation Graham et al., ISC High Performance 2020. NCCL's CollNetDirect uses them
// (src/device/all_reduce.h and its neighbours, NCCL_COLLNET_ENABLE).
//
// In each host every rank is the head of its part of the buffer. In an all-reduce the others send it their
// contributions, and it adds them up. The heads with the same number in all hosts are the members of one tree
// or several, each over different NICs. The sums return to all of them, and each head sends its sum to the
// other ranks of its host.
//
// So n bytes leave a host by its NICs and n come in, for any number of hosts, where a ring has 2n (N-1)/N.
// Over NVLink 2n (k-1)/k leave each of k ranks. With one rank in each host only the tree is used; in a single
// host there is no tree.
//
// Other kinds are parts of that. In a reduce-scatter the sum of each rank's part comes down to that rank
// alone. In a reduce it comes down to the heads of the root's host, which send their parts to the root. In an
// all-gather each rank's data goes up by itself and is copied down to all. In a broadcast the root first
// gives its data to the heads of its host.
//
// So n bytes leave a host by its NICs and n / N come in, or vice versa. In a reduce n leave each host and
// come in at one; a broadcast is the opposite. NCCL's plug-in has SHARPv3's multicast and reduction for these
// kinds (nccl-rdma-sharp-plugins: iallgather, ireducescatter). A sender that gets no result still receives an
// acknowledgement of each packet.
//
// With `nvls` the hosts' NVSwitches add and copy within a host, as in the algorithm nvls. In an all-reduce
// n(1 + 1/k) leave each rank, and as many come in (NCCL's NVLS with CollNet between hosts). In a
// reduce-scatter n leave each rank and n/k come in; an all-gather is the opposite. A broadcast or a reduce
// does not support `nvls`.
//
// Without `nvls`, a rank has a thread block for each other rank of the host and each tree. It sends this
// rank's data of the other rank's part. Each tree of the own part has one that adds up and sends, and one
// that receives the sum and sends it on. For each other rank and tree one receives its sum. The switches'
// thread blocks come last.
//
// - trees: where a host has several times as many NICs as ranks in the group, each head has so many trees.
//   Each lane of a GPU uses another one of its nearest NICs.
// - latencies: NCCL's model (tuning.cc, hwLatencies, CollNetDirect) has 3.7 us over NVLink and 31 us for the
//   network in both directions. The base latency is 0.
// - chunk: one of the NCCL_STEPS = 8 slots of NCCL_BUFFSIZE = 4 MiB, less where fewer than 64, 8 or 1 of them
//   would come for each channel and head (calcCollChunking in src/enqueue.cc: 128, 64, 32 KiB).
#include <algorithm>
#include <string>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/aggregation_plan.h"
#include "sim/collectives/algorithms/direct_aggregation_plan.h"
#include "sim/collectives/library/kernel_model.h"
#include "sim/collectives/library/nccl/collnet_kernels.h"
#include "sim/collectives/library/nccl/nccl_traits.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

struct SharpParameters : CollnetParameters {
  std::int64_t trees = 0;
  bool nvls = false;
  bool pass = false;
  SharpParameters() {
    hop_latency = 3'700 * kNanosecond;
    hop_latency_net = 31'000 * kNanosecond;
    chunk = 512 * kKibibyte;
  }
};

Parameters<SharpParameters> sharp_parameters() {
  using P = SharpParameters;
  return collnet_parameters<P>("CollNetDirect", " (NCCL_BUFFSIZE / NCCL_STEPS)")
      .integer("trees", &P::trees, {0, 64},
               "aggregation trees for each rank's part; 0: the number of NICs near the ranks of a host, "
               "divided by these ranks")
      .flag("nvls", &P::nvls,
            "the hosts' NVSwitches add up the data for head ranks and copy the data from them (NVLink SHARP)")
      .flag("pass", &P::pass,
            "switches of a tree that do not add up forward packets one by one, so one programmable switch is "
            "enough; SHARP itself needs every switch (not with nvls)");
}

// NvlsSharp: NVSwitches add and copy in each host. A few thread blocks send the rank's data of each part, its
// own too, to its head; one receives what heads send. In an all_gather there is no sum: a head sends its own
// data up its trees, and what comes down to its host. In a reduce_scatter each part's sum comes down to the
// rank that owns it, and goes no further.
class NvlsSharp final : public AggregationPlan {
 public:
  NvlsSharp(CollectiveKind kind, std::uint32_t ranks, std::uint32_t group, std::uint32_t trees)
      : AggregationPlan("sharp", kind, ranks, 0, group, group * trees,
                        own_blocks(kind, group * trees, trees)),
        trees_(trees),
        scatters_(scatters_of(kind, group * trees)),
        adds_(kind != CollectiveKind::all_gather),
        copies_(kind != CollectiveKind::reduce_scatter) {}
  std::uint32_t steps(std::uint32_t rank, std::uint32_t block) const override {
    if (block >= turn(0)) return turn_steps(rank, block);
    if (block < scatters_) return rows_ * lanes_of(block);
    if (block < down(0)) return adds_ ? rows_ : over_trees() ? 1 : 0;
    if (block < gather()) return copies_ ? rows_ : over_trees() ? 1 : 0;
    return chunks();
  }
  std::uint32_t aggregations() const override {
    return tree_aggregations() + ranks_ * trees_ * ((adds_ ? 1 : 0) + (copies_ ? 1 : 0));
  }
  AggregationGroup aggregation(std::uint32_t number) const override {
    if (number < tree_aggregations()) return tree_aggregation(number);
    const std::uint32_t of_host = number - tree_aggregations(), half = ranks_ * trees_;
    const std::uint32_t tree = of_host % trees_;
    const bool reduces = adds_ && of_host < half;
    AggregationGroup aggregation;
    aggregation.head = of_host % half / trees_;
    aggregation.head_block = reduces ? up(tree) : down(tree);
    aggregation.first = aggregation.head / group_ * group_;
    aggregation.members = group_;
    aggregation.block = reduces ? lane(aggregation.head, tree) % scatters_ : gather();
    return aggregation;
  }
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override {
    if (block >= turn(0)) return as_switch(rank, block);
    if (block < scatters_) return scatter(rank, block, index);
    if (block < down(0)) return go_up(rank, block - up(0), index);
    if (block < gather()) return go_down(rank, block - down(0), index);
    return take(rank, index / lanes_, index % lanes_);
  }

 private:
  static constexpr std::uint32_t kMostScatters = 16;
  static std::uint32_t scatters_of(CollectiveKind kind, std::uint32_t lanes) {
    return kind == CollectiveKind::all_gather ? 0 : std::min(lanes, kMostScatters);
  }
  static std::uint32_t own_blocks(CollectiveKind kind, std::uint32_t lanes, std::uint32_t trees) {
    return scatters_of(kind, lanes) + 2 * trees + (kind == CollectiveKind::reduce_scatter ? 0 : 1);
  }
  std::uint32_t up(std::uint32_t tree) const { return scatters_ + tree; }
  std::uint32_t down(std::uint32_t tree) const { return scatters_ + trees_ + tree; }
  std::uint32_t gather() const { return scatters_ + 2 * trees_; }
  std::uint32_t up_of(std::uint32_t lane) const override { return up(lane % trees_); }
  std::uint32_t down_of(std::uint32_t lane) const override { return down(lane % trees_); }
  std::uint32_t lane(std::uint32_t head, std::uint32_t tree) const { return head % group_ * trees_ + tree; }
  std::uint32_t head_of(std::uint32_t rank, std::uint32_t lane) const {
    return rank / group_ * group_ + lane / trees_;
  }
  // Returns the number of lanes whose heads thread block `scatter` sends to: every scatters_-th.
  std::uint32_t lanes_of(std::uint32_t scatter) const {
    return (lanes_ - scatter + scatters_ - 1) / scatters_;
  }
  Partner reduction(std::uint32_t head, std::uint32_t tree) const {
    return Partner::of_aggregation(tree_aggregations() + head * trees_ + tree);
  }
  Partner multicast(std::uint32_t head, std::uint32_t tree) const {
    return Partner::of_aggregation(tree_aggregations() + ((adds_ ? ranks_ : 0) + head) * trees_ + tree);
  }
  // Makes the step wait until the rank has sent its data of a lane's chunk.
  void after_scatter(Step& step, std::uint32_t row, std::uint32_t lane) const {
    step.after_block = lane % scatters_;
    step.after_step = row * lanes_of(lane % scatters_) + lane / scatters_;
  }

  // The order is row by row, as heads receive it.
  Step scatter(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const {
    const std::uint32_t row = index / lanes_of(block), lane = block + index % lanes_of(block) * scatters_;
    Step step = about(chunk_of(row, lane));
    step.kind = Step::Kind::send;
    step.to = reduction(head_of(rank, lane), lane % trees_);
    return step;
  }
  Step take(std::uint32_t rank, std::uint32_t row, std::uint32_t lane) const {
    Step step = about(chunk_of(row, lane));
    step.kind = Step::Kind::receive;
    step.from = multicast(head_of(rank, lane), lane % trees_);
    if (head_of(rank, lane) == rank) {
      step.after_block = down(lane % trees_);  // it has put the same data there, or sent it
      step.after_step = row;
    } else if (adds_) {
      after_scatter(step, row, lane);
    }
    return step;
  }
  // Sends a host's sum to the tree; in an all_gather the head's own data.
  Step go_up(std::uint32_t rank, std::uint32_t tree, std::uint32_t index) const {
    const std::uint32_t row = adds_ ? index : host_of(rank), chunk = chunk_of(row, lane(rank, tree));
    Step step = about(chunk);
    if (over_trees()) step.to = adding(chunk);
    if (!adds_) {
      step.kind = Step::Kind::send;
      return step;
    }
    step.kind = over_trees() ? Step::Kind::receive_copy_send : Step::Kind::receive;
    step.from = reduction(rank, tree);
    after_scatter(step, row, lane(rank, tree));
    return step;
  }
  Step go_down(std::uint32_t rank, std::uint32_t tree, std::uint32_t index) const {
    const std::uint32_t host = host_of(rank), row = copies_ ? index : host;
    const std::uint32_t chunk = chunk_of(row, lane(rank, tree));
    Step step = about(chunk);
    if (copies_) step.to = multicast(rank, tree);
    if (!over_trees()) {
      step.kind = Step::Kind::send;
      if (!adds_) return step;
    } else {
      step.kind = copies_ ? Step::Kind::receive_copy_send : Step::Kind::receive;
      step.from = copying(chunk);
    }
    if (sends_up(host, row)) {
      step.after_block = up(tree);
      step.after_step = adds_ ? row : 0;
    }
    return step;
  }

  std::uint32_t trees_, scatters_;
  bool adds_, copies_;  // whether the switches of a host add, and whether they copy
};

class SharpPlan final : public DirectAggregationPlan {
 public:
  SharpPlan(CollectiveKind kind, const GroupShape& shape, std::uint32_t group, std::uint32_t trees, bool pass)
      : DirectAggregationPlan("sharp", kind, shape.ranks, shape.root, group, trees), pass_(pass) {}
  AggregationPool pool() const override { return {.passes = pass_}; }

 private:
  bool pass_;  // whether switches that do not add up forward packets
};

class Sharp final : public CollectiveAlgorithm, public WithKernels, public WithNcclTraits {
 public:
  explicit Sharp(const SharpParameters& p) : p_(p) {}
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
           kind == CollectiveKind::reduce_scatter ||
           (!p_.nvls && (kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce));
  }
  PlanTraits traits() const override {
    return {.protocol = Protocol::simple,
            .hosts = true,
            .sums = PlanTraits::FabricSums::of_data,
            .nvswitches = p_.nvls};
  }
  NcclTraits nccl_traits() const override {
    return {.family = p_.nvls ? CostFamily::nvls_collnet : CostFamily::collnet_direct};
  }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    const std::uint32_t group = p_.group_size(shape, "sharp", kind);
    const std::uint32_t each = group_of(group, "sharp", kind, shape.ranks);
    const auto trees =
        p_.trees != 0 ? static_cast<std::uint32_t>(p_.trees) : std::max(1U, shape.nics / group);
    if (p_.nvls && each > 1) return std::make_unique<NvlsSharp>(kind, shape.ranks, each, trees);
    return std::make_unique<SharpPlan>(kind, shape, each, trees, p_.pass);
  }
  KernelModel kernel_model(const KernelLoad& load) const override {
    // Each head has one chunk in flight at a time.
    const Bytes heads = AggregationPlan::has_rows(load.kind) ? load.ranks : p_.group_size(load);
    return collnet_kernels(p_, load.bytes, heads);
  }

 private:
  SharpParameters p_;
};

const Registration<CollectiveAlgorithm> kSharp{
    "sharp",
    "aggregation trees in the switches of the fabric between hosts add up and copy (InfiniBand's SHARP, NCCL "
    "CollNetDirect)",
    sharp_parameters(), [](const SharpParameters& p, const ConfigNode& node) {
      if (p.nvls && p.pass) node.find("pass")->fail("pass: true does not go with nvls: true");
      return std::make_unique<Sharp>(p);
    }};

}  // namespace
}  // namespace netsim
