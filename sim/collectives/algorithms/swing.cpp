// Swing (De Sensi, Bonato, Saam, Hoefler, NSDI 2024): an all_reduce by halving and doubling on a torus, whose
// partners are near. In exchange s the partner of coordinate c is c + rho(s) for an even c and c - rho(s) for
// an odd one. There rho(s) = 1 - 2 + 4 - ... is about 2^s / 3. It takes as many steps and bytes as
// halving_doubling, but packets cross fewer links.
//
// The exchanges of a slice visit the dimensions in turn. The buffer has two slices for each dimension. One
// begins in that dimension and the other is its mirror image, so that every link is used in both directions.
// Here it is defined for dimensions that are powers of two.
//
// The position of a rank decides which half of an exchange it takes. A set A of exchanges, done in order,
// leads from rank 0 to the rank. Bit s of its position says whether s is in A. The moves have alternating
// signs, and rho(s) has s + 1 ones as a negabinary number. Let bit i of a negabinary number say whether an
// odd number of elements of A are i or more. An odd c is that number, and an even c is minus that number.
#include <array>
#include <bit>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/butterfly_plan.h"
#include "sim/collectives/algorithms/dimensions.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

constexpr std::size_t kMaxSwingDimensions = 3;

// Returns the sum of the first exchange + 1 terms of 1 - 2 + 4 - ..., modulo 2^32.
std::uint32_t rho(std::uint32_t exchange) {
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i <= exchange; ++i) sum += i % 2 == 0 ? 1U << i : ~(1U << i) + 1;
  return sum;
}
// Returns the set of exchanges, as bits, that lead from 0 to the coordinate of a ring of `size`.
std::uint32_t exchanges_to(std::uint32_t coordinate, std::uint32_t size) {
  constexpr std::uint32_t kOdd = 0xAAAA'AAAA;
  const std::uint32_t number = coordinate % 2 == 1 ? coordinate : ~coordinate + 1;
  const std::uint32_t negabinary = ((number + kOdd) ^ kOdd) & (size - 1);
  return negabinary ^ negabinary >> 1;
}

class SwingPlan final : public ButterflyPlan {
 public:
  SwingPlan(std::uint32_t ranks, const Dimensions& dimensions)
      : ButterflyPlan("swing", CollectiveKind::all_reduce, ranks, Exchange::parts,
                      2 * static_cast<std::uint32_t>(dimensions.size())),
        dimensions_(dimensions) {}

 private:
  struct Move {
    std::uint32_t dimension = 0, exchange = 0;
  };
  std::uint32_t dimension_count() const { return static_cast<std::uint32_t>(dimensions_.size()); }
  std::uint32_t first_dimension(std::uint32_t slice) const { return slice / 2; }
  bool mirrored(std::uint32_t slice) const { return slice % 2 == 1; }

  std::uint32_t coordinate(std::uint32_t rank, std::uint32_t dimension) const {
    for (std::uint32_t i = 0; i < dimension; ++i) rank /= dimensions_[i];
    return rank % dimensions_[dimension];
  }
  // In a mirrored slice, the ranks of each ring are counted backwards.
  std::uint32_t seen(std::uint32_t slice, std::uint32_t coordinate, std::uint32_t dimension) const {
    return mirrored(slice) ? (dimensions_[dimension] - coordinate) % dimensions_[dimension] : coordinate;
  }

  // Calls f(exchange, move) for all moves of a slice, in order. The dimensions that have exchanges left take
  // turns.
  template <class F>
  void for_each_move(std::uint32_t slice, F f) const {
    std::array<std::uint32_t, kMaxSwingDimensions> done{};
    std::uint32_t dimension = first_dimension(slice);
    for (std::uint32_t exchange = 0; exchange < bits(); dimension = (dimension + 1) % dimension_count()) {
      if (1U << done[dimension] >= dimensions_[dimension]) continue;
      f(exchange++, Move{dimension, done[dimension]++});
    }
  }

  std::uint32_t position(std::uint32_t slice, std::uint32_t rank) const override {
    std::uint32_t position = 0;
    for_each_move(slice, [&](std::uint32_t, const Move& move) {
      const std::uint32_t at = seen(slice, coordinate(rank, move.dimension), move.dimension);
      position = 2 * position + (exchanges_to(at, dimensions_[move.dimension]) >> move.exchange & 1);
    });
    return position;
  }
  std::uint32_t partner(std::uint32_t slice, std::uint32_t rank, std::uint32_t exchange) const override {
    std::uint32_t partner = rank;
    for_each_move(slice, [&](std::uint32_t number, const Move& move) {
      if (number == exchange) partner = moved(slice, rank, move);
    });
    return partner;
  }
  std::uint32_t moved(std::uint32_t slice, std::uint32_t rank, const Move& move) const {
    const std::uint32_t size = dimensions_[move.dimension];
    const std::uint32_t from = coordinate(rank, move.dimension);
    const bool up = (from % 2 == 0) != mirrored(slice);
    const std::uint32_t to = (up ? from + rho(move.exchange) : from - rho(move.exchange)) & (size - 1);
    std::uint32_t stride = 1;
    for (std::uint32_t i = 0; i < move.dimension; ++i) stride *= dimensions_[i];
    return rank + to * stride - from * stride;
  }

  Dimensions dimensions_;
};

class Swing final : public CollectiveAlgorithm {
 public:
  explicit Swing(Dimensions dimensions) : dimensions_(std::move(dimensions)) {}
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    const Dimensions dimensions = dimensions_of(dimensions_, {shape.ranks}, "swing", kind, shape.ranks);
    for (const std::uint32_t size : dimensions) {
      if (!std::has_single_bit(size))
        refuse("swing", kind, shape.ranks, "needs dimensions that are powers of two");
    }
    return std::make_unique<SwingPlan>(shape.ranks, dimensions);
  }

 private:
  Dimensions dimensions_;
};

const Registration<CollectiveAlgorithm> kSwing{
    "swing",
    "runs all-reduce by halving and doubling between near ranks of a torus, with the fewest bytes in 2 "
    "log2(p) steps, for powers of two only",
    dimensions_parameters("one dimension of all ranks"),
    [](const DimensionsParameters& p, const ConfigNode&) {
      return std::make_unique<Swing>(read_dimensions(p, 1, kMaxSwingDimensions));
    }};

}  // namespace
}  // namespace netsim
