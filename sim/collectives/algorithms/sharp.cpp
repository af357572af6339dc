// SHARP: an all-reduce over hosts whose network adds up: aggregation trees in the switches of the fabric
// (Graham et al., Scalable Hierarchical Aggregation Protocol (SHArP), COMHPC 2016; streaming aggregation:
// Graham et al., ISC High Performance 2020), as NCCL's CollNetDirect uses them (src/device/all_reduce.h,
// NCCL_COLLNET_ENABLE). In each host every rank is the head of its part of the buffer: the others send it
// theirs and it adds them up. Heads of the same number of all hosts are the members of one tree or several,
// each over NICs of its own. The sums come back to all of them, and each sends its own to the other ranks of
// its host. So of n bytes n leave a host by its NICs and n come in, however many hosts there are, where a
// ring has 2n (N-1)/N; over NVLink 2n (k-1)/k of k ranks leave each rank. With one rank in each host there is
// the tree alone. In a single host there is none.
//
// With `nvls` the hosts' NVSwitches do what is done in a host, as with the algorithm nvls: n(1 + 1/k) leave
// each rank, and as many come (NCCL's NVLS with CollNet between hosts).
//
// Thread blocks without it: for each other rank of the host, and tree, one that gives it what this rank has
// of its part; for each tree of the own part one that adds up and sends, and one that takes the sum and sends
// it on; for each other rank and tree one that takes its sum. The last ones, of the first host's ranks, are
// the switches'.
//
// - trees: where a host has several times as many NICs as ranks in the group, so many trees a head: each lane
//   of a GPU takes another one of its nearest NICs.
// - latencies: NCCL's model (tuning.cc, hwLatencies, CollNetDirect) has 3.7 us over NVLink and 31 us for the
//   network, there and back; nothing before.
// - chunk: one of the NCCL_STEPS = 8 slots of NCCL_BUFFSIZE = 4 MiB, less where fewer than 64, 8 or 1 of them
//   would come for each channel and head (calcCollChunking in src/enqueue.cc: 128, 64, 32 KiB).
#include <algorithm>
#include <string>
#include <utility>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/grouping.h"
#include "sim/collectives/algorithms/regular_plan.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

struct SharpParameters : HostGroupParameters {
  std::int64_t trees = 0;
  bool nvls = false;
  Time base_latency = 0;
  Time hop_latency = 3'700 * kNanosecond;
  Time hop_latency_net = 31'000 * kNanosecond;
  Bytes chunk = 512 * kKibibyte;
  std::int64_t slots = 8;
};

Parameters<SharpParameters> parameters() {
  using P = SharpParameters;
  const Range<Time> latency{0, kSecond};
  return Parameters<P>()
      .integer("group", &P::group, {0, 1 << 20},
               std::string("ranks of a host, which follow each other") + P::kZeroMeans)
      .integer("trees", &P::trees, {0, 64},
               "of each rank's part; 0: as many as there are NICs near the ranks of a host for each of them")
      .flag("nvls", &P::nvls,
            "the hosts' NVSwitches add up and copy what goes to heads and comes from them (NVLink SHARP)")
      .time("base_latency", &P::base_latency, latency, "before the first step")
      .time("hop_latency", &P::hop_latency, latency,
            "of each message within a host (NCCL tuning.cc hwLatencies, NVLINK CollNetDirect)")
      .time("hop_latency_net", &P::hop_latency_net, latency,
            "of each message that goes up a tree, besides the network's own time until its sum is back (NCCL "
            "tuning.cc hwLatencies, NET CollNetDirect)")
      .bytes("chunk", &P::chunk, {64, kGibibyte},
             "largest message (NCCL_BUFFSIZE / NCCL_STEPS); less for small buffers")
      .integer("slots", &P::slots, {kSlots, 1 << 20},
               "messages of a connection that the receiver has room for (NCCL_STEPS)");
}

// What both sorts of plans have in common: the trees.
class SharpPlan : public RegularPlan {
 public:
  // Of each head one for each tree.
  std::uint32_t chunks() const override { return group_ * trees_; }
  std::uint32_t scratch_chunks(std::uint32_t rank) const override { return is_root(rank) ? chunks() : 0; }
  bool in_place() const override { return true; }
  bool in_switch(std::uint32_t, std::uint32_t block) const override { return block >= turn(0); }

