#include "sim/transport/sender/injectors.h"

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

void Injectors::departed(PortId port, Bytes bytes) {
  Gate& gate = gates_[state_.gate_of_port[port]];
  gate.credit += bytes;
  const std::uint32_t first = injectors_[gate.last].next_at_gate;
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
