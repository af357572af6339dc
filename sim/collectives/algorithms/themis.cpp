// Themis (Rashidi et al., ISCA 2022): an all-reduce over several dimensions. Each chunk has an order of
// dimensions of its own, so that all dimensions are busy. A chunk that starts in a dimension of p ranks sends
// (p - 1)/p of its bytes there, and the next dimensions get 1/p of it. With one order for all, the first
// dimension carries nearly all bytes.
//
// The rule is that of ASTRA-sim (OfflineGreedy.cc). A dimension's load is the time of its bytes at its rate.
// Each chunk visits the dimensions by their load so far, the least loaded first. If 1/16 of a chunk would
// close the gap between the least and the most loaded one, it visits them in their own order. The all-gathers
// go back in the reverse order.
//
// ASTRA-sim leaves ties to std::sort; here they are in the order of the dimensions. Few chunks are in flight,
// as there. With all at once, dimensions would share their rate among chunks that then meet in the next one.
#include <algorithm>
#include <numeric>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/ring_plan.h"
#include "sim/core/config_entries.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

constexpr std::size_t kMaxThemisDimensions = 8;
constexpr double kLeastShareOfChunk = 1.0 / 16;  // OfflineGreedy.cc: recommended_chunk_size / 16

struct ThemisParameters {
  ConfigNode dimensions, rates;
  std::int64_t chunks = 64;  // ASTRA-sim: preferred-dataset-splits of its examples
  std::int64_t directions = 2;
  std::int64_t in_flight = 6;
};

using DimensionRates = std::vector<double>;

// DimensionLoads: the loads of dimensions, as multiples of the time of a chunk at rate 1.
class DimensionLoads {
 public:
  DimensionLoads(const Dimensions& sizes, const DimensionRates& rates)
      : sizes_(sizes), rates_(rates), loads_(sizes.size(), 0) {}

  // Returns the order of dimensions of the next chunk, and adds its loads.
  std::vector<std::uint32_t> next_order() {
    std::vector<std::uint32_t> order(sizes_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::vector<std::uint32_t> by_load = order;
    std::stable_sort(by_load.begin(), by_load.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return loads_[a] < loads_[b]; });
    if (closing_chunk(by_load) >= kLeastShareOfChunk) order = by_load;
    double chunk = 1;
    for (const std::uint32_t dimension : order) {
      loads_[dimension] += chunk * share(dimension) / rates_[dimension];
      chunk /= sizes_[dimension];
    }
    return order;
  }

 private:
  double share(std::uint32_t dimension) const {
    return static_cast<double>(sizes_[dimension] - 1) / sizes_[dimension];
  }
  // Returns the chunk that would bring the least loaded dimension to the load of the most loaded one.
  // Dimensions of one rank carry nothing.
  double closing_chunk(const std::vector<std::uint32_t>& by_load) const {
    for (const std::uint32_t least : by_load) {
      if (sizes_[least] == 1) continue;
      return (loads_[by_load.back()] - loads_[least]) * rates_[least] / share(least);
    }
    return 0;
  }

  Dimensions sizes_;
  DimensionRates rates_;
  std::vector<double> loads_;
};

// Returns the rings of all chunks. With two directions each order has two chunks, which go opposite ways.
std::vector<RingSlice> slices_of(const ThemisParameters& p, const Dimensions& sizes,
                                 const DimensionRates& rates) {
  DimensionLoads loads(sizes, rates);
  std::vector<RingSlice> slices;
  slices.reserve(static_cast<std::size_t>(p.chunks * p.directions));
  for (std::int64_t chunk = 0; chunk < p.chunks; ++chunk) {
    const std::vector<std::uint32_t> order = loads.next_order();
    for (std::int64_t direction = 0; direction < p.directions; ++direction) {
      RingSlice& slice = slices.emplace_back();
      for (const std::uint32_t dimension : order)
        slice.push_back({dimension, direction == 0 ? 1 : sizes[dimension] - 1});
    }
  }
  return slices;
}

// ThemisPlan: rings of chunks. Each thread block runs several chunks, one after the other.
class ThemisPlan final : public RegularPlan {
 public:
  // The chunks i, i + in_flight, ... are run by one thread block; each has `directions` slices.
  ThemisPlan(CollectiveKind kind, std::uint32_t ranks, const Dimensions& sizes,
             const std::vector<RingSlice>& slices, std::uint32_t in_flight)
      : RegularPlan("themis", kind, ranks), rings_("themis", kind, sizes, slices) {
    parts_.resize(std::min<std::size_t>(in_flight, slices.size()));
    for (std::uint32_t slice = 0; slice < slices.size(); ++slice) {
      std::vector<Part>& block = parts_[slice % parts_.size()];
      const std::uint32_t begin = block.empty() ? 0 : block.back().end;
      block.push_back({slice, begin + rings_.steps(0, slice)});
    }
  }

