#include "sim/network/fabric_shard.h"

namespace netsim {

FabricShard::FabricShard(LogicalProcess& set, FabricState& state)
    : state_(state),
      ports_(set.loop(), state, back_pressure_, remote_event_),
      remote_event_(set, state, ports_.packets()),
      back_pressure_(set.loop(), state, ports_.buffers(), ports_, remote_event_) {
  EventLoop& loop = set.loop();
  loop.set_handler<&FabricShard::on_arrival>(EventKind::arrival, *this);
  loop.set_handler<&FabricShard::on_departure>(EventKind::departure, *this);
  loop.set_handler<&PortArbiter::on_route>(EventKind::route, ports_);
  loop.set_handler<&BackPressure::on_link_control>(EventKind::link_control, back_pressure_);
}

// Flattened, because calls cost 35 of some 1,150 instructions per packet-hop.
[[gnu::flatten]] void FabricShard::on_arrival(const Event& event) { ports_.on_arrival(event); }
[[gnu::flatten]] void FabricShard::on_departure(const Event& event) { ports_.on_departure(event); }

}  // namespace netsim
