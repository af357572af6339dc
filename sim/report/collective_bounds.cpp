#include "sim/report/collective_bounds.h"

#include <algorithm>
#include <optional>

namespace netsim {
namespace {

// Shares of n that the busiest of `parties` sends or gets, of which one has at most `most` of all p ranks.
std::optional<double> share(CollectiveKind kind, double parties, double most, double ranks, bool reduced) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return reduced ? 1 : 2 * (parties - 1) / parties;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
    case CollectiveKind::all_to_all:
      return (ranks - most) / ranks;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return 1;
    default:
      return std::nullopt;
  }
}

}  // namespace

CollectiveBounds::CollectiveBounds(const Cluster& cluster) {
  const Graph& graph = cluster.graph;
  std::vector<double> of_node(graph.node_count()), of_atom(graph.atom_count());
  for (PortId port = 0; port < graph.port_count(); ++port) {
    const PortSpec& spec = graph.port(port);
    const auto rate = static_cast<double>(spec.link.rate);
    const AtomId atom = graph.node(spec.node).atom;
    of_node[spec.node] += rate;
    if (graph.node(spec.peer_node).atom != atom) of_atom[atom] += rate;
  }
  host_rates_ = std::move(of_atom);
  members_of_.resize(host_rates_.size());
  for (const Gpu& gpu : cluster.gpus) {
    gpu_rates_.push_back(of_node[gpu.node]);
    host_of_.push_back(graph.node(gpu.node).atom);
  }
}

Time CollectiveBounds::least(CollectiveKind kind, Bytes bytes, const std::vector<std::uint32_t>& members,
                             LibraryChoice::Help help) {
  const bool reduced = help != LibraryChoice::Help::none;
  const auto ranks = static_cast<double>(members.size());
  double gpu_rate = 0, host_rate = 0;
  std::uint32_t hosts = 0, most = 0;
  for (const std::uint32_t gpu : members) {
    gpu_rate = std::max(gpu_rate, gpu_rates_[gpu]);
    const std::uint32_t host = host_of_[gpu];
    host_rate = std::max(host_rate, host_rates_[host]);
    if (members_of_[host]++ == 0) ++hosts;
    most = std::max(most, members_of_[host]);
  }
  for (const std::uint32_t gpu : members) members_of_[host_of_[gpu]] = 0;
  double seconds = 0;
  const auto take = [&](std::optional<double> part, double rate) {
    if (part && rate > 0) seconds = std::max(seconds, *part * static_cast<double>(bytes) * 8 / rate);
  };
  take(share(kind, ranks, 1, ranks, reduced), gpu_rate);
  const bool rooted_or_pairs =
      kind == CollectiveKind::gather || kind == CollectiveKind::scatter || kind == CollectiveKind::all_to_all;
  if (hosts > 1 && !rooted_or_pairs && help != LibraryChoice::Help::servers)
    take(share(kind, hosts, most, ranks, reduced), host_rate);
  // Each of the messages of a run may be rounded up by a picosecond, none down.
  return static_cast<Time>(seconds * 1e12 * (1 - 1e-9));
}

}  // namespace netsim
