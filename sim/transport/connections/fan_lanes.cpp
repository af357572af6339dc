#include "sim/transport/connections/fan_lanes.h"

#include <algorithm>
#include <utility>

#include "sim/core/random.h"
#include "sim/network/path.h"

namespace netsim {

// ---- Where fans are

// Any other GPU of the fan shows the way: all are behind one switch.
PortId port_into_fan(const Cluster& cluster, std::uint32_t gpu, const SwitchFan& fan) {
  const auto other = std::find_if(fan.members.begin(), fan.members.end(),
                                  [&](std::uint32_t member) { return member != gpu; });
  const std::uint32_t to = other != fan.members.end() ? *other : fan.head;
  const WayKind way = to == gpu ? WayKind::packets : cluster.way(gpu, to);
  if (way != WayKind::nvlink && way != WayKind::nvlink_fabric) return kNoId;
  const std::vector<PortId> path = scale_up_path(cluster, gpu, to);
  return path.size() == 2 ? path.front() : kNoId;
}

std::string objection(const Cluster& cluster, const SwitchFan& fan) {
  const Graph& graph = cluster.graph;
  const auto switch_of = [&](std::uint32_t gpu) {
    const PortId port = port_into_fan(cluster, gpu, fan);
    return port == kNoId ? kNoId : graph.port(port).peer_node;
  };
  const NodeId joint = switch_of(fan.head);
  for (const std::uint32_t member : fan.members) {
    if (joint == kNoId || switch_of(member) != joint)
      return "no switch joins " + graph.node(cluster.gpus[fan.head].node).name + " and " +
             graph.node(cluster.gpus[member].node).name + " directly";
  }
  if (graph.node(joint).combining.efficiency > 0) return "";
  return graph.node(joint).name + " of a " + cluster.group_of(fan.head).kind +
         " neither copies nor adds up (NVSwitches do since H100)";
}

// ---- Lanes

std::size_t FanLanes::KeyHash::operator()(const Key& key) const {
  std::uint64_t hash = hash_combine(reinterpret_cast<std::uintptr_t>(key.fan), key.communication);
  hash = hash_combine(hash, key.tag);
  return static_cast<std::size_t>(
      hash_combine(hash, static_cast<std::uint64_t>(key.job) << 8 | static_cast<std::uint64_t>(key.use)));
}

std::uint32_t FanLanes::lane_of(const Key& key) {
  if (const auto known = lane_of_.find(key); known != lane_of_.end()) return known->second;
  const Key of_fan{key.fan, key.use, key.job, 0, 0};
  std::vector<std::uint32_t>& same = lanes_of_fan_[of_fan];
  const auto idle = std::find_if(same.begin(), same.end(),
                                 [&](std::uint32_t lane) { return lanes_[lane].on_their_way == 0; });
  if (idle == same.end()) {
    same.push_back(new_lane(key, lanes_of_head_[key.fan->head]++));
    return lane_of_[key] = same.back();
  }
  lane_of_.erase(lanes_[*idle].key);
  lanes_[*idle].key = key;
  return lane_of_[key] = *idle;
}

// The number of a lane among those of its head.
std::uint32_t FanLanes::new_lane(const Key& key, std::uint32_t number) {
  const auto lane = static_cast<std::uint32_t>(lanes_.size());
  lanes_.emplace_back().key = key;
  if (key.use == FanUse::multicast) {
    connect_multicast(lane, number);
  } else {
    connect_reduction(lane, number);
  }
  return lane;
}

// Queue pairs of fans have numbers beyond all channels: a lane has 2, out of the switch and into it.
std::uint32_t FanLanes::new_pair(std::uint32_t lane, std::uint32_t member, std::uint32_t source,
                                 std::uint32_t destination, std::uint32_t number) {
  const Cluster& cluster = state_.cluster;
  const SwitchFan& fan = *lanes_[lane].key.fan;
  const PortId up = port_into_fan(cluster, source, fan), down = port_into_fan(cluster, destination, fan) ^ 1U;
  const Combining& combining = cluster.graph.node(cluster.graph.port(up).peer_node).combining;
  constexpr std::uint32_t kBeyondChannels = 1U << 31;
  const std::uint32_t id = connections_.fan_pair(
      {source, destination, lanes_[lane].key.job, kBeyondChannels + number, {up, down}}, combining);
  places_[id] = {lane, member};
  return id;
}

void FanLanes::connect_multicast(std::uint32_t lane, std::uint32_t number) {
  const SwitchFan& fan = *lanes_[lane].key.fan;
  const Cluster& cluster = state_.cluster;
  std::vector<SwitchFans::Branch> branches;
  for (std::uint32_t i = 0; i < fan.members.size(); ++i) {
    const std::uint32_t member = fan.members[i];
    const std::uint32_t out = new_pair(lane, i, fan.head, member, 2 * number);
    lanes_[lane].out.push_back(out);
    branches.push_back({port_into_fan(cluster, member, fan) ^ 1U, 0});
    branches.back().path = connections_.path_of(out) + 2;
  }
  const std::uint32_t in = new_pair(lane, 0, fan.head, fan.head, 2 * number + 1);
  const std::uint32_t step = fabric_.fans().add_multicast(std::move(branches));
  connections_.set_fan_path(
      in, {port_into_fan(cluster, fan.head, fan), make_step(StepKind::route, kFanTarget | step)}, in);
  lanes_[lane].in.push_back(in);
  lanes_[lane].copies.assign(fan.members.size(), 0);
}

void FanLanes::connect_reduction(std::uint32_t lane, std::uint32_t number) {
  const SwitchFan& fan = *lanes_[lane].key.fan;
  const Cluster& cluster = state_.cluster;
  std::vector<PortId> from;
  for (const std::uint32_t member : fan.members) from.push_back(port_into_fan(cluster, member, fan));
  std::sort(from.begin(), from.end());
  const std::uint32_t step = fabric_.fans().add_reduction(std::move(from));
  for (std::uint32_t i = 0; i < fan.members.size(); ++i) {
    const std::uint32_t in = new_pair(lane, i, fan.members[i], fan.head, 2 * number + 1);
    connections_.set_fan_path(
        in,
        {port_into_fan(cluster, fan.members[i], fan), make_step(StepKind::route, kFanTarget | step),
         port_into_fan(cluster, fan.head, fan) ^ 1U},
        in);
    lanes_[lane].in.push_back(in);
  }
}

// ---- Messages

void FanLanes::send(const SendRequest& request) {
  const std::uint32_t number =
      lane_of({request.fan, request.fan_use, request.traits.job, request.communication, request.tag});
  Lane& lane = lanes_[number];
  const auto& members = request.fan->members;
  if (request.fan_use == FanUse::reduction) {
    ++lane.on_their_way;
    const auto member = std::find(members.begin(), members.end(), request.source) - members.begin();
    sender_.send(lane.in[static_cast<std::size_t>(member)], request);
    return;
  }
  lane.on_their_way += members.size();
  lane.open.push_back({request, loop_.now(), static_cast<std::uint32_t>(members.size())});
  sender_.send(lane.in.front(), request);
}

void FanLanes::delivered(std::uint32_t id, std::uint32_t packet) {
  const Place place = places_.at(id);
  Lane& lane = lanes_[place.lane];
  if (lane.key.use == FanUse::multicast) {
    copy_delivered(lane, place.member, id, packet);
  } else {
    sum_delivered(lane, place.member, id, packet);
  }
}

// Of the packet that has come last, whose queue pair this is.
DelayTeller* FanLanes::delays(std::uint32_t id, Bytes bytes, Time start, std::uint32_t packet) {
  if (!state_.traced) return nullptr;
  return delays_.of(id, bytes, loop_.now() - start, fabric_.packets().trace_of(packet));
}

void FanLanes::copy_delivered(Lane& lane, std::uint32_t member, std::uint32_t id, std::uint32_t packet) {
  Lane::Open& open = lane.open[static_cast<std::size_t>(lane.copies[member]++ - lane.first_open)];
  SendRequest copy = open.request;
  copy.destination = lane.key.fan->members[member];
  copy.delays = delays(id, copy.bytes, open.start, packet);
  --lane.on_their_way;
  const bool last = --open.left == 0;
  if (last) {  // of the first open one: every member has all that was sent before
    lane.open.pop_front();
    ++lane.first_open;
    sender_.end_oldest(lane.in.front());
  }
  state_.listener->message_delivered(copy);
  if (last) state_.listener->message_sent(copy);
}

// What is told may send more, also on this lane, behind what is ended here.
void FanLanes::sum_delivered(Lane& lane, std::uint32_t member, std::uint32_t id, std::uint32_t packet) {
  std::vector<SendRequest> ended;
  for (std::uint32_t i = 0; i < lane.in.size(); ++i) {
    auto [request, start] = sender_.end_oldest(lane.in[i]);
    if (i == member) request.delays = delays(id, request.bytes, start, packet);
    ended.push_back(request);
  }
  lane.on_their_way -= lane.in.size();
  state_.listener->message_delivered(ended[member]);
  for (const SendRequest& request : ended) state_.listener->message_sent(request);
}

}  // namespace netsim
