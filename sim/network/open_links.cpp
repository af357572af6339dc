#include "sim/network/open_links.h"

#include <algorithm>

namespace netsim {

bool OpenLinks::is_new(std::vector<std::uint32_t>& seen, std::size_t index) const {
  if (seen[index] == search_) return false;
  seen[index] = search_;
  return true;
}

std::span<const PortId> OpenLinks::toward(PortId entry, NodeId nic) {
  const Graph& graph = state_.graph;
  if (seen_nodes_.empty()) {
    seen_nodes_.resize(graph.node_count());
    seen_ports_.resize(graph.port_count());
    seen_hops_.resize(graph.port_count() * state_.channels);
  }
  ++search_;
  ports_.clear();
  queue_.assign(1, {entry, 0});
  // If hops do not depend on how a packet arrived, each switch is examined once.
  const bool by_node = state_.channels == 1 ||
                       (state_.adaptive_channel != kNoId && state_.routes->adaptive_channel() != kNoId);
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    const Hop came = queue_[i];
    const NodeId at = graph.port(came.port).peer_node;
    if (at == nic || (by_node && !is_new(seen_nodes_, at))) continue;
    add_hops(by_node ? Hop{} : came, at, nic);
    for (const Hop& hop : hops_) {
      if (is_new(seen_ports_, hop.port)) ports_.push_back(hop.port);
      if (is_new(seen_hops_, hop.port * std::size_t{state_.channels} + hop.channel)) queue_.push_back(hop);
    }
  }
  return ports_;
}

// Fills hops_ with the hops that PacketForwarding::choose() may choose from.
void OpenLinks::add_hops(const Hop& came, NodeId at, NodeId nic) {
  hops_.clear();
  if (state_.channels == 1) {
    for (const PortId port : state_.routes->next_hops(at, nic)) hops_.push_back({port, 0});
    return;
  }
  const Waypoint packet{.at = at, .came = came, .destination = nic};
  if (state_.adaptive_channel != kNoId) state_.routes->add_adaptive_hops(packet, hops_);
  state_.routes->add_hops(packet, hops_);
  for (Hop& hop : hops_) hop.channel = std::min(hop.channel, state_.channels - 1);
}

}  // namespace netsim
