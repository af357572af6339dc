// Chain: the buffer passes from rank to rank in the order of the group, as NCCL's broadcast and reduce pass
// its ring. Broadcast goes root, root+1, ..., root-1; reduce goes root+1, root+2, ..., root, and every rank
// adds its own. One chunk a round; the rounds of a large buffer follow each other down the chain: (p - 2 +
// rounds) steps of one slice.
#include "sim/collectives/algorithm.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

class ChainSchedule final : public Schedule {
 public:
  ChainSchedule(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root)
      : kind_(kind),
        ranks_(ranks),
        root_(root),
        first_(kind == CollectiveKind::reduce ? (root + 1) % ranks : root),
        take_(kind == CollectiveKind::reduce ? Instruction::Op::reduce : Instruction::Op::receive) {}

  CollectiveKind kind() const override { return kind_; }
  const char* algorithm() const override { return "chain"; }
  std::uint32_t ranks() const override { return ranks_; }
  std::uint32_t root() const override { return root_; }
  std::uint32_t thread_blocks() const override { return 1; }
  std::uint32_t divisions() const override { return 1; }
  std::uint32_t instructions(std::uint32_t rank, std::uint32_t) const override {
    return (is_first(rank) ? 0 : 1) + (is_last(rank) ? 0 : 1);
  }

  Instruction instruction(std::uint32_t rank, std::uint32_t, std::uint32_t index) const override {
    if (index == 0 && !is_first(rank)) return {take_, (rank + ranks_ - 1) % ranks_, 0};
    return {Instruction::Op::send, (rank + 1) % ranks_, 0};
  }

 private:
  bool is_first(std::uint32_t rank) const { return rank == first_; }
  bool is_last(std::uint32_t rank) const { return (rank + 1) % ranks_ == first_; }

  CollectiveKind kind_;
  std::uint32_t ranks_;
  std::uint32_t root_;
  std::uint32_t first_;  // rank of the chain; the last one is the rank before it
  Instruction::Op take_;
};

class Chain final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
  }
  std::unique_ptr<Schedule> schedule(CollectiveKind kind, std::uint32_t ranks,
                                     std::uint32_t root) const override {
    return std::make_unique<ChainSchedule>(kind, ranks, root);
  }
};

const Registration<CollectiveAlgorithm> kRegistration{
    "chain",
    "broadcast and reduce from rank to rank, slice behind slice: full bandwidth for large buffers, p-1 steps "
    "of latency",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Chain>(); }};

}  // namespace
}  // namespace netsim
