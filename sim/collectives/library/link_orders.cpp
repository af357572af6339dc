#include "sim/collectives/library/link_orders.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <optional>
#include <span>

#include "sim/core/random.h"

namespace netsim {
namespace {

using Order = LinkOrders::Order;
using Mask = std::uint32_t;  // a bit for each GPU

constexpr Mask bit(std::uint32_t gpu) { return Mask{1} << gpu; }

// Search: finds orders for which the links have lanes left. Each order takes a lane of every link that it
// uses.
class Search {
 public:
  // Each link has `times` its lanes. With `both_ways` an order also takes the lanes of its reverse.
  Search(const LinkLanes& links, std::uint32_t times, bool both_ways)
      : count_(links.count), both_ways_(both_ways), all_(links.lanes) {
    for (std::uint32_t& lanes : all_) lanes *= times;
  }

  // Return an order for each of `ends`, or `count` closed orders from GPU 0. nullopt: there are none, or the
  // search took too long.
  std::optional<LinkOrders::Orders> ways(const std::vector<WayEnds>& ends) { return find(ends, false); }
  std::optional<LinkOrders::Orders> rings(std::uint32_t count) {
    return find(std::vector<WayEnds>(count, WayEnds{0, 0}), true);
  }

 private:
  // Largest number of extensions of an order by a GPU in one attempt, and of attempts.
  static constexpr std::uint32_t kWork = 20'000, kAttempts = 5;

  std::optional<LinkOrders::Orders> find(const std::vector<WayEnds>& ends, bool closed) {
    ends_ = ends;
    closed_ = closed;
    for (attempt_ = 0; attempt_ < kAttempts; ++attempt_) {
      work_ = kWork;
      orders_.clear();
      set_room();
      if (next_order()) return orders_;
      if (work_ > 0) break;  // all orders have been tried
    }
    return std::nullopt;
  }

  void set_room() {
    room_ = all_;
    out_.fill(0);
    in_.fill(0);
    for (std::uint32_t from = 0; from < count_; ++from) {
      for (std::uint32_t to = 0; to < count_; ++to) note(from, to);
    }
  }
  std::uint32_t& room(std::uint32_t from, std::uint32_t to) { return room_[from * count_ + to]; }
  // Updates the masks after the lanes of a link have changed.
  void note(std::uint32_t from, std::uint32_t to) {
    const bool open = room(from, to) > 0 && (!both_ways_ || room(to, from) > 0);
    out_[from] = open ? out_[from] | bit(to) : out_[from] & ~bit(to);
    in_[to] = open ? in_[to] | bit(from) : in_[to] & ~bit(from);
  }
  void take(std::uint32_t from, std::uint32_t to) {
    --room(from, to);
    if (both_ways_) --room(to, from);
    note(from, to);
    note(to, from);
  }
  void give_back(std::uint32_t from, std::uint32_t to) {
    ++room(from, to);
    if (both_ways_) ++room(to, from);
    note(from, to);
    note(to, from);
  }

  bool next_order() {
    if (orders_.size() == ends_.size()) return true;
    const std::uint32_t first = ends_[orders_.size()].first;
    orders_.push_back({first});
    if (extend(first, (bit(count_) - 1) & ~bit(first))) return true;
    orders_.pop_back();
    return false;
  }

  // Extends the present order, which has reached `at`, by the GPUs `left`.
  bool extend(std::uint32_t at, Mask left) {
    if (left == 0) return finish(at);
    if (work_ == 0) return false;
    --work_;
    if (cuts_off(at, left)) return false;
    std::array<std::uint32_t, LinkOrders::kMostGpus> nexts{};
    for (const std::uint32_t next : candidates(at, left, nexts)) {
      take(at, next);
      orders_.back().push_back(next);
      if (extend(next, left & ~bit(next))) return true;
      orders_.back().pop_back();
      give_back(at, next);
      if (work_ == 0) return false;
    }
    return false;
  }

  bool finish(std::uint32_t at) {
    const std::uint32_t first = orders_.back().front();
    if (closed_) {
      if ((out_[at] & bit(first)) == 0) return false;
      take(at, first);
    }
    if (next_order()) return true;
    if (closed_) give_back(at, first);
    return false;
  }

  // Returns whether the order can no longer reach one of the GPUs left, or no longer leave it.
  bool cuts_off(std::uint32_t at, Mask left) const {
    const WayEnds& ends = ends_[orders_.size() - 1];
    const bool anywhere = ends.last == kNoIndex;
    for (Mask rest = left; rest != 0; rest &= rest - 1) {
      const auto gpu = static_cast<std::uint32_t>(std::countr_zero(rest));
      if ((in_[gpu] & (left | bit(at))) == 0) return true;
      const Mask onward = closed_ ? left | bit(ends.first) : left;
      if (!anywhere && (closed_ || gpu != ends.last) && (out_[gpu] & onward) == 0) return true;
    }
    return false;
  }

