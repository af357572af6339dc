#include "sim/transport/connections/ideal_times.h"

#include <algorithm>

namespace netsim {

// Returns the ports of the queue pair's way. Within a host it is the whole path.
std::span<const PortId> IdealTimes::way(std::uint32_t id) const {
  const SenderState& s = state_.senders[id];
  return fabric_.ports_of_path(s.scale_up && !s.aggregation ? s.path - 1 : state_.records[id].idle.first);
}

// Returns the packets of a message. Within a host they have no headers.
PacketTrain IdealTimes::packets(std::uint32_t id, Bytes bytes) const {
  const SenderState& s = state_.senders[id];
  const Bytes mtu = s.mtu;
  const Bytes count = (bytes + mtu - 1) / mtu;
  const Bytes last = bytes - (count - 1) * mtu;
  if (s.scale_up) {
    const Bytes header = state_.records[id].header;
    return {static_cast<std::uint64_t>(count), std::min(bytes, mtu) + header, mtu + header, last + header};
  }
  const Framing& framing = state_.of(s).framing;
  const Bytes header = framing.header, first_header = framing.first_header;
  return {static_cast<std::uint64_t>(count), mtu + header + first_header, mtu + header,
          last + header + (count == 1 ? first_header : 0)};
}

// Returns whether each packet of the queue pair may take another way.
bool IdealTimes::is_spread(std::uint32_t id) const {
  if (state_.senders[id].scale_up || !fabric_.routes_packets()) return false;
  const std::span<const PortId> ports = way(id);
  return std::any_of(ports.begin(), ports.end(), [this](PortId port) { return fabric_.at_switch(port); });
}

// Returns the time of a message during which routes did not change.
Time IdealTimes::time_now(std::uint32_t id, const PacketTrain& packets) {
  if (!is_spread(id)) return fabric_.ideal_time(way(id), packets);
  if (fabric_.leads_anywhere()) return spread_.anywhere(way(id), packets);
  return spread_.over_routes(way(id), packets, state_.route_changes);
}

Time IdealTimes::time_through_changes(std::uint32_t id, const PacketTrain& packets) {
  if (is_spread(id)) return spread_.anywhere(way(id), packets);
  if (state_.senders[id].scale_up) return fabric_.ideal_time(way(id), packets);
  std::vector<std::vector<PortId>> ways;
  const auto former = state_.former_ways.find(id);
  if (former != state_.former_ways.end() && former->second.use == state_.records[id].identity.use)
    ways = former->second.ways;
  ways.emplace_back(way(id).begin(), way(id).end());
  return spread_.over_ways(ways, packets);
}

Time IdealTimes::of_message(std::uint32_t id, Bytes bytes, Time start) {
  if (start < state_.routes_changed_at) return time_through_changes(id, packets(id, bytes));
  IdealMessage& kept = state_.ideal_messages[id];
  if (kept.bytes != bytes || kept.changes != changes())
    kept = {bytes, time_now(id, packets(id, bytes)), changes()};
  return kept.time;
}

const IdealPassage& IdealPassages::of_message(std::uint32_t id, Bytes bytes) {
  constexpr std::uint64_t kMix =
      // 2^64 divided by the golden ratio: Knuth's multiplicative hashing.
      0x9e3779b97f4a7c15;
  const std::span<const PortId> way = times_.way(id);
  const PacketTrain packets = times_.packets(id, bytes);
  if (kept_.empty()) kept_.resize(kKept);
  const std::uint64_t ends = static_cast<std::uint64_t>(way.front()) << 32 | way.back();
  Kept& kept = kept_[((ends * kMix ^ static_cast<std::uint64_t>(bytes)) * kMix >> 32) % kKept];
  if (kept.changes != times_.changes() || kept.packets != packets ||
      !std::equal(way.begin(), way.end(), kept.passage.ports.begin(), kept.passage.ports.end())) {
    kept.packets = packets;
    kept.passage.ports.assign(way.begin(), way.end());
    work_out(kept, id);
  }
  return kept.passage;
}

void IdealPassages::work_out(Kept& kept, std::uint32_t id) const {
  IdealPassage& passage = kept.passage;
  kept.changes = times_.changes();
  passage.waits.resize(passage.ports.size());
  const Time one_way = times_.fabric_.ideal_time(passage.ports, kept.packets, passage.waits);
  passage.time = std::min(one_way, times_.time_now(id, kept.packets));
  passage.propagation = times_.time_now(id, times_.packets(id, 1));
  passage.slowest = *std::min_element(passage.ports.begin(), passage.ports.end(), [this](PortId a, PortId b) {
    return times_.fabric_.rate(a) < times_.fabric_.rate(b);
  });
}

}  // namespace netsim
