#include "sim/topology/channel_dependencies.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace netsim {
namespace {

class Dependencies {
 public:
  Dependencies(const Graph& graph, const Routes& routes, RoutingFreedom freedom, std::uint64_t effort,
               const std::vector<bool>& lossy)
      : graph_(graph), routes_(routes), freedom_(freedom), left_(effort), lossy_(lossy) {
    channels_ = routes.channels(freedom);
    next_.resize(graph.port_count() * channels_);
    seen_.resize(2 * next_.size());
    find_parts();
    find_ends();
  }

  DependencyCycle search(std::span<const std::vector<PortId>> fixed) {
    DependencyCycle result;
    result.destinations = destinations_.size();
    for (const std::vector<PortId>& path : fixed) follow_fixed(path);
    if (freedom_ == RoutingFreedom::detours) follow_detours();
    for (const std::size_t i : spread(destinations_.size())) {
      if (result.followed > 0 && left_ == 0) break;
      follow_straight(destinations_[i]);
      if (freedom_ == RoutingFreedom::adaptive && routes_.adaptive_channel() != kNoId)
        follow_escapes(destinations_[i]);
      ++result.followed;
    }
    result.hops = cycle();
    return result;
  }

 private:
  bool is_switch(NodeId node) const { return netsim::is_switch(graph_, node); }
  bool is_lossy(PortId port) const { return !lossy_.empty() && lossy_[port]; }
  std::size_t vertex(const Hop& hop) const { return std::size_t{hop.port} * channels_ + hop.channel; }
  Hop hop_of(std::size_t vertex) const {
    return {static_cast<PortId>(vertex / channels_), static_cast<std::uint32_t>(vertex % channels_)};
  }

  // Finds the switches that links join. Routes between two such parts are never requested, because the parts
  // may be fabrics that nothing joins.
  void find_parts() {
    part_.assign(graph_.node_count(), kNoId);
    std::vector<NodeId> reached;
    for (NodeId id = 0; id < graph_.node_count(); ++id) {
      if (!is_switch(id) || part_[id] != kNoId) continue;
      part_[id] = id;
      reached.assign(1, id);
      for (std::size_t i = 0; i < reached.size(); ++i) {
        for (const PortId port : graph_.ports_of(reached[i])) {
          const NodeId next = graph_.port(port).peer_node;
          if (!is_switch(next) || part_[next] != kNoId) continue;
          part_[next] = id;
          reached.push_back(next);
        }
      }
    }
  }
  bool is_joined(NodeId at, NodeId destination) const {
    const auto ports = graph_.ports_of(destination);
    return std::any_of(ports.begin(), ports.end(), [&](PortId port) {
      const NodeId peer = graph_.port(port).peer_node;
      return is_switch(peer) && part_[peer] == part_[at];
    });
  }

  // Collects the NICs' ports into the fabric, and the destinations. One NIC represents all NICs at its
  // switch, because their routes differ in the last link only. A NIC with several links represents itself.
  void find_ends() {
    std::vector<bool> has_nic(graph_.node_count(), false);
    for (NodeId id = 0; id < graph_.node_count(); ++id) {
      if (is_switch(id)) continue;
      bool new_switch = false;
      std::size_t links = 0;
      for (const PortId port : graph_.ports_of(id)) {
        const NodeId peer = graph_.port(port).peer_node;
        if (!is_switch(peer) || is_lossy(port)) continue;
        ++links;
        new_switch = new_switch || !has_nic[peer];
        has_nic[peer] = true;
        entries_.push_back(port);
      }
      if (new_switch || links > 1) destinations_.push_back(id);
    }
  }

  // Returns 0, ..., count - 1 in an order in which the first few are far apart.
  static std::vector<std::size_t> spread(std::size_t count) {
    std::vector<std::size_t> order(count);
    std::size_t step = std::max<std::size_t>(1, static_cast<std::size_t>(static_cast<double>(count) * 0.618));
    while (std::gcd(step, count) > 1) ++step;
    for (std::size_t i = 0; i < count; ++i) order[i] = i * step % count;
    return order;
  }

