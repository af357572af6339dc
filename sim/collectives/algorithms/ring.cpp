// Ring (Patarasuk & Yuan, JPDC 2009; NCCL's ring primitives): rank r sends to r+1 and receives from r-1, one
// chunk of bytes / p a step. Reduce-scatter and all-gather take p-1 steps, all-reduce is both: 2(p-1) steps,
// and no algorithm sends fewer bytes, 2n(p-1)/p per rank.
//
// One thread block. Step s of rank r sends chunk r - shift - s and then takes chunk r - shift - s - 1, which
// is what r-1 sends in its step s and what r sends in step s+1. The last chunk that a reduce-scatter reduces
// must be the rank's own: r - shift - (p-1) = r (mod p), hence shift 1 there; all-gather starts with the own
// chunk, hence shift 0.
#include "sim/collectives/algorithm.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

class RingSchedule final : public Schedule {
 public:
  RingSchedule(CollectiveKind kind, std::uint32_t ranks)
      : kind_(kind),
        ranks_(ranks),
        steps_(kind == CollectiveKind::all_reduce ? 2 * (ranks - 1) : ranks - 1),
        reducing_steps_(kind == CollectiveKind::all_gather ? 0 : ranks - 1),
        shift_(kind == CollectiveKind::reduce_scatter ? 1 : 0) {}

  CollectiveKind kind() const override { return kind_; }
  const char* algorithm() const override { return "ring"; }
  std::uint32_t ranks() const override { return ranks_; }
  std::uint32_t thread_blocks() const override { return 1; }
  std::uint32_t divisions() const override { return ranks_; }
  std::uint32_t instructions(std::uint32_t, std::uint32_t) const override { return 2 * steps_; }

  Instruction instruction(std::uint32_t rank, std::uint32_t, std::uint32_t index) const override {
    const std::uint32_t step = index / 2;
    if (index % 2 == 0) return {Instruction::Op::send, (rank + 1) % ranks_, chunk(rank, step)};
    const auto op = step < reducing_steps_ ? Instruction::Op::reduce : Instruction::Op::receive;
    return {op, (rank + ranks_ - 1) % ranks_, chunk(rank, step + 1)};
  }

 private:
  std::uint32_t chunk(std::uint64_t rank,
                      std::uint32_t step) const {  // step <= 2p - 2, shift <= 1: no underflow
    return static_cast<std::uint32_t>((rank + std::uint64_t{3} * ranks_ - shift_ - step) % ranks_);
  }

  CollectiveKind kind_;
  std::uint32_t ranks_;
  std::uint32_t steps_;
  std::uint32_t reducing_steps_;
  std::uint32_t shift_;
};

class Ring final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
           kind == CollectiveKind::reduce_scatter;
  }
  std::unique_ptr<Schedule> schedule(CollectiveKind kind, std::uint32_t ranks, std::uint32_t) const override {
    return std::make_unique<RingSchedule>(kind, ranks);
  }
};

const Registration<CollectiveAlgorithm> kRegistration{
    "ring",
    "all-reduce, all-gather and reduce-scatter around a ring: the fewest bytes, p-1 or 2(p-1) steps; for "
    "large buffers",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Ring>(); }};

}  // namespace
}  // namespace netsim
