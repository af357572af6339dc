// Graph: an immutable description of the cluster: nodes, directed ports and links. It holds neither the times
// of a run nor ranks.
//
// A link joins two nodes and consists of two ports, one at each end. Port p transmits from its node over the
// link to peer_node; port p ^ 1 transmits in the opposite direction. Port ids are dense and stable, so they
// index every per-port array.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/units.h"

namespace netsim {

using NodeId = std::uint32_t;
using PortId = std::uint32_t;
using AtomId = std::uint32_t;
inline constexpr std::uint32_t kNoId = UINT32_MAX;

enum class NodeKind : std::uint8_t { gpu, nic, scale_up_switch, fabric_switch, pcie_switch, cpu };
// `pcie` includes links other than PCIe between CPUs, or between a CPU and a GPU (UPI, Infinity Fabric,
// NVLink-C2C). `nvlink` includes AMD's xGMI.
enum class LinkKind : std::uint8_t { ethernet, infiniband, pcie, nvlink };
inline constexpr int kLinkKinds = 4;
const char* to_string(LinkKind kind);
// Returns whether links of the kind are cables of a packet fabric.
constexpr bool is_packet_link(LinkKind kind) {
  return kind == LinkKind::ethernet || kind == LinkKind::infiniband;
}

// The ability of a switch to process a multicast or reduction: it copies the packets of a multicast, and adds
// up those of a reduction.
struct InNetworkCapability {
  // Fraction of a port's rate at which such packets pass the switch. 0: the switch can do neither.
  double efficiency = 0;
  Bytes piece = 0;  // largest such packet on scale-up links, bytes
  // Multicast groups that the switch holds at once, for all communicators of NVLS. 0: any number.
  std::int64_t groups = 0;
};

struct Node {
  NodeKind kind;
  AtomId atom;       // a host with everything inside it, or one fabric switch (law 3)
  std::string name;  // "host3/gpu5", "edge7", "agg2", "core0"
  int tier = 0;      // fabric switches: 0 is next to the hosts, and tiers count upward
  InNetworkCapability combining = {};
  bool box = false;  // a server at a switch that adds up for it (boxes.h)
};

struct LinkSpec {
  LinkKind kind = LinkKind::ethernet;
  BitRate rate = 100 * kGbps;
  // Time from the end of the transmission to the arrival; with cut_through, from its start.
  Time delay = 1 * kMicrosecond;
  // Scale-up links: largest piece of a message, in bytes. On scale-out links transport.mtu decides.
  Bytes mtu = 4096;
  Bytes overhead = 0;        // bytes on the wire per packet, in addition to the packet's size
  bool cut_through = false;  // the peer may forward a packet `delay` after the transmission's start
  // Bytes of the receiver's buffer that are reserved for this link. The receiver returns them as credits. 0:
  // no credits belong to the link; the network model decides about flow control between fabric switches.
  Bytes credits = 0;
};

// The position of a node in a drawing, in units of the distance between neighbours; y grows downward.
struct DrawnAt {
  double x = 0, y = 0;
};

struct PortSpec {
  NodeId node;
  NodeId peer_node;
  LinkSpec link;
};

// An optical circuit switch (MEMS mirrors, a patch panel, a rotor) joins the fibres of nodes in pairs. It has
// no buffers and does not read packets. The graph holds the links of all circuits that it can make; those of
// its present configuration are up, the others are down.
struct OpticalSwitch {
  struct Configuration {
    std::string name;
    std::vector<PortId> circuits;  // the even port of each link, in ascending order
  };
  std::string name;
  std::vector<Configuration> configurations;  // the first one is set at the start
  // True: packets wait for a circuit that is down. False: they are routed over circuits that are up.
  bool waits = false;
};

class Graph {
 public:
  NodeId add_node(NodeKind kind, AtomId atom, const std::string& name, int tier = 0);
  AtomId add_atom() { return atoms_++; }
  void set_combining(NodeId id, const InNetworkCapability& combining) { nodes_[id].combining = combining; }
  // Sets the prefix of the names of all nodes that are added from now on.
  void set_name_prefix(std::string prefix) { prefix_ = std::move(prefix); }
  // Adds a link and returns the port from `a` to `b`. The port from `b` to `a` is the returned id ^ 1.
  PortId add_link(NodeId a, NodeId b, const LinkSpec& forward, const LinkSpec& backward);
  PortId add_link(NodeId a, NodeId b, const LinkSpec& both) { return add_link(a, b, both, both); }
  // Adds a switch with a single link to an existing node, in an atom of its own. Spans that ports_of() has
  // returned stay valid, without the new link. Returns the new node.
  NodeId add_box(NodeId at, const std::string& name, int tier, const LinkSpec& link);
  // Sets a link's rate in both directions. Must be called before a network is built from the graph.
  void set_rate(PortId id, BitRate rate) { ports_[id].link.rate = ports_[id ^ 1U].link.rate = rate; }

