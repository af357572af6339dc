#include "sim/collectives/algorithms/ring_plan.h"

#include <algorithm>
#include <numeric>

#include "sim/core/modulo.h"

namespace netsim {
namespace {

std::uint32_t product_of(const Dimensions& dimensions) {
  std::uint32_t product = 1;
  for (const std::uint32_t size : dimensions) product *= size;
  return product;
}
std::uint32_t modulo(std::uint64_t number, std::uint32_t size) {
  return static_cast<std::uint32_t>(number % size);
}

// Returns the step that completes a sum; 0: no step does.
std::uint32_t reduced_by(CollectiveKind kind, std::uint32_t size) {
  return kind == CollectiveKind::all_gather ? 0 : size - 1;
}
Step::Kind kind_of(std::uint32_t index, std::uint32_t reduced, std::uint32_t last) {
  using Kind = Step::Kind;
  if (index == 0) return Kind::send;
  if (index < reduced) return Kind::receive_reduce_send;
  if (index == reduced) return index == last ? Kind::receive_reduce_copy : Kind::receive_reduce_copy_send;
  return index == last ? Kind::receive : Kind::receive_copy_send;
}

}  // namespace

std::uint32_t ring_steps(CollectiveKind kind, std::uint32_t size) {
  return (kind == CollectiveKind::all_reduce ? 2 : 1) * (size - 1) + 1;
}
RingStep ring_step(CollectiveKind kind, std::uint32_t size, std::uint32_t position, std::uint32_t index) {
  const std::uint32_t shift = kind == CollectiveKind::reduce_scatter ? 1 : 0;
  const std::uint64_t chunk =  // index <= 2 size - 2: no underflow
      std::uint64_t{position} + std::uint64_t{3} * size - shift - index;
  return {kind_of(index, reduced_by(kind, size), ring_steps(kind, size) - 1), modulo(chunk, size)};
}

RingPlan::RingPlan(const char* algorithm, CollectiveKind kind, const Dimensions& dimensions,
                   const std::vector<RingSlice>& slices)
    : RegularPlan(algorithm, kind, product_of(dimensions)) {
  check_chunks(algorithm, kind, ranks_, std::uint64_t{ranks_} * slices.size());
  for (const RingSlice& slice : slices) slices_.push_back(rings_of(dimensions, slice));
}

std::uint32_t RingPlan::largest_count() const {
  std::uint32_t largest = 1;
  for (const Rings& rings : slices_) largest = std::max(largest, rings.front().extent);
  return largest;
}

// Dimensions of one rank are left out.
RingPlan::Rings RingPlan::rings_of(const Dimensions& dimensions, const RingSlice& slice) const {
  Rings rings;
  std::uint32_t extent = ranks_;
  for (const RingDimension& along : slice) {
    const std::uint32_t size = dimensions[along.dimension];
    if (size == 1) continue;
    NETSIM_CHECK(std::gcd(size, along.hop) == 1, "a ring that does not visit all ranks");
    const Dimensions inner(dimensions.begin(), dimensions.begin() + along.dimension);
    extent /= size;
    rings.push_back(
        {size, product_of(inner), along.hop % size, inverse_modulo(along.hop % size, size), extent});
  }
  return rings;
}

std::uint32_t RingPlan::position(const Ring& ring, std::uint32_t rank) {
  return modulo(std::uint64_t{rank / ring.stride % ring.size} * ring.inverse, ring.size);
}
std::uint32_t RingPlan::neighbour(const Ring& ring, std::uint32_t rank, std::uint32_t hop) const {
  const std::uint32_t from = rank / ring.stride % ring.size;
  const std::uint32_t to = modulo(std::uint64_t{from} + hop, ring.size);
  return rank + to * ring.stride - from * ring.stride;  // modulo 2^32
}

// Returns the kind that a ring executes on the way into the innermost ring, or `back` out of it.
CollectiveKind RingPlan::kind_in(const Rings& rings, std::size_t ring, bool back) const {
  if (ring + 1 == rings.size()) return kind_;
  return back ? CollectiveKind::all_gather : CollectiveKind::reduce_scatter;
}

std::uint32_t RingPlan::steps(std::uint32_t, std::uint32_t block) const {
  std::uint32_t steps = ring_steps(kind_, slices_[block].back().size);
  for (std::size_t i = 0; i + 1 < slices_[block].size(); ++i) steps += 2 * slices_[block][i].size;
  return steps;
}

Step RingPlan::step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const {
  const Rings& rings = slices_[block];
  for (std::size_t i = 0; i + 1 < 2 * rings.size(); ++i) {
    const bool back = i >= rings.size();
    const std::size_t ring = back ? 2 * rings.size() - 2 - i : i;
    const CollectiveKind kind = kind_in(rings, ring, back);
    const std::uint32_t count = ring_steps(kind, rings[ring].size);
    if (index < count) return ring_step_of(rank, block, ring, kind, index);
    index -= count;
  }
  return {};
}

Step RingPlan::ring_step_of(std::uint32_t rank, std::uint32_t block, std::size_t number, CollectiveKind kind,
                            std::uint32_t index) const {
  const Ring& ring = slices_[block][number];
  const RingStep what = ring_step(kind, ring.size, position(ring, rank), index);
  Step step;
  step.kind = what.kind;
  step.count = ring.extent;
  step.source = step.destination = {whole(), first_chunk(block, rank, number, what.chunk)};
  if (sends(step.kind)) step.to = {neighbour(ring, rank, ring.hop), block};
  if (receives(step.kind)) step.from = {neighbour(ring, rank, ring.size - ring.hop), block};
  return step;
}

// In an all_reduce the chunks of a slice are consecutive. In other kinds the chunks of an owner are; the
// owner is a rank and not a position.
std::uint32_t RingPlan::first_chunk(std::uint32_t block, std::uint32_t rank, std::size_t number,
                                    std::uint32_t chunk) const {
  const Rings& rings = slices_[block];
  if (kind_ != CollectiveKind::all_reduce)
    return modulo(std::uint64_t{chunk} * rings[number].hop, ranks_) * blocks(rank) + block;
  std::uint32_t first = block * ranks_ + chunk * rings[number].extent;
  for (std::size_t i = 0; i < number; ++i) first += position(rings[i], rank) * rings[i].extent;
  return first;
}

}  // namespace netsim