 protected:
  // `first`: the first thread block of those that go up; behind them those that go down, then `behind`
  // others.
  SharpPlan(std::uint32_t ranks, std::uint32_t group, std::uint32_t trees, std::uint32_t first,
            std::uint32_t behind)
      : RegularPlan("sharp", CollectiveKind::all_reduce, ranks),
        group_(group),
        trees_(trees),
        hosts_(ranks / group),
        first_(first),
        behind_(behind) {}

  std::uint32_t all_blocks() const { return turn(hosts_ > 1 ? trees_ : 0); }
  std::uint32_t up(std::uint32_t tree) const { return first_ + tree; }
  std::uint32_t down(std::uint32_t tree) const { return first_ + trees_ + tree; }
  std::uint32_t gather() const { return first_ + 2 * trees_; }
  // The switches' own.
  std::uint32_t turn(std::uint32_t tree) const { return gather() + behind_ + tree; }
  bool is_root(std::uint32_t rank) const { return hosts_ > 1 && rank < group_; }

  std::uint32_t chunk_of(std::uint32_t rank, std::uint32_t tree) const {
    return rank % group_ * trees_ + tree;
  }
  Step about(std::uint32_t chunk) const {
    Step step;
    step.source = step.destination = {Buffer::input, chunk};
    return step;
  }

  // Fans of the trees come before all others, those that add up first.
  std::uint32_t tree_fans() const { return hosts_ > 1 ? 2 * chunks() : 0; }
  Partner adding(std::uint32_t rank, std::uint32_t tree) const {
    return Partner::of_fan(chunk_of(rank, tree));
  }
  Partner copying(std::uint32_t rank, std::uint32_t tree) const {
    return Partner::of_fan(chunks() + chunk_of(rank, tree));
  }
  Fan tree_fan(std::uint32_t number) const {
    const std::uint32_t chunk = number % chunks(), tree = chunk % trees_;
    Fan fan;
    fan.head = fan.first = chunk / trees_;
    fan.head_block = turn(tree);
    fan.members = hosts_;
    fan.stride = group_;
    fan.block = number < chunks() ? up(tree) : down(tree);
    return fan;
  }
  Step as_switch(std::uint32_t rank, std::uint32_t tree) const {
    Step step;
    step.kind = Step::Kind::receive_copy_send;
    step.destination = {Buffer::scratch, chunk_of(rank, tree)};
    step.from = adding(rank, tree);
    step.to = copying(rank, tree);
    return step;
  }

  std::uint32_t group_, trees_, hosts_;
  std::uint32_t first_, behind_;
};

// Each rank sends the others of its host their parts: for each of them and tree a thread block, and one for
// what comes back.
class DirectSharp final : public SharpPlan {
 public:
  DirectSharp(std::uint32_t ranks, std::uint32_t group, std::uint32_t trees)
      : SharpPlan(ranks, group, trees, (group - 1) * trees, (group - 1) * trees) {}
  std::uint32_t blocks(std::uint32_t) const override { return all_blocks(); }
  std::uint32_t steps(std::uint32_t rank, std::uint32_t block) const override {
    if (block >= turn(0)) return is_root(rank) ? 1 : 0;
    if (block < up(0) || block >= gather()) return 1;
    const std::uint32_t tree_step = hosts_ > 1 ? 1 : 0;
    if (block >= down(0)) return group_ - 1 + tree_step;
    // The last of what is added up goes on to the tree at once.
    return std::max(group_ - 1, tree_step);
  }
  std::uint32_t fans() const override { return tree_fans(); }
  Fan fan(std::uint32_t number) const override { return tree_fan(number); }
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override {
    if (block >= turn(0)) return as_switch(rank, block - turn(0));
    if (block < up(0)) return to_head(rank, block);
    if (block >= gather()) return from_head(rank, block - gather());
    if (block < down(0)) return go_up(rank, block - up(0), index);
    return go_down(rank, block - down(0), index);
  }

 private:
  // Of the other ranks of its host the one of this number, and the other way round.
  std::uint32_t peer(std::uint32_t rank, std::uint32_t number) const {
    const std::uint32_t local = rank % group_;
    return rank - local + (number < local ? number : number + 1);
  }
  std::uint32_t number_of(std::uint32_t rank, std::uint32_t peer) const {
    return peer < rank ? peer % group_ : peer % group_ - 1;
  }

