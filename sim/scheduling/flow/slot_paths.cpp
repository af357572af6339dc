#include "sim/scheduling/flow/slot_paths.h"

#include <algorithm>

namespace netsim {
namespace {

using Passages = std::vector<PortPassage>;

Passages at_switches(const Passages& path) {
  Passages result;
  std::copy_if(path.begin(), path.end(), std::back_inserter(result),
               [](const PortPassage& one) { return one.at_switch; });
  return result;
}

// Returns the time for which each port is needed by the packets of a slot. They leave one after the other,
// and behind the slowest port they are as far apart as it takes for one. A gap follows if the slot is long
// enough.
std::vector<SlotStep> steps_of(const Passages& path, const SlotLength& slot) {
  std::vector<SlotStep> steps;
  Time slowest = 0;
  for (const PortPassage& port : path) {
    const Time first = path.front().least_wire;
    const Time others = (slot.sends + first - 1) / first - 1;
    slowest = std::max(slowest, port.wire);
    const auto wanted = static_cast<Time>(static_cast<double>(port.wire) / slot.use) - port.wire;
    const Time end = port.departure + others * slowest;
    const Time gap = std::clamp<Time>(slot.length - (end - port.arrival), 0, wanted);
    steps.push_back({port.port, port.arrival, end + gap});
  }
  return steps;
}

// Returns which one of the sorted ports this is.
std::uint32_t number_of(const std::vector<PortId>& ports, PortId port) {
  return static_cast<std::uint32_t>(std::lower_bound(ports.begin(), ports.end(), port) - ports.begin());
}

void sort_unique(std::vector<PortId>& ports) {
  std::sort(ports.begin(), ports.end());
  ports.erase(std::unique(ports.begin(), ports.end()), ports.end());
}

// Returns, for each path, which uplink of its first switch it takes, among those that any path takes. A path
// of five switches has a second number, for its second switch.
std::vector<ClosPath> places_of(const std::vector<Passages>& fabric) {
  std::vector<PortId> first;
  std::map<PortId, std::vector<PortId>> second;
  for (const Passages& path : fabric) {
    if (path.size() < 3) continue;
    first.push_back(path[0].port);
    if (path.size() > 3) second[path[0].port].push_back(path[1].port);
  }
  sort_unique(first);
  for (auto& [uplink, ports] : second) sort_unique(ports);
  std::vector<ClosPath> places(fabric.size());
  for (std::size_t i = 0; i < fabric.size(); ++i) {
    const Passages& path = fabric[i];
    if (path.size() < 3) continue;
    places[i].aggregation = number_of(first, path[0].port);
    if (path.size() > 3) places[i].core = number_of(second[path[0].port], path[1].port);
  }
  return places;
}

}  // namespace

FlowPaths SlotPaths::find(const FlowsView& view, const FlowView& flow, const SlotLength& slot,
                          std::uint32_t most, Bytes payload) {
  FlowPaths result;
  std::vector<Passages> fabric;
  Ends ends;
  const std::uint32_t count = std::min(most, view.facts->path_count(flow));
  for (std::uint32_t hint = 0; hint < count; ++hint) {
    const Passages path = view.facts->passages(flow, hint, payload);
    result.paths.emplace_back().steps = steps_of(path, slot);
    const Passages& switches = fabric.emplace_back(at_switches(path));
    if (path.empty() || switches.empty()) continue;
    result.wire = path.front().wire;
    result.least_wire = path.front().least_wire;
    ends.from = switches.front().node;
    ends.to = switches.back().node;
    for (const PortPassage& port : path) {
      if (port.wire > path.front().wire)
        result.rate = std::min(result.rate == 0 ? INT64_MAX : result.rate, view.port_rates[port.port]);
    }
    if (switches.size() < 3) continue;
    ends.from_pod = std::min(ends.from_pod, switches[1].node);
    ends.to_pod = std::min(ends.to_pod, switches[switches.size() - 2].node);
  }
  const std::vector<ClosPath> places = places_of(fabric);
  for (std::size_t i = 0; i < places.size(); ++i) result.paths[i].place = places[i];
  result.from_rack = rack(ends.from, ends.from_pod);
  result.to_rack = rack(ends.to, ends.to_pod);
  return result;
}

// Returns the number of a rack. Its pod is that of the first path that leads out of it.
std::uint32_t SlotPaths::rack(NodeId node, NodeId pod) {
  const auto number = static_cast<std::uint32_t>(racks_.size());
  const std::uint32_t rack = racks_.try_emplace(node, number).first->second;
  if (rack == pod_of_.size()) pod_of_.push_back(0);
  if (pod != kNoId) {
    const auto next = static_cast<std::uint32_t>(pods_.size());
    pod_of_[rack] = pods_.try_emplace(pod, next).first->second;
  }
  return rack;
}

}  // namespace netsim
