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
// ASTRA-sim leaves ties to std::sort; here they are in the order of the dimensions. It admits all chunks at
// once (Sys.cc: active_first_phase). It bounds those that a dimension sends at a time by
// active-chunks-per-dimension, which is 1 in its examples. The smallest chunk that waits for a dimension goes
// next (the paper's SCF), or the one that came first.
//
// A plan has no time, so the order in each dimension is made beforehand with the given rates. All ranks keep
// to it.
#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/ring_plan.h"
#include "sim/core/config_entries.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

constexpr std::size_t kMaxThemisDimensions = 8;
constexpr double kLeastShareOfChunk = 1.0 / 16;  // OfflineGreedy.cc: recommended_chunk_size / 16

enum class ChunkOrder : std::uint8_t { balanced, fixed };
enum class DimensionQueue : std::uint8_t { smallest, fifo };

struct ThemisParameters {
  ConfigNode dimensions, rates;
  std::int64_t chunks = 64;  // ArchGym's default of ASTRA-sim's preferred-dataset-splits
  std::int64_t directions = 2;
  std::int64_t in_flight = 1;  // ASTRA-sim: active-chunks-per-dimension of its examples
  ChunkOrder order = ChunkOrder::balanced;
  DimensionQueue queue = DimensionQueue::smallest;
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

using ChunkOrders = std::vector<std::vector<std::uint32_t>>;  // by chunk, its dimensions

ChunkOrders orders_of(const ThemisParameters& p, const Dimensions& sizes, const DimensionRates& rates) {
  std::vector<std::uint32_t> own(sizes.size());
  std::iota(own.begin(), own.end(), 0U);
  ChunkOrders orders(static_cast<std::size_t>(p.chunks), own);
  if (p.order == ChunkOrder::fixed) return orders;
  DimensionLoads loads(sizes, rates);
  for (std::vector<std::uint32_t>& order : orders) order = loads.next_order();
  return orders;
}

// Returns the rings of all chunks. With two directions each order has two slices, which go opposite ways.
std::vector<RingSlice> slices_of(const ChunkOrders& orders, std::int64_t directions,
                                 const Dimensions& sizes) {
  std::vector<RingSlice> slices;
  slices.reserve(orders.size() * static_cast<std::size_t>(directions));
  for (const std::vector<std::uint32_t>& order : orders) {
    for (std::int64_t direction = 0; direction < directions; ++direction) {
      RingSlice& slice = slices.emplace_back();
      for (const std::uint32_t dimension : order)
        slice.push_back({dimension, direction == 0 ? 1 : sizes[dimension] - 1});
    }
  }
  return slices;
}

// ChunkPhase: what a chunk does in one dimension. It reduces on the way in, gathers on the way back, and does
// both in the last dimension.
struct ChunkPhase {
  std::uint32_t dimension = 0;
  std::uint32_t steps = 0;
  std::uint32_t cells = 0;  // of a chunk of its ring, of as many cells as there are ranks
  double time = 0;          // of its bytes at the dimension's rate
};

std::vector<ChunkPhase> phases_of(const std::vector<std::uint32_t>& order, const Dimensions& sizes,
                                  const DimensionRates& rates) {
  std::vector<ChunkPhase> phases;
  std::uint32_t cells = std::accumulate(sizes.begin(), sizes.end(), 1U, std::multiplies<>());
  for (const std::uint32_t dimension : order) {
    const std::uint32_t size = sizes[dimension];
    if (size == 1) continue;
    cells /= size;
    const double time = cells * (size - 1) / rates[dimension];
    phases.push_back({dimension, ring_steps(CollectiveKind::reduce_scatter, size), cells, time});
  }
  if (phases.empty()) return phases;
  ChunkPhase& last = phases.back();
  last.steps = ring_steps(CollectiveKind::all_reduce, sizes[last.dimension]);
  last.time *= 2;
  for (std::size_t i = phases.size() - 1; i-- > 0;) phases.push_back(phases[i]);
  return phases;
}

// PhaseAt: phase `phase` of a chunk.
struct PhaseAt {
  std::uint32_t chunk = 0, phase = 0;
};

// DimensionQueues: plays the chunks, of which each dimension sends one at a time. Returns, by dimension, the
// order in which it sends them.
class DimensionQueues {
 public:
  DimensionQueues(const std::vector<std::vector<ChunkPhase>>& phases, std::size_t dimensions,
                  DimensionQueue queue)
      : phases_(phases), queue_(queue), waiting_(dimensions), busy_(dimensions, false), sent_(dimensions) {}

