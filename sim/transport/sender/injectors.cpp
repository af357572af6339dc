#include "sim/transport/sender/injectors.h"

#include <algorithm>
#include <utility>

namespace netsim {

std::uint32_t Injectors::at(PortId first, PortId gate, Bytes room) {
  std::uint32_t& turn = state_.injector_of_port[first];
  if (const std::uint32_t known = find(turn, gate); known != kNone) return known;
  const auto index = static_cast<std::uint32_t>(injectors_.size());
  Injector made;
  made.port = first;
  made.wire = gate;
  made.next = turn == kNone ? index : std::exchange(injectors_[turn].next, index);
  if (turn == kNone) turn = index;
  injectors_.push_back(made);
  if (has_levels()) {
    Lasts none;
    none.fill(kNone);
    lasts_.resize(injectors_.size() * kMaxClasses, none);
  }
  if (gate != first) {
    std::uint32_t& number = state_.gate_of_port[gate];
    if (number == kNone) {
      number = static_cast<std::uint32_t>(gates_.size());
      gates_.push_back({room, kNone});
      fabric_.set_departure_hook(gate);
    }
    join_gate(index, number);
  }
  return index;
}

// Returns the injector for this wire out of those at the port of injector `any`, or kNone.
std::uint32_t Injectors::find(std::uint32_t any, PortId wire) const {
  if (any == kNone) return kNone;
  std::uint32_t index = any;
  do {
    if (injectors_[index].wire == wire) return index;
    index = injectors_[index].next;
  } while (index != any);
  return kNone;
}

// Inserts the injector behind those of the gate, which is before the first one; that has the lowest index.
void Injectors::join_gate(std::uint32_t index, std::uint32_t gate) {
  Injector& made = injectors_[index];
  made.gate = gate;
  made.next_at_gate = index;
  if (gates_[gate].last == kNone) {
    gates_[gate].last = index;
    return;
  }
  std::uint32_t last = gates_[gate].last;
  while (injectors_[last].next_at_gate > last) last = injectors_[last].next_at_gate;
  made.next_at_gate = std::exchange(injectors_[last].next_at_gate, index);
}

bool Injectors::any_waiting(PortId port) const {
  const std::uint32_t first = state_.injector_of_port[port];
  std::uint32_t index = first;
  do {
    if (injectors_[index].ready != 0 && open(injectors_[index])) return true;
    index = injectors_[index].next;
  } while (index != first);
  return false;
}

// ---- Levels of priority

void Injectors::join_at(std::uint32_t id, std::uint32_t level) {
  SenderState& s = senders_[id];
  Injector& in = injectors_[s.injector];
  Ring& ring = in.rings[s.traffic_class];
  Lasts& lasts = lasts_of(s);
  std::uint32_t before = kNone;  // the last one of the lowest level that is not below this one
  for (std::uint32_t at = level; at < levels_ && before == kNone; ++at) before = lasts[at];
  std::uint32_t& link = before == kNone ? ring.head : senders_[before].next_ready;
  s.next_ready = std::exchange(link, id);
  if (s.next_ready == kNone) ring.tail = id;
  s.ready = true;
  in.ready |= 1U << s.traffic_class;
  lasts[level] = id;
  level_[id] = static_cast<std::uint8_t>(level);
}

void Injectors::set_level(std::uint32_t id, std::uint32_t level) {
  if (level_[id] == level) return;
  leave(id);
  join_at(id, level);
}

// Removes a queue pair from its ring. This takes time in proportion to the queue pairs before it.
void Injectors::leave(std::uint32_t id) {
  const SenderState& s = senders_[id];
  Ring& ring = injectors_[s.injector].rings[s.traffic_class];
  std::uint32_t before = kNone;
  for (std::uint32_t at = ring.head; at != id; at = senders_[at].next_ready) before = at;
  (before == kNone ? ring.head : senders_[before].next_ready) = s.next_ready;
  if (ring.tail == id) ring.tail = before;
  std::uint32_t& last = lasts_of(s)[level_[id]];
  if (last == id) last = before != kNone && level_[before] == level_[id] ? before : kNone;
}

// Called when the head of a ring is taken.
void Injectors::forget_last(std::uint32_t id) {
  std::uint32_t& last = lasts_of(senders_[id])[level_[id]];
  if (last == id) last = kNone;
}

// Returns the highest level of the injector's queue pairs plus 1; 0 if none waits.
std::uint32_t Injectors::highest_level(const Injector& in) const {
  std::uint32_t highest = 0;
  for (std::uint32_t c = 0; c < kMaxClasses; ++c) {
    if ((in.ready >> c & 1) != 0) highest = std::max(highest, level_[in.rings[c].head] + 1U);
  }
  return highest;
}

// Returns the injector with the highest level at a gate, or of several the first one from `first` on.
std::uint32_t Injectors::highest_at_gate(std::uint32_t first) const {
  std::uint32_t best = first;
  for (std::uint32_t at = injectors_[first].next_at_gate; at != first; at = injectors_[at].next_at_gate) {
    if (highest_level(injectors_[at]) > highest_level(injectors_[best])) best = at;
  }
  return best;
}

// ---- Space in the NIC

void Injectors::departed(PortId port, Bytes bytes) {
  Gate& gate = gates_[state_.gate_of_port[port]];
  gate.credit += bytes;
  std::uint32_t first = injectors_[gate.last].next_at_gate;
  if (has_levels()) first = highest_at_gate(first);
  std::uint32_t index = first;
  do {
    const Injector& in = injectors_[index];
    if (in.ready != 0) {
      fabric_.set_source_ready(in.port, true);
      // All wake at the same time. Queue pairs that share the wire do so in the order of the gate.
      if (in.next_at_gate == index) {
        fabric_.wake(in.port, likely_next(in));
      } else {
        fabric_.wake_by(port, in.port, likely_next(in));
      }
    }
    index = in.next_at_gate;
  } while (index != first);
}

}  // namespace netsim
