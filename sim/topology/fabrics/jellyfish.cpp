// jellyfish: a random regular graph of switches (Singla et al., Jellyfish: Networking Data Centers Randomly,
// NSDI 2012, section 3). Switches with free ports are joined at random until no two of them can be joined.
// Then two ports that are left replace a link of two other switches by two links.
#include <algorithm>
#include <set>
#include <string>

#include "sim/core/config_entries.h"
#include "sim/core/random.h"
#include "sim/core/registry.h"
#include "sim/topology/switch_graph.h"

namespace netsim {

namespace {

struct JellyfishParameters : SwitchGraphParameters {
  std::int64_t switches = 16;
  std::int64_t degree = 4;
  std::int64_t hosts_per_switch = 1;
  std::int64_t seed = 1;
};

const Parameters<JellyfishParameters>& jellyfish_parameters() {
  using P = JellyfishParameters;
  static const auto p = with_switch_graph(
      Parameters<P>()
          .integer("switches", &P::switches, {2, 65536}, "how many")
          .integer("degree", &P::degree, {1, 1024},
                   "links of a switch to others; switches x degree is even, or one port stays free")
          .integer("hosts_per_switch", &P::hosts_per_switch, {1, 1024}, "host ports of a switch")
          .integer("seed", &P::seed, {0, INT64_MAX},
                   "seed of the random graph, independent of the run's seed"));
  return p;
}

class RandomRegular {
 public:
  using Link = std::pair<std::uint32_t, std::uint32_t>;

  RandomRegular(const JellyfishParameters& p, std::uint64_t attempt)
      : random_(static_cast<std::uint64_t>(p.seed), "topology.jellyfish", attempt),
        free_(static_cast<std::size_t>(p.switches), static_cast<std::uint32_t>(p.degree)) {
    for (std::uint32_t i = 0; i < free_.size(); ++i) open_.push_back(i);
  }

  std::vector<Link> grow() {
    while (join_two() || break_in()) continue;
    return links_;
  }

 private:
  static Link ordered(std::uint32_t a, std::uint32_t b) { return {std::min(a, b), std::max(a, b)}; }
  bool joined(std::uint32_t a, std::uint32_t b) const { return known_.contains(ordered(a, b)); }

  void join(std::uint32_t a, std::uint32_t b) {
    links_.push_back(ordered(a, b));
    known_.insert(ordered(a, b));
    for (const std::uint32_t end : {a, b}) {
      if (--free_[end] == 0) std::erase(open_, end);
    }
  }

  // Joins two switches with free ports. They are drawn at random; when this fails repeatedly, the first such
  // pair is taken.
  bool join_two() {
    for (int attempt = 0; attempt < 64 && open_.size() > 1; ++attempt) {
      const std::uint32_t a = open_[random_.below(open_.size())], b = open_[random_.below(open_.size())];
      if (a == b || joined(a, b)) continue;
      join(a, b);
      return true;
    }
    for (const std::uint32_t a : open_) {
      for (const std::uint32_t b : open_) {
        if (a == b || joined(a, b)) continue;
        join(a, b);
        return true;
      }
    }
    return false;
  }

  // Replaces a link between two other switches by links to two free ports that cannot be joined. Either both
  // ports belong to one switch, or their two switches are joined already.
  bool break_in() {
    for (std::size_t i = 0; i < open_.size(); ++i) {
      if (free_[open_[i]] >= 2 && break_in(open_[i], open_[i])) return true;
      for (std::size_t j = 0; j < i; ++j) {
        if (break_in(open_[i], open_[j]) || break_in(open_[j], open_[i])) return true;
      }
    }
    return false;
  }

  bool break_in(std::uint32_t a, std::uint32_t b) {
    std::vector<std::size_t> candidates;
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const auto [x, y] = links_[i];
      const bool apart = x != a && x != b && y != a && y != b;
      if (apart && !joined(x, a) && !joined(y, b)) candidates.push_back(i);
    }
    if (candidates.empty()) return false;
    const std::size_t chosen = candidates[random_.below(candidates.size())];
    const auto [x, y] = links_[chosen];
    known_.erase(links_[chosen]);
    links_.erase(links_.begin() + static_cast<std::ptrdiff_t>(chosen));
    for (const std::uint32_t end : {x, y}) {
      if (free_[end]++ == 0) open_.push_back(end);
    }
    join(a, x);
    join(b, y);
    return true;
  }

  RandomStream random_;
  std::vector<std::uint32_t> free_;  // number of free ports, by switch
  std::vector<std::uint32_t> open_;  // switches with free ports
  std::vector<Link> links_;
  std::set<Link> known_;
};

std::unique_ptr<Topology> make_jellyfish(const JellyfishParameters& p, const ConfigNode& where) {
  if (p.degree >= p.switches) {
    entry_or_self(where, "degree")
        .fail("degree " + std::to_string(p.degree) + " is too much for " + std::to_string(p.switches) +
              " switches, each of which has " + std::to_string(p.switches - 1) + " others");
  }
  SwitchGraph graph;
  graph.switches = static_cast<std::uint32_t>(p.switches);
  graph.hosts_per_switch = static_cast<std::uint32_t>(p.hosts_per_switch);
  constexpr std::uint64_t kAttempts = 100;  // sparse graphs may be disconnected
  for (std::uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
    graph.links = RandomRegular(p, attempt).grow();
    if (graph.is_connected()) break;
  }
  return switch_graph(std::move(graph), p, where);
}

const Registration<Topology> kJellyfish{"jellyfish", "a random regular graph of switches",
                                        jellyfish_parameters(), make_jellyfish};

}  // namespace

}  // namespace netsim
