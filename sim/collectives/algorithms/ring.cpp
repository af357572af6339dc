// Ring (Patarasuk & Yuan, JPDC 2009; NCCL's ring primitives): rank r sends to r+1 and receives from r-1, one
// chunk of bytes / p a step. Reduce-scatter and all-gather take p-1 steps, all-reduce is both: 2(p-1) steps,
// and no algorithm sends fewer bytes, 2n(p-1)/p per rank.
//
// One thread block. Its first step sends a chunk, its last one keeps what arrives, and each one between
// passes on what it receives: step i of rank r is about chunk r - shift - i, which is what r-1 sends in its
// step i-1. The last chunk that a reduce-scatter reduces must be the rank's own: r - shift - (p-1) = r
// (mod p), hence shift 1 there; all-gather starts with the own chunk, hence shift 0.
#include "sim/collectives/algorithm.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

class RingPlan final : public Plan {
 public:
  RingPlan(CollectiveKind kind, std::uint32_t ranks)
      : kind_(kind),
        ranks_(ranks),
        last_(kind == CollectiveKind::all_reduce ? 2 * (ranks - 1) : ranks - 1),
        reduced_(kind == CollectiveKind::all_gather ? 0 : ranks - 1),
        shift_(kind == CollectiveKind::reduce_scatter ? 1 : 0) {}

  CollectiveKind kind() const override { return kind_; }
  const char* algorithm() const override { return "ring"; }
  std::uint32_t ranks() const override { return ranks_; }
  std::uint32_t chunks() const override { return ranks_; }
  bool in_place() const override { return true; }
  std::uint32_t blocks(std::uint32_t) const override { return 1; }
  std::uint32_t steps(std::uint32_t, std::uint32_t) const override { return last_ + 1; }

  Step step(std::uint32_t rank, std::uint32_t, std::uint32_t index) const override {
    Step step;
    step.kind = kind_of(index);
    const Buffer whole = kind_ == CollectiveKind::all_gather ? Buffer::output : Buffer::input;
    step.source = step.destination = {whole, chunk(rank, index)};
    if (sends(step.kind)) step.to = {(rank + 1) % ranks_, 0};
    if (receives(step.kind)) step.from = {(rank + ranks_ - 1) % ranks_, 0};
    return step;
  }

 private:
  Step::Kind kind_of(std::uint32_t index) const {
    using Kind = Step::Kind;
    if (index == 0) return Kind::send;
    if (index < reduced_) return Kind::receive_reduce_send;
    if (index == reduced_) return index == last_ ? Kind::receive_reduce_copy : Kind::receive_reduce_copy_send;
    return index == last_ ? Kind::receive : Kind::receive_copy_send;
  }
  std::uint32_t chunk(std::uint64_t rank,
                      std::uint32_t index) const {  // index <= 2p - 2, shift <= 1: no underflow
    return static_cast<std::uint32_t>((rank + std::uint64_t{3} * ranks_ - shift_ - index) % ranks_);
  }

  CollectiveKind kind_;
  std::uint32_t ranks_;
  std::uint32_t last_;     // step
  std::uint32_t reduced_;  // the step that completes a sum; 0: none
  std::uint32_t shift_;
};

class Ring final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
           kind == CollectiveKind::reduce_scatter;
  }
  std::unique_ptr<Plan> plan(CollectiveKind kind, std::uint32_t ranks, std::uint32_t) const override {
    return std::make_unique<RingPlan>(kind, ranks);
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