  Step to_head(std::uint32_t rank, std::uint32_t block) const {
    const std::uint32_t head = peer(rank, block / trees_), tree = block % trees_;
    Step step = about(chunk_of(head, tree));
    step.kind = Step::Kind::send;
    step.to = {head, up(tree)};
    return step;
  }
  Step from_head(std::uint32_t rank, std::uint32_t block) const {
    const std::uint32_t head = peer(rank, block / trees_), tree = block % trees_;
    Step step = about(chunk_of(head, tree));
    step.kind = Step::Kind::receive;
    step.from = {head, down(tree)};
    step.after_block = block;  // in which what this overwrites was sent
    return step;
  }
  Step go_up(std::uint32_t rank, std::uint32_t tree, std::uint32_t index) const {
    Step step = about(chunk_of(rank, tree));
    if (group_ == 1) {
      step.kind = Step::Kind::send;
      step.to = adding(rank, tree);
      return step;
    }
    const std::uint32_t other = peer(rank, index);
    step.from = {other, number_of(other, rank) * trees_ + tree};
    step.kind = Step::Kind::receive_reduce_copy;
    if (hosts_ > 1 && index + 2 == group_) {
      step.kind = Step::Kind::receive_reduce_send;
      step.to = adding(rank, tree);
    }
    return step;
  }
  Step go_down(std::uint32_t rank, std::uint32_t tree, std::uint32_t index) const {
    Step step = about(chunk_of(rank, tree));
    if (index == 0) {
      step.after_block = up(tree);
      step.after_step = steps(rank, up(tree)) - 1;
    }
    if (hosts_ > 1 && index == 0) {
      step.kind = Step::Kind::receive;
      step.from = copying(rank, tree);
      return step;
    }
    const std::uint32_t other = peer(rank, hosts_ > 1 ? index - 1 : index);
    step.kind = Step::Kind::send;
    step.to = {other, gather() + number_of(other, rank) * trees_ + tree};
    return step;
  }
};

// NVSwitches add up and copy in each host: a few thread blocks give the heads what the rank has of their
// parts, its own too, and one takes their sums.
class NvlsSharp final : public SharpPlan {
 public:
  NvlsSharp(std::uint32_t ranks, std::uint32_t group, std::uint32_t trees)
      : SharpPlan(ranks, group, trees, std::min(group * trees, kMostScatters), 1) {}
  std::uint32_t blocks(std::uint32_t) const override { return all_blocks(); }
  std::uint32_t steps(std::uint32_t rank, std::uint32_t block) const override {
    if (block >= turn(0)) return is_root(rank) ? 1 : 0;
    if (block < up(0)) return (chunks() - block + up(0) - 1) / up(0);
    return block == gather() ? chunks() : 1;
  }
  std::uint32_t fans() const override { return tree_fans() + 2 * ranks_ * trees_; }
  Fan fan(std::uint32_t number) const override {
    if (number < tree_fans()) return tree_fan(number);
    const std::uint32_t of_host = number - tree_fans(), half = ranks_ * trees_;
    const std::uint32_t tree = of_host % trees_;
    Fan fan;
    fan.head = of_host % half / trees_;
    fan.head_block = of_host < half ? up(tree) : down(tree);
    fan.first = fan.head / group_ * group_;
    fan.members = group_;
    fan.block = of_host < half ? chunk_of(fan.head, tree) % up(0) : gather();
    return fan;
  }
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override {
    if (block >= turn(0)) return as_switch(rank, block - turn(0));
    if (block < up(0)) return scatter(rank, block + index * up(0));
    if (block == gather()) return take(rank, index);
    if (block < down(0)) return go_up(rank, block - up(0));
    return go_down(rank, block - down(0));
  }

 private:
  static constexpr std::uint32_t kMostScatters = 16;
  std::uint32_t head_of(std::uint32_t rank, std::uint32_t chunk) const {
    return rank / group_ * group_ + chunk / trees_;
  }
  Partner reduction(std::uint32_t head, std::uint32_t tree) const {
    return Partner::of_fan(tree_fans() + head * trees_ + tree);
  }
  Partner multicast(std::uint32_t head, std::uint32_t tree) const {
    return Partner::of_fan(tree_fans() + (ranks_ + head) * trees_ + tree);
  }
  // After the rank has given away what it has of the chunk.
  void after_scatter(Step& step, std::uint32_t chunk) const {
    step.after_block = chunk % up(0);
    step.after_step = chunk / up(0);
  }

