#include "sim/collectives/plan.h"

#include <iterator>

namespace netsim {
namespace {

// Returns whether each rank owns chunks() / ranks() of the pieces in this buffer.
bool has_part_in(const Plan& plan, Buffer buffer) {
  const CollectiveGoal& goal = info_of(plan.kind()).goal;
  if (buffer == Buffer::input) return goal.contributors == ChunkRanks::owner;
  return goal.holders == ChunkRanks::owner;
}

}  // namespace

const char* to_string(Step::Kind kind) {
  static constexpr const char* kNames[] = {"nop", "s", "r", "cpy", "re", "rcs", "rrs", "rrc", "rrcs"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(Step::Kind::receive_reduce_copy_send) + 1);
  return kNames[static_cast<std::size_t>(kind)];
}

// A combine returns the receiver's tokens, so the receiver is their owner.
Counted Plan::counted(std::uint32_t rank, const Step& step) const {
  const bool out = sends(step.kind), back = kind() == CollectiveKind::combine;
  const std::uint32_t partner = out ? step.to.rank : step.from.rank;
  return out == back ? Counted{Counted::What::block, partner, rank}
                     : Counted{Counted::What::block, rank, partner};
}

std::uint32_t chunks_of(const Plan& plan, std::uint32_t rank, Buffer buffer) {
  if (buffer == Buffer::scratch) return plan.scratch_chunks(rank);
  return has_part_in(plan, buffer) ? plan.chunks() / plan.ranks() : plan.chunks();
}

std::uint32_t piece_of(const Plan& plan, std::uint32_t rank, ChunkAt at) {
  if (at.buffer == Buffer::scratch) return at.chunk % plan.chunks();
  const std::uint32_t part = plan.chunks() / plan.ranks();
  if (has_part_in(plan, at.buffer)) return rank * part + at.chunk;
  const bool blocks = info_of(plan.kind()).goal.holders == ChunkRanks::destination;
  return blocks && at.buffer == Buffer::output ? rank * part + at.chunk % part : at.chunk;
}

Bytes bytes_of(const Plan& plan, std::uint32_t rank, ChunkAt at, std::uint32_t count, Bytes bytes) {
  if (plan.chunks() == 1 && count == 1) return bytes;
  Bytes sum = 0;
  for (std::uint32_t i = 0; i < count; ++i)
    sum += share(bytes, plan.chunks(), piece_of(plan, rank, {at.buffer, at.chunk + i}));
  return sum;
}

Bytes bytes_sent(const Plan& plan, std::uint32_t rank, Bytes bytes) {
  Bytes sum = 0;
  for (std::uint32_t block = 0; block < plan.blocks(rank); ++block) {
    if (plan.in_switch(rank, block)) continue;
    for (std::uint32_t index = 0; index < plan.steps(rank, block); ++index) {
      const Step step = plan.step(rank, block, index);
      if (sends(step.kind)) sum += bytes_sent(plan, rank, step, bytes);
    }
  }
  return sum;
}

}  // namespace netsim
