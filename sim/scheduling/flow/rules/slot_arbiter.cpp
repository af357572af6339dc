#include "sim/scheduling/flow/rules/slot_arbiter.h"

#include <algorithm>

namespace netsim {

// ---- PortCalendar

bool PortCalendar::is_free(std::span<const SlotStep> path, Time begin) const {
  return std::all_of(path.begin(), path.end(), [&](const SlotStep& step) {
    if (step.port >= ports_.size()) return true;
    const std::vector<Reservation>& port = ports_[step.port];
    return std::none_of(port.begin(), port.end(), [&](const Reservation& other) {
      return begin + step.begin < other.end && other.begin < begin + step.end;
    });
  });
}

void PortCalendar::reserve(std::span<const SlotStep> path, Time begin) {
  for (const SlotStep& step : path) {
    if (step.port >= ports_.size()) ports_.resize(step.port + 1);
    std::vector<Reservation>& port = ports_[step.port];
    std::erase_if(port, [&](const Reservation& other) { return other.end <= now_; });
    port.push_back({begin + step.begin, begin + step.end});
    last_end_ = std::max(last_end_, begin + step.end);
  }
}

void PortCalendar::cancel(std::span<const SlotStep> path, Time begin) {
  for (const SlotStep& step : path) {
    if (step.port < ports_.size())
      std::erase(ports_[step.port], Reservation{begin + step.begin, begin + step.end});
  }
}

// ---- SlotArbiter

std::vector<SlotGrant> SlotArbiter::serve(Time now, Time length, std::span<const SlotFlow> flows,
                                          std::uint32_t interfaces, std::span<const std::uint32_t> pod_of,
                                          SlotOrder order) {
  now_ = now;
  length_ = length;
  calendar_.set_now(now);
  patience_ = static_cast<std::uint32_t>(std::max<Time>(0, calendar_.last_end() - now) / length) + 1;
  sends_.assign(interfaces, 0);
  receives_.assign(interfaces, 0);
  blocked_.assign(flows.size(), 0);
  grants_.clear();
  serve_booked(flows);
  const std::vector<std::uint32_t> asked =
      asked_in_order(std::vector<SlotDemand>(flows.begin(), flows.end()), order);
  // A flow that edge colours leave without a path frees its ends for others, which are asked again.
  for (match(flows, asked); !matched_.empty(); match(flows, asked)) place(flows, pod_of);
  return std::move(grants_);
}

bool SlotArbiter::ends_are_free(const SlotFlow& flow) const {
  return sends_[flow.source] == 0 && receives_[flow.destination] == 0;
}

void SlotArbiter::set_ends(const SlotFlow& flow, bool busy) {
  sends_[flow.source] = receives_[flow.destination] = busy ? 1 : 0;
}

std::uint32_t SlotArbiter::free_path(const SlotFlow& flow, Time begin) const {
  for (std::uint32_t path = 0; path < flow.paths.size(); ++path) {
    if (calendar_.is_free(flow.paths[path].steps, begin)) return path;
  }
  return kNoPath;
}

void SlotArbiter::grant(std::span<const SlotFlow> flows, std::uint32_t flow, std::uint32_t path) {
  calendar_.reserve(flows[flow].paths[path].steps, now_);
  set_ends(flows[flow], true);
  flows[flow].turn->blocked = 0;
  grants_.push_back({flow, path});
}

// Serves the flows for which this slot is booked. A booking whose flow is over has no effect.
void SlotArbiter::serve_booked(std::span<const SlotFlow> flows) {
  for (std::uint32_t flow = 0; flow < flows.size(); ++flow) {
    SlotTurn& turn = *flows[flow].turn;
    if (turn.booked == kNever || turn.booked > now_) continue;
    const std::vector<SlotStep>& steps = flows[flow].paths[turn.booked_path].steps;
    calendar_.cancel(steps, turn.booked);
    const bool serves = turn.booked == now_ && flows[flow].slots > 0 && ends_are_free(flows[flow]) &&
                        calendar_.is_free(steps, now_);
    turn.booked = kNever;
    if (serves) grant(flows, flow, turn.booked_path);
  }
}

// Asks all flows in order. A flow that has been blocked for long gets its path before all others.
void SlotArbiter::match(std::span<const SlotFlow> flows, std::span<const std::uint32_t> order) {
  matched_.clear();
  for (const std::uint32_t asked : order) {
    const SlotFlow& flow = flows[asked];
    if (flow.slots == 0 || flow.turn->booked != kNever || blocked_[asked] != 0 || !ends_are_free(flow))
      continue;
    const bool waits_long = flow.turn->blocked > patience_;
    const std::uint32_t path = free_path(flow, now_);
    if (path == kNoPath) {
      block(flows, asked);
      if (waits_long) book(flow);
    } else if (waits_long) {
      grant(flows, asked, path);
    } else {
      set_ends(flow, true);
      matched_.push_back(asked);
    }
  }
}

// Leaves a flow out in this slot, because it has no free path.
void SlotArbiter::block(std::span<const SlotFlow> flows, std::uint32_t flow) {
  blocked_[flow] = 1;
  ++flows[flow].turn->blocked;
}

// Reserves the first slot in which the flow has a free path. There is one, because reservations end.
void SlotArbiter::book(const SlotFlow& flow) {
  for (Time begin = now_ + length_;; begin += length_) {
    const std::uint32_t path = free_path(flow, begin);
    if (path == kNoPath) continue;
    calendar_.reserve(flow.paths[path].steps, begin);
    flow.turn->booked = begin;
    flow.turn->booked_path = path;
    return;
  }
}

// Gives the matched flows their paths by edge colours. A flow whose path is not free gets another one, after
// all others. Without one it waits for the next slot.
void SlotArbiter::place(std::span<const SlotFlow> flows, std::span<const std::uint32_t> pod_of) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> racks;
  for (const std::uint32_t flow : matched_) racks.emplace_back(flows[flow].from_rack, flows[flow].to_rack);
  const std::vector<ClosPath> places = clos_paths(racks, pod_of);
  std::vector<std::uint32_t> others;
  for (std::size_t i = 0; i < matched_.size(); ++i) {
    const std::span<const SlotPath> paths = flows[matched_[i]].paths;
    const auto path =
        std::find_if(paths.begin(), paths.end(), [&](const SlotPath& one) { return one.place == places[i]; });
    if (path != paths.end() && calendar_.is_free(path->steps, now_))
      grant(flows, matched_[i], static_cast<std::uint32_t>(path - paths.begin()));
    else
      others.push_back(matched_[i]);
  }
  for (const std::uint32_t flow : others) {
    const std::uint32_t path = free_path(flows[flow], now_);
    if (path != kNoPath) {
      grant(flows, flow, path);
    } else {
      set_ends(flows[flow], false);
      block(flows, flow);
    }
  }
}

}  // namespace netsim