  // Sets the numbers that identify nodes and ports where a random draw or a hash depends on them. Without a
  // call the ids are used. A cluster with several islands counts within each island, so that one island's
  // draws do not depend on the others.
  void set_numbers(std::vector<std::uint32_t> of_nodes, std::vector<std::uint32_t> of_ports) {
    node_numbers_ = std::move(of_nodes);
    port_numbers_ = std::move(of_ports);
  }
  std::uint32_t node_number(NodeId id) const { return node_numbers_.empty() ? id : node_numbers_[id]; }
  std::uint32_t port_number(PortId id) const { return port_numbers_.empty() ? id : port_numbers_[id]; }

  void add_optical_switch(OpticalSwitch one) { optical_.push_back(std::move(one)); }
  const std::vector<OpticalSwitch>& optical_switches() const { return optical_; }
  // Returns, by port, true for circuits that are down at the start. avoided() leaves out those that packets
  // wait for. Both are empty without optical switches.
  std::vector<bool> circuits_down() const { return circuits_down(false); }
  std::vector<bool> avoided() const { return circuits_down(true); }

  // Sets a node's position, for drawings only. Nodes without one are drawn by tier, or on a cycle.
  void draw_at(NodeId id, DrawnAt place) { drawn_at_[id] = place; }
  const DrawnAt* drawn_at(NodeId id) const {
    const auto found = drawn_at_.find(id);
    return found != drawn_at_.end() ? &found->second : nullptr;
  }

  std::size_t node_count() const { return nodes_.size(); }
  std::size_t port_count() const { return ports_.size(); }
  std::size_t atom_count() const { return atoms_; }
  const Node& node(NodeId id) const { return nodes_[id]; }
  const PortSpec& port(PortId id) const { return ports_[id]; }
  // Returns the egress ports of a node, in the order in which its links were added. The span stays valid
  // until a link is added to the node, also when the graph is moved.
  std::span<const PortId> ports_of(NodeId id) const { return node_ports_[id]; }
  // Returns the port's name, "edge7->agg2".
  std::string port_name(PortId id) const;
  // Returns the number of links from `from` to every node, by breadth-first search (Boost.Graph). kNoId: the
  // node cannot be reached.
  std::vector<std::uint32_t> distances(NodeId from) const;
  // Returns the same over fabric switches and the links between them only, because packets of the fabric do
  // not pass through hosts.
  std::vector<std::uint32_t> fabric_distances(NodeId from) const;

 private:
  std::vector<bool> circuits_down(bool avoided_only) const;

  std::vector<Node> nodes_;
  std::vector<PortSpec> ports_;
  std::vector<std::vector<PortId>> node_ports_;
  std::vector<std::vector<PortId>> replaced_;  // former lists of nodes with boxes, which spans refer to
  AtomId atoms_ = 0;
  std::string prefix_;
  std::map<NodeId, DrawnAt> drawn_at_;
  std::vector<OpticalSwitch> optical_;
  std::vector<std::uint32_t> node_numbers_, port_numbers_;  // empty: the ids are used
};

// Returns whether the node is a switch of a fabric.
inline bool is_switch(const Graph& graph, NodeId node) {
  return graph.node(node).kind == NodeKind::fabric_switch;
}

// Returns whether any switch is a box (boxes.h).
inline bool has_boxes(const Graph& graph) {
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    if (graph.node(node).box) return true;
  }
  return false;
}

// Returns whether any NVSwitch holds a limited number of multicast groups.
inline bool limits_multicast_groups(const Graph& graph) {
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    if (graph.node(node).combining.groups > 0) return true;
  }
  return false;
}

}  // namespace netsim
