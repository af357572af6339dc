#include "sim/collectives/proof/goal.h"

#include <algorithm>

#include "sim/collectives/proof/wording.h"

namespace netsim::proof {

Goal::Goal(const Plan& plan)
    : goal_(info_of(plan.kind()).goal),
      workers_(plan.workers()),
      root_(plan.root()),
      chunks_(plan.chunks()),
      part_(std::max(1U, plan.chunks() / plan.ranks())),
      in_place_(plan.in_place()) {}

std::uint32_t Goal::initial(std::uint32_t rank, Cell cell) const {
  if (cell.region != Cell::Region::input || rank >= workers_) return kNothing;
  switch (goal_.contributors) {
    case ChunkRanks::root:
      return rank == root_ ? cell.index : kNothing;
    case ChunkRanks::owner:
      return is_own(rank, cell.index) ? cell.index : kNothing;
    case ChunkRanks::source:
      return rank * chunks_ + cell.index;
    default:
      return cell.index;
  }
}

std::uint32_t Goal::wanted(std::uint32_t rank, Cell cell) const {
  if (cell.region != (in_place_ ? Cell::Region::input : Cell::Region::output)) return kNothing;
  if (rank >= workers_) return kNothing;
  switch (goal_.holders) {
    case ChunkRanks::root:
      return rank == root_ ? cell.index : kNothing;
    case ChunkRanks::owner:
      return is_own(rank, cell.index) ? cell.index : kNothing;
    case ChunkRanks::none:
      return kNothing;
    case ChunkRanks::destination:
      return cell.index / part_ * chunks_ + rank * part_ + cell.index % part_;
    default:
      return cell.index;
  }
}

std::uint32_t Goal::contributor(std::uint32_t piece) const {
  switch (goal_.contributors) {
    case ChunkRanks::root:
      return root_;
    case ChunkRanks::owner:
      return piece / part_;
    default:
      return piece / chunks_;
  }
}

std::string Goal::text(const Value& value, const RankSets& sets) const {
  if (value.piece == kNothing) return "nothing";
  if (value.piece == kOther) return "another chunk";
  if (!has_one_contributor())
    return "contributions " + sets.text(value.ranks) + " of chunk " + number(value.piece);
  const std::uint32_t rank = contributor(value.piece);
  const std::uint32_t first =
      goal_.contributors == ChunkRanks::source ? rank * chunks_ : offset(rank, goal_.contributors);
  return "chunk " + number(value.piece - first) + " of the input of rank " + number(rank);
}

}  // namespace netsim::proof
