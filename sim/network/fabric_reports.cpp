// What the fabric tells about itself: counters, notes, what waits, and the search for deadlocks.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "sim/network/fabric.h"

namespace netsim {
namespace {

// Of many packets; less than a picosecond short of the sum of their times for each.
Time time_at_rate(Bytes wire, BitRate rate) {
  __extension__ using Wide = __int128;
  return static_cast<Time>(static_cast<Wide>(wire) * 8 * kSecond / rate);
}

}  // namespace

PortCounters Fabric::counters(PortId port) const {
  const Port& p = state_.ports[port];
  const fabric::Rare& rare = state_.rare[port];
  PortCounters c;
  c.wire_bytes = p.wire_bytes;
  c.data_packets = p.data_packets;
  c.ecn_marks = rare.marks;
  c.drops = rare.drops;
  c.no_route = rare.no_route;
  c.cnps = rare.cnps;
  c.lost = rare.lost;
  c.last_end = p.busy_until;
  // Where times are rounded (transmission_resolution) a link may carry a little more than its rate.
  c.busy = std::min(rare.busy_before + time_at_rate(p.wire_bytes - rare.wire_bytes_before, rare.rate),
                    p.busy_until);
  Time held = rare.paused_time;
  for (std::uint32_t i = 0; i < state_.priorities; ++i) {
    c.max_queue = std::max(c.max_queue, state_.queue(port, i).max_bytes);
    if ((p.paused & ~rare.unheard) >> i & 1)
      held += engine_.now() - state_.paused_since[state_.queue_index(port, i)];
  }
  const bool credits = (p.flags & fabric::kCredits) != 0;
  (credits ? c.credit_stalls : c.pauses) = rare.pauses;
  (credits ? c.credit_stalled : c.paused) = held;
  for (std::uint32_t i = 0; i < state_.classes; ++i) {
    const fabric::Ingress& in = state_.ingress[state_.class_index(port, kDataPriority + i)];
    c.headroom += in.headroom;
    c.max_headroom = std::max<Bytes>(c.max_headroom, in.max_headroom_used);
  }
  return c;
}

std::uint64_t Fabric::events_fingerprint() const {
  std::uint64_t sum = 0;
  for (PortId id = 0; id < state_.ports.size(); ++id) sum += hash_combine(id, state_.ports[id].digest);
  return sum;
}

Bytes FabricState::queued(PortId port) const {
  Bytes sum = 0;
  for (std::uint32_t i = 0; i < priorities; ++i) sum += queue(port, i).bytes;
  return sum;
}

std::uint32_t Fabric::pfc_paused(PortId port) const {
  const Port& p = state_.ports[port];
  if ((p.flags & fabric::kCredits) != 0) return 0;
  return static_cast<std::uint32_t>(std::popcount(p.paused & ~unsigned{state_.rare[port].unheard}));
}

std::vector<std::string> Fabric::notes() const {
  std::vector<std::string> notes;
  if (state_.lossless == 0 || state_.parameters.headroom == 0) return notes;
  Bytes needed = 0;
  for (PortId id = 0; id < state_.ports.size(); ++id) {
    if ((state_.ports[id].flags & fabric::kBuffered) != 0)
      needed = std::max(needed, computed_headroom(id ^ 1U));
  }
  if (state_.parameters.headroom < needed) {
    notes.push_back(
        fmt::format("PFC headroom of {} B is below the {} B that losslessness needs: drops are possible",
                    state_.parameters.headroom, needed));
  }
  return notes;
}

std::vector<std::string> Fabric::waiting(std::size_t limit) const {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < deadlock_.size() && lines.size() < limit; ++i) {
    const PortId next = deadlock_[(i + 1) % deadlock_.size()];
    lines.push_back(fmt::format(
        "deadlock: port {} is held back by {} until port {} moves", graph_.port_name(deadlock_[i]),
        graph_.node(graph_.port(deadlock_[i]).peer_node).name, graph_.port_name(next)));
  }
  for (PortId id = 0; id < state_.ports.size() && lines.size() < limit; ++id) {
    const Bytes bytes = queued(id);
    if (bytes == 0) continue;
    lines.push_back(
        fmt::format("port {}: {} B wait{}", graph_.port_name(id), bytes,
                    state_.ports[id].paused != 0
                        ? fmt::format(", held back by {}", graph_.node(graph_.port(id).peer_node).name)
                        : ""));
  }
  return lines;
}

// ---- Deadlock: looked for while ports have been held back for a while, not when nothing is left to do, so
// that timers that go on do not hide it.

void Fabric::look_for_deadlock(Time now, bool idle) {
  std::uint64_t held = 0;
  for (const auto& part : parts_) held += part->held_back();
  if (held == 0) return;
  if (!idle) {  // is one of them due? Ports of hosts cannot be part of a circle.
    bool due = false;
    for (PortId id = 0; id < state_.ports.size() && !due; ++id) {
      if (state_.ports[id].paused == 0 || !state_.at_switch(id)) continue;
      for (std::uint32_t priority = kDataPriority; priority < state_.priorities && !due; ++priority) {
        due = (state_.ports[id].paused >> priority & 1) != 0 &&
              now - state_.paused_since[state_.queue_index(id, priority)] >= watch_after_;
      }
    }
    if (!due) return;
  }
  // A resume or a credit may still be on its way to what was held back only now.
  if (find_deadlock(idle ? now : now - watch_after_ / 2)) engine_.stop();
}

