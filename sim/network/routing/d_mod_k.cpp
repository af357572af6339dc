// Destination-based routing, as in InfiniBand's linear forwarding tables. At each switch all packets to a NIC
// leave by one port, whatever their flow, and the NICs take the equal ports in turn.
//
// In a fat tree this is D-Mod-K. It was published by Zahavi ("D-Mod-K Routing Providing Non-Blocking Traffic
// for Shift Permutations on Real Life Fat Trees", Technion CCIT report 776, 2010). OpenSM's engine `ftree`
// gives the same by counting.
//
// Destinations are numbered leaf by leaf. NIC d goes up from a switch by port floor(d / s) mod u. Here u is
// the number of switches above it, and s is the product of these numbers on the way from the hosts to it.
//
// So the flows of a ring or shift never share a link in a tree without oversubscription, nor on rails. In
// other fabrics every switch that has hosts has s = 1, and shortest ways are shared out by the destination
// too.
#include <algorithm>
#include <vector>

#include "sim/core/registry.h"
#include "sim/network/policies.h"
#include "sim/topology/graph.h"

namespace netsim {
namespace {

bool in_fabric(const Node& node) {
  return node.kind == NodeKind::nic || node.kind == NodeKind::fabric_switch;
}

// Computes the numbers and strides of D-Mod-K for every NIC and fabric switch of a graph. Networks that are
// not joined are numbered separately, so that they do not affect each other.
class FabricOrder {
 public:
  explicit FabricOrder(const Graph& graph)
      : graph_(graph),
        levels_(graph.node_count(), kNoId),
        numbers_(graph.node_count(), kNoId),
        strides_(graph.node_count(), 1) {
    std::vector<NodeId> nics;
    for (NodeId id = 0; id < graph.node_count(); ++id) {
      if (graph.node(id).kind == NodeKind::nic) nics.push_back(id);
    }
    const std::vector<NodeId> upward = find_levels(std::move(nics));
    for (const NodeId node : upward) strides_[node] = stride_at(node);
    number_networks();
  }

  std::vector<std::uint32_t> take_numbers() { return std::move(numbers_); }
  std::vector<std::uint64_t> take_strides() { return std::move(strides_); }

 private:
  template <class Visit>
  void for_neighbours(NodeId node, Visit visit) const {
    for (const PortId port : graph_.ports_of(node)) {
      const NodeId peer = graph_.port(port).peer_node;
      if (in_fabric(graph_.node(peer))) visit(peer);
    }
  }

  // Sets the level of each node, its distance from the nearest NIC. Returns all nodes, from the NICs upward.
  std::vector<NodeId> find_levels(std::vector<NodeId> nodes) {
    for (const NodeId nic : nodes) levels_[nic] = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::uint32_t next = levels_[nodes[i]] + 1;
      for_neighbours(nodes[i], [&](NodeId peer) {
        if (levels_[peer] != kNoId) return;
        levels_[peer] = next;
        nodes.push_back(peer);
      });
    }
    return nodes;
  }

  std::uint64_t stride_at(NodeId node) const {
    std::uint64_t stride = 1;
    for_neighbours(node, [&](NodeId below) {
      if (levels_[below] < levels_[node]) stride = std::max(stride, strides_[below] * switches_above(below));
    });
    return stride;
  }

  std::uint64_t switches_above(NodeId node) const {
    std::vector<NodeId> above;
    for_neighbours(node, [&](NodeId peer) {
      if (levels_[peer] > levels_[node]) above.push_back(peer);
    });
    std::sort(above.begin(), above.end());
    return static_cast<std::uint64_t>(std::unique(above.begin(), above.end()) - above.begin());
  }

  // Numbers the NICs of each network from 0, leaf by leaf.
  void number_networks() {
    std::vector<bool> seen(graph_.node_count());
    for (NodeId id = 0; id < graph_.node_count(); ++id) {
      if (levels_[id] == kNoId || seen[id]) continue;
      std::vector<NodeId> network{id};
      seen[id] = true;
      for (std::size_t i = 0; i < network.size(); ++i) {
        for_neighbours(network[i], [&](NodeId peer) {
          if (!seen[peer]) network.push_back(peer);
          seen[peer] = true;
        });
      }
      std::sort(network.begin(), network.end());
      number(network);
    }
  }

  void number(const std::vector<NodeId>& network) {
    std::uint32_t next = 0;
    for (const NodeId leaf : network) {
      if (levels_[leaf] != 1) continue;
      for_neighbours(leaf, [&](NodeId peer) {
        if (levels_[peer] == 0 && numbers_[peer] == kNoId) numbers_[peer] = next++;
      });
    }
  }

  const Graph& graph_;
  // By node. kNoId: not part of a fabric (levels_), or no NIC (numbers_).
  std::vector<std::uint32_t> levels_, numbers_;
  std::vector<std::uint64_t> strides_;
};

class DModK final : public RoutingPolicy {
 public:
  void prepare(const Graph& graph) override {
    graph_ = &graph;
    FabricOrder order(graph);
    numbers_ = order.take_numbers();
    strides_ = order.take_strides();
  }

  // Takes the next switches in turn, then the links to the chosen switch in turn.
  std::uint32_t choose(const Branch& branch) const override {
    const std::span<const PortId> ports = branch.ports;
    const std::uint64_t turn = numbers_[branch.destination] / strides_[branch.at];
    const auto is_first_to_peer = [&](std::uint64_t i) {
      return std::none_of(ports.begin(), ports.begin() + static_cast<std::ptrdiff_t>(i),
                          [&](PortId port) { return peer(port) == peer(ports[i]); });
    };
    const std::uint64_t switches = count(ports, is_first_to_peer);
    const NodeId next = peer(ports[nth(is_first_to_peer, turn % switches)]);
    const auto leads_there = [&](std::uint64_t i) { return peer(ports[i]) == next; };
    return static_cast<std::uint32_t>(nth(leads_there, turn / switches % count(ports, leads_there)));
  }

 private:
  NodeId peer(PortId port) const { return graph_->port(port).peer_node; }
  template <class Is>
  static std::uint64_t count(std::span<const PortId> ports, Is is) {
    std::uint64_t found = 0;
    for (std::uint64_t i = 0; i < ports.size(); ++i) found += is(i) ? 1 : 0;
    return found;
  }
  // Returns the n-th index, counted from 0, for which `is` holds. There must be more than `n`.
  template <class Is>
  static std::uint64_t nth(Is is, std::uint64_t n) {
    std::uint64_t i = 0;
    for (; n > 0 || !is(i); ++i) n -= is(i) ? 1 : 0;
    return i;
  }

  const Graph* graph_ = nullptr;
  std::vector<std::uint32_t> numbers_;  // number of each NIC, by node
  std::vector<std::uint64_t> strides_;  // stride of each switch, by node
};

const Registration<RoutingPolicy> kDModK{
    "d_mod_k",
    "all packets to a NIC leave a switch by one port, the NICs in turn, as in InfiniBand's forwarding tables "
    "for fat trees",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<DModK>(); }};

}  // namespace
}  // namespace netsim
