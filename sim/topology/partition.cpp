#include "sim/topology/partition.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace netsim {
namespace {

constexpr Time kShortestCut = 100 * kNanosecond;
// Limit of a set's ports. Above it the ports, queues and packets of a set no longer fit into a core's private
// caches. Then remote events cost less than fetching data from farther away (measured:
// docs/evidence/performance.md).
constexpr std::uint64_t kPortsPerSet = 6200;
constexpr std::uint32_t kSetsPerThread = 4;  // so that loads can be balanced

// Limit of the sets. The lookaheads between sets grow with the square of their number, and their computation
// with the cube.
constexpr std::uint32_t kMostSets = 512;

// Returns whether a link must not be cut. Messages over NVLink are not acknowledged, so their sender learns
// of the delivery at once, in its own set.
bool stays_whole(const LinkSpec& link) { return link.delay < kShortestCut || link.kind == LinkKind::nvlink; }

// Atoms that are in one set because links between them must not be cut.
struct AtomGroup {
  std::uint64_t ports = 0;
  std::uint32_t level = kNoId;            // number of links to the nearest host
  std::uint32_t first = kNoId, last = 0;  // range of the hosts below it, in the order of all hosts
};

class Partitioner {
 public:
  explicit Partitioner(const Graph& graph) : graph_(graph), parent_(graph.atom_count()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (PortId id = 0; id < graph.port_count(); ++id) {
      const std::uint32_t a = near_end(id), b = far_end(id);
      if (stays_whole(graph.port(id).link)) parent_[std::max(a, b)] = std::min(a, b);
    }
    groups_.resize(graph.atom_count());
    for (PortId id = 0; id < graph.port_count(); ++id) ++groups_[near_end(id)].ports;
    find_hosts();
    for (std::uint32_t level = 0; climb(level); ++level) continue;
  }

  // Divides the groups into a multiple of `unit` sets, at least `least` and at most twice as many. It selects
  // the number that cuts the fewest links between hosts and switches of neighbouring sets, so that pods stay
  // whole.
  Partition divide(std::uint32_t least, std::uint32_t unit) {
    least = (least + unit - 1) / unit * unit;
    std::vector<std::uint32_t> local, wide;
    for (std::uint32_t c = 0; c < groups_.size(); ++c) {
      if (root(c) == c) (is_wide(groups_[c], least) ? wide : local).push_back(c);
    }
    const auto place = [&](std::uint32_t c) {
      const AtomGroup& k = groups_[c];
      return std::tuple(k.first + k.last, k.level, c);
    };
    std::sort(local.begin(), local.end(),
              [&](std::uint32_t a, std::uint32_t b) { return place(a) < place(b); });
    set_of_.assign(groups_.size(), kNoId);
    std::uint32_t best = least;
    std::uint64_t fewest = UINT64_MAX;
    const std::uint32_t step = std::max(1U, least / unit / 32) * unit;
    for (std::uint32_t sets = least; sets <= 2 * least && fewest > 0; sets += step) {
      cut(local, sets);
      const std::uint64_t links = links_cut();
      if (links >= fewest) continue;
      fewest = links;
      best = sets;
    }
    cut(local, best);
    cut(wide, best);
    return describe(best);
  }

 private:
  std::uint32_t root(std::uint32_t c) {
    while (parent_[c] != c) c = parent_[c] = parent_[parent_[c]];
    return c;
  }
  std::uint32_t near_end(PortId id) { return root(graph_.node(graph_.port(id).node).atom); }
  std::uint32_t far_end(PortId id) { return near_end(id ^ 1U); }

  // Numbers the hosts in the order of their atoms, which is that of their host numbers.
  void find_hosts() {
    for (NodeId id = 0; id < graph_.node_count(); ++id) {
      if (graph_.node(id).kind != NodeKind::gpu && graph_.node(id).kind != NodeKind::nic) continue;
      AtomGroup& c = groups_[root(graph_.node(id).atom)];
      if (c.level == 0) continue;
      c = {c.ports, 0, hosts_, hosts_};
      ++hosts_;
    }
  }

