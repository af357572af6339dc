// Pairwise exchange: in step i (1 .. p-1) rank r sends its block for rank r+i and takes the block of rank
// r-i. Each step is a permutation; (p-1) steps of n/p bytes. The rank's own block stays where it is.
#include "sim/collectives/algorithm.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

constexpr std::uint32_t kMaxRanks = 65'535;  // ranks^2 blocks have 32-bit numbers

class PairwiseSchedule final : public Schedule {
 public:
  explicit PairwiseSchedule(std::uint32_t ranks) : ranks_(ranks) {}

  CollectiveKind kind() const override { return CollectiveKind::all_to_all; }
  const char* algorithm() const override { return "pairwise"; }
  std::uint32_t ranks() const override { return ranks_; }
  std::uint32_t thread_blocks() const override { return 1; }
  std::uint32_t divisions() const override { return ranks_; }
  std::uint32_t chunks() const override { return ranks_ * ranks_; }
  std::uint32_t instructions(std::uint32_t, std::uint32_t) const override { return 2 * (ranks_ - 1); }

  Instruction instruction(std::uint32_t rank, std::uint32_t, std::uint32_t index) const override {
    const std::uint32_t step = index / 2 + 1;
    if (index % 2 == 0) {
      const std::uint32_t destination = (rank + step) % ranks_;
      return {Instruction::Op::send, destination, rank * ranks_ + destination};
    }
    const std::uint32_t source = (rank + ranks_ - step) % ranks_;
    return {Instruction::Op::receive, source, source * ranks_ + rank};
  }

 private:
  std::uint32_t ranks_;
};

class Pairwise final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_to_all; }
  std::unique_ptr<Schedule> schedule(CollectiveKind, std::uint32_t ranks, std::uint32_t) const override {
    if (ranks > kMaxRanks) {
      throw InputError("all_to_all of " + std::to_string(ranks) + " ranks: 'pairwise' does at most " +
                       std::to_string(kMaxRanks));
    }
    return std::make_unique<PairwiseSchedule>(ranks);
  }
};

const Registration<CollectiveAlgorithm> kRegistration{
    "pairwise",
    "all-to-all in p-1 steps, each a permutation of the ranks; every block goes straight to its rank",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Pairwise>(); }};

}  // namespace
}  // namespace netsim
