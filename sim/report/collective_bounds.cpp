#include "sim/report/collective_bounds.h"

#include <algorithm>
#include <numeric>

#include "sim/core/ids.h"
#include "sim/core/time_limits.h"
#include "sim/topology/parts.h"

namespace netsim {
namespace {

// Returns whether every part needs data of another part.
bool tells_all(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return true;
    default:
      return false;
  }
}

}  // namespace

CollectiveBounds::CollectiveBounds(const Cluster& cluster) {
  const Graph& graph = cluster.graph;
  std::vector<std::uint32_t> nodes(graph.node_count()), atoms;
  std::iota(nodes.begin(), nodes.end(), 0U);
  add_level(cluster, nodes);
  int tiers = 0;
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    atoms.push_back(graph.node(node).atom);
    if (is_switch(graph, node)) tiers = std::max(tiers, graph.node(node).tier + 1);
  }
  add_level(cluster, atoms);
  for (int above = 1; above < tiers; ++above) add_level(cluster, parts_below(graph, above));
}

void CollectiveBounds::add_level(const Cluster& cluster, const std::vector<std::uint32_t>& part_of_node) {
  const Graph& graph = cluster.graph;
  Level& level = levels_.emplace_back();
  level.parts.resize(*std::max_element(part_of_node.begin(), part_of_node.end()) + std::size_t{1});
  std::vector<double> into(level.parts.size());
  for (PortId port = 0; port < graph.port_count(); ++port) {
    const PortSpec& spec = graph.port(port);
    const std::uint32_t from = part_of_node[spec.node], to = part_of_node[spec.peer_node];
    if (from == to) continue;
    level.parts[from].rate += static_cast<double>(spec.link.rate);
    into[to] += static_cast<double>(spec.link.rate);
    for (const std::uint32_t part : {from, to})
      level.parts[part].delay = std::min(level.parts[part].delay, spec.link.delay);
  }
  for (std::size_t part = 0; part < into.size(); ++part)
    level.parts[part].rate = std::max(level.parts[part].rate, into[part]);
  for (const Gpu& gpu : cluster.gpus) level.part_of.push_back(part_of_node[gpu.node]);
}

Time CollectiveBounds::least(CollectiveKind kind, Bytes bytes, const std::vector<GpuId>& members,
                             LibraryChoice::Help help) {
  const auto n = static_cast<double>(bytes), p = static_cast<double>(members.size());
  const bool servers = help == LibraryChoice::Help::servers;
  double seconds = 0;
  Time delay = 0;
  for (Level& level : levels_) {
    found_.clear();
    for (const GpuId gpu : members) {
      if (level.parts[level.part_of[gpu]].members++ == 0) found_.push_back(level.part_of[gpu]);
    }
    double fastest = 0, most = 0;
    for (const std::uint32_t number : found_) {
      fastest = std::max(fastest, level.parts[number].rate);
      most = std::max(most, static_cast<double>(level.parts[number].members));
    }
    const auto m = static_cast<double>(found_.size());
    // Bounds the time by sending `part_bytes` over all links of a part at once.
    const auto take = [&](double part_bytes, double rate) {
      if (rate > 0) seconds = std::max(seconds, part_bytes * 8 / rate);
    };
    for (const std::uint32_t number : found_) {
      Part& part = level.parts[number];
      const double k = part.members;
      part.members = 0;
      if (m == 1) continue;
      if (tells_all(kind) && !servers && bytes > 0 && part.delay != kNever)
        delay = std::max(delay, part.delay);
      if (kind == CollectiveKind::all_reduce) take(n, servers ? fastest : part.rate);
      if (kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter)
        take(n * (p - k) / p, part.rate);
      if (kind == CollectiveKind::all_to_all) take(n * k * (p - k) / p, part.rate);
    }
    if (m > 1) {
      if (kind == CollectiveKind::all_reduce && help == LibraryChoice::Help::none)
        take(2 * n * (m - 1) / m, fastest);
      if (kind == CollectiveKind::gather || kind == CollectiveKind::scatter)
        take(n * (p - most) / p, fastest);
      if (kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce) take(n, fastest);
    }
    if (servers) break;
  }
  // Allows for rounding: each message of a run may be rounded up by a picosecond, and none is rounded down.
  return std::max(bounded_time(seconds * 1e12 * (1 - 1e-9)), delay);
}

}  // namespace netsim
