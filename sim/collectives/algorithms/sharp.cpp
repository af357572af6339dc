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
#include "sim/collectives/library/kernel_model.h"
#include "sim/collectives/library/nccl/collnet_kernels.h"
#include "sim/collectives/library/nccl/nccl_traits.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

struct SharpParameters : CollnetParameters {
  std::int64_t trees = 0;
  bool nvls = false;
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
      .flag(
          "nvls", &P::nvls,
          "the hosts' NVSwitches add up the data for head ranks and copy the data from them (NVLink SHARP)");
}

// DirectSharp: each rank sends its data directly to the heads of its host. It has a thread block for each
// other rank and tree that sends, and one that receives the result. Where only the root has data, or gets a
// result, only the root sends, or receives.
class DirectSharp final : public AggregationPlan {
 public:
  DirectSharp(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root, std::uint32_t group,
              std::uint32_t trees)
      : AggregationPlan("sharp", kind, ranks, root, group, group * trees, 2 * group * trees),
        trees_(trees),
        adds_(kind != CollectiveKind::all_gather && kind != CollectiveKind::broadcast),
        tree_step_(over_trees() ? 1 : 0) {}
  std::uint32_t steps(std::uint32_t rank, std::uint32_t block) const override {
    if (block >= turn(0)) return turn_steps(rank, block);
    if (block < up(0)) return gives(rank) ? rows_ : 0;
    if (block >= gather()) return takes(rank) ? rows_ : 0;
    if (block >= down(0)) return rows_got(rank) * (tree_step_ + forwards(rank));
    return rows_sent(rank) * steps_up(rank);
  }
  std::uint32_t aggregations() const override { return tree_aggregations(); }
  AggregationGroup aggregation(std::uint32_t number) const override { return tree_aggregation(number); }
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override {
    if (block >= turn(0)) return as_switch(rank, block);
    if (block < up(0)) return to_head(rank, block, index);
    if (block >= gather()) return from_head(rank, block - gather(), index);
    if (block < down(0)) return go_up(rank, block - up(0), index);
    return go_down(rank, block - down(0), index);
  }

 private:
  std::uint32_t up(std::uint32_t tree) const { return (group_ - 1) * trees_ + tree; }
  std::uint32_t down(std::uint32_t tree) const { return group_ * trees_ + tree; }
  std::uint32_t gather() const { return (group_ + 1) * trees_; }
  std::uint32_t up_of(std::uint32_t lane) const override { return up(lane % trees_); }
  std::uint32_t down_of(std::uint32_t lane) const override { return down(lane % trees_); }
  std::uint32_t chunk(std::uint32_t row, std::uint32_t head, std::uint32_t tree) const {
    return chunk_of(row, head % group_ * trees_ + tree);
  }

  // Return the other rank of the host with this number, and the inverse.
  std::uint32_t peer(std::uint32_t rank, std::uint32_t number) const {
    const std::uint32_t local = rank % group_;
    return rank - local + (number < local ? number : number + 1);
  }
  std::uint32_t number_of(std::uint32_t rank, std::uint32_t peer) const {
    return peer < rank ? peer % group_ : peer % group_ - 1;
  }

  // Return whether the rank sends data to the other heads of its host, and whether it receives from them.
  bool gives(std::uint32_t rank) const {
    return adds_ || (kind_ == CollectiveKind::broadcast && rank == root_);
  }
  bool takes(std::uint32_t rank) const {
    if (kind_ == CollectiveKind::broadcast) return rank != root_;
    return kind_ == CollectiveKind::reduce ? rank == root_ : kind_ != CollectiveKind::reduce_scatter;
  }
  bool beside_root(std::uint32_t rank) const { return host_of(rank) == host_of(root_) && rank != root_; }

  // Return the number of rows that a head sends up a tree or handles for its host, and the steps for each. It
  // receives the data of the others, and with the last of that it sends the sum to the tree.
  std::uint32_t rows_sent(std::uint32_t rank) const {
    if (kind_ == CollectiveKind::all_gather) return 1;
    return sends_up(host_of(rank), 0) ? rows_ : 0;
  }
  std::uint32_t steps_up(std::uint32_t rank) const { return std::max(taken(rank), tree_step_); }
  std::uint32_t taken(std::uint32_t rank) const {
    if (adds_) return group_ - 1;
    return kind_ == CollectiveKind::broadcast && beside_root(rank) ? 1 : 0;
  }
  // Return the number of rows that a head receives from a tree or has for other ranks of its host. forwards()
  // is the number of these ranks.
  std::uint32_t rows_got(std::uint32_t rank) const {
    if (kind_ == CollectiveKind::reduce_scatter) return 1;
    return gets(host_of(rank), 0) ? rows_ : 0;
  }
  std::uint32_t forwards(std::uint32_t rank) const {
    if (kind_ == CollectiveKind::reduce_scatter) return 0;
    if (kind_ == CollectiveKind::reduce) return beside_root(rank) ? 1 : 0;
    return kind_ == CollectiveKind::broadcast && beside_root(rank) ? group_ - 2 : group_ - 1;
  }
  // Returns rank number `index` of these.
  std::uint32_t forwarded(std::uint32_t rank, std::uint32_t index) const {
    if (kind_ == CollectiveKind::reduce) return root_;
    const bool passes_root = kind_ == CollectiveKind::broadcast && beside_root(rank);
    return peer(rank, passes_root && index >= number_of(rank, root_) ? index + 1 : index);
  }

