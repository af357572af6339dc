#include "sim/topology/aggregation_tree.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/topology/host_routes.h"

namespace netsim {
namespace {

bool is_link_up(const std::vector<bool>& down, PortId port) { return !down[port] && !down[port ^ 1U]; }

class TreeBuilder {
 public:
  TreeBuilder(const Graph& graph, std::span<const NodeId> nics, const std::vector<bool>& down,
              const std::function<bool(NodeId)>& can_reduce, std::uint32_t number, bool passes)
      : graph_(graph),
        nics_(nics),
        down_(down),
        number_(number),
        adds_up_(graph.node_count()),
        usable_(graph.node_count()),
        boxes_(graph.node_count()) {
    for (NodeId node = 0; node < graph.node_count(); ++node) {
      adds_up_[node] = is_switch(graph, node) && can_reduce(node);
      usable_[node] = adds_up_[node] || (passes && is_switch(graph, node));
    }
    for (NodeId node = 0; node < graph.node_count(); ++node) attach_box(node);
    for (NodeId node = 0; node < graph.node_count(); ++node) {
      if (!boxes_[node].empty()) adds_up_[node] = usable_[node] = true;
    }
  }

  // `root` is as in aggregation_tree().
  AggregationTree build(NodeId root) {
    for (const NodeId nic : nics_) {
      if (!join(nic)) return std::move(tree_);
    }
    if (root == kNoId) {
      root = find_root();
    } else if (!reaches_leaves(root)) {
      root = kNoId;
    }
    if (root == kNoId) {
      tree_.refused = "no switches that add up join " + graph_.node(nics_.front()).name + " with all others";
      return std::move(tree_);
    }
    hang(root);
    return std::move(tree_);
  }

 private:
  bool is_up(PortId port) const { return is_link_up(down_, port); }
  PortId of_turn(const std::vector<PortId>& ports) const { return ports[number_ % ports.size()]; }

  // Notes a box at its switch, if the node is one. It is no switch of the tree then, as it leads nowhere.
  void attach_box(NodeId node) {
    const auto ports = graph_.ports_of(node);
    if (!adds_up_[node] || ports.size() != 1) return;
    const PortId to_box = ports[0] ^ 1U;
    const NodeId owner = graph_.port(to_box).node;
    if (!is_switch(graph_, owner) || graph_.node(owner).atom == graph_.node(node).atom) return;
    if (adds_up_[owner]) return;
    adds_up_[node] = usable_[node] = false;
    if (is_up(to_box)) boxes_[owner].push_back(to_box);
  }

  // Selects the NIC's port into the fabric. Returns false, and sets the reason, where it has none that can be
  // used.
  bool join(NodeId nic) {
    const PortId port = port_into_tree(graph_, nic, down_, number_);
    if (port == kNoId) return refuse("no link of " + graph_.node(nic).name + " to a switch is up");
    const Node& leaf = graph_.node(graph_.port(port).peer_node);
    if (leaf.atom == graph_.node(nic).atom) {
      return refuse(leaf.name + " is a part of the host of " + graph_.node(nic).name +
                    ": the fabric joins hosts directly, without switches that could add up");
    }
    if (!usable_[graph_.port(port).peer_node])
      return refuse(leaf.name + " does not add up (network.switch.aggregation)");
    tree_.nic_ports.push_back(port);
    leaves_.push_back(graph_.port(port).peer_node);
    return true;
  }
  bool refuse(std::string why) {
    tree_.refused = std::move(why);
    return false;
  }

  // Returns the number of links from a switch to each other one, over switches of the tree.
  std::vector<std::uint32_t> distances(NodeId from) const {
    std::vector<std::uint32_t> links(graph_.node_count(), kNoId);
    std::vector<NodeId> reached{from};
    links[from] = 0;
    for (std::size_t next = 0; next < reached.size(); ++next) {
      const NodeId at = reached[next];
      for (const PortId port : graph_.ports_of(at)) {
        const NodeId there = graph_.port(port).peer_node;
        if (links[there] != kNoId || !usable_[there] || !is_up(port)) continue;
        links[there] = links[at] + 1;
        reached.push_back(there);
      }
    }
    return links;
  }

  bool reaches_leaves(NodeId root) const {
    const std::vector<std::uint32_t> links = distances(root);
    return std::all_of(leaves_.begin(), leaves_.end(), [&](NodeId leaf) { return links[leaf] != kNoId; });
  }

  NodeId find_root() const {
    std::vector<NodeId> leaves = leaves_;
    std::sort(leaves.begin(), leaves.end());
    leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());
    std::vector<std::uint32_t> farthest(graph_.node_count(), 0);
    std::vector<std::uint64_t> together(graph_.node_count(), 0);
    for (const NodeId leaf : leaves) {
      const std::vector<std::uint32_t> links = distances(leaf);
      for (NodeId node = 0; node < links.size(); ++node) {
        farthest[node] = std::max(farthest[node], links[node]);
        together[node] += links[node];
      }
    }
    std::vector<NodeId> nearest;
    for (NodeId node = 0; node < farthest.size(); ++node) {
      if (farthest[node] == kNoId || !adds_up_[node]) continue;
      const auto length = [&](NodeId of) { return std::tuple(farthest[of], together[of]); };
      if (!nearest.empty() && length(node) > length(nearest.front())) continue;
      if (!nearest.empty() && length(node) < length(nearest.front())) nearest.clear();
      nearest.push_back(node);
    }
    return nearest.empty() ? kNoId : nearest[number_ % nearest.size()];
  }

