#include "sim/topology/fabrics/torus_shape.h"

#include <cstdlib>
#include <utility>

namespace netsim {

TorusShape::TorusShape(std::vector<std::int32_t> sizes, std::vector<bool> wrap, bool twist)
    : sizes_(std::move(sizes)), wrap_(std::move(wrap)), twist_(twist) {
  for (const std::int32_t size : sizes_) routers_ *= static_cast<std::uint32_t>(size);
  if (twist_) build_table();
}

Displacement TorusShape::place(std::uint32_t router) const {
  Displacement at{};
  for (std::size_t d = 0; d < dimensions(); ++d) at[d] = static_cast<std::int16_t>(coordinate(router, d));
  return at;
}

std::uint32_t TorusShape::router(Displacement at) const {
  for (std::size_t d = 0; d < dimensions(); ++d) turn_back(at, d);
  for (std::size_t d = 0; twist_ && d < dimensions(); ++d)
    turn_back(at, d);  // positions that other dimensions shifted
  std::uint32_t router = 0;
  for (std::size_t d = dimensions(); d-- > 0;)
    router = router * static_cast<std::uint32_t>(sizes_[d]) + static_cast<std::uint32_t>(at[d]);
  return router;
}

std::uint32_t TorusShape::choices() const {
  std::uint32_t count = 1U << dimensions();
  for (std::uint32_t i = 2; twist_ && i <= dimensions(); ++i) count *= i;
  return count;
}

Displacement TorusShape::shortest(std::uint32_t from, std::uint32_t to, std::uint32_t choice) const {
  if (!twist_) return along_each(from, to, choice);
  const std::span<const Displacement> ways = all_twisted(from, to);
  Displacement best = ways[0];
  for (const Displacement& way : ways.subspan(1)) {
    if (better(way, best, choice)) best = way;
  }
  return best;
}

std::uint32_t TorusShape::directions(std::uint32_t from, std::uint32_t to) const {
  std::uint32_t mask = 0;
  const auto add = [&](const Displacement& way) {
    for (std::size_t d = 0; d < dimensions(); ++d) {
      if (way[d] != 0) mask |= 1U << (2 * d + (way[d] > 0 ? 1 : 0));
    }
  };
  if (twist_) {
    for (const Displacement& way : all_twisted(from, to)) add(way);
  } else {
    add(along_each(from, to, 0));
    add(along_each(from, to, ~0U));
  }
  return mask;
}

std::size_t TorusShape::first_dimension(const Displacement& way) const {
  std::size_t first = dimensions();
  for (std::size_t d = dimensions(); d-- > 0;) {
    const bool later = twist_ && first < dimensions() && sizes_[d] > sizes_[first];
    if (way[d] != 0 && !later) first = d;
  }
  return first;
}

bool TorusShape::crosses(std::uint32_t router, std::size_t dimension, std::int32_t links) const {
  const std::int32_t end = coordinate(router, dimension) + links;
  return end < 0 || end >= sizes_[dimension];
}

void TorusShape::turn_back(Displacement& at, std::size_t d) const {
  for (; at[d] < 0; at[d] = static_cast<std::int16_t>(at[d] + sizes_[d])) shift(at, d, 1);
  for (; at[d] >= sizes_[d]; at[d] = static_cast<std::int16_t>(at[d] - sizes_[d])) shift(at, d, -1);
}

void TorusShape::shift(Displacement& at, std::size_t d, std::int32_t turns) const {
  if (!twist_ || sizes_[d] != shortest_size()) return;
  for (std::size_t other = 0; other < dimensions(); ++other) {
    if (sizes_[other] != sizes_[d]) at[other] = static_cast<std::int16_t>(at[other] + turns * sizes_[d]);
  }
}

Displacement TorusShape::along_each(std::uint32_t from, std::uint32_t to, std::uint32_t choice) const {
  Displacement way{};
  for (std::size_t d = 0; d < dimensions(); ++d) {
    std::int32_t links = coordinate(to, d) - coordinate(from, d);
    if (wrap_[d]) {
      const std::int32_t size = sizes_[d];
      if (links < 0) links += size;
      if (2 * links > size || (2 * links == size && (choice >> d & 1) != 0)) links -= size;
    }
    way[d] = static_cast<std::int16_t>(links);
  }
  return way;
}

std::span<const Displacement> TorusShape::all_twisted(std::uint32_t from, std::uint32_t to) const {
  Displacement difference = place(to);
  const Displacement at = place(from);
  for (std::size_t d = 0; d < dimensions(); ++d)
    difference[d] = static_cast<std::int16_t>(difference[d] - at[d]);
  const std::uint32_t entry = router(difference);
  return {ways_.data() + begin_[entry], begin_[entry + 1] - begin_[entry]};
}

bool TorusShape::better(const Displacement& a, const Displacement& b, std::uint32_t choice) const {
  const std::uint32_t signs = choice & ((1U << dimensions()) - 1);
  std::uint32_t order = choice >> dimensions();
  std::array<std::size_t, kMostTorusDimensions> left{0, 1, 2, 3};
  for (std::size_t count = dimensions(); count > 0; --count) {
    const std::size_t pick = order % count;
    order /= static_cast<std::uint32_t>(count);
    const std::size_t d = left[pick];
    left[pick] = left[count - 1];
    if (std::abs(a[d]) != std::abs(b[d])) return std::abs(a[d]) > std::abs(b[d]);
    if (a[d] != b[d]) return (a[d] > 0) == ((signs >> d & 1) == 0);
  }
  return false;
}

void TorusShape::build_table() {
  for (std::uint32_t to = 0; to < routers_; ++to) {
    std::vector<Displacement> ways{place(to)};
    for (std::size_t d = 0; d < dimensions(); ++d) go_round(ways, d);
    keep_shortest(ways);
    begin_.push_back(ways_.size());
    ways_.insert(ways_.end(), ways.begin(), ways.end());
  }
  begin_.push_back(ways_.size());
}

void TorusShape::go_round(std::vector<Displacement>& ways, std::size_t d) const {
  constexpr std::int32_t kTurns = 2;
  const std::vector<Displacement> before = std::move(ways);
  ways.clear();
  for (const Displacement& way : before) {
    for (std::int32_t turns = -kTurns; turns <= kTurns; ++turns) {
      Displacement other = way;
      other[d] = static_cast<std::int16_t>(other[d] - turns * sizes_[d]);
      shift(other, d, -turns);
      ways.push_back(other);
    }
  }
}

void TorusShape::keep_shortest(std::vector<Displacement>& ways) const {
  const auto length = [](const Displacement& way) {
    std::int32_t sum = 0;
    for (const std::int16_t links : way) sum += std::abs(links);
    return sum;
  };
  std::int32_t least = INT32_MAX;
  for (const Displacement& way : ways) least = std::min(least, length(way));
  std::erase_if(ways, [&](const Displacement& way) { return length(way) != least; });
  std::sort(ways.begin(), ways.end());
  ways.erase(std::unique(ways.begin(), ways.end()), ways.end());
}

}  // namespace netsim
