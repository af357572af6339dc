#include "sim/collectives/proof/cells.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "sim/collectives/proof/wording.h"

namespace netsim::proof {
namespace {

// What a kind of collective has to show (CollectiveGoal), for one schedule.
class Goal {
 public:
  Goal(const Schedule& schedule, const RankSets& sets)
      : goal_(info_of(schedule.kind()).goal),
        root_(schedule.root()),
        chunks_per_owner_(std::max(1U, schedule.chunks() / schedule.ranks())),
        sets_(sets) {}
  // What a rank holds of a chunk at the beginning.
  Set initial(std::uint32_t rank, std::uint32_t chunk) const {
    return is_one_of(goal_.contributors, rank, chunk) ? sets_.single(rank) : Set{};
  }
  // Whether it has to hold wanted() of it at the end.
  bool must_hold(std::uint32_t rank, std::uint32_t chunk) const {
    return is_one_of(goal_.holders, rank, chunk);
  }
  Set wanted(std::uint32_t chunk) const {
    return goal_.contributors == ChunkRanks::all ? sets_.all()
                                                 : sets_.single(only(goal_.contributors, chunk));
  }

 private:
  bool is_one_of(ChunkRanks ranks, std::uint32_t rank, std::uint32_t chunk) const {
    return ranks == ChunkRanks::all || rank == only(ranks, chunk);
  }
  // ChunkRanks of which there is one. Sources and destinations have cells of their own: BlockCells.
  std::uint32_t only(ChunkRanks rank, std::uint32_t chunk) const {
    return rank == ChunkRanks::root ? root_ : chunk / chunks_per_owner_;
  }

  CollectiveGoal goal_;
  std::uint32_t root_;
  std::uint32_t chunks_per_owner_;
  const RankSets& sets_;
};

class DenseCells final : public Cells {
 public:
  DenseCells(const Schedule& schedule, RankSets& sets, std::uint32_t first, std::uint32_t count)
      : goal_(schedule, sets), sets_(sets), ranks_(schedule.ranks()), first_(first), count_(count) {
    cells_.reserve(std::size_t{ranks_} * count);
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      for (std::uint32_t chunk = first; chunk < first + count; ++chunk)
        cells_.push_back(goal_.initial(rank, chunk));
    }
  }
  bool follows(std::uint32_t chunk) const override { return chunk - first_ < count_; }
  Set get(std::uint32_t rank, std::uint32_t chunk) const override { return cells_[cell(rank, chunk)]; }
  void put(std::uint32_t rank, std::uint32_t chunk, Set set) override { cells_[cell(rank, chunk)] = set; }
  std::string verdict() const override {
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      for (std::uint32_t chunk = first_; chunk < first_ + count_; ++chunk) {
        const Set held = get(rank, chunk), wanted = goal_.wanted(chunk);
        if (!goal_.must_hold(rank, chunk) || held == wanted) continue;
        return "rank " + number(rank) + " ends with contributions " + sets_.text(held) + " in chunk " +
               number(chunk) + ", not " + sets_.text(wanted);
      }
    }
    return "";
  }

 private:
  std::size_t cell(std::uint32_t rank, std::uint32_t chunk) const {
    return std::size_t{rank} * count_ + (chunk - first_);
  }
  Goal goal_;
  const RankSets& sets_;
  std::uint32_t ranks_, first_, count_;
  std::vector<Set> cells_;
};

// All-to-all: a rank begins with its own blocks, and collects those for it as bits; blocks that it only
// passes on are rare (none in a pairwise exchange).
class BlockCells final : public Cells {
 public:
  explicit BlockCells(const Schedule& schedule)
      : ranks_(schedule.ranks()), arrived_(std::size_t{ranks_} * ranks_, false) {}
  bool follows(std::uint32_t) const override { return true; }
  Set get(std::uint32_t rank, std::uint32_t chunk) const override {
    const std::uint32_t source = chunk / ranks_;
    return source == rank || holds(rank, chunk) ? Set{source, 1} : Set{};
  }
  void put(std::uint32_t rank, std::uint32_t chunk, Set) override {  // only {source} can arrive
    const std::uint32_t source = chunk / ranks_, destination = chunk % ranks_;
    if (destination == rank) {
      arrived_[bit(rank, source)] = true;
    } else if (source != rank) {
      passing_.insert(key(rank, chunk));
    }
  }
  std::string verdict() const override {
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      for (std::uint32_t source = 0; source < ranks_; ++source) {
        if (source == rank || arrived_[bit(rank, source)]) continue;
        return "rank " + number(rank) + " ends without the block of rank " + number(source) + " (chunk " +
               number(source * ranks_ + rank) + ")";
      }
    }
    return "";
  }

 private:
  bool holds(std::uint32_t rank, std::uint32_t chunk) const {
    if (chunk % ranks_ == rank) return arrived_[bit(rank, chunk / ranks_)];
    return passing_.count(key(rank, chunk)) != 0;
  }
  std::size_t bit(std::uint32_t rank, std::uint32_t source) const {
    return std::size_t{rank} * ranks_ + source;
  }
  static std::uint64_t key(std::uint32_t rank, std::uint32_t chunk) {
    return static_cast<std::uint64_t>(rank) << 32 | chunk;
  }
  std::uint32_t ranks_;
  std::vector<bool> arrived_;
  std::unordered_set<std::uint64_t> passing_;  // looked up, never iterated
};

}  // namespace

std::unique_ptr<Cells> make_dense_cells(const Schedule& schedule, RankSets& sets, std::uint32_t first,
                                        std::uint32_t count) {
  return std::make_unique<DenseCells>(schedule, sets, first, count);
}

std::unique_ptr<Cells> make_block_cells(const Schedule& schedule) {
  return std::make_unique<BlockCells>(schedule);
}

}  // namespace netsim::proof