  void depend(const Hop& first, const Hop& second) {
    if (is_lossy(first.port) || is_lossy(second.port)) return;
    std::vector<std::uint32_t>& next = next_[vertex(first)];
    const auto to = static_cast<std::uint32_t>(vertex(second));
    if (std::find(next.begin(), next.end(), to) == next.end()) next.push_back(to);
  }
  void spend(std::size_t hops) { left_ -= std::min<std::uint64_t>(left_, hops); }

  void follow_fixed(const std::vector<PortId>& path) {
    for (std::size_t i = 1; i + 2 < path.size(); ++i) depend({path[i], 0}, {path[i + 1], 0});
  }

  void begin() {
    ++round_;
    open_.clear();
  }
  void add(const Waypoint& packet) {
    std::uint32_t& seen = seen_[2 * vertex(packet.came) + (packet.reached_intermediate ? 1 : 0)];
    if (seen == round_) return;
    seen = round_;
    open_.push_back(packet);
  }
  // Returns the packet at its first switch, as its source sends it.
  Waypoint entering(PortId port, NodeId destination, std::uint32_t choice) const {
    return {
        .at = graph_.port(port).peer_node, .came = {port, 0}, .destination = destination, .choice = choice};
  }

  // Follows all routes from the open packets. Packets that have reached their intermediate are stored in
  // turned_.
  void follow() {
    while (!open_.empty()) {
      const Waypoint packet = open_.back();
      open_.pop_back();
      hops_.clear();
      routes_.add_hops(packet, hops_);
      spend(hops_.size());
      for (const Hop& hop : hops_) {
        const NodeId far = graph_.port(hop.port).peer_node;
        if (!is_switch(far)) continue;
        if (is_switch(graph_.port(packet.came.port).node)) depend(packet.came, hop);
        Waypoint on = packet;
        on.at = far;
        on.came = hop;
        on.reached_intermediate = on.via != kNoId && routes_.passes(far, on.via);
        if (on.reached_intermediate) {
          put_aside(on);
        } else {
          add(on);
        }
      }
    }
  }

  void put_aside(Waypoint packet) {
    packet.via = kNoId;
    turned_.push_back(packet);
  }

  // Follows the routes from all NICs to all intermediates. They do not depend on the destination.
  void follow_detours() {
    const std::uint64_t half = left_ / 2;
    const std::uint32_t count = routes_.intermediates();
    for (const std::size_t via : spread(count)) {
      for (std::uint32_t choice = 0; choice < routes_.choices(); ++choice) {
        begin();
        for (const PortId port : entries_) {
          Waypoint packet = entering(port, kNoId, choice);
          packet.via = static_cast<std::uint32_t>(via);
          if (!routes_.passes(packet.at, packet.via)) add(packet);
        }
        follow();
      }
      if (left_ <= half) break;
    }
    sort_turned();
  }
  void sort_turned() {
    const auto key = [&](const Waypoint& w) { return std::pair(w.choice, vertex(w.came)); };
    std::sort(turned_.begin(), turned_.end(),
              [&](const Waypoint& a, const Waypoint& b) { return key(a) < key(b); });
    turned_.erase(std::unique(turned_.begin(), turned_.end(),
                              [&](const Waypoint& a, const Waypoint& b) { return key(a) == key(b); }),
                  turned_.end());
  }

  void follow_straight(NodeId destination) {
    for (std::uint32_t choice = 0; choice < routes_.choices(); ++choice) {
      begin();
      for (const PortId port : entries_) {
        if (is_joined(graph_.port(port).peer_node, destination)) add(entering(port, destination, choice));
      }
      for (Waypoint packet : turned_) {
        if (packet.choice != choice || !is_joined(packet.at, destination)) continue;
        packet.destination = destination;
        add(packet);
      }
      follow();
    }
  }

