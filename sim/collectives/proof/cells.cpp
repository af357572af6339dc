#include "sim/collectives/proof/cells.h"

#include <unordered_map>
#include <vector>

#include "sim/core/index.h"

namespace netsim::proof {
namespace {

class Sums final : public Cells {
 public:
  Sums(const Plan& plan, const Goal& goal, const CellRange& range)
      : goal_(goal),
        range_(range),
        ranks_(plan.ranks()),
        cells_(range.size()),
        hops_(range.columns(), kOpen) {
    for (std::uint32_t rank = 0; rank < plan.workers(); ++rank) {
      for (std::uint32_t column = range.first(); column < range.end(); ++column)
        put(rank, {Cell::Region::input, column}, {column, {rank, 1}});
    }
  }

  Value get(std::uint32_t rank, Cell cell) const override {
    if (!range_.has(cell)) return elsewhere(rank, cell);
    const Small held = cells_[range_.at(rank, cell)];
    if (held.count != 0) [[likely]]
      return {goal_.column(cell), set(held, hops_[goal_.column(cell) - range_.first()])};
    if (held == kHoldsNothing) return {kNothing, {}};
    return held == kHoldsOther ? Value{kOther, {}} : elsewhere(rank, cell);
  }

  void put(std::uint32_t rank, Cell cell, const Value& value) override {
    const bool followed = value.piece != kOther;
    if (!range_.has(cell)) {
      if (followed) {
        elsewhere_[key(rank, cell)] = value;
      } else if (!elsewhere_.empty()) {
        elsewhere_.erase(key(rank, cell));
      }
      return;
    }
    Small& held = cells_[range_.at(rank, cell)];
    const bool fits = value.piece == goal_.column(cell) && is_small(value.ranks) &&
                      has_hop(value.ranks, hops_[goal_.column(cell) - range_.first()]);
    if (followed && !fits) {
      elsewhere_[key(rank, cell)] = value;
    } else if (held == kHoldsElsewhere) {
      elsewhere_.erase(key(rank, cell));
    }
    held = fits ? small(value.ranks) : followed ? kHoldsElsewhere : kHoldsOther;
  }

 private:
  // Small: a Set of small numbers. The values without a rank have special meanings; kHoldsElsewhere refers to
  // elsewhere_.
  struct Small {
    std::uint16_t first = 0, count = 0;
    bool operator==(const Small&) const = default;
  };
  static constexpr std::uint16_t kMany = UINT16_MAX;
  static constexpr std::uint32_t kOpen = UINT32_MAX;
  static constexpr Small kHoldsNothing{0, 0}, kHoldsOther{1, 0}, kHoldsElsewhere{2, 0};
  static bool is_small(Set set) {
    return set.first <= UINT16_MAX && (set.count() < kMany || set.count() == RankSets::kMany);
  }
  static Small small(Set set) {
    return {static_cast<std::uint16_t>(set.first), static_cast<std::uint16_t>(set.length)};
  }
  Set set(Small held, std::uint32_t hop) const {
    if (held.count == kMany) return {held.first, RankSets::kMany};
    return Set::of(held.first, held.count, is_of_any_hop(held.count) ? 0 : hop);
  }
  bool is_of_any_hop(std::uint32_t count) const { return count <= 1 || count + 1 >= ranks_; }
  // Returns whether the set has the hop of the column. The first set with a hop decides the column's hop.
  bool has_hop(Set set, std::uint32_t& of_column) const {
    if (set.count() == RankSets::kMany || is_of_any_hop(set.count())) return true;
    if (of_column == kOpen) of_column = set.hop();
    return of_column == set.hop();
  }

  static std::uint64_t key(std::uint32_t rank, Cell cell) {
    return static_cast<std::uint64_t>(rank) << 34 | static_cast<std::uint64_t>(cell.region) << 32 |
           cell.index;
  }
  Value elsewhere(std::uint32_t rank, Cell cell) const {
    if (elsewhere_.empty()) return {kOther, {}};
    const auto found = elsewhere_.find(key(rank, cell));
    return found == elsewhere_.end() ? Value{kOther, {}} : found->second;
  }

