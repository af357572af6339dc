#include "sim/topology/partition.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace netsim {
namespace {

constexpr Time kShortestCut = 100 * kNanosecond;
// A port with its queue, what it holds at its far end and the packets that wait in it or fly takes some 400 B
// under load, and a core's second-level cache is 1 MB or more (docs/performance.md has the measurements).
constexpr std::uint64_t kPortsPerSet = 1500;
constexpr std::uint64_t kSetsPerThread = 4;  // so that loads can be evened out

// Atoms that stay together.
struct Cluster {
  std::uint64_t ports = 0;
  std::uint32_t level = kNoId;            // links to the nearest host
  std::uint32_t first = kNoId, last = 0;  // of the hosts below it, in a line of all hosts
};

class Partitioner {
 public:
  explicit Partitioner(const Graph& graph) : graph_(graph), parent_(graph.atom_count()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (PortId id = 0; id < graph.port_count(); ++id) {
      const std::uint32_t a = near_end(id), b = far_end(id);
      if (graph.port(id).link.delay < kShortestCut) parent_[std::max(a, b)] = std::min(a, b);
    }
    clusters_.resize(graph.atom_count());
    for (PortId id = 0; id < graph.port_count(); ++id) ++clusters_[near_end(id)].ports;
    find_hosts();
    for (std::uint32_t level = 0; climb(level); ++level) continue;
  }

  Partition divide(std::uint64_t ports_per_set) {
    std::vector<std::uint32_t> local, wide;
    for (std::uint32_t c = 0; c < clusters_.size(); ++c) {
      if (root(c) == c) (is_wide(clusters_[c], ports_per_set) ? wide : local).push_back(c);
    }
    const auto place = [&](std::uint32_t c) {
      const Cluster& k = clusters_[c];
      return std::tuple(k.first + k.last, k.level, c);
    };
    std::sort(local.begin(), local.end(),
              [&](std::uint32_t a, std::uint32_t b) { return place(a) < place(b); });
    set_of_.assign(clusters_.size(), kNoId);
    const std::uint32_t first_wide = best_cut(local, wanted(local, ports_per_set));
    const std::uint32_t sets = cut(wide, first_wide, wanted(wide, ports_per_set));
    return describe(std::max(sets, 1U));
  }

 private:
  std::uint32_t root(std::uint32_t c) {
    while (parent_[c] != c) c = parent_[c] = parent_[parent_[c]];
    return c;
  }
  std::uint32_t near_end(PortId id) { return root(graph_.node(graph_.port(id).node).atom); }
  std::uint32_t far_end(PortId id) { return near_end(id ^ 1U); }

  // Hosts in the order of their atoms, which is that of their numbers.
  void find_hosts() {
    for (NodeId id = 0; id < graph_.node_count(); ++id) {
      if (graph_.node(id).kind == NodeKind::fabric_switch) continue;
      Cluster& c = clusters_[root(graph_.node(id).atom)];
      if (c.level == 0) continue;
      c = {c.ports, 0, hosts_, hosts_};
      ++hosts_;
    }
  }

  // What is one link above `level` gets the hosts below it. False: nothing is.
  bool climb(std::uint32_t level) {
    bool any = false;
    for (PortId id = 0; id < graph_.port_count(); ++id) {
      const Cluster& below = clusters_[near_end(id)];
      Cluster& above = clusters_[far_end(id)];
      if (below.level != level || above.level <= level) continue;
      above.level = level + 1;
      above.first = std::min(above.first, below.first);
      above.last = std::max(above.last, below.last);
      any = true;
    }
    return any;
  }

  // Whether what lies below a switch does not fit into a set with it: the upper tiers of a large network.
  bool is_wide(const Cluster& c, std::uint64_t ports_per_set) const {
    if (c.level == kNoId) return true;
    return c.level > 0 && c.last - c.first + std::uint64_t{1} > ports_per_set;
  }

