#include "sim/network/deadlock_search.h"

#include <algorithm>
#include <iterator>

namespace netsim {

DeadlockSearch::DeadlockSearch(const FabricState& state,
                               const std::vector<std::unique_ptr<FabricShard>>& shards,
                               const LinkFaults& faults)
    : state_(state), shards_(shards), faults_(faults) {
  for (PortId id = 0; id < state.graph.port_count(); ++id)
    watch_after_ = std::max(watch_after_, 4 * state.graph.port(id).link.delay);
}

bool DeadlockSearch::look(Time now, bool idle) {
  std::uint64_t held = 0;
  for (const auto& shard : shards_) held += shard->held_back();
  if (held == 0 || (!idle && !any_due(now))) return false;
  // A resume or credit may still be in flight to a queue that was held back only now.
  return find(now, idle ? now : now - watch_after_ / 2);
}

// Returns whether a switch port has been held back for watch_after_. Ports of hosts cannot be part of a
// cycle.
bool DeadlockSearch::any_due(Time now) const {
  for (PortId id = 0; id < state_.ports.size(); ++id) {
    if (state_.ports[id].paused_by_peer == 0 || !state_.at_switch(id)) continue;
    for (std::uint32_t priority = kDataPriority; priority < state_.priorities; ++priority) {
      if ((state_.ports[id].paused_by_peer >> priority & 1) != 0 &&
          now - state_.paused_since[state_.queue_index(id, priority)] >= watch_after_) {
        return true;
      }
    }
  }
  return false;
}

// Returns the queues for which `queue` waits. They belong to the node at the link's far end and hold packets
// that came over the link in that queue's class and channel.
std::vector<std::size_t> DeadlockSearch::waits_for(std::size_t queue) const {
  const PortId port = state_.port_of_queue(queue);
  const std::uint32_t ingress_queue = state_.priority_of_queue(queue);
  const PacketArena& packets = shards_[state_.far_set[port]]->packets();
  std::vector<std::size_t> result;
  for (const PortId next : state_.graph.ports_of(state_.graph.port(port).peer_node)) {
    for (std::uint32_t priority = kDataPriority; priority < state_.priorities; ++priority) {
      const bool found = state_.any_waiting(next, priority, packets, [&](const Packet& packet) {
        return packet.ingress == port && packet.ingress_queue == ingress_queue;
      });
      if (found) result.push_back(state_.queue_index(next, priority));
    }
  }
  return result;
}

// Returns whether packets may leave the queue by another channel, because it is an adaptive one.
bool DeadlockSearch::escapes(std::size_t queue) const {
  const std::uint32_t priority = state_.priority_of_queue(queue);
  return priority >= kDataPriority && state_.channel_of(priority) == state_.adaptive_channel;
}

// Returns the held-back queues that wait only for such queues, so that nothing in them can move. It is the
// largest such set, found by removing queues that wait for one outside.
std::vector<bool> DeadlockSearch::stuck_queues(Time paused_before) const {
  std::vector<bool> stuck(state_.queues.size(), false);
  std::vector<std::size_t> members;
  for (std::size_t index = 0; index < state_.queues.size(); ++index) {
    const auto port = state_.port_of_queue(index);
    const std::uint32_t priority = state_.priority_of_queue(index);
    if ((state_.ports[port].paused_by_peer >> priority & 1) == 0 || state_.queues[index].head == kNoIndex ||
        !state_.at_switch(port) || escapes(index))
      continue;
    if (state_.paused_since[index] > paused_before) continue;
    stuck[index] = true;
    members.push_back(index);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::size_t index : members) {
      if (!stuck[index]) continue;
      const std::vector<std::size_t> blockers = waits_for(index);
      const bool free = blockers.empty() || std::any_of(blockers.begin(), blockers.end(),
                                                        [&](std::size_t next) { return !stuck[next]; });
      if (!free) continue;
      stuck[index] = false;
      changed = true;
    }
  }
  return stuck;
}

bool DeadlockSearch::find(Time now, Time paused_before) {
  if (faults_.any_after(now)) return false;  // a link that goes down frees the packets that wait for it
  const std::vector<bool> stuck = stuck_queues(paused_before);
  const auto first = std::find(stuck.begin(), stuck.end(), true);
  if (first == stuck.end()) return false;
  std::vector<std::size_t> way{static_cast<std::size_t>(first - stuck.begin())};
  for (;;) {
    const std::size_t next = waits_for(way.back()).front();
    const auto seen = std::find(way.begin(), way.end(), next);
    if (seen != way.end()) {
      std::transform(seen, way.end(), std::back_inserter(circle_),
                     [&](std::size_t queue) { return state_.port_of_queue(queue); });
      return true;
    }
    way.push_back(next);
  }
}

}  // namespace netsim