  const Goal& goal_;
  const CellRange& range_;
  std::uint32_t ranks_;
  std::vector<Small> cells_;         // by number in range_; the set of ranks of the column's piece
  std::vector<std::uint32_t> hops_;  // by column: the hop of the sets in cells_; kOpen: not decided
  std::unordered_map<std::uint64_t, Value> elsewhere_;  // all other followed values; never iterated
};

class Pieces final : public Cells {
 public:
  Pieces(const Plan& plan, const Goal& goal)
      : plan_(plan),
        goal_(goal),
        ended_(std::size_t{plan.ranks()} * goal.columns(), false),
        list_of_(std::size_t{plan.ranks()} * kRegions, kNoIndex) {}

  Value get(std::uint32_t rank, Cell cell) const override {
    const std::uint32_t piece = piece_at(rank, cell);
    return piece == kNothing ? Value{kNothing, {}} : Value{piece, goal_.whole()};
  }

  void put(std::uint32_t rank, Cell cell, const Value& value) override {
    const std::uint32_t list = list_of(rank, cell.region);
    if (list != kNoIndex) {
      lists_[list][cell.index] = value.piece;
    } else if (value.piece == goal_.wanted(rank, cell)) {
      ended_[bit(rank, cell)] = true;
    } else if (value.piece == goal_.initial(rank, cell)) {
      if (has_bits(cell.region)) ended_[bit(rank, cell)] = false;
    } else {
      write_out(rank, cell.region)[cell.index] = value.piece;
    }
  }

 private:
  static constexpr std::uint32_t kRegions = 3;

  std::uint32_t& list_of(std::uint32_t rank, Cell::Region region) {
    return list_of_[std::size_t{rank} * kRegions + static_cast<std::uint32_t>(region)];
  }
  std::size_t bit(std::uint32_t rank, Cell cell) const {
    return std::size_t{rank} * goal_.columns() + cell.index;
  }
  // Returns whether the plan must end with something in cells of this region.
  bool has_bits(Cell::Region region) const {
    return region == (goal_.in_place() ? Cell::Region::input : Cell::Region::output);
  }
  std::uint32_t piece_at(std::uint32_t rank, Cell cell) const {
    const std::uint32_t list =
        list_of_[std::size_t{rank} * kRegions + static_cast<std::uint32_t>(cell.region)];
    if (list != kNoIndex) return lists_[list][cell.index];
    const bool ended = has_bits(cell.region) && ended_[bit(rank, cell)];
    return ended ? goal_.wanted(rank, cell) : goal_.initial(rank, cell);
  }
  // Creates a list with the piece of each cell, which is used from now on.
  std::vector<std::uint32_t>& write_out(std::uint32_t rank, Cell::Region region) {
    const bool scratch = region == Cell::Region::scratch;
    std::vector<std::uint32_t> pieces(scratch ? plan_.scratch_chunks(rank) : goal_.columns());
    for (std::uint32_t i = 0; i < pieces.size(); ++i) pieces[i] = piece_at(rank, {region, i});
    list_of(rank, region) = static_cast<std::uint32_t>(lists_.size());
    lists_.push_back(std::move(pieces));
    return lists_.back();
  }

  const Plan& plan_;
  const Goal& goal_;
  std::vector<bool> ended_;             // true: the cell holds its final piece; false: its initial one
  std::vector<std::uint32_t> list_of_;  // by rank and region: index in lists_; kNoIndex while bits suffice
  std::vector<std::vector<std::uint32_t>> lists_;
};

}  // namespace

std::unique_ptr<Cells> make_sums(const Plan& plan, const Goal& goal, const CellRange& range) {
  return std::make_unique<Sums>(plan, goal, range);
}

std::unique_ptr<Cells> make_pieces(const Plan& plan, const Goal& goal) {
  return std::make_unique<Pieces>(plan, goal);
}

}  // namespace netsim::proof