  std::uint64_t weight(const std::vector<std::uint32_t>& clusters) const {
    std::uint64_t sum = 0;
    for (const std::uint32_t c : clusters) sum += clusters_[c].ports;
    return sum;
  }
  std::uint32_t wanted(const std::vector<std::uint32_t>& clusters, std::uint64_t ports_per_set) const {
    return static_cast<std::uint32_t>((weight(clusters) + ports_per_set - 1) / ports_per_set);
  }

  // Cuts the line of clusters into `parts` of about equal weight, numbered from `first` on; returns the
  // number after the last.
  std::uint32_t cut(const std::vector<std::uint32_t>& line, std::uint32_t first, std::uint32_t parts) {
    if (line.empty()) return first;
    const std::uint64_t total = weight(line);
    std::uint64_t before = 0;
    std::uint32_t highest = first;
    for (const std::uint32_t c : line) {
      const std::uint64_t middle = before + clusters_[c].ports / 2;
      highest = std::max(
          highest, first + static_cast<std::uint32_t>(middle * parts / std::max<std::uint64_t>(total, 1)));
      set_of_[c] = highest;
      before += clusters_[c].ports;
    }
    return highest + 1;
  }

  // Of all numbers of parts from `least` to twice as many the one that cuts the fewest links within the line:
  // so that pods stay whole.
  std::uint32_t best_cut(const std::vector<std::uint32_t>& line, std::uint32_t least) {
    std::uint32_t best = least;
    std::uint64_t fewest = UINT64_MAX;
    for (std::uint32_t parts = least; parts <= 2 * least && fewest > 0; parts += std::max(1U, least / 32)) {
      cut(line, 0, parts);
      const std::uint64_t links = links_cut();
      if (links >= fewest) continue;
      fewest = links;
      best = parts;
    }
    return cut(line, 0, best);
  }
  std::uint64_t links_cut() {
    std::uint64_t links = 0;
    for (PortId id = 0; id < graph_.port_count(); id += 2) {
      const std::uint32_t a = set_of_[near_end(id)], b = set_of_[far_end(id)];
      if (a != b && a != kNoId && b != kNoId) ++links;
    }
    return links;
  }

  Partition describe(std::uint32_t sets) {
    Partition p;
    p.sets = sets;
    if (sets == 1) return p;
    for (NodeId id = 0; id < graph_.node_count(); ++id)
      p.set_of_node.push_back(set_of_[root(graph_.node(id).atom)]);
    p.lookahead.assign(std::size_t{sets} * sets, kNever);
    for (PortId id = 0; id < graph_.port_count(); ++id) {
      const PortSpec& port = graph_.port(id);
      Time& least = p.lookahead[std::size_t{p.set_of(port.node)} * sets + p.set_of(port.peer_node)];
      least = std::min(least, port.link.delay);
    }
    return p;
  }

  const Graph& graph_;
  std::vector<std::uint32_t> parent_;  // of atoms that stay together
  std::vector<Cluster> clusters_;      // by the atom that stands for it
  std::vector<std::uint32_t> set_of_;  // likewise
  std::uint32_t hosts_ = 0;
};

}  // namespace

const Parameters<EngineParameters>& engine_parameters() {
  using P = EngineParameters;
  static const auto parameters = Parameters<P>().integer(
      "sets", &P::sets, {0, 65536},
      "sets of hosts and switches with an event queue each, for caches and threads; 0: computed. The results "
      "do not depend on it");
  return parameters;
}

Partition partition(const Graph& graph, std::uint32_t threads, std::uint32_t sets) {
  const std::uint64_t ports = std::max<std::uint64_t>(graph.port_count(), 1);
  std::uint64_t per_set = kPortsPerSet;
  if (threads > 1) per_set = std::min(per_set, ports / (kSetsPerThread * threads));
  if (sets > 0) per_set = (ports + sets - 1) / sets;
  if (per_set >= ports) return {};
  return Partitioner(graph).divide(std::max<std::uint64_t>(per_set, 1));
}

}  // namespace netsim
