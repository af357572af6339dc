// RingPlan: chunks that pass around rings of ranks (Patarasuk & Yuan, J. of Parallel and Distributed
// Computing 69, 2009; NCCL's ring primitives). Rings may be nested over several dimensions, and several
// slices of the buffer may run at once.
//
// In a ring, a rank passes on one chunk a step. Its first step sends a chunk, its last one keeps the received
// chunk, and each step between passes on what it receives. Step i of position q handles chunk q - shift - i,
// which q - 1 sends in its step i - 1. The last chunk that a reduce-scatter reduces must be the rank's own: q
// - shift - (size - 1) = q, so its shift is 1. An all-gather starts with the own chunk, so its shift is 0, as
// is that of an all-reduce.
//
// An all-reduce over nested dimensions 1, 2, ..., d has three parts. They are a reduce-scatter over dimension
// 1, an all-reduce of the result over the others, and an all-gather over dimension 1. The sources are Jain &
// Sabharwal, ICS 2010, and Cho et al., IBM J. of Research and Development 63, 2019. It takes the sum of 2
// (size - 1) steps and sends the bytes of one ring.
//
// Each slice of the buffer has its own thread block and rings.
#pragma once

#include <vector>

#include "sim/collectives/algorithms/dimensions.h"
#include "sim/collectives/algorithms/regular_plan.h"

namespace netsim {

// RingStep: the kind and the chunk of a step of the rank at `position` of a ring.
struct RingStep {
  Step::Kind kind = Step::Kind::nothing;
  std::uint32_t chunk = 0;
};
// Returns the number of steps of a rank. `kind` is all_reduce, reduce_scatter or all_gather.
std::uint32_t ring_steps(CollectiveKind kind, std::uint32_t size);
RingStep ring_step(CollectiveKind kind, std::uint32_t size, std::uint32_t position, std::uint32_t index);

// RingDimension: a ring in one dimension of the grid of ranks; coordinate c sends to c + hop.
struct RingDimension {
  std::uint32_t dimension = 0;
  std::uint32_t hop = 1;  // has no common divisor with the size; size - 1 is the opposite direction
};
// RingSlice: the rings of a slice, the outermost first.
using RingSlice = std::vector<RingDimension>;

class RingPlan final : public RegularPlan {
 public:
  // Kinds other than all_reduce support only one dimension.
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
    std::uint32_t stride;   // difference of the ranks of neighbours in this dimension
    std::uint32_t hop;      // difference of coordinates to the next rank of the ring
    std::uint32_t inverse;  // inverse of the hop modulo the size; converts a coordinate to a position
    std::uint32_t extent;   // number of the slice's chunks that form one chunk of this ring
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
