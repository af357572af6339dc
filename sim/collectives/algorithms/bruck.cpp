// Bruck (Bruck, Ho, Kipnis, Upfal, Weathersby, IEEE Trans. on Parallel and Distributed Systems 8, 1997). It
// takes ceil(log2 p) steps for any p. Ranks count chunks from themselves on.
//
// All-gather: rank r collects the chunks r, r+1, ... In step k it sends the first 2^k of them, or those still
// missing, to r - 2^k, and gets the next ones from r + 2^k. Together it sends n(p-1)/p bytes. It collects
// them in scratch, where numbers continue after p-1, and at the end copies them to their places.
//
// Barrier: the same with empty chunks is the dissemination barrier (Hensgen, Finkel, Manber, Int. J. of
// Parallel Programming 17, 1988). After step k a rank knows of 2^(k+1) ranks that have entered.
//
// All-to-all: slot i of a rank holds the block that still has to travel i ranks. In step k the slots whose
// number has bit k go to the same slots of rank r + 2^k, all in one message. At the end slot i has the block
// from rank r - i. A step sends about p/2 blocks, together (n/2) log2 p bytes. Copies pack the blocks to send
// in scratch and unpack the received ones.
#include <algorithm>
#include <bit>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/regular_plan.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

std::uint32_t steps_of(std::uint32_t ranks) { return static_cast<std::uint32_t>(std::bit_width(ranks - 1)); }

Step copy_of(ChunkAt source, ChunkAt destination, std::uint32_t count) {
  Step step;
  step.kind = Step::Kind::copy;
  step.source = source;
  step.destination = destination;
  step.count = count;
  return step;
}

class BruckGatherPlan final : public RegularPlan {
 public:
  BruckGatherPlan(CollectiveKind kind, std::uint32_t ranks) : RegularPlan("bruck", kind, ranks) {}

  std::uint32_t chunks() const override { return ranks_; }
  std::uint32_t scratch_chunks(std::uint32_t rank) const override { return rank + ranks_; }
  std::uint32_t largest_count() const override {
    const std::uint32_t last = 1U << (steps_of(ranks_) - 1);
    return std::max({1U, last / 2, ranks_ - last});
  }
  bool in_place() const override { return false; }
  bool serial_sends() const override { return true; }  // MPI_Sendrecv
  std::uint32_t blocks(std::uint32_t) const override { return 1; }
  // A rank copies, exchanges, and copies once or twice.
  std::uint32_t steps(std::uint32_t rank, std::uint32_t) const override {
    return 1 + 2 * steps_of(ranks_) + (rank == 0 ? 1 : 2);
  }
  Step step(std::uint32_t rank, std::uint32_t, std::uint32_t index) const override {
    if (index == 0) return copy_of({Buffer::input, 0}, {Buffer::scratch, rank}, 1);
    if (index <= 2 * steps_of(ranks_)) return exchange(rank, (index - 1) / 2, index % 2 == 1);
    if (index == 2 * steps_of(ranks_) + 1)
      return copy_of({Buffer::scratch, rank}, {Buffer::output, rank}, ranks_ - rank);
    return copy_of({Buffer::scratch, ranks_}, {Buffer::output, 0}, rank);
  }

 private:
  Step exchange(std::uint32_t rank, std::uint32_t number, bool sending) const {
    const std::uint32_t distance = 1U << number;
    Step step;
    step.count = std::min(distance, ranks_ - distance);
    if (sending) {
      step.kind = Step::Kind::send;
      step.source = {Buffer::scratch, rank};
      step.to = {wrap(std::uint64_t{rank} + ranks_ - distance), 0};
    } else {
      step.kind = Step::Kind::receive;
      step.destination = {Buffer::scratch, rank + distance};
      step.from = {wrap(std::uint64_t{rank} + distance), 0};
    }
    return step;
  }
};

class BruckAllToAllPlan final : public RegularPlan {
 public:
  explicit BruckAllToAllPlan(std::uint32_t ranks) : RegularPlan("bruck", CollectiveKind::all_to_all, ranks) {}

