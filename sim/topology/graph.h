// Graph: an immutable description of the cluster: nodes, directed ports, links. It knows neither time nor
// ranks.
//
// A link joins two nodes and is two ports, one at each end: port p transmits from its node over the link to
// peer_node; the opposite direction is port p ^ 1. Port ids are dense and stable: they index every per-port
// array.
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
// pcie: also what joins CPUs with each other and, beside PCIe, with GPUs (UPI, Infinity Fabric, NVLink-C2C).
// nvlink: also what AMD calls xGMI.
enum class LinkKind : std::uint8_t { ethernet, infiniband, pcie, nvlink };
inline constexpr int kLinkKinds = 4;
const char* to_string(LinkKind kind);

// What a switch does to the packets of a multicast or reduction besides passing them on: it copies them, or
// adds them up.
struct Combining {
  double efficiency = 0;  // part of a port's rate at which such packets go through it; 0: it does neither
  Bytes piece = 0;        // largest one, on scale-up links
};

struct Node {
  NodeKind kind;
  AtomId atom;       // a host with all that is in it, or one fabric switch (law 3)
  std::string name;  // "host3/gpu5", "edge7", "agg2", "core0"
  int tier = 0;      // fabric switches: 0 = next to the hosts, upward
  Combining combining = {};
};

struct LinkSpec {
  LinkKind kind = LinkKind::ethernet;
  BitRate rate = 100 * kGbps;
  Time delay =
      1 * kMicrosecond;      // from the end of the transmission (or its start: cut_through) to the arrival
  Bytes mtu = 4096;          // scale-up links: largest piece of a message; scale-out: transport.mtu decides
  Bytes overhead = 0;        // bytes that each packet costs on the wire beyond those it is counted with
  bool cut_through = false;  // the far end may go on `delay` after the transmission's start
  Bytes credits =
      0;  // room of the receiver's buffer for this link, by credits that it returns; 0: no credits of
          // its own (what the fabric's switches do for their links is the network's business)
};

// Where a drawing puts a node, in units of the distance of neighbours; y grows downward.
struct DrawnAt {
  double x = 0, y = 0;
};

struct PortSpec {
  NodeId node;
  NodeId peer_node;
  LinkSpec link;
};

// A switch of light (MEMS mirrors, a patch panel, a rotor): it joins the fibres of nodes two by two, without
// buffers and without looking at packets. The links that it can make, its circuits, all stand in the graph;
// those of its present configuration carry packets, the others are dark.
struct OpticalSwitch {
  struct Configuration {
    std::string name;
    std::vector<PortId> circuits;  // one port of each link, the even one; rising
  };
  std::string name;
  std::vector<Configuration> configurations;  // the first one stands at the start
  // Whether packets wait for a circuit that is dark. If not, they go by what is lit.
  bool waits = false;
};

class Graph {
 public:
  NodeId add_node(NodeKind kind, AtomId atom, const std::string& name, int tier = 0);
  AtomId add_atom() { return atoms_++; }
  void set_combining(NodeId id, const Combining& combining) { nodes_[id].combining = combining; }
  // Stands before the names of the nodes that are added from now on.
  void set_name_prefix(std::string prefix) { prefix_ = std::move(prefix); }
  // Adds a link and returns the port from `a` to `b`; the port back is the returned id ^ 1.
  PortId add_link(NodeId a, NodeId b, const LinkSpec& forward, const LinkSpec& backward);
  PortId add_link(NodeId a, NodeId b, const LinkSpec& both) { return add_link(a, b, both, both); }
  // Gives a link another rate, in both directions, before a network is made of the graph.
  void set_rate(PortId id, BitRate rate) { ports_[id].link.rate = ports_[id ^ 1U].link.rate = rate; }

  // What a node or port is called where something is drawn at random or hashed for it: its id, or where the
  // graph falls into islands its number within its island, so that no island feels that there are others.
  void set_numbers(std::vector<std::uint32_t> of_nodes, std::vector<std::uint32_t> of_ports) {
    node_numbers_ = std::move(of_nodes);
    port_numbers_ = std::move(of_ports);
  }
  std::uint32_t node_number(NodeId id) const { return node_numbers_.empty() ? id : node_numbers_[id]; }
  std::uint32_t port_number(PortId id) const { return port_numbers_.empty() ? id : port_numbers_[id]; }

  void add_optical_switch(OpticalSwitch one) { optical_.push_back(std::move(one)); }
  const std::vector<OpticalSwitch>& optical_switches() const { return optical_; }
  // By port, at the start: circuits that carry nothing, or of them only those that packets do not wait for;
  // empty: there are none.
  std::vector<bool> dark() const { return dark(false); }
  std::vector<bool> avoided() const { return dark(true); }

  // For drawings only: nodes without a place are laid out by tier, or on a circle.
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
  // Egress ports of a node in the order in which its links were added. Valid until a link is added to the
  // node, also when the graph is moved.
  std::span<const PortId> ports_of(NodeId id) const { return node_ports_[id]; }
  // "edge7->agg2"
  std::string port_name(PortId id) const;
  // Links from `from` to every node by breadth-first search (Boost.Graph); kNoId where there is no way.
  std::vector<std::uint32_t> distances(NodeId from) const;
  // The same over fabric switches and the links between them only: packets of the fabric do not pass through
  // hosts.
  std::vector<std::uint32_t> fabric_distances(NodeId from) const;

 private:
  std::vector<bool> dark(bool avoided_only) const;

  std::vector<Node> nodes_;
  std::vector<PortSpec> ports_;
  std::vector<std::vector<PortId>> node_ports_;
  AtomId atoms_ = 0;
  std::string prefix_;
  std::map<NodeId, DrawnAt> drawn_at_;
  std::vector<OpticalSwitch> optical_;
  std::vector<std::uint32_t> node_numbers_, port_numbers_;  // empty: the ids
};

inline bool is_switch(const Graph& graph, NodeId node) {
  return graph.node(node).kind == NodeKind::fabric_switch;
}

}  // namespace netsim
