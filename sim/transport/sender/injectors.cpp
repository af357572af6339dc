#include "sim/transport/sender/injectors.h"

#include <utility>

namespace netsim {

std::uint32_t Injectors::at(PortId first, PortId gate, Bytes room) {
  std::uint32_t& turn = state_.injector_of_port[first];
  if (const std::uint32_t known = find(turn, first, gate); known != kNone) return known;
  const auto index = static_cast<std::uint32_t>(injectors_.size());
  Injector made;
  made.port = first;
  made.wire = gate;
  made.next = turn == kNone ? index : std::exchange(injectors_[turn].next, index);
  if (turn == kNone) turn = index;
  if (gate != first) {
    std::uint32_t& gate_index = state_.gate_of_port[gate];
    if (gate_index == kNone) {
      gate_index = static_cast<std::uint32_t>(gates_.size());
      gates_.push_back({room, 0, {}});
      fabric_.set_departure_hook(gate);
    }
    made.place = static_cast<std::uint32_t>(gates_[gate_index].injectors.size());
    gates_[gate_index].injectors.push_back(index);
    made.gate = gate_index;
  }
  injectors_.push_back(made);
  return index;
}

// Of those at the port `first`, of which `any` is one, the one for this gate; kNone: there is none.
std::uint32_t Injectors::find(std::uint32_t any, PortId first, PortId gate) const {
  if (any == kNone) return kNone;
  const std::uint32_t wanted = gate == first ? kNone : state_.gate_of_port[gate];
  std::uint32_t index = any;
  do {
    if (injectors_[index].gate == wanted && (gate == first || wanted != kNone)) return index;
    index = injectors_[index].next;
  } while (index != any);
  return kNone;
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
  const auto count = static_cast<std::uint32_t>(gate.injectors.size());
  std::uint32_t place = gate.last;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (++place == count) place = 0;
    const Injector& in = injectors_[gate.injectors[place]];
    if (in.ready == 0) continue;
    fabric_.set_source_ready(in.port, true);
    // All for the same time: those that share the wire in the order of its turn.
    if (count == 1) {
      fabric_.wake(in.port);
    } else {
      fabric_.wake_by(port, in.port);
    }
  }
}

}  // namespace netsim
