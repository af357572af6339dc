// RingPlan: chunks that go around rings of ranks (Patarasuk & Yuan, J. of Parallel and Distributed Computing
// 69, 2009; NCCL's ring primitives), in one dimension or in several nested ones, and for several slices of
// the buffer at once.
//
// In a ring, a rank passes on one chunk a step. Its first step sends a chunk, its last one keeps what
// arrives, and each one between passes on what it receives: step i of position q is about chunk
// q - shift - i, which is what q - 1 sends in its step i - 1. The last chunk that a reduce-scatter reduces
// must be the rank's own: q - shift - (size - 1) = q, hence shift 1 there; all-gather starts with the own
// chunk, hence shift 0, and so does an all-reduce.
//
// Nested: an all-reduce over dimensions 1, 2, ..., d is a reduce-scatter over dimension 1, an all-reduce over
// the others of what the rank then has, and an all-gather over dimension 1 (Jain & Sabharwal, ICS 2010; Cho
// et al., IBM J. of Research and Development 63, 2019). Sum of 2 (size - 1) steps; the bytes are those of one
// ring.
//
// Each slice of the buffer has a thread block and rings of its own.
#pragma once

#include <vector>

#include "sim/collectives/algorithms/dimensions.h"
#include "sim/collectives/algorithms/regular_plan.h"

namespace netsim {

// What a rank at `position` of a ring does in one of its steps, and with which chunk.
struct RingStep {
  Step::Kind kind = Step::Kind::nothing;
  std::uint32_t chunk = 0;
};
// Steps of a rank; `kind`: all_reduce, reduce_scatter or all_gather.
std::uint32_t ring_steps(CollectiveKind kind, std::uint32_t size);
RingStep ring_step(CollectiveKind kind, std::uint32_t size, std::uint32_t position, std::uint32_t index);

// The ring in one dimension of the grid of ranks: coordinate c sends to c + hop.
struct RingDimension {
  std::uint32_t dimension = 0;
  std::uint32_t hop = 1;  // has no common divisor with the size; size - 1: backwards
};
// The outermost first.
using RingSlice = std::vector<RingDimension>;

class RingPlan final : public RegularPlan {
 public:
  // Kinds other than all_reduce take one dimension.
  RingPlan(const char* algorithm, CollectiveKind kind, const Dimensions& dimensions,
           const std::vector<RingSlice>& slices);

  std::uint32_t chunks() const override { return blocks(0) * ranks_; }
  std::uint32_t largest_count() const override;
  bool in_place() const override { return true; }
  std::uint32_t blocks(std::uint32_t) const override { return static_cast<std::uint32_t>(slices_.size()); }
  std::uint32_t steps(std::uint32_t, std::uint32_t block) const override;
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override;

 private:
  struct Ring {
    std::uint32_t size;
    std::uint32_t stride;   // between the numbers of neighbours in this dimension
    std::uint32_t hop;      // to the next coordinate
    std::uint32_t inverse;  // of the hop, modulo the size: to the position from the coordinate
    std::uint32_t extent;   // chunks of the slice that are one chunk of this ring
  };
  using Rings = std::vector<Ring>;

  Rings rings_of(const Dimensions& dimensions, const RingSlice& slice) const;
  static std::uint32_t position(const Ring& ring, std::uint32_t rank);
  std::uint32_t neighbour(const Ring& ring, std::uint32_t rank, std::uint32_t hop) const;
  CollectiveKind kind_in(const Rings& rings, std::size_t ring, bool back) const;
  std::uint32_t first_chunk(std::uint32_t block, std::uint32_t rank, std::size_t ring,
                            std::uint32_t chunk) const;
  Step ring_step_of(std::uint32_t rank, std::uint32_t block, std::size_t ring, CollectiveKind kind,
                    std::uint32_t index) const;

  std::vector<Rings> slices_;
};

}  // namespace netsim
