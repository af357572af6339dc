#include "sim/transport/sender/injectors.h"

namespace netsim {

std::uint32_t Injectors::at(PortId first, PortId gate) {
  std::uint32_t& index = state_.injector_of_port[first];
  if (index != kNone) return index;
  index = static_cast<std::uint32_t>(injectors_.size());
  Injector made;
  made.port = first;
  made.wire = gate;
  if (gate != first) {
    std::uint32_t& gate_index = state_.gate_of_port[gate];
    if (gate_index == kNone) {
      gate_index = static_cast<std::uint32_t>(gates_.size());
      gates_.push_back({state_.parameters.nic_buffer, {}});
      fabric_.set_departure_hook(gate);
    }
    gates_[gate_index].injectors.push_back(index);
    made.gate = gate_index;
  }
  injectors_.push_back(made);
  return index;
}

void Injectors::departed(PortId port, Bytes bytes) {
  Gate& gate = gates_[state_.gate_of_port[port]];
  gate.credit += bytes;
  for (const std::uint32_t index : gate.injectors) {
    const Injector& in = injectors_[index];
    if (in.ready == 0) continue;
    fabric_.set_source_ready(in.port, true);
    fabric_.wake(in.port);
  }
}

}  // namespace netsim
