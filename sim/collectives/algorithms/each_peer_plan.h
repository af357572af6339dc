// EachPeerPlan: a kind with counts whose blocks go directly to their ranks, all at once. A rank has a thread
// block for each rank that it sends to and one for each that it receives from.
//
// Thread block 2 d sends to rank + d + 1, and 2 d + 1 receives from rank - d - 1, modulo the ranks. The last
// thread block copies what the rank has for itself. In a combine it also adds up the received data.
#pragma once

#include <cstdint>

#include "sim/collectives/algorithms/regular_plan.h"

namespace netsim {

class EachPeerPlan final : public RegularPlan {
 public:
  // `what` is the size of the messages: block or copies.
  EachPeerPlan(const char* algorithm, CollectiveKind kind, std::uint32_t ranks,
               Counted::What what = Counted::What::block)
      : RegularPlan(algorithm, kind, ranks), what_(what) {}

  std::uint32_t chunks() const override { return ranks_; }
  std::uint32_t scratch_chunks(std::uint32_t) const override { return combines() ? ranks_ : 0; }
  bool in_place() const override { return false; }
  bool waits_between_blocks() const override { return combines(); }
  std::uint32_t blocks(std::uint32_t) const override { return 2 * (ranks_ - 1) + 1; }
  std::uint32_t steps(std::uint32_t rank, std::uint32_t block) const override {
    return combines() && block + 1 == blocks(rank) ? ranks_ : 1;
  }
  Counted counted(std::uint32_t rank, const Step& step) const override {
    Counted counted = Plan::counted(rank, step);
    counted.what = what_;
    return counted;
  }
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override {
    const std::uint32_t distance = block / 2 + 1;
    const std::uint32_t behind = wrap(std::uint64_t{rank} + distance);
    const std::uint32_t before = wrap(std::uint64_t{rank} + ranks_ - distance);
    Step step;
    if (distance == ranks_) {
      if (index > 0) return add_up(rank, index - 1);
      step.kind = Step::Kind::copy;
      step.source = {Buffer::input, kind_ == CollectiveKind::dispatch ? 0 : rank};
      step.destination = {Buffer::output, combines() ? 0 : rank};
    } else if (block % 2 == 0) {
      step.kind = Step::Kind::send;
      step.source = {Buffer::input, kind_ == CollectiveKind::dispatch ? 0 : behind};
      step.to = {behind, block + 1};
    } else {
      step.kind = Step::Kind::receive;
      step.destination = {combines() ? Buffer::scratch : Buffer::output, before};
      step.from = {before, block - 1};
    }
    return step;
  }

 private:
  bool combines() const { return kind_ == CollectiveKind::combine; }

  // Adds the data that thread block 2 d + 1 has received.
  Step add_up(std::uint32_t rank, std::uint32_t d) const {
    Step step;
    step.kind = Step::Kind::reduce;
    step.source = {Buffer::scratch, wrap(std::uint64_t{rank} + ranks_ - d - 1)};
    step.destination = {Buffer::output, 0};
    step.after_block = 2 * d + 1;
    return step;
  }

  Counted::What what_;
};

}  // namespace netsim
