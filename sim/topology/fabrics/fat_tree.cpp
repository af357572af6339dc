// fat_tree: the three-tier k-ary fat tree (Al-Fares, Loukissas, Vahdat, SIGCOMM 2008): k pods of k/2 edge and
// k/2 aggregation switches, (k/2)^2 cores; next hops by arithmetic.
//
// Host ports are numbered edge by edge: NIC i is at edge i / ports_per_edge, and pods follow one another, so
// NICs with near numbers share an edge, then a pod. Aggregation switch j of every pod is joined to cores j
// k/2 .. j k/2 + k/2 - 1.
#include <algorithm>
#include <string>
#include <utility>

#include "sim/core/registry.h"
#include "sim/topology/ethernet.h"
#include "sim/topology/topology.h"

namespace netsim {

namespace {

struct FatTreeParameters : EthernetParameters {
  std::int64_t k = 8;
  double oversubscription = 1;
  BitRate uplink_rate = 0;
};

const Parameters<FatTreeParameters>& parameters() {
  using P = FatTreeParameters;
  static const auto p = with_ethernet(
      Parameters<P>()
          .integer("k", &P::k, {2, 128}, "ports of a switch without oversubscription; even")
          .real(
              "oversubscription", &P::oversubscription, {1, 64},
              "host ports of an edge switch over its k/2 uplinks, by number; k/2 times it must be an integer")
          .rate("uplink_rate", &P::uplink_rate, {0, kLinkRates.maximum},
                "rate of the links between switches; 0: the same as rate"));
  return p;
}

// Sizes of the tree. half = k/2: uplinks of an edge, edges and aggregation switches of a pod, cores of a
// group.
struct Shape {
  std::uint32_t pods;
  std::uint32_t half;
  std::uint32_t ports_per_edge;

  std::uint32_t edges() const { return pods * half; }
  std::uint32_t cores() const { return half * half; }
  std::uint32_t host_ports() const { return edges() * ports_per_edge; }
};

class FatTreeRoutes final : public Routes {
 public:
  // The tree's switches are the nodes from first_switch on: edges, aggregation switches, cores.
  FatTreeRoutes(const Graph& graph, const Shape& shape, NodeId first_switch, std::span<const HostPort> nics)
      : shape_(shape),
        first_edge_(first_switch),
        first_aggregation_(first_edge_ + shape.edges()),
        first_core_(first_aggregation_ + shape.edges()),
        host_port_(first_switch, kNoId) {
    for (NodeId id = 0; id < graph.node_count(); ++id) ports_.push_back(graph.ports_of(id));
    for (std::uint32_t i = 0; i < nics.size(); ++i) host_port_[nics[i].nic] = i;
  }

  std::span<const PortId> next_hops(NodeId at, NodeId destination) const override {
    const std::span<const PortId> ports = ports_[at];
    const std::uint32_t host_port = host_port_[destination];
    const std::uint32_t edge = host_port / shape_.ports_per_edge;
    if (at >= first_core_) return ports.subspan(edge / shape_.half, 1);
    if (at >= first_aggregation_) {
      const bool in_pod = (at - first_aggregation_) / shape_.half == edge / shape_.half;
      return in_pod ? ports.subspan(edge % shape_.half, 1) : ports.last(shape_.half);
    }
    if (at >= first_edge_) {
      const bool here = at - first_edge_ == edge;
      return here ? ports.subspan(host_port % shape_.ports_per_edge, 1) : ports.last(shape_.half);
    }
    return ports.last(1);  // a NIC: the fabric's link was added last
  }
  const char* free_of_circles() const override { return "packets go up, then down"; }

 private:
  Shape shape_;
  NodeId first_edge_, first_aggregation_, first_core_;
  std::vector<std::uint32_t> host_port_;        // by node
  std::vector<std::span<const PortId>> ports_;  // by node: the graph's own lists, which stay where they are
};

class FatTree final : public Topology {
 public:
  FatTree(const FatTreeParameters& p, const Shape& shape)
      : shape_(shape), host_link_(p.link()), uplink_(p.link(p.uplink_rate == 0 ? p.rate : p.uplink_rate)) {}

  std::uint32_t host_ports() const override { return shape_.host_ports(); }

