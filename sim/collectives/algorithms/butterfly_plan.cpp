#include "sim/collectives/algorithms/butterfly_plan.h"

#include <algorithm>
#include <bit>

namespace netsim {

ButterflyPlan::ButterflyPlan(const char* algorithm, CollectiveKind kind, std::uint32_t ranks,
                             Exchange exchange, std::uint32_t slices)
    : RegularPlan(algorithm, kind, ranks),
      bits_(static_cast<std::uint32_t>(std::bit_width(ranks)) - 1),
      exchange_(exchange),
      slices_(slices) {
  check_chunks(algorithm, kind, ranks, std::uint64_t{ranks} * slices);
}

// An all_reduce has equal parts for its members. In other kinds each rank owns a chunk, and a member acts for
// the chunks of one or two ranks.
std::uint32_t ButterflyPlan::chunks() const {
  if (exchange_ == Exchange::whole) return 1;
  return kind_ == CollectiveKind::all_reduce ? slices_ << bits_ : ranks_;
}

// The ranks that are no members exchange all chunks with their neighbour.
std::uint32_t ButterflyPlan::largest_count() const {
  if (exchange_ == Exchange::whole) return 1;
  return pairs() > 0 ? chunks() : 1U << (bits_ - 1);
}

std::uint32_t ButterflyPlan::first_chunk(std::uint32_t position) const {
  if (kind_ == CollectiveKind::all_reduce) return position;
  return position + std::min(position, pairs());
}

ButterflyPlan::Chunks ButterflyPlan::chunks_at(std::uint32_t slice, std::uint32_t position,
                                               std::uint32_t positions) const {
  const std::uint32_t first = first_chunk(position), end = first_chunk(position + positions);
  return {(slice << bits_) + first, end - first};
}

ButterflyPlan::Halves ButterflyPlan::halves_at(std::uint32_t slice, std::uint32_t member,
                                               std::uint32_t exchange) const {
  if (exchange_ == Exchange::whole) return {everything(), everything()};
  const std::uint32_t half = 1U << (bits_ - 1 - exchange);
  const std::uint32_t mine = position(slice, member) / half * half;
  return {chunks_at(slice, mine, half), chunks_at(slice, mine ^ half, half)};
}

std::uint32_t ButterflyPlan::steps(std::uint32_t rank, std::uint32_t) const {
  if (stands_aside(rank)) return 2;
  return 2 * exchanges() + (rank < 2 * pairs() ? 2 : 0);
}

Step ButterflyPlan::step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const {
  if (stands_aside(rank)) return with_neighbour(rank, rank + 1, index == 1);
  if (rank < 2 * pairs()) {
    if (index == 0 || index == 2 * exchanges() + 1) return with_neighbour(rank, rank - 1, index != 0);
    --index;
  }
  return exchange_step(member_of(rank), block, index);
}

ButterflyPlan::Chunks ButterflyPlan::handed_over(std::uint32_t aside) const {
  return kind_ == CollectiveKind::all_gather ? Chunks{aside, 1} : everything();
}
ButterflyPlan::Chunks ButterflyPlan::handed_back(std::uint32_t aside) const {
  return kind_ == CollectiveKind::reduce_scatter ? Chunks{aside, 1} : everything();
}

// Returns the step between a rank that is no member and the member that acts for it, at the beginning, or at
// the end (`back`).
Step ButterflyPlan::with_neighbour(std::uint32_t rank, std::uint32_t neighbour, bool back) const {
  const std::uint32_t aside = std::min(rank, neighbour);
  const Chunks what = back ? handed_back(aside) : handed_over(aside);
  Step step;
  step.source = step.destination = {whole(), what.first};
  step.count = what.count;
  if (back == (rank != aside)) {
    step.kind = Step::Kind::send;
    step.to = {neighbour, 0};
  } else {
    const bool adds = !back && kind_ != CollectiveKind::all_gather;
    step.kind = adds ? Step::Kind::receive_reduce_copy : Step::Kind::receive;
    step.from = {neighbour, 0};
  }
  return step;
}

// Doublings, and exchanges of the whole buffer, begin with the nearest partners; halvings begin with the
// farthest.
Step ButterflyPlan::exchange_step(std::uint32_t member, std::uint32_t slice, std::uint32_t index) const {
  const std::uint32_t number = index / 2;
  const bool halving = halves() && number < bits_;
  const std::uint32_t exchange = halving ? number : exchanges() - 1 - number;
  const Partner other = {rank_of(partner(slice, member, exchange)), slice};
  const Halves parts = halves_at(slice, member, exchange);
  const bool sending = index % 2 == 0;
  const Chunks what = halving == sending ? parts.other : parts.mine;
  Step step;
  step.source = step.destination = {whole(), what.first};
  step.count = what.count;
  (sending ? step.to : step.from) = other;
  const bool adds = halving || exchange_ == Exchange::whole;
  step.kind = sending ? Step::Kind::send : adds ? Step::Kind::receive_reduce_copy : Step::Kind::receive;
  return step;
}

}  // namespace netsim