  std::vector<std::vector<PhaseAt>> play() {
    for (std::uint32_t chunk = 0; chunk < phases_.size(); ++chunk) add({chunk, 0});
    for (std::uint32_t dimension = 0; dimension < busy_.size(); ++dimension) begin(dimension, 0);
    while (!ends_.empty()) {
      const End end = ends_.top();
      ends_.pop();
      const std::uint32_t dimension = phase(end.at).dimension;
      busy_[dimension] = false;
      const PhaseAt next{end.at.chunk, end.at.phase + 1};
      if (next.phase < phases_[next.chunk].size()) {
        add(next);
        begin(phase(next).dimension, end.time);
      }
      begin(dimension, end.time);
    }
    return std::move(sent_);
  }

 private:
  struct Waiting {
    std::uint32_t cells = 0;  // 0 for all of a queue that is `fifo`
    std::uint64_t arrival = 0;
    PhaseAt at;
    bool operator<(const Waiting& other) const {  // the queue's top is the greatest
      return std::pair(cells, arrival) > std::pair(other.cells, other.arrival);
    }
  };
  struct End {
    double time = 0;
    std::uint64_t begin = 0;  // number of phases that have begun before
    PhaseAt at;
    bool operator<(const End& other) const {
      return std::pair(time, begin) > std::pair(other.time, other.begin);
    }
  };

  const ChunkPhase& phase(const PhaseAt& at) const { return phases_[at.chunk][at.phase]; }
  void add(const PhaseAt& at) {
    const std::uint32_t cells = queue_ == DimensionQueue::smallest ? phase(at).cells : 0;
    waiting_[phase(at).dimension].push({cells, arrivals_++, at});
  }
  void begin(std::uint32_t dimension, double now) {
    if (busy_[dimension] || waiting_[dimension].empty()) return;
    const PhaseAt at = waiting_[dimension].top().at;
    waiting_[dimension].pop();
    busy_[dimension] = true;
    sent_[dimension].push_back(at);
    ends_.push({now + phase(at).time, begins_++, at});
  }

  const std::vector<std::vector<ChunkPhase>>& phases_;
  DimensionQueue queue_;
  std::vector<std::priority_queue<Waiting>> waiting_;
  std::vector<bool> busy_;
  std::priority_queue<End> ends_;
  std::uint64_t arrivals_ = 0, begins_ = 0;
  std::vector<std::vector<PhaseAt>> sent_;
};

// ThemisPlan: rings of chunks. Each dimension has `in_flight` thread blocks for each direction, which take
// its phases in turn. The first step of a phase waits for the chunk's phase before.
class ThemisPlan final : public RegularPlan {
 public:
  ThemisPlan(const ThemisParameters& p, CollectiveKind kind, std::uint32_t ranks, const Dimensions& sizes,
             const DimensionRates& rates)
      : ThemisPlan(p, kind, ranks, sizes, rates, orders_of(p, sizes, rates)) {}

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
    Step step = rings_.step(rank, part->slice, part->first + index - begin);
    if (sends(step.kind)) step.to.block = block;
    if (receives(step.kind)) step.from.block = block;
    if (index == begin && part->after_block != kNoIndex) {
      step.after_block = part->after_block;
      step.after_step = part->after_step;
    }
    return step;
  }

