#include "sim/scheduling/flow/rules/fastpass.h"

#include <algorithm>
#include <numeric>

#include "sim/core/index.h"

namespace netsim {
namespace {

// EdgeColouring: colours the edges of a bipartite multigraph one after the other. Where no colour is free at
// both ends, a path of two colours is exchanged so that one becomes free.
class EdgeColouring {
 public:
  using Edges = std::span<const std::pair<std::uint32_t, std::uint32_t>>;

  EdgeColouring(Edges edges, std::uint32_t nodes)
      : edges_(edges), nodes_(nodes), colours_(largest_degree()), colour_(edges.size(), kNoIndex) {
    edge_at_.assign(std::size_t{2} * nodes * colours_, kNoIndex);
  }

  std::vector<std::uint32_t> run() {
    for (std::uint32_t edge = 0; edge < edges_.size(); ++edge) {
      const std::uint32_t left = edges_[edge].first, right = nodes_ + edges_[edge].second;
      const std::uint32_t at_left = free_colour(left), at_right = free_colour(right);
      if (at_left != at_right) exchange_from(right, at_left, at_right);
      set(edge, at_left);
    }
    return colour_;
  }

 private:
  std::uint32_t largest_degree() const {
    std::vector<std::uint32_t> degree(std::size_t{2} * nodes_, 0);
    std::uint32_t largest = 0;
    for (const auto& [left, right] : edges_) {
      largest = std::max(largest, ++degree[left]);
      largest = std::max(largest, ++degree[nodes_ + right]);
    }
    return largest;
  }

  std::uint32_t& edge_at(std::uint32_t node, std::uint32_t colour) {
    return edge_at_[std::size_t{node} * colours_ + colour];
  }

  std::uint32_t free_colour(std::uint32_t node) {
    std::uint32_t colour = 0;
    while (edge_at(node, colour) != kNoIndex) ++colour;
    return colour;
  }

  void set(std::uint32_t edge, std::uint32_t colour) {
    colour_[edge] = colour;
    edge_at(edges_[edge].first, colour) = edge;
    edge_at(nodes_ + edges_[edge].second, colour) = edge;
  }

  // Exchanges the two colours along the path from `node` whose first edge has colour `taken`. The path cannot
  // come to the other end of the new edge, because it comes to nodes of that side by edges of colour `taken`.
  void exchange_from(std::uint32_t node, std::uint32_t taken, std::uint32_t free) {
    path_.clear();
    for (std::uint32_t edge = edge_at(node, taken), next = free; edge != kNoIndex;
         edge = edge_at(node, next), next = next == taken ? free : taken) {
      path_.push_back(edge);
      const std::uint32_t left = edges_[edge].first, right = nodes_ + edges_[edge].second;
      node = node == left ? right : left;
    }
    for (const std::uint32_t edge : path_) {
      edge_at(edges_[edge].first, colour_[edge]) = kNoIndex;
      edge_at(nodes_ + edges_[edge].second, colour_[edge]) = kNoIndex;
    }
    for (const std::uint32_t edge : path_) set(edge, colour_[edge] == taken ? free : taken);
  }

  Edges edges_;
  std::uint32_t nodes_, colours_;
  std::vector<std::uint32_t> colour_;   // by edge
  std::vector<std::uint32_t> edge_at_;  // by node and colour; right nodes come after left ones
  std::vector<std::uint32_t> path_;
};

using NodePairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

}  // namespace

std::vector<std::uint32_t> asked_in_order(std::span<const SlotDemand> demands, SlotOrder order) {
  std::vector<std::uint32_t> asked(demands.size());
  std::iota(asked.begin(), asked.end(), 0U);
  std::stable_sort(asked.begin(), asked.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (order == SlotOrder::fewest_left) return demands[a].slots < demands[b].slots;
    return demands[a].last_slot < demands[b].last_slot;
  });
  return asked;
}

std::vector<std::uint32_t> maximal_matching(std::span<const SlotDemand> demands, std::uint32_t interfaces,
                                            SlotOrder order) {
  std::vector<bool> sends(interfaces, false), receives(interfaces, false);
  std::vector<std::uint32_t> served;
  for (const std::uint32_t asked : asked_in_order(demands, order)) {
    const SlotDemand& demand = demands[asked];
    if (demand.slots == 0 || sends[demand.source] || receives[demand.destination]) continue;
    sends[demand.source] = receives[demand.destination] = true;
    served.push_back(asked);
  }
  return served;
}

std::vector<std::vector<std::uint32_t>> allocate_slots(std::span<SlotDemand> demands,
                                                       std::uint32_t interfaces, std::uint64_t slot,
                                                       std::uint64_t count, SlotOrder order) {
  std::vector<std::vector<std::uint32_t>> slots;
  for (const std::uint64_t end = slot + count; slot < end; ++slot) {
    slots.push_back(maximal_matching(demands, interfaces, order));
    for (const std::uint32_t served : slots.back()) {
      --demands[served].slots;
      demands[served].last_slot = slot;
    }
  }
  return slots;
}

std::vector<std::uint32_t> edge_colours(std::span<const std::pair<std::uint32_t, std::uint32_t>> edges,
                                        std::uint32_t nodes) {
  return EdgeColouring(edges, nodes).run();
}

std::vector<ClosPath> clos_paths(std::span<const std::pair<std::uint32_t, std::uint32_t>> packets,
                                 std::span<const std::uint32_t> pod_of) {
  std::vector<ClosPath> paths(packets.size());
  std::vector<std::uint32_t> leaving;  // packets that leave their rack
  NodePairs racks;
  for (std::uint32_t packet = 0; packet < packets.size(); ++packet) {
    if (packets[packet].first == packets[packet].second) continue;
    leaving.push_back(packet);
    racks.push_back(packets[packet]);
  }
  const std::vector<std::uint32_t> uplinks = edge_colours(racks, static_cast<std::uint32_t>(pod_of.size()));
  std::vector<NodePairs> pods;  // by uplink of the rack: the packets that leave their pod
  std::vector<std::vector<std::uint32_t>> crossing;
  for (std::size_t i = 0; i < leaving.size(); ++i) {
    paths[leaving[i]].aggregation = uplinks[i];
    const std::uint32_t from = pod_of[racks[i].first], to = pod_of[racks[i].second];
    if (from == to) continue;
    if (pods.size() <= uplinks[i]) {
      pods.resize(uplinks[i] + 1);
      crossing.resize(uplinks[i] + 1);
    }
    pods[uplinks[i]].emplace_back(from, to);
    crossing[uplinks[i]].push_back(leaving[i]);
  }
  for (std::size_t uplink = 0; uplink < pods.size(); ++uplink) {
    const auto cores = edge_colours(pods[uplink], static_cast<std::uint32_t>(pod_of.size()));
    for (std::size_t i = 0; i < cores.size(); ++i) paths[crossing[uplink][i]].core = cores[i];
  }
  return paths;
}

}  // namespace netsim