  Step to_head(std::uint32_t rank, std::uint32_t block, std::uint32_t row) const {
    const std::uint32_t head = peer(rank, block / trees_), tree = block % trees_;
    Step step = about(chunk(row, head, tree));
    step.kind = Step::Kind::send;
    step.to = {head, up(tree)};
    return step;
  }
  Step from_head(std::uint32_t rank, std::uint32_t block, std::uint32_t row) const {
    const std::uint32_t head = peer(rank, block / trees_), tree = block % trees_;
    Step step = about(chunk(row, head, tree));
    step.kind = Step::Kind::receive;
    step.from = {head, down(tree)};
    if (gives(rank)) {
      step.after_block = block;  // it has sent the data that this overwrites
      step.after_step = row;
    }
    return step;
  }
  Step go_up(std::uint32_t rank, std::uint32_t tree, std::uint32_t index) const {
    const std::uint32_t each = steps_up(rank), number = index % each;
    const std::uint32_t row = kind_ == CollectiveKind::all_gather ? host_of(rank) : index / each;
    Step step = about(chunk(row, rank, tree));
    const bool to_tree = over_trees() && number + 1 == each;
    if (to_tree) step.to = adding(chunk(row, rank, tree));
    if (taken(rank) == 0) {
      step.kind = Step::Kind::send;
      return step;
    }
    const std::uint32_t other = adds_ ? peer(rank, number) : root_;
    step.from = {other, number_of(other, rank) * trees_ + tree};
    if (adds_) {
      step.kind = to_tree ? Step::Kind::receive_reduce_send : Step::Kind::receive_reduce_copy;
    } else {
      step.kind = to_tree ? Step::Kind::receive_copy_send : Step::Kind::receive;
    }
    return step;
  }
  Step go_down(std::uint32_t rank, std::uint32_t tree, std::uint32_t index) const {
    const std::uint32_t each = tree_step_ + forwards(rank), number = index % each;
    const std::uint32_t host = host_of(rank);
    const std::uint32_t row = kind_ == CollectiveKind::reduce_scatter && over_trees() ? host : index / each;
    Step step = about(chunk(row, rank, tree));
    if (number == 0 && sends_up(host, row) && steps_up(rank) > 0) {
      step.after_block = up(tree);
      step.after_step = (kind_ == CollectiveKind::all_gather ? 1 : row + 1) * steps_up(rank) - 1;
    }
    if (number < tree_step_) {
      step.kind = Step::Kind::receive;
      step.from = copying(chunk(row, rank, tree));
      return step;
    }
    const std::uint32_t other = forwarded(rank, number - tree_step_);
    step.kind = Step::Kind::send;
    step.to = {other, gather() + number_of(other, rank) * trees_ + tree};
    return step;
  }

  std::uint32_t trees_;
  bool adds_;                // whether heads add up the data of the others
  std::uint32_t tree_step_;  // 1 where there are trees, otherwise 0
};

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

class Sharp final : public CollectiveAlgorithm, public WithKernels, public WithNcclTraits {
 public:
  explicit Sharp(const SharpParameters& p) : p_(p) {}
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
           kind == CollectiveKind::reduce_scatter ||
           (!p_.nvls && (kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce));
  }
  PlanTraits traits() const override { return {.protocol = Protocol::simple, .hosts = true}; }
  NcclTraits nccl_traits() const override {
    return {.family = p_.nvls ? CostFamily::nvls_collnet : CostFamily::collnet_direct};
  }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    const std::uint32_t group = p_.group_size(shape, "sharp", kind);
    const std::uint32_t each = group_of(group, "sharp", kind, shape.ranks);
    const auto trees =
        p_.trees != 0 ? static_cast<std::uint32_t>(p_.trees) : std::max(1U, shape.nics / group);
    if (p_.nvls && each > 1) return std::make_unique<NvlsSharp>(kind, shape.ranks, each, trees);
    return std::make_unique<DirectSharp>(kind, shape.ranks, shape.root, each, trees);
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
    sharp_parameters(),
    [](const SharpParameters& p, const ConfigNode&) { return std::make_unique<Sharp>(p); }};

}  // namespace
}  // namespace netsim