  std::uint32_t chunks() const override { return rings_.chunks(); }
  std::uint32_t largest_count() const override { return rings_.largest_count(); }
  bool in_place() const override { return true; }
  std::uint32_t blocks(std::uint32_t) const override { return static_cast<std::uint32_t>(parts_.size()); }
  std::uint32_t steps(std::uint32_t, std::uint32_t block) const override { return parts_[block].back().end; }
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override {
    const std::vector<Part>& parts = parts_[block];
    const auto part = std::upper_bound(parts.begin(), parts.end(), index,
                                       [](std::uint32_t at, const Part& one) { return at < one.end; });
    const std::uint32_t begin = part == parts.begin() ? 0 : std::prev(part)->end;
    Step step = rings_.step(rank, part->slice, index - begin);
    if (sends(step.kind)) step.to.block = block;
    if (receives(step.kind)) step.from.block = block;
    return step;
  }

 private:
  // Part: the steps of a slice up to, and without, step `end` of its thread block.
  struct Part {
    std::uint32_t slice = 0, end = 0;
  };
  RingPlan rings_;
  std::vector<std::vector<Part>> parts_;  // by thread block
};

class Themis final : public CollectiveAlgorithm {
 public:
  Themis(const ThemisParameters& p, Dimensions sizes, DimensionRates rates)
      : p_(p), sizes_(std::move(sizes)), rates_(std::move(rates)) {}
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    const Dimensions sizes = dimensions_of(sizes_, nearest_factors(shape.ranks), "themis", kind, shape.ranks);
    const DimensionRates rates = rates_.empty() ? DimensionRates(sizes.size(), 1) : rates_;
    return std::make_unique<ThemisPlan>(kind, shape.ranks, sizes, slices_of(p_, sizes, rates),
                                        static_cast<std::uint32_t>(p_.in_flight * p_.directions));
  }

 private:
  ThemisParameters p_;
  Dimensions sizes_;
  DimensionRates rates_;
};

// Returns the rates of the dimensions; empty where none are given.
DimensionRates read_rates(const ConfigNode& node, std::size_t dimensions) {
  if (node.is_null()) return {};
  const std::size_t count = dimensions == 0 ? 2 : dimensions;
  if (!node.is_sequence() || node.items().size() != count)
    node.fail("a list of " + std::to_string(count) + " rates is expected, one for each dimension");
  DimensionRates rates;
  rates.reserve(count);
  for (const ConfigNode& item : node.items()) {
    rates.push_back(read_real(item));
    if (rates.back() < 1e-6 || rates.back() > 1e6) out_of_range(item, "1e-6", "1e6");
  }
  return rates;
}

Parameters<ThemisParameters> themis_parameters() {
  using P = ThemisParameters;
  return Parameters<P>()
      .list("dimensions", &P::dimensions,
            "sizes of the grid of ranks, [X, Y, ...], the one that varies fastest in the numbers of ranks "
            "first; without it the two nearest factors of their number")
      .list("rates", &P::rates,
            "rates of a rank's links in each dimension, in any unit; without it they are equal")
      .integer("chunks", &P::chunks, {1, 4096}, "chunks of the buffer that have an order each")
      .integer("in_flight", &P::in_flight, {1, 4096}, "chunks that are sent at a time")
      .integer("directions", &P::directions, {1, 2},
               "2: each chunk has two halves, which go opposite ways around each ring");
}

const Registration<CollectiveAlgorithm> kThemis{
    "themis",
    "all-reduce over several dimensions, whose chunks visit the dimensions in orders that balance the load "
    "(Rashidi et al., ISCA 2022)",
    themis_parameters(), [](const ThemisParameters& p, const ConfigNode&) {
      Dimensions sizes = read_dimensions({p.dimensions}, 1, kMaxThemisDimensions);
      DimensionRates rates = read_rates(p.rates, sizes.size());
      return std::make_unique<Themis>(p, std::move(sizes), std::move(rates));
    }};

}  // namespace
}  // namespace netsim
