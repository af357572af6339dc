// The part of Connections that makes the paths of queue pairs and changes them with the routes.
#include <algorithm>

#include "sim/network/path.h"
#include "sim/transport/connections/connections.h"

namespace netsim {

Connections::Ends Connections::ends(std::uint32_t id) const {
  const QueuePairIdentity& pair = state_.records[id].identity;
  return cluster_.nic_ends(pair.source, pair.destination, pair.number);
}

// Returns the steps from GPU to GPU, over PCIe where NICs are nodes of their own. Empty if there is no way.
std::vector<std::uint32_t> Connections::data_steps(std::uint32_t id, const Ends& ends, const Routes& routes,
                                                   std::uint32_t hint) const {
  std::vector<std::uint32_t> steps = nic_path(cluster_.graph, routes, fabric_.down_ports(),
                                              {ends.from.nic, ends.to.nic, state_.receivers[id].key, hint},
                                              fabric_.routing(), fabric_.channels(), fabric_.routing_seed());
  if (steps.empty()) return steps;
  steps.insert(steps.begin(), ends.from.ports.begin(), ends.from.ports.end());
  const std::vector<PortId> onward = reversed(ends.to.ports);
  steps.insert(steps.end(), onward.begin(), onward.end());
  return steps;
}

// Returns the steps of ACKs. Their five-tuple differs from that of data, so they may take another way.
std::vector<std::uint32_t> Connections::ack_steps(std::uint32_t id, const Ends& ends,
                                                  const Routes& routes) const {
  const Cluster::NicEnd &from = ends.from, &to = ends.to;
  return nic_path(cluster_.graph, routes, fabric_.down_ports(), {to.nic, from.nic, back_flow(id)},
                  fabric_.routing(), fabric_.channels(), fabric_.routing_seed());
}

// Gives the queue pair its paths by these routes. `in_use` means that packets may be on its present paths,
// which are then kept. Returns false if there is no way.
bool Connections::route(std::uint32_t id, const Routes& routes, bool in_use) {
  ReceiverState& r = state_.receivers[id];
  QueuePairRecord& record = state_.records[id];
  const Ends way = ends(id);
  const std::vector<std::uint32_t> data = data_steps(id, way, routes);
  std::vector<std::uint32_t> back = ack_steps(id, way, routes);
  if (data.empty() || back.empty()) return false;
  r.back_port = back.front();
  const std::uint32_t end = make_step(StepKind::control, id);
  std::vector<FormerPaths::Path>* former = in_use ? &former_paths(id).back : nullptr;
  if (fabric_.routes_acknowledgements()) {
    put_routed_path(record.back, {back.front()}, {way.from.nic, back_flow(id)}, {end}, former);
  } else {
    back.push_back(end);
    if (!keep_path(record.back, back, former)) put_path(record.back, back, former);
  }
  r.back_path = record.back.first + 1;
  std::vector<std::uint32_t> idle = ports_of_steps(data);
  idle.push_back(make_step(StepKind::deliver, id));
  if (!begins_with(record.idle, idle)) {
    if (in_use) note_former_way(id);
    put_path(record.idle, idle, nullptr);
  }
  route_data(id, way, data, in_use);
  if (in_use) route_hinted(id, way, routes);
  return true;
}

void Connections::note_former_way(std::uint32_t id) {
  const QueuePairRecord& record = state_.records[id];
  TransportState::FormerWays& former = state_.former_ways[id];
  if (former.use != record.identity.use) former = {record.identity.use, {}};
  const std::span<const PortId> way = fabric_.ports_of_path(record.idle.first);
  const bool known =
      std::any_of(former.ways.begin(), former.ways.end(), [&](const std::vector<PortId>& other) {
        return std::equal(other.begin(), other.end(), way.begin(), way.end());
      });
  if (!known) former.ways.emplace_back(way.begin(), way.end());
}

// Returns the steps of packets from their arrival at the receiver on. Removes them from `steps`, which lead
// to the GPU.
std::vector<std::uint32_t> Connections::arrival_steps(std::uint32_t id, const Ends& ends,
                                                      std::vector<std::uint32_t>& steps) const {
  std::vector<std::uint32_t> last{make_step(StepKind::receive, id)};
  if (!state_.receivers[id].pcie) return last;
  // The receiver itself passes packets on to gpu_port.
  const auto onward = steps.end() - static_cast<std::ptrdiff_t>(ends.to.ports.size());
  last.insert(last.end(), onward + 1, steps.end());
  last.push_back(make_step(StepKind::deliver, id));
  steps.erase(onward, steps.end());
  return last;
}

// Sets the path of the queue pair's packets to `steps`. If packets are routed one by one, only the steps
// before the first switch are used.
void Connections::route_data(std::uint32_t id, const Ends& ends, std::vector<std::uint32_t> steps,
                             bool in_use) {
  PathPlace& place = state_.records[id].data;
  const std::size_t before_switch = ends.from.ports.size() + 1;
  const std::vector<std::uint32_t> last = arrival_steps(id, ends, steps);
  std::vector<FormerPaths::Path>* former = in_use ? &former_paths(id).data : nullptr;
  if (fabric_.routes_packets() && steps.size() > before_switch) {
    steps.resize(before_switch);
    put_routed_path(place, std::move(steps), {ends.to.nic, state_.receivers[id].key}, last, former);
  } else {
    steps.insert(steps.end(), last.begin(), last.end());
    if (!keep_path(place, steps, former)) put_path(place, steps, former);
  }
  state_.senders[id].path = place.first + 1;
}

// Adds a path whose middle part switches choose: `steps` before it, `last` behind.
void Connections::put_routed_path(PathPlace& place, std::vector<std::uint32_t> steps, const Toward& toward,
                                  const std::vector<std::uint32_t>& last,
                                  std::vector<FormerPaths::Path>* former) {
  if (keep_path(place, steps, former)) return;
  const auto at = static_cast<std::uint32_t>(steps.size());
  steps.push_back(fabric_.route_step(toward.nic, toward.flow));
  steps.insert(steps.end(), last.begin(), last.end());
  put_path(place, steps, former);
  fabric_.set_route_step(steps[at], place.first + at);
}

// ---- Paths of messages with path hints

// Returns all steps of a path that no switch chooses, given those from GPU to GPU.
std::vector<std::uint32_t> Connections::whole_path(std::uint32_t id, const Ends& ends,
                                                   std::vector<std::uint32_t> steps) const {
  const std::vector<std::uint32_t> last = arrival_steps(id, ends, steps);
  steps.insert(steps.end(), last.begin(), last.end());
  return steps;
}

std::uint32_t Connections::hinted_path(std::uint32_t id, std::uint32_t hint) {
  if (hint == kNoPathHint || state_.senders[id].scale_up) return kNone;
  if (!takes_hints() || (fabric_.routes_packets() && !fabric_.spreads_flows())) ignored_hints_ = true;
  if (!takes_hints() || fabric_.routes_packets()) return kNone;
  QueuePairRecord& record = state_.records[id];
  Arena<HintedPath>& paths = sender_of(record.identity.source).hinted_paths();
  std::uint32_t unused = kNone;
  for (std::uint32_t at = record.hinted; at != kNone; at = paths[at].next) {
    if (paths[at].hint == hint) return at;
    if (paths[at].hint == kNoPathHint) unused = at;
  }
  const Ends way = ends(id);
  std::vector<std::uint32_t> steps = data_steps(id, way, *routes_, hint);
  // If links that are down leave no way, the messages take the original one, as the queue pair's own path
  // does.
  if (steps.empty()) steps = data_steps(id, way, *cluster_.routes, hint);
  if (unused == kNone) record.hinted = unused = paths.add({kNoPathHint, {}, record.hinted});
  paths[unused].hint = hint;
  put_path(paths[unused].place, whole_path(id, way, std::move(steps)), nullptr);
  return unused;
}

// Gives the queue pair's messages with path hints their paths by changed routes. Packets may be on the
// present ones.
void Connections::route_hinted(std::uint32_t id, const Ends& ends, const Routes& routes) {
  const QueuePairRecord& record = state_.records[id];
  Sender& sender = sender_of(record.identity.source);
  Arena<HintedPath>& paths = sender.hinted_paths();
  for (std::uint32_t at = record.hinted; at != kNone; at = paths[at].next) {
    if (paths[at].hint == kNoPathHint) continue;
    std::vector<std::uint32_t> steps = data_steps(id, ends, routes, paths[at].hint);
    if (steps.empty()) continue;
    steps = whole_path(id, ends, std::move(steps));
    std::vector<FormerPaths::Path>* former = &former_paths(id).data;
    if (!keep_path(paths[at].place, steps, former)) put_path(paths[at].place, steps, former);
  }
  sender.set_own_path(id, record.data.first + 1);
}

std::uint32_t Connections::path_count(const Message& message) const {
  if (is_scale_up(cluster_.way(message.source, message.destination)) || fabric_.routes_packets()) return 1;
  const Lane lane = lane_of(message);
  const Ends ends = cluster_.nic_ends(message.source, message.destination, lane.number);
  return count_path_hints(cluster_.graph, *routes_, fabric_.down_ports(),
                          {ends.from.nic, ends.to.nic, flow_of(message, lane)}, fabric_.routing(),
                          fabric_.channels(), fabric_.routing_seed());
}

std::vector<PortId> Connections::path_of(const Message& message) const {
  if (is_scale_up(cluster_.way(message.source, message.destination)))
    return scale_up_path(cluster_, message.source, message.destination);
  if (fabric_.routes_packets()) return {};
  const Lane lane = lane_of(message);
  const Ends ends = cluster_.nic_ends(message.source, message.destination, lane.number);
  std::vector<PortId> ports =
      ports_of_steps(nic_path(cluster_.graph, *routes_, fabric_.down_ports(),
                              {ends.from.nic, ends.to.nic, flow_of(message, lane), message.traits.path_hint},
                              fabric_.routing(), fabric_.channels(), fabric_.routing_seed()));
  if (ports.empty()) return {};
  ports.insert(ports.begin(), ends.from.ports.begin(), ends.from.ports.end());
  const std::vector<PortId> onward = reversed(ends.to.ports);
  ports.insert(ports.end(), onward.begin(), onward.end());
  return ports;
}

std::vector<PortPassage> Connections::passages(const Message& message, Bytes payload) const {
  if (is_scale_up(cluster_.way(message.source, message.destination))) return {};
  const FabricTransport& transport =
      state_.transports[state_.transport_between(message.source, message.destination)];
  const Bytes least = std::min(payload, transport.parameters.mtu) + transport.framing.header;
  const Bytes most = least + transport.framing.first_header;
  std::vector<PortPassage> passages;
  Time earliest = 0, latest = 0;
  for (const PortId port : path_of(message)) {
    const NodeId node = cluster_.graph.port(port).node;
    const Time wire = fabric_.wire_time(port, most);
    passages.push_back({port, node, cluster_.graph.node(node).kind == NodeKind::fabric_switch, earliest,
                        latest + wire, wire, fabric_.wire_time(port, least)});
    earliest += fabric_.passage_time(port, least);
    latest += fabric_.passage_time(port, most);
  }
  return passages;
}

// ---- Storage of paths

Connections::FormerPaths& Connections::former_paths(std::uint32_t id) {
  if (former_paths_.size() <= id) former_paths_.resize(state_.senders.size());
  return former_paths_[id];
}

bool Connections::begins_with(const PathPlace& place, const std::vector<std::uint32_t>& steps) const {
  return place.room >= steps.size() && fabric_.path_begins_with(place.first, steps);
}

// Returns whether a path that begins with these steps exists. It may be the present one, or a former one,
// which is then exchanged with it. A link that repeatedly fails and recovers causes the same few paths again
// and again.
bool Connections::keep_path(PathPlace& place, const std::vector<std::uint32_t>& steps,
                            std::vector<FormerPaths::Path>* former) const {
  if (begins_with(place, steps)) return true;
  if (former == nullptr) return false;
  const auto found = std::find_if(former->begin(), former->end(), [&](const FormerPaths::Path& path) {
    return begins_with(path.place, steps);
  });
  if (found == former->end()) return false;
  std::swap(found->place, place);
  found->free = false;
  return true;
}

// Stores a path. It overwrites the present path if there are no former ones, because then no packet is on it.
// Otherwise it overwrites a former path that no packet is on, or is added behind all others.
void Connections::put_path(PathPlace& place, const std::vector<std::uint32_t>& steps,
                           std::vector<FormerPaths::Path>* former) {
  const auto fits = [&](const PathPlace& there) { return steps.size() <= there.room; };
  if (former != nullptr && place.room != 0) {
    const auto found = std::find_if(former->begin(), former->end(), [&](const FormerPaths::Path& path) {
      return path.free && fits(path.place);
    });
    const PathPlace present = place;
    if (found == former->end()) {
      place = {};
      former->push_back({present, false});
    } else {
      place = found->place;
      *found = {present, false};
    }
  }
  if (fits(place)) {
    fabric_.replace_path(place.first, steps);
  } else {
    place = {fabric_.add_path(steps), static_cast<std::uint32_t>(steps.size())};
  }
}

// Called by the fabric `detection_delay` after a link went down or came back, or when other circuits are to
// carry packets.
void Connections::routes_changed() {
  ++state_.route_changes;
  state_.routes_changed_at = fabric_.now();
  const std::vector<bool>& down = fabric_.down_ports();
  if (down == down_at_start_) {
    live_routes_.reset();
    routes_ = cluster_.routes.get();
  } else {
    live_routes_ = cluster_.routes->without(cluster_.graph, cluster_.nics, down, fabric_.ordered_channels());
    routes_ = live_routes_.get();
  }
  fabric_.set_routes(routes_);
  trees_.close_broken(down);
  if (fabric_.routes_acknowledgements()) return;  // switches choose all ways
  for (std::uint32_t id = 0; id < state_.senders.size(); ++id) {
    if (!state_.senders[id].scale_up && !state_.records[id].identity.source.is_none())
      route(id, *routes_, true);
  }
}

void Connections::FormerPaths::set_free() {
  for (std::vector<Path>* paths : {&data, &back}) {
    for (Path& path : *paths) path.free = true;
  }
}

}  // namespace netsim
