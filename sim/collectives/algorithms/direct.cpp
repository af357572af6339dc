// Direct, also called all-pairs: each rank sends to every other rank at once. The sources are Thakur,
// Rabenseifner, Gropp, Int. J. of High Performance Computing Applications 19, 2005, section 4.3, and Cowan et
// al., MSCCLang, ASPLOS 2023, section 7.1. It takes one step and n(p-1)/p bytes for all_gather,
// reduce_scatter and all_to_all. An all_reduce is both, with two steps and twice the bytes.
//
// A gather is a send from each rank to the root, and a scatter one from the root to each rank. A
// point_to_point is a send from rank 0 to rank 1.
//
// All-pairs: thread block 0 sends and 1 receives, so that no send waits for a message. Sends go to the ranks
// after the own one in their order. Receives come from those before it, nearest first, which is the order in
// which messages arrive. The all_gather of an all_reduce has two more: 2 sends once 1 has the sum. 3, which
// overwrites the rank's contribution to a chunk, waits until 0 has sent that.
//
// All-to-all-v: a thread block for each rank that it sends to, and one for each that it receives from. So a
// rank that is sent much data delays no other rank. The sends and receives of one group of NCCL calls run at
// once too.
#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/each_peer_plan.h"
#include "sim/collectives/algorithms/regular_plan.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

class PointToPointPlan final : public RegularPlan {
 public:
  PointToPointPlan() : RegularPlan("direct", CollectiveKind::point_to_point, 2) {}
  std::uint32_t chunks() const override { return 1; }
  bool in_place() const override { return true; }  // each rank has one buffer
  std::uint32_t blocks(std::uint32_t) const override { return 1; }
  std::uint32_t steps(std::uint32_t, std::uint32_t) const override { return 1; }
  Step step(std::uint32_t rank, std::uint32_t, std::uint32_t) const override {
    Step step;
    step.kind = rank == 0 ? Step::Kind::send : Step::Kind::receive;
    step.destination = {Buffer::output, 0};
    (rank == 0 ? step.to : step.from) = {1 - rank, 0};
    return step;
  }
};

// RootedPlan: the plan of a gather or a scatter. The root has a step with each rank, in their order from
// itself on, and then copies its own part. The others have one step.
class RootedPlan final : public RegularPlan {
 public:
  RootedPlan(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root)
      : RegularPlan("direct", kind, ranks, root) {}
  std::uint32_t chunks() const override { return ranks_; }
  bool in_place() const override { return false; }
  std::uint32_t blocks(std::uint32_t) const override { return 1; }
  std::uint32_t steps(std::uint32_t rank, std::uint32_t) const override { return rank == root_ ? ranks_ : 1; }

  Step step(std::uint32_t rank, std::uint32_t, std::uint32_t index) const override {
    const bool gathers = kind_ == CollectiveKind::gather;
    const std::uint32_t peer = rank == root_ ? wrap(std::uint64_t{root_} + 1 + index) : root_;
    const std::uint32_t chunk = rank == root_ ? peer : 0;
    Step step;
    step.source = {Buffer::input, gathers ? 0 : chunk};
    step.destination = {Buffer::output, gathers ? chunk : 0};
    if (peer == rank) {
      step.kind = Step::Kind::copy;
    } else if (gathers == (rank == root_)) {
      step.kind = Step::Kind::receive;
      step.from = {peer, 0};
    } else {
      step.kind = Step::Kind::send;
      step.to = {peer, 0};
    }
    return step;
  }
};

class AllPairsPlan final : public RegularPlan {
 public:
  AllPairsPlan(CollectiveKind kind, std::uint32_t ranks) : RegularPlan("direct", kind, ranks) {}
  std::uint32_t chunks() const override { return ranks_; }
  bool in_place() const override { return kind_ != CollectiveKind::all_to_all; }
  std::uint32_t blocks(std::uint32_t) const override { return kind_ == CollectiveKind::all_reduce ? 4 : 2; }
  std::uint32_t steps(std::uint32_t, std::uint32_t block) const override {
    return ranks_ - 1 + (copies_own(block) ? 1 : 0);
  }
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override {
    if (copies_own(block) && index + 1 == ranks_) return copy_own(rank);
    return block % 2 == 0 ? send(rank, block, index) : receive(rank, block, index);
  }

 private:
  static constexpr std::uint32_t kSend = 0, kReceive = 1, kSendSum = 2, kReceiveSum = 3;

  bool reduces() const {
    return kind_ == CollectiveKind::all_reduce || kind_ == CollectiveKind::reduce_scatter;
  }
  bool copies_own(std::uint32_t block) const {
    return block == kReceive && kind_ == CollectiveKind::all_to_all;
  }
  static Step copy_own(std::uint32_t rank) {
    Step step;
    step.kind = Step::Kind::copy;
    step.source = {Buffer::input, rank};
    step.destination = {Buffer::output, rank};
    return step;
  }

  Step send(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const {
    Step step;
    step.kind = Step::Kind::send;
    step.to = {wrap(std::uint64_t{rank} + 1 + index), block + 1};
    const bool own = block == kSendSum || kind_ == CollectiveKind::all_gather;
    step.source = {whole(), own ? rank : step.to.rank};
    if (block == kSendSum) {
      step.after_block = kReceive;
      step.after_step = ranks_ - 2;
    }
    return step;
  }
  Step receive(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const {
    Step step;
    step.from = {wrap(std::uint64_t{rank} + ranks_ - 1 - index), block - 1};
    if (block == kReceive && reduces()) {
      step.kind = Step::Kind::receive_reduce_copy;
      step.source = step.destination = {Buffer::input, rank};
      return step;
    }
    step.kind = Step::Kind::receive;
    step.destination = {in_place() ? whole() : Buffer::output, step.from.rank};
    if (block == kReceiveSum) {
      step.after_block = kSend;
      step.after_step = wrap(std::uint64_t{step.from.rank} + ranks_ - rank) - 1;
    }
    return step;
  }
};

class Direct final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override {
    return kind != CollectiveKind::broadcast && kind != CollectiveKind::reduce &&
           kind != CollectiveKind::custom && kind != CollectiveKind::barrier;
  }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    if (kind == CollectiveKind::point_to_point) {
      NETSIM_CHECK(shape.ranks == 2, "point_to_point of " + std::to_string(shape.ranks) + " ranks");
      return std::make_unique<PointToPointPlan>();
    }
    if (has_root(kind)) return std::make_unique<RootedPlan>(kind, shape.ranks, shape.root);
    if (info_of(kind).goal.contributors == ChunkRanks::source) check_all_to_all("direct", kind, shape.ranks);
    if (has_counts(kind)) {
      check_all_to_all("direct", kind, shape.ranks);
      return std::make_unique<EachPeerPlan>("direct", kind, shape.ranks);
    }
    return std::make_unique<AllPairsPlan>(kind, shape.ranks);
  }
};

const Registration<CollectiveAlgorithm> kDirect{
    "direct",
    "sends each block to its rank at once, in one step, or in two for an all-reduce; it also runs gather, "
    "scatter and point-to-point",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Direct>(); }};

}  // namespace
}  // namespace netsim