// The queues of the node behind `port`'s link that hold packets which came over it in this priority's class.
std::vector<PortId> Fabric::waits_for(PortId port, std::uint32_t priority) const {
  const PacketArena& packets = parts_[state_.far_set[port]]->packets();
  std::vector<PortId> result;
  for (const PortId next : graph_.ports_of(graph_.port(port).peer_node)) {
    for (std::uint32_t at = state_.queue(next, priority).head; at != fabric::kNone; at = packets[at].next) {
      if (packets[at].ingress != port) continue;
      result.push_back(next);
      break;
    }
  }
  return result;
}

// Held-back queues all of whose blockers are such queues themselves: nothing in them can move any more. The
// largest such set, by taking away those that have a blocker outside.
std::vector<bool> Fabric::stuck_queues(Time paused_before) const {
  std::vector<bool> stuck(state_.queues.size(), false);
  std::vector<std::size_t> members;
  for (std::size_t index = 0; index < state_.queues.size(); ++index) {
    const auto port = state_.port_of_queue(index);
    const std::uint32_t priority = state_.priority_of_queue(index);
    if ((state_.ports[port].paused >> priority & 1) == 0 || state_.queues[index].head == fabric::kNone ||
        !state_.at_switch(port))
      continue;
    if (state_.paused_since[index] > paused_before) continue;
    stuck[index] = true;
    members.push_back(index);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::size_t index : members) {
      if (!stuck[index]) continue;
      const std::uint32_t priority = state_.priority_of_queue(index);
      const std::vector<PortId> blockers = waits_for(state_.port_of_queue(index), priority);
      const bool free = blockers.empty() || std::any_of(blockers.begin(), blockers.end(), [&](PortId next) {
                          return !stuck[state_.queue_index(next, priority)];
                        });
      if (!free) continue;
      stuck[index] = false;
      changed = true;
    }
  }
  return stuck;
}

bool Fabric::find_deadlock(Time paused_before) {
  for (const LinkChange& change : faults_.changes) {
    if (change.at > engine_.now()) return false;  // a link that goes down sets free what waits for it
  }
  const std::vector<bool> stuck = stuck_queues(paused_before);
  const auto first = std::find(stuck.begin(), stuck.end(), true);
  if (first == stuck.end()) return false;
  const auto index = static_cast<std::size_t>(first - stuck.begin());
  const std::uint32_t priority = state_.priority_of_queue(index);
  std::vector<PortId> way{state_.port_of_queue(index)};
  for (;;) {
    const PortId next = waits_for(way.back(), priority).front();
    const auto seen = std::find(way.begin(), way.end(), next);
    if (seen != way.end()) {
      deadlock_.assign(seen, way.end());
      return true;
    }
    way.push_back(next);
  }
}

// ---- Ideal times

// When the last packet starts on each link in turn: when it is there and the one before it has been sent.
// That one, the last of a train of equal packets behind the first, starts when the longest of these chains
// ends: the first packet up to some link, the second from there on, and the others all at the slowest link
// between there and here (a tandem of queues as a longest path: Glynn and Whitt, Departures from many queues
// in series, Annals of Applied Probability, 1991).
Time Fabric::ideal_time(std::span<const PortId> path, std::uint64_t packets, Bytes first_bytes,
                        Bytes full_bytes, Bytes last_bytes) const {
  const auto time = [this](PortId port, Bytes bytes) {
    const LinkSpec& link = graph_.port(port).link;
    return state_.serialisation(bytes + link.overhead, link.rate);
  };
  const auto head = [&](PortId port, Bytes bytes) {
    if (!state_.rare[port].cut_through) return time(port, bytes);
    return state_.rare[port].header != 0 ? state_.header_time(port, bytes) : 0;
  };
  const auto passage = [&](PortId port, Bytes bytes) { return head(port, bytes) + state_.ports[port].delay; };
  // `behind`: how much later than a packet of the last one's size, sent with the first, the last one is.
  Time first = 0, alone = 0, behind = 0;  // first, alone: when these two are at the present link
  for (std::size_t from = 0; from < path.size(); ++from) {
    const Time second = first + time(path[from], first_bytes);
    if (packets == 2) behind = std::max(behind, second - alone);
    Time chain = second, slowest = 0, last = alone;
    for (std::size_t to = from; packets > 2 && to < path.size(); ++to) {
      const Time full = time(path[to], full_bytes);
      slowest = std::max(slowest, full);
      behind = std::max(behind, chain + static_cast<Time>(packets - 3) * slowest + full - last);
      chain += passage(path[to], full_bytes);
      last += passage(path[to], last_bytes);
    }
    first += passage(path[from], first_bytes);
    alone += passage(path[from], last_bytes);
  }
  return alone + behind;
}

}  // namespace netsim