 private:
  // Part: a phase of a slice, up to, and without, step `end` of its thread block. It begins with step `first`
  // of the slice, when the slice's phase before has ended with step `after_step` of `after_block`.
  struct Part {
    std::uint32_t slice = 0, first = 0, end = 0, after_block = kNoIndex, after_step = 0;
  };
  struct LastStep {
    std::uint32_t block = kNoIndex, step = 0;
  };

  ThemisPlan(const ThemisParameters& p, CollectiveKind kind, std::uint32_t ranks, const Dimensions& sizes,
             const DimensionRates& rates, const ChunkOrders& orders)
      : RegularPlan("themis", kind, ranks),
        rings_("themis", kind, sizes, slices_of(orders, p.directions, sizes)) {
    std::vector<std::vector<ChunkPhase>> phases;
    phases.reserve(orders.size());
    for (const std::vector<std::uint32_t>& order : orders) phases.push_back(phases_of(order, sizes, rates));
    const std::vector<std::vector<PhaseAt>> sent = DimensionQueues(phases, sizes.size(), p.queue).play();
    const auto directions = static_cast<std::uint32_t>(p.directions);
    for (const std::vector<PhaseAt>& queue : sent) {
      const auto lanes = static_cast<std::uint32_t>(
          std::min<std::size_t>(static_cast<std::size_t>(p.in_flight), queue.size()));
      for (std::uint32_t direction = 0; direction < directions; ++direction)
        add_queue(queue, phases, lanes, directions, direction);
    }
    join_phases(phases, directions);
  }

  // Adds the thread blocks of a dimension in one direction.
  void add_queue(const std::vector<PhaseAt>& queue, const std::vector<std::vector<ChunkPhase>>& phases,
                 std::uint32_t lanes, std::uint32_t directions, std::uint32_t direction) {
    const std::size_t first = parts_.size();
    parts_.resize(first + lanes);
    for (std::size_t i = 0; i < queue.size(); ++i) {
      std::vector<Part>& block = parts_[first + i % lanes];
      const std::vector<ChunkPhase>& chunk = phases[queue[i].chunk];
      Part part{queue[i].chunk * directions + direction};
      for (std::uint32_t phase = 0; phase < queue[i].phase; ++phase) part.first += chunk[phase].steps;
      part.end = (block.empty() ? 0 : block.back().end) + chunk[queue[i].phase].steps;
      block.push_back(part);
    }
  }

  // Lets each phase wait for the one before of its slice.
  void join_phases(const std::vector<std::vector<ChunkPhase>>& phases, std::uint32_t directions) {
    std::vector<std::vector<LastStep>> last(phases.size() * directions);
    for (std::size_t slice = 0; slice < last.size(); ++slice) {
      std::uint32_t steps = 0;
      for (const ChunkPhase& phase : phases[slice / directions]) steps += phase.steps;
      last[slice].resize(steps + std::size_t{1});
    }
    const auto for_each_part = [this](const auto& act) {
      for (std::uint32_t block = 0; block < parts_.size(); ++block) {
        std::uint32_t begin = 0;
        for (Part& part : parts_[block]) act(block, part, std::exchange(begin, part.end));
      }
    };
    for_each_part([&](std::uint32_t block, const Part& part, std::uint32_t begin) {
      last[part.slice][part.first + part.end - begin] = {block, part.end - 1};
    });
    for_each_part([&](std::uint32_t, Part& part, std::uint32_t) {
      part.after_block = last[part.slice][part.first].block;
      part.after_step = last[part.slice][part.first].step;
    });
  }

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
    return std::make_unique<ThemisPlan>(p_, kind, shape.ranks, sizes, rates);
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
      .integer("in_flight", &P::in_flight, {1, 4096}, "chunks that each dimension sends at a time")
      .choice("order", &P::order, {{"balanced", ChunkOrder::balanced}, {"fixed", ChunkOrder::fixed}},
              "the order in which chunks visit dimensions: by their loads, or their own order for all chunks")
      .choice("queue", &P::queue, {{"smallest", DimensionQueue::smallest}, {"fifo", DimensionQueue::fifo}},
              "which of the chunks that wait for a dimension is next: the smallest, or the first")
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