  // Returns the GPUs that the order can go to next, the one with the most lanes left first.
  std::span<const std::uint32_t> candidates(std::uint32_t at, Mask left,
                                            std::array<std::uint32_t, LinkOrders::kMostGpus>& nexts) {
    const std::uint32_t last = closed_ ? kNoIndex : ends_[orders_.size() - 1].last;
    std::array<std::pair<std::uint32_t, std::uint64_t>, LinkOrders::kMostGpus> keys{};
    std::uint32_t count = 0;
    for (Mask rest = out_[at] & left; rest != 0; rest &= rest - 1) {
      const auto next = static_cast<std::uint32_t>(std::countr_zero(rest));
      if (next == last && left != bit(next)) continue;
      const std::uint64_t turn =
          hash_combine(hash_combine(attempt_, orders_.size()), std::uint64_t{at} << 32 | next);
      keys[next] = {UINT32_MAX - room(at, next), turn};
      nexts[count++] = next;
    }
    std::sort(nexts.begin(), nexts.begin() + count,
              [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
    return {nexts.data(), count};
  }

  const std::uint32_t count_;
  const bool both_ways_;
  std::vector<std::uint32_t> all_, room_;  // all lanes and those left, as in LinkLanes::lanes
  std::array<Mask, LinkOrders::kMostGpus> out_{}, in_{};
  std::vector<WayEnds> ends_;
  bool closed_ = false;
  LinkOrders::Orders orders_;  // the last order may be incomplete
  std::uint64_t attempt_ = 0;
  std::uint32_t work_ = 0;
};

bool is_symmetric(const LinkLanes& links) {
  for (std::uint32_t from = 0; from < links.count; ++from) {
    for (std::uint32_t to = 0; to < from; ++to) {
      if (links.lanes[from * links.count + to] != links.lanes[to * links.count + from]) return false;
    }
  }
  return true;
}

// Returns each ring and its reverse.
LinkOrders::Orders with_reverses(const LinkOrders::Orders& rings) {
  LinkOrders::Orders both;
  for (const Order& ring : rings) {
    both.push_back(ring);
    both.push_back(ring);
    std::reverse(both.back().begin() + 1, both.back().end());
  }
  return both;
}

// Finds `rings` rings over `times` the lanes. Where links are equal in both directions, it first looks for
// half as many rings and adds their reverses.
std::optional<LinkOrders::Orders> fit(const LinkLanes& links, std::uint32_t times, std::uint32_t rings) {
  if (rings % 2 == 0 && is_symmetric(links)) {
    if (const auto found = Search(links, times, true).rings(rings / 2)) return with_reverses(*found);
  }
  return Search(links, times, false).rings(rings);
}

LinkOrders::Orders best_rings(const LinkLanes& links, std::uint32_t most) {
  const auto one = Search(links, 1, false).rings(1);
  if (!one) return {};
  const std::uint32_t bound = std::min(narrowest_cut(links), most);
  for (std::uint32_t halves = 2 * bound; halves > 2; --halves) {
    if (halves % 2 == 0) {
      if (auto found = fit(links, 1, halves / 2)) return *std::move(found);
    }
    if (halves > most) continue;
    if (auto found = fit(links, 2, halves)) return *std::move(found);
  }
  return *one;
}

LinkOrders::Orders best_ways(const LinkLanes& links, const std::vector<WayEnds>& ends, bool both_ways) {
  const auto wanted = static_cast<std::uint32_t>(ends.size());
  const std::uint32_t lanes = std::accumulate(links.lanes.begin(), links.lanes.end(), 0U);
  if (lanes == 0) return {};
  const std::uint32_t taken = wanted * (links.count - 1) * (both_ways ? 2 : 1);
  for (std::uint32_t times = (taken + lanes - 1) / lanes; times <= 2 * wanted; ++times) {
    if (auto found = Search(links, times, both_ways).ways(ends)) return *std::move(found);
  }
  return {};
}

}  // namespace

std::uint32_t narrowest_cut(const LinkLanes& links) {
  const auto lanes = [&](std::uint32_t from, std::uint32_t to) {
    return links.lanes[from * links.count + to];
  };
  // Lanes out of and into each subset of the GPUs. They are computed from the subset without its first GPU.
  std::vector<std::array<std::uint32_t, 2>> cuts(std::size_t{1} << links.count);
  std::uint32_t least = UINT32_MAX;
  for (Mask part = 1; part + 1 < cuts.size(); ++part) {
    const auto first = static_cast<std::uint32_t>(std::countr_zero(part));
    cuts[part] = cuts[part & (part - 1)];
    for (std::uint32_t other = 0; other < links.count; ++other) {
      const bool inside = (part & bit(other)) != 0;
      const std::uint32_t out = lanes(first, other), in = lanes(other, first);
      if (other == first) continue;
      cuts[part][0] = inside ? cuts[part][0] - in : cuts[part][0] + out;
      cuts[part][1] = inside ? cuts[part][1] - out : cuts[part][1] + in;
    }
    least = std::min({least, cuts[part][0], cuts[part][1]});
  }
  return least;
}

const LinkOrders::Orders& LinkOrders::rings(const LinkLanes& links, std::uint32_t most) {
  const auto [at, fresh] = rings_.try_emplace({links, most});
  if (fresh && links.count > 2 && links.count <= kMostGpus) at->second = best_rings(links, most);
  return at->second;
}

const LinkOrders::Orders& LinkOrders::ways(const LinkLanes& links, const std::vector<WayEnds>& ends,
                                           bool both_ways) {
  const auto [at, fresh] = ways_.try_emplace({links, {ends, both_ways}});
  if (fresh && links.count > 1 && links.count <= kMostGpus) at->second = best_ways(links, ends, both_ways);
  return at->second;
}

}  // namespace netsim