  // Assigns hosts to the groups one link above `level`: those below them. Returns false if there is no such
  // group.
  bool climb(std::uint32_t level) {
    bool any = false;
    for (PortId id = 0; id < graph_.port_count(); ++id) {
      const AtomGroup& below = groups_[near_end(id)];
      AtomGroup& above = groups_[far_end(id)];
      if (below.level != level || above.level <= level) continue;
      above.level = level + 1;
      above.first = std::min(above.first, below.first);
      above.last = std::max(above.last, below.last);
      any = true;
    }
    return any;
  }

  // Returns whether the hosts below a switch belong to several sets, as in the upper tiers of a large
  // network. Such switches are divided among all sets.
  bool is_wide(const AtomGroup& c, std::uint32_t sets) const {
    if (c.level == kNoId) return true;
    return c.level > 0 && (c.last - c.first + std::uint64_t{1}) * sets > hosts_;
  }

  std::uint64_t weight(const std::vector<std::uint32_t>& groups) const {
    std::uint64_t sum = 0;
    for (const std::uint32_t c : groups) sum += groups_[c].ports;
    return sum;
  }

  // Cuts the sequence of groups into `parts` of about equal weight.
  void cut(const std::vector<std::uint32_t>& line, std::uint32_t parts) {
    const std::uint64_t total = std::max<std::uint64_t>(weight(line), 1);
    std::uint64_t before = 0;
    for (const std::uint32_t c : line) {
      const std::uint64_t middle = before + groups_[c].ports / 2;
      set_of_[c] = static_cast<std::uint32_t>(std::min<std::uint64_t>(middle * parts / total, parts - 1));
      before += groups_[c].ports;
    }
  }
  std::uint64_t links_cut() {
    std::uint64_t links = 0;
    for (PortId id = 0; id < graph_.port_count(); id += 2) {
      const std::uint32_t a = set_of_[near_end(id)], b = set_of_[far_end(id)];
      if (a != b && a != kNoId && b != kNoId) ++links;
    }
    return links;
  }

  // Numbers the sets and computes their lookaheads. Sets without atoms are dropped.
  Partition describe(std::uint32_t sets_cut) {
    std::vector<std::uint32_t> number(sets_cut, kNoId);
    Partition p;
    p.sets = 0;
    for (NodeId id = 0; id < graph_.node_count(); ++id) {
      std::uint32_t& n = number[set_of_[root(graph_.node(id).atom)]];
      if (n == kNoId) n = p.sets++;
      p.set_of_node.push_back(n);
    }
    if (p.sets <= 1) return {};
    const std::uint32_t sets = p.sets;
    p.lookahead.assign(std::size_t{sets} * sets, kNever);
    for (PortId id = 0; id < graph_.port_count(); ++id) {
      const PortSpec& port = graph_.port(id);
      Time& least = p.lookahead[std::size_t{p.set_of(port.node)} * sets + p.set_of(port.peer_node)];
      least = std::min(least, port.link.delay);
    }
    return p;
  }

  const Graph& graph_;
  std::vector<std::uint32_t> parent_;  // union-find forest of the atoms that share a set
  std::vector<AtomGroup> groups_;      // by the atom that represents the group
  std::vector<std::uint32_t> set_of_;  // by the atom that represents the group
  std::uint32_t hosts_ = 0;
};

}  // namespace

const Parameters<EngineParameters>& engine_parameters() {
  using P = EngineParameters;
  static const auto parameters =
      Parameters<P>().integer("sets", &P::sets, {0, kMostSets},
                              "logical processes: sets of hosts and switches with an event queue each, for "
                              "caches and threads; 0: computed. The results do not depend on it");
  return parameters;
}

Partition partition(const Graph& graph, std::uint32_t threads, std::uint32_t sets) {
  const auto caches = static_cast<std::uint32_t>(graph.port_count() / kPortsPerSet);
  const std::uint32_t least =
      std::min(kMostSets, sets != 0 ? sets : std::max(caches, threads > 1 ? kSetsPerThread * threads : 1));
  if (least <= 1 || graph.atom_count() <= 1) return {};
  return Partitioner(graph).divide(
      std::min<std::uint32_t>(least, static_cast<std::uint32_t>(graph.atom_count())),
      sets != 0 ? 1 : threads);
}

}  // namespace netsim
