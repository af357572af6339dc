// Queue pairs come into being: their paths, the NICs' arbitration, and new paths when links go down.
#include <algorithm>

#include "sim/network/path.h"
#include "sim/transport/packet_network_impl.h"

namespace netsim {

std::uint32_t PacketNetworkImpl::queue_pair(const SendRequest& request) {
  const auto shared = static_cast<std::uint32_t>(state_.parameters.queue_pairs);
  const bool same_host = cluster_.same_host(request.source, request.destination);
  std::uint32_t number = 0;
  if (!same_host)
    number = request.traits.own_queue_pair ? request.traits.channel : request.traits.channel % shared;
  // Each class has queue pairs of its own.
  const std::uint8_t traffic_class = same_host ? std::uint8_t{0} : request.traits.traffic_class;
  const std::uint64_t lane = static_cast<std::uint64_t>(traffic_class) << 32 | number;
  if (request.traits.only_message && !same_host) return new_pair(request, number, lane);
  auto& known = state_.connections[request.source];
  const std::uint64_t key = static_cast<std::uint64_t>(request.destination) << 40 | lane;
  const auto at =
      std::lower_bound(known.begin(), known.end(), std::pair<std::uint64_t, std::uint32_t>(key, 0));
  if (at != known.end() && at->first == key) return at->second;
  const std::uint32_t id = new_pair(request, number, lane);
  known.insert(at, {key, id});
  return id;
}

// In the place of one that is over, or a new one. Runs in the source's set.
std::uint32_t PacketNetworkImpl::new_pair(const SendRequest& request, std::uint32_t number,
                                          std::uint64_t lane) {
  TransportPart& part = *parts_[state_.set_of_gpu[request.source]];
  std::uint32_t id = part.take_free_pair();
  OldPaths old;
  std::uint32_t use = 0;
  if (id == kNone) {
    id = static_cast<std::uint32_t>(state_.senders.grow(1));
  } else {
    const Names& n = state_.names[id];
    old = {state_.senders[id].path - 1,
           state_.receivers[id].back_path - 1,
           n.idle_path,
           n.data_room,
           n.back_room,
           n.idle_room};
    use = n.use + 1;
    state_.senders[id] = Sender{};
    if (state_.reliability.selective) state_.selective[id] = Selective{};
  }
  state_.receivers.make(id, 1);
  state_.names.make(id, 1);
  state_.congestion.make(id * state_.state_stride, state_.state_stride);
  if (state_.reliability.selective && use == 0) state_.selective.make(id, 1);
  Names& names = state_.names[id];
  names.source = request.source;
  names.destination = request.destination;
  names.number = number;
  names.use = use;
  state_.receivers[id].key =
      hash_combine(static_cast<std::uint64_t>(request.source) << 32 | request.destination, lane);
  if (cluster_.same_host(request.source, request.destination)) {
    connect_scale_up(id, part);
    return id;
  }
  // A step of packets that are routed one by one is not written over, so these pairs stay.
  if (request.traits.only_message && !fabric_.routes_packets()) {
    state_.traffic.make(id, 1);
    state_.senders[id].counted = state_.receivers[id].counted = true;
  }
  connect_scale_out(id, static_cast<std::uint8_t>(lane >> 32), part, old);
  return id;
}

void PacketNetworkImpl::connect_scale_up(std::uint32_t id, TransportPart& part) {
  const Gpu& from = cluster_.gpus[state_.names[id].source];
  const Gpu& to = cluster_.gpus[state_.names[id].destination];
  std::vector<std::uint32_t> path = scale_up_path(cluster_.graph, from.node, to.node);
  NETSIM_CHECK(!path.empty(), "GPUs of one host are not joined: " + cluster_.graph.node(from.node).name);
  Sender& s = state_.senders[id];
  s.injector = part.injector(path.front(), path.front());
  s.scale_up = true;
  s.mtu = static_cast<std::uint32_t>(cluster_.graph.port(path.front()).link.mtu);
  s.rate = s.line_rate = cluster_.graph.port(path.front()).link.rate;
  path.push_back(make_step(StepKind::deliver, id));
  s.path = fabric_.add_path(path) + 1;
}

// From GPU to GPU, over PCIe where NICs are nodes of their own; empty if there is no way.
std::vector<PortId> PacketNetworkImpl::data_ports(std::uint32_t id, const Routes& routes) const {
  const Gpu& from = cluster_.gpus[state_.names[id].source];
  const Gpu& to = cluster_.gpus[state_.names[id].destination];
  std::vector<PortId> ports = nic_path(cluster_.graph, routes, fabric_.down_ports(), from.nic, to.nic,
                                       fabric_.routing(), state_.receivers[id].key, fabric_.routing_seed());
  if (ports.empty()) return ports;
  if (from.node != from.nic) ports.insert(ports.begin(), port_between(cluster_.graph, from.node, from.nic));
  if (to.node != to.nic) ports.push_back(port_between(cluster_.graph, to.nic, to.node));
  return ports;
}

// The ACKs' five-tuple is another one, so they may take another way.
std::vector<PortId> PacketNetworkImpl::ack_ports(std::uint32_t id, const Routes& routes) const {
  const Gpu& from = cluster_.gpus[state_.names[id].source];
  const Gpu& to = cluster_.gpus[state_.names[id].destination];
  return nic_path(cluster_.graph, routes, fabric_.down_ports(), to.nic, from.nic, fabric_.routing(),
                  hash_combine(state_.receivers[id].key, 1), fabric_.routing_seed());
}

// Gives the queue pair its paths by these routes. Packets on their way keep the old ones. False: there is no
// way.
bool PacketNetworkImpl::route(std::uint32_t id, const Routes& routes, const OldPaths& old) {
  Receiver& r = state_.receivers[id];
  std::vector<PortId> data = data_ports(id, routes);
  std::vector<PortId> back = ack_ports(id, routes);
  if (data.empty() || back.empty()) return false;
  r.back_port = back.front();
  back.push_back(make_step(StepKind::control, id));
  Names& names = state_.names[id];
  names.data_room = old.data_room;
  names.back_room = old.back_room;
  names.idle_room = old.idle_room;
  r.back_path = put_path(back, old.back, names.back_room) + 1;
  std::vector<std::uint32_t> idle = data;
  idle.push_back(make_step(StepKind::deliver, id));
  names.idle_path = put_path(idle, old.idle, names.idle_room);
  std::vector<std::uint32_t> last{make_step(StepKind::receive, id)};
  if (r.pcie) {  // the receiver hands packets on to gpu_port itself
    data.pop_back();
    last.push_back(make_step(StepKind::deliver, id));
  }
  const Gpu& from = cluster_.gpus[state_.names[id].source];
  const std::size_t wire = from.node != from.nic ? 1 : 0;
  const bool routed = fabric_.routes_packets() && data.size() > wire + 1;
  if (routed) {
    const NodeId destination = cluster_.gpus[state_.names[id].destination].nic;
    data.resize(wire + 1);
    data.push_back(fabric_.route_step(destination));
  }
  data.insert(data.end(), last.begin(), last.end());
  state_.senders[id].path = put_path(data, old.data, names.data_room) + 1;
  if (routed)
    fabric_.set_route_step(data[wire + 1],
                           state_.senders[id].path - 1 + static_cast<std::uint32_t>(wire) + 1);
  return true;
}

// Where there is room for it, or behind all others. `room`: what there is there, then what it has.
std::uint32_t PacketNetworkImpl::put_path(const std::vector<std::uint32_t>& steps, std::uint32_t at,
                                          std::uint8_t& room) {
  if (steps.size() <= room) {
    fabric_.replace_path(at, steps);
    return at;
  }
  room = static_cast<std::uint8_t>(std::min<std::size_t>(steps.size(), UINT8_MAX));
  return fabric_.add_path(steps);
}

void PacketNetworkImpl::connect_scale_out(std::uint32_t id, std::uint8_t traffic_class, TransportPart& part,
                                          const OldPaths& old) {
  const Gpu& from = cluster_.gpus[state_.names[id].source];
  const Gpu& to = cluster_.gpus[state_.names[id].destination];
  if (traffic_class >= fabric_.classes()) {
    throw ConfigError("a flow is of class " + std::to_string(traffic_class) +
                      ", but network.switch.classes is " + std::to_string(fabric_.classes()));
  }
  Sender& s = state_.senders[id];
  Receiver& r = state_.receivers[id];
  s.traffic_class = r.traffic_class = traffic_class;
  s.mtu = static_cast<std::uint32_t>(state_.parameters.mtu);
  r.pcie = to.node != to.nic;
  if (r.pcie) r.gpu_port = port_between(cluster_.graph, to.nic, to.node);
  // Where links that are down leave no way, on the way of old.
  if (!route(id, *routes_, old)) {
    NETSIM_CHECK(route(id, *cluster_.routes, old), "no route from " + cluster_.graph.node(from.nic).name);
  }
  const std::span<const PortId> ports = fabric_.ports_of_path(state_.names[id].idle_path);
  const PortId first = ports[0], wire = ports[from.node != from.nic ? 1 : 0];
  s.injector = part.injector(first, wire);
  s.line_rate = s.rate = cluster_.graph.port(wire).link.rate;
  s.overhead = static_cast<std::uint16_t>(fabric_.overhead(wire));
  PathConstants& path = state_.path_constants(id);
  path.hops = static_cast<std::uint32_t>(ports.size()) - (from.node != from.nic ? 1 : 0) - (r.pcie ? 1 : 0);
  const Time round_trip = idle_round_trip(id);
  path.base_rtt = state_.parameters.base_rtt != 0 ? state_.parameters.base_rtt : round_trip;
  part.set_window(id, kNoWindow);
  part.start_congestion_control(id);
  part.check_path(id, round_trip);
}

// A full packet from NIC to NIC and its ACK back, in an idle network.
Time PacketNetworkImpl::idle_round_trip(std::uint32_t id) const {
  const Gpu& from = cluster_.gpus[state_.names[id].source];
  const std::span<const PortId> ports = fabric_.ports_of_path(state_.names[id].idle_path);
  const std::span<const PortId> wires =
      ports.subspan(from.node != from.nic ? 1 : 0, state_.path_constants(id).hops);
  const Bytes data = state_.parameters.mtu + state_.framing.header;
  const std::vector<PortId> back = ack_ports(id, *cluster_.routes);
  return fabric_.ideal_time(wires, 1, data, data, data) +
         fabric_.ideal_time(back, 1, state_.framing.ack, state_.framing.ack, state_.framing.ack);
}

// From send() to the last byte at the destination, alone in an idle network.
Time PacketNetworkImpl::ideal_time(std::uint32_t id, Bytes bytes) const {
  const Bytes mtu = state_.senders[id].mtu;
  const Bytes packets = (bytes + mtu - 1) / mtu;
  const Bytes full = mtu + state_.framing.header;
  const Bytes last =
      bytes - (packets - 1) * mtu + state_.framing.header + (packets == 1 ? state_.framing.first_header : 0);
  return fabric_.ideal_time(fabric_.ports_of_path(state_.names[id].idle_path),
                            static_cast<std::uint64_t>(packets), full + state_.framing.first_header, full,
                            last);
}

// Called by the fabric a detection delay after a link went down or came back.
void PacketNetworkImpl::routes_changed() {
  const std::vector<bool>& down = fabric_.down_ports();
  if (std::find(down.begin(), down.end(), true) == down.end()) {
    live_routes_.reset();
    routes_ = cluster_.routes.get();
  } else {
    live_routes_ = shortest_path_routes(cluster_.graph, cluster_.nics, down);
    routes_ = live_routes_.get();
  }
  fabric_.set_routes(routes_);
  for (std::uint32_t id = 0; id < state_.senders.size(); ++id) {
    if (!state_.senders[id].scale_up && state_.names[id].source != kNone) route(id, *routes_, {});
  }
}

}  // namespace netsim