  // Adds the dependencies of every escape hop on those that may follow it after any adaptive hops.
  void follow_escapes(NodeId destination) {
    for (NodeId id = 0; id < graph_.node_count(); ++id) {
      if (!is_switch(id) || !is_joined(id, destination)) continue;
      for (const Hop& first : escapes(id, destination)) {
        if (!is_switch(graph_.port(first.port).peer_node)) continue;
        for (const NodeId at : reached_adaptively(graph_.port(first.port).peer_node, destination)) {
          for (const Hop& second : escapes(at, destination)) {
            if (is_switch(graph_.port(second.port).peer_node)) depend(first, second);
          }
        }
      }
      if (left_ == 0) return;
    }
  }
  std::vector<Hop> escapes(NodeId at, NodeId destination) {
    std::vector<Hop> hops;
    routes_.add_hops({.at = at, .came = {}, .destination = destination}, hops);
    spend(hops.size());
    return hops;
  }
  std::vector<NodeId> reached_adaptively(NodeId from, NodeId destination) {
    std::vector<NodeId> reached{from};
    for (std::size_t i = 0; i < reached.size(); ++i) {
      hops_.clear();
      routes_.add_adaptive_hops({.at = reached[i], .came = {}, .destination = destination}, hops_);
      spend(hops_.size());
      for (const Hop& hop : hops_) {
        const NodeId far = graph_.port(hop.port).peer_node;
        if (std::find(reached.begin(), reached.end(), far) == reached.end()) reached.push_back(far);
      }
    }
    return reached;
  }

  // Returns a cycle, by depth-first search; empty: there is none.
  std::vector<Hop> cycle() const {
    enum class Mark : std::uint8_t { fresh, on_way, done };
    std::vector<Mark> marks(next_.size(), Mark::fresh);
    std::vector<std::pair<std::size_t, std::size_t>> way;  // vertex, and index of its next successor
    for (std::size_t start = 0; start < next_.size(); ++start) {
      if (marks[start] != Mark::fresh) continue;
      way.emplace_back(start, 0);
      marks[start] = Mark::on_way;
      while (!way.empty()) {
        auto& [at, number] = way.back();
        if (number == next_[at].size()) {
          marks[at] = Mark::done;
          way.pop_back();
          continue;
        }
        const std::size_t to = next_[at][number++];
        if (marks[to] == Mark::on_way) return closed(way, to);
        if (marks[to] == Mark::done) continue;
        marks[to] = Mark::on_way;
        way.emplace_back(to, 0);
      }
    }
    return {};
  }
  std::vector<Hop> closed(const std::vector<std::pair<std::size_t, std::size_t>>& way,
                          std::size_t first) const {
    std::vector<Hop> hops;
    auto at = std::find_if(way.begin(), way.end(), [&](const auto& entry) { return entry.first == first; });
    for (; at != way.end(); ++at) hops.push_back(hop_of(at->first));
    return hops;
  }

  const Graph& graph_;
  const Routes& routes_;
  RoutingFreedom freedom_;
  std::uint64_t left_;
  const std::vector<bool>& lossy_;
  std::uint32_t channels_ = 1;
  std::vector<NodeId> part_;                      // by node of a switch: a switch that represents its part
  std::vector<PortId> entries_;                   // ports of NICs into the fabric
  std::vector<NodeId> destinations_;              // NICs
  std::vector<std::vector<std::uint32_t>> next_;  // by vertex
  std::vector<std::uint32_t>
      seen_;  // by vertex and Waypoint::reached_intermediate: the last round that saw it
  std::uint32_t round_ = 0;
  std::vector<Waypoint> open_, turned_;
  std::vector<Hop> hops_;
};

}  // namespace

DependencyCycle find_cycle(const Graph& graph, const Routes& routes, RoutingFreedom freedom,
                           std::span<const std::vector<PortId>> fixed, std::uint64_t effort,
                           const std::vector<bool>& lossy) {
  return Dependencies(graph, routes, freedom, effort, lossy).search(fixed);
}

std::string describe(const DependencyCycle& cycle, const Graph& graph, bool channels, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(cycle.hops.size(), most); ++i) {
    const Hop& hop = cycle.hops[i];
    text += (i == 0 ? "" : ", ") + graph.port_name(hop.port);
    if (channels) text += fmt::format(" (channel {})", hop.channel);
  }
  if (cycle.hops.size() > most) text += fmt::format(" and {} more", cycle.hops.size() - most);
  return text;
}

}  // namespace netsim