  std::unique_ptr<Routes> build(Graph& graph, std::span<const HostPort> nics) const override {
    const NodeId first_switch = static_cast<NodeId>(graph.node_count());
    const NodeId edges = add_tier(graph, "edge", shape_.edges(), 0);
    const NodeId aggregations = add_tier(graph, "agg", shape_.edges(), 1);
    const NodeId cores = add_tier(graph, "core", shape_.cores(), 2);
    for (std::uint32_t i = 0; i < nics.size(); ++i) {
      graph.add_link(edges + i / shape_.ports_per_edge, nics[i].nic, host_link_);
    }
    for (std::uint32_t pod = 0; pod < shape_.pods; ++pod) {
      join_pod(graph, edges + pod * shape_.half, aggregations + pod * shape_.half, cores);
    }
    return std::make_unique<FatTreeRoutes>(graph, shape_, first_switch, nics);
  }

 private:
  static NodeId add_tier(Graph& graph, const std::string& name, std::uint32_t count, int tier) {
    const NodeId first = static_cast<NodeId>(graph.node_count());
    for (std::uint32_t i = 0; i < count; ++i) {
      graph.add_node(NodeKind::fabric_switch, graph.add_atom(), name + std::to_string(i), tier);
    }
    return first;
  }

  // The order of the links is what the arithmetic of FatTreeRoutes relies on: every switch has its links
  // downward first, in the order of what they lead to, then those upward.
  void join_pod(Graph& graph, NodeId edges, NodeId aggregations, NodeId cores) const {
    const std::uint32_t half = shape_.half;
    for (std::uint32_t edge = 0; edge < half; ++edge) {
      for (std::uint32_t j = 0; j < half; ++j) graph.add_link(edges + edge, aggregations + j, uplink_);
    }
    for (std::uint32_t j = 0; j < half; ++j) {
      for (std::uint32_t i = 0; i < half; ++i)
        graph.add_link(aggregations + j, cores + j * half + i, uplink_);
    }
  }

  Shape shape_;
  LinkSpec host_link_, uplink_;
};

// The entry `key` where the user wrote it, else the section: the place of an error about it.
const ConfigNode& entry_or_self(const ConfigNode& node, const char* key) {
  const ConfigNode* entry = node.find(key);
  return entry != nullptr ? *entry : node;
}

std::uint32_t ports_per_edge(const FatTreeParameters& p, const ConfigNode& where) {
  const double exact = p.oversubscription * static_cast<double>(p.k / 2);
  const auto rounded = static_cast<std::int64_t>(exact + 0.5);
  const double error = exact - static_cast<double>(rounded);
  if (error > 1e-6 || error < -1e-6) {
    entry_or_self(where, "oversubscription")
        .fail("oversubscription " + format_real(p.oversubscription) + " gives " + format_real(exact) +
              " host ports per edge switch with k = " + std::to_string(p.k) + "; it must be n / " +
              std::to_string(p.k / 2) + " with an integer n");
  }
  return static_cast<std::uint32_t>(rounded);
}

Shape shape_of(const FatTreeParameters& p, const ConfigNode& where) {
  if (p.k % 2 != 0) entry_or_self(where, "k").fail("k is " + std::to_string(p.k) + "; it must be even");
  if (p.uplink_rate != 0 && p.uplink_rate < kLinkRates.minimum) {
    entry_or_self(where, "uplink_rate")
        .fail("uplink_rate is " + format_rate(p.uplink_rate) +
              "; allowed: 0 (the same as rate) or at least " + format_rate(kLinkRates.minimum));
  }
  const Shape shape{static_cast<std::uint32_t>(p.k), static_cast<std::uint32_t>(p.k / 2),
                    ports_per_edge(p, where)};
  const std::int64_t host_ports = std::int64_t{shape.edges()} * shape.ports_per_edge;
  if (host_ports > kMaxHostPorts) {
    where.fail("a fat tree of " + std::to_string(host_ports) + " host ports; at most " +
               std::to_string(kMaxHostPorts) + " are allowed");
  }
  return shape;
}

const Registration<Topology> kRegistration{"fat_tree",
                                           "three-tier k-ary fat tree: k^3/4 host ports times the "
                                           "oversubscription, full bisection bandwidth without it",
                                           parameters(),
                                           [](const FatTreeParameters& p, const ConfigNode& where) {
                                             return std::make_unique<FatTree>(p, shape_of(p, where));
                                           }};

}  // namespace

}  // namespace netsim