  Step scatter(std::uint32_t rank, std::uint32_t chunk) const {
    Step step = about(chunk);
    step.kind = Step::Kind::send;
    step.to = reduction(head_of(rank, chunk), chunk % trees_);
    return step;
  }
  Step take(std::uint32_t rank, std::uint32_t chunk) const {
    Step step = about(chunk);
    step.kind = Step::Kind::receive;
    step.from = multicast(head_of(rank, chunk), chunk % trees_);
    if (head_of(rank, chunk) == rank) {
      step.after_block = down(chunk % trees_);  // which has put the same there
    } else {
      after_scatter(step, chunk);
    }
    return step;
  }
  Step go_up(std::uint32_t rank, std::uint32_t tree) const {
    Step step = about(chunk_of(rank, tree));
    step.kind = hosts_ > 1 ? Step::Kind::receive_copy_send : Step::Kind::receive;
    step.from = reduction(rank, tree);
    if (hosts_ > 1) step.to = adding(rank, tree);
    after_scatter(step, chunk_of(rank, tree));
    return step;
  }
  Step go_down(std::uint32_t rank, std::uint32_t tree) const {
    Step step = about(chunk_of(rank, tree));
    step.kind = hosts_ > 1 ? Step::Kind::receive_copy_send : Step::Kind::send;
    if (hosts_ > 1) step.from = copying(rank, tree);
    step.to = multicast(rank, tree);
    step.after_block = up(tree);
    return step;
  }
};

class Sharp final : public CollectiveAlgorithm {
 public:
  explicit Sharp(const SharpParameters& p) : p_(p) {}
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  std::optional<Protocol> protocol() const override { return Protocol::simple; }
  bool depends_on_shape() const override { return true; }
  std::unique_ptr<Plan> plan(CollectiveKind kind, std::uint32_t ranks, std::uint32_t) const override {
    return over(kind, ranks, p_.group_size(), 1);
  }
  std::unique_ptr<Plan> plan_over(CollectiveKind kind, std::uint32_t ranks, std::uint32_t,
                                  const GroupShape& shape) const override {
    const std::uint32_t group = p_.group_size(shape, "sharp", kind, ranks);
    return over(kind, ranks, group, shape.nics / group);
  }
  std::optional<OwnKernels> own_kernels(const Load& load) const override {
    return OwnKernels{.base_latency = p_.base_latency,
                      .hop_latency = p_.hop_latency,
                      .hop_latency_net = p_.hop_latency_net,
                      .channels = 1,
                      .chunk = chunk(load),
                      .slots = static_cast<std::uint32_t>(p_.slots)};
  }

 private:
  std::unique_ptr<Plan> over(CollectiveKind kind, std::uint32_t ranks, std::uint32_t group,
                             std::uint32_t nics_each) const {
    const std::uint32_t each = group_of(group, "sharp", kind, ranks);
    const auto trees = p_.trees != 0 ? static_cast<std::uint32_t>(p_.trees) : std::max(1U, nics_each);
    if (p_.nvls && each > 1) return std::make_unique<NvlsSharp>(ranks, each, trees);
    return std::make_unique<DirectSharp>(ranks, each, trees);
  }
  Bytes chunk(const Load& load) const {
    const Bytes heads = p_.group_size(load);
    Bytes chunk = p_.chunk;
    for (const auto& [fewest, most] : {std::pair<Bytes, Bytes>{64, 128}, {8, 64}, {1, 32}}) {
      const Bytes smallest = most * kKibibyte;
      while (load.bytes < fewest * heads * chunk && chunk > smallest) chunk /= 2;
    }
    return chunk;
  }

  SharpParameters p_;
};

const Registration<CollectiveAlgorithm> kRegistration{
    "sharp",
    "all-reduce over hosts by aggregation trees in the switches of their fabric (InfiniBand's SHARP, NCCL "
    "CollNetDirect)",
    parameters(), [](const SharpParameters& p, const ConfigNode&) { return std::make_unique<Sharp>(p); }};

}  // namespace
}  // namespace netsim
