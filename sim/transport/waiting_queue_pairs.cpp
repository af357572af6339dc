// The part of PacketNetworkImpl that tells whether queue pairs make progress, and what they wait for.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "sim/core/config.h"
#include "sim/transport/packet_network_impl.h"

namespace netsim {

bool PacketNetworkImpl::busy(std::uint32_t id) const {
  const SenderState& s = state_.senders[id];
  return s.oldest != kNone || s.waiting != kNone || state_.records[id].held != 0;
}

std::uint64_t PacketNetworkImpl::progress() const {
  std::uint64_t sum = 0;
  for (const auto& shard : shards_) sum += shard->counts().packets + shard->sender().fresh_sums();
  return sum;
}

// A queue pair outside of aggregation groups gives up after its retries. So the run goes on while one of them
// waits for a timeout.
std::uint64_t PacketNetworkImpl::fruitless_rounds() const {
  std::uint64_t least = UINT64_MAX;
  for (const std::uint32_t id : queue_pairs()) {
    const SenderState& s = state_.senders[id];
    if (!busy(id) || !s.timer) continue;
    if (!s.aggregation) return 0;
    least = std::min(least, sender_of(state_.records[id].identity.source).fruitless_rounds(id));
  }
  return least == UINT64_MAX ? 0 : least;
}

std::vector<std::string> PacketNetworkImpl::waiting(std::size_t limit) const {
  std::vector<std::string> lines;
  if (deadlocked()) lines = fabric_.waiting(limit);
  std::vector<std::uint32_t> ids = queue_pairs();
  std::erase_if(ids, [&](std::uint32_t id) { return !busy(id); });
  for (std::size_t i = 0; i < ids.size() && lines.size() < limit; ++i) lines.push_back(wait_of(ids[i]));
  if (const std::size_t count = shards_.front()->aggregations().waiting(); count > 0 && lines.size() < limit)
    lines.push_back(fmt::format("{} messages wait for memory of switches that add up", count));
  if (deadlocked()) return lines;
  for (std::string& line : fabric_.waiting(limit - lines.size())) lines.push_back(std::move(line));
  return lines;
}

// Returns what a busy queue pair waits for. Several members of a tree are told alike, whichever session they
// use, because that depends on threads.
std::string PacketNetworkImpl::wait_of(std::uint32_t id) const {
  const SenderState& s = state_.senders[id];
  const QueuePairRecord& record = state_.records[id];
  const QueuePairIdentity& n = record.identity;
  const auto nic = [&](GpuId gpu) { return cluster_.graph.node(cluster_.gpus[gpu].nic).name; };
  const std::uint64_t packets = sender_of(n.source).packets_known(id);
  if (record.tree) {
    const std::uint64_t rounds = sender_of(n.source).fruitless_rounds(id);
    return fmt::format("{} waits for the sums of {} packets that it sends into an aggregation tree{}{}",
                       nic(n.source), packets - s.acknowledged,
                       rounds > 0 ? fmt::format(", and has sent them again {} times", rounds) : "",
                       dead_link_of_tree(id));
  }
  return fmt::format("queue pair {}->{}#{}: {} of {} packets acknowledged{}{}{}", nic(n.source),
                     nic(n.destination), n.number, s.acknowledged, packets,
                     record.held != 0 ? fmt::format(", {} messages held back", record.held) : "",
                     s.failed ? ", gave up after its retries" : "", dead_link(id));
}

// Returns a text that names the links of the queue pair's tree that are known to be down; empty if there are
// none.
std::string PacketNetworkImpl::dead_link_of_tree(std::uint32_t id) const {
  const std::vector<bool>& down = fabric_.down_ports();
  std::string text;
  for (const PortId port : connections_.trees().sessions[state_.records[id].session].ports) {
    for (const PortId one : {port, port ^ 1U}) {
      if (!down[one]) continue;
      text += fmt::format("{}{}, which is down since {}", text.empty() ? "; the tree uses " : ", and ",
                          cluster_.graph.port_name(one), format_time(fabric_.down_since(one)));
    }
  }
  return text;
}

// Returns a text that names a link known to be down on the queue pair's way or its ACKs' way; empty if there
// is none.
std::string PacketNetworkImpl::dead_link(std::uint32_t id) const {
  if (state_.senders[id].scale_up) return "";
  const std::vector<bool>& down = fabric_.down_ports();
  const QueuePairIdentity& n = state_.records[id].identity;
  const auto [sender, receiver] = cluster_.nic_ends(n.source, n.destination, n.number);
  const auto tell = [&](std::span<const PortId> path, NodeId from, NodeId to, const char* what) {
    const auto dead = std::find_if(path.begin(), path.end(), [&](PortId port) { return down[port]; });
    if (dead == path.end()) return std::string();
    const Graph& graph = cluster_.graph;
    const bool fixed = fabric_.routing().fixed_path(graph.node(from).name, graph.node(to).name) != nullptr;
    return fmt::format("; {} path uses {}, which is down since {}{}", what, graph.port_name(*dead),
                       format_time(fabric_.down_since(*dead)),
                       fixed ? " (routing: static keeps to it unless `reroute: true`)" : "");
  };
  std::string data =
      tell(fabric_.ports_of_path(state_.records[id].idle.first), sender.nic, receiver.nic, "its");
  if (!data.empty()) return data;
  return tell(fabric_.ports_of_hops(state_.receivers[id].back_path - 1), receiver.nic, sender.nic,
              "its ACKs'");
}

}  // namespace netsim