  std::uint32_t chunks() const override { return ranks_; }
  // Scratch holds the slots, then the blocks to send, then the received ones.
  std::uint32_t scratch_chunks(std::uint32_t) const override { return 2 * ranks_; }
  std::uint32_t largest_count() const override { return ranks_ / 2; }  // the slots with bit 0
  bool in_place() const override { return false; }
  bool serial_sends() const override { return true; }  // MPI_Sendrecv
  std::uint32_t blocks(std::uint32_t) const override { return 1; }

  std::uint32_t steps(std::uint32_t rank, std::uint32_t) const override {
    std::uint32_t steps = fills(rank) + ranks_;
    for (std::uint32_t k = 0; k < steps_of(ranks_); ++k) steps += steps_in(k);
    return steps;
  }
  Step step(std::uint32_t rank, std::uint32_t, std::uint32_t index) const override {
    if (index < fills(rank)) return fill(rank, index);
    index -= fills(rank);
    for (std::uint32_t k = 0; k < steps_of(ranks_); ++k) {
      if (index < steps_in(k)) return exchange(rank, k, index);
      index -= steps_in(k);
    }
    return copy_of(slot(index), {Buffer::output, wrap(std::uint64_t{rank} + ranks_ - index)}, 1);
  }

 private:
  // The slots with bit k form runs of 2^k slots; the last run may be shorter.
  std::uint32_t runs(std::uint32_t k) const { return (ranks_ - 1 + (1U << k)) >> (k + 1); }
  std::uint32_t run_at(std::uint32_t k, std::uint32_t run) const { return (2 * run + 1) << k; }
  std::uint32_t run_size(std::uint32_t k, std::uint32_t run) const {
    return std::min(1U << k, ranks_ - run_at(k, run));
  }
  std::uint32_t slots_with(std::uint32_t k) const { return ((runs(k) - 1) << k) + run_size(k, runs(k) - 1); }
  // The steps are packing, a send, a receive and unpacking.
  std::uint32_t steps_in(std::uint32_t k) const { return 2 * runs(k) + 2; }
  static ChunkAt slot(std::uint32_t number) { return {Buffer::scratch, number}; }
  ChunkAt packed(std::uint32_t number) const { return {Buffer::scratch, ranks_ + number}; }
  ChunkAt arrived(std::uint32_t number) const { return {Buffer::scratch, ranks_ + ranks_ / 2 + number}; }

  // Copies the user's blocks to the slots, from the rank's own block on.
  static std::uint32_t fills(std::uint32_t rank) { return rank == 0 ? 1 : 2; }
  Step fill(std::uint32_t rank, std::uint32_t index) const {
    if (index == 0) return copy_of({Buffer::input, rank}, slot(0), ranks_ - rank);
    return copy_of({Buffer::input, 0}, slot(ranks_ - rank), rank);
  }
  Step exchange(std::uint32_t rank, std::uint32_t k, std::uint32_t index) const {
    const std::uint32_t count = runs(k), run = index < count ? index : index - count - 2;
    if (index < count) return copy_of(slot(run_at(k, run)), packed(run << k), run_size(k, run));
    if (index >= count + 2) return copy_of(arrived(run << k), slot(run_at(k, run)), run_size(k, run));
    Step step;
    step.count = slots_with(k);
    if (index == count) {
      step.kind = Step::Kind::send;
      step.source = packed(0);
      step.to = {wrap(std::uint64_t{rank} + (1U << k)), 0};
    } else {
      step.kind = Step::Kind::receive;
      step.destination = arrived(0);
      step.from = {wrap(std::uint64_t{rank} + ranks_ - (1U << k)), 0};
    }
    return step;
  }
};

class Bruck final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_gather || kind == CollectiveKind::all_to_all ||
           kind == CollectiveKind::barrier;
  }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    if (kind == CollectiveKind::all_to_all) {
      check_all_to_all("bruck", kind, shape.ranks);
      return std::make_unique<BruckAllToAllPlan>(shape.ranks);
    }
    check_chunks("bruck", kind, shape.ranks, std::uint64_t{shape.ranks} * 2);
    return std::make_unique<BruckGatherPlan>(kind, shape.ranks);
  }
};

const Registration<CollectiveAlgorithm> kBruck{
    "bruck",
    "runs all-gather, all-to-all and barrier (dissemination) in log2(p) steps for any number of ranks; an "
    "all-to-all sends each block several times, so it is for small ones",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Bruck>(); }};

}  // namespace
}  // namespace netsim