  // Adds the switches on the routes from each NIC's switch up to the root, then numbers them.
  void hang(NodeId root) {
    const std::vector<std::uint32_t> links = distances(root);
    std::vector<PortId> up(graph_.node_count(), kNoId);
    std::vector<NodeId> in_tree{root};
    for (const NodeId leaf : leaves_) {
      for (NodeId at = leaf; at != root && up[at] == kNoId; at = graph_.port(up[at]).peer_node) {
        up[at] = towards(links, at);
        in_tree.push_back(at);
      }
    }
    std::sort(in_tree.begin(), in_tree.end(),
              [&](NodeId a, NodeId b) { return std::tuple(links[a], a) < std::tuple(links[b], b); });
    std::vector<std::uint32_t> number(graph_.node_count(), kNoId);
    for (const NodeId node : in_tree) {
      AggregationTree::Switch one;
      one.node = node;
      one.up = up[node];
      one.reduces = adds_up_[node];
      if (node != root) {
        one.parent = number[graph_.port(one.up).peer_node];
        tree_.switches[one.parent].down.push_back(one.up ^ 1U);
      }
      number[node] = static_cast<std::uint32_t>(tree_.switches.size());
      tree_.switches.push_back(std::move(one));
    }
    for (std::size_t i = 0; i < nics_.size(); ++i) {
      tree_.leaf.push_back(number[leaves_[i]]);
      tree_.switches[tree_.leaf[i]].down.push_back(tree_.nic_ports[i] ^ 1U);
    }
    for (AggregationTree::Switch& one : tree_.switches) std::sort(one.down.begin(), one.down.end());
    if (std::any_of(in_tree.begin(), in_tree.end(), [&](NodeId node) { return !boxes_[node].empty(); }))
      lead_through_boxes();
  }
  // Puts the boxes into the tree. A switch's children come below its lower entry.
  void lead_through_boxes() {
    std::vector<AggregationTree::Switch> switches;
    std::vector<std::uint32_t> lower;  // by index before: index of the entry that its children are at
    const auto index = [&] { return static_cast<std::uint32_t>(switches.size()); };
    for (AggregationTree::Switch& one : tree_.switches) {
      if (one.parent != kNoId) one.parent = lower[one.parent];
      if (!boxes_[one.node].empty()) {
        const PortId to_box = of_turn(boxes_[one.node]);
        AggregationTree::Switch box;
        box.node = graph_.port(to_box).peer_node;
        box.down = {to_box ^ 1U};
        one.reduces = false;
        if (one.up != kNoId) {
          AggregationTree::Switch upper = one;
          upper.down = {to_box};
          box.parent = index();
          box.up = to_box ^ 1U;
          switches.push_back(std::move(upper));
        }
        one.parent = index();
        one.up = to_box;
        switches.push_back(std::move(box));
      }
      lower.push_back(index());
      switches.push_back(std::move(one));
    }
    tree_.switches = std::move(switches);
    for (std::uint32_t& leaf : tree_.leaf) leaf = lower[leaf];
  }
  PortId towards(const std::vector<std::uint32_t>& links, NodeId at) const {
    std::vector<PortId> ports;
    for (const PortId port : graph_.ports_of(at)) {
      const NodeId there = graph_.port(port).peer_node;
      if (is_up(port) && links[there] != kNoId && links[there] + 1 == links[at]) ports.push_back(port);
    }
    return of_turn(ports);
  }

  const Graph& graph_;
  std::span<const NodeId> nics_;
  const std::vector<bool>& down_;
  const std::uint32_t number_;
  std::vector<bool> adds_up_;               // by node
  std::vector<bool> usable_;                // by node: whether it may be in the tree
  std::vector<std::vector<PortId>> boxes_;  // by node: ports to its boxes
  std::vector<NodeId> leaves_;              // by NIC
  AggregationTree tree_;
};

}  // namespace

PortId port_into_tree(const Graph& graph, NodeId nic, const std::vector<bool>& down, std::uint32_t number) {
  std::vector<PortId> ports;
  for (const PortId port : graph.ports_of(nic)) {
    if (is_switch(graph, graph.port(port).peer_node) && is_link_up(down, port)) ports.push_back(port);
  }
  return ports.empty() ? kNoId : ports[number % ports.size()];
}

std::vector<PortId> AggregationTree::way_up(std::size_t nic) const {
  std::vector<PortId> ports{nic_ports[nic]};
  for (std::uint32_t at = leaf[nic]; switches[at].parent != kNoId; at = switches[at].parent)
    ports.push_back(switches[at].up);
  return ports;
}

std::vector<PortId> AggregationTree::way_down(std::size_t nic) const { return reversed(way_up(nic)); }

AggregationTree aggregation_tree(const Graph& graph, std::span<const NodeId> nics,
                                 const std::vector<bool>& down, const std::function<bool(NodeId)>& can_reduce,
                                 std::uint32_t number, bool passes, NodeId root) {
  return TreeBuilder(graph, nics, down, can_reduce, number, passes).build(root);
}

}  // namespace netsim
