#include "sim/transport/connections/ideal_times.h"

#include <algorithm>

namespace netsim {

// Within a host a message's way is all of its path.
std::span<const PortId> IdealTimes::way(std::uint32_t id) const {
  const SenderState& s = state_.senders[id];
  return fabric_.ports_of_path(s.scale_up && !s.fan ? s.path - 1 : state_.records[id].idle.first);
}

// Within a host messages have no headers.
IdealTimes::Packets IdealTimes::packets(std::uint32_t id, Bytes bytes) const {
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

Time IdealTimes::time(std::span<const PortId> way, const Packets& packets, std::span<Time> waits) const {
  return fabric_.ideal_time(way, packets.count, packets.first, packets.full, packets.last, waits);
}

Time IdealTimes::of_message(std::uint32_t id, Bytes bytes) const {
  IdealMessage& kept = state_.ideal_messages[id];
  const std::uint64_t changes = fabric_.passage_changes() + state_.route_changes;
  if (kept.bytes != bytes || kept.changes != changes)
    kept = {bytes, time(way(id), packets(id, bytes)), changes};
  return kept.time;
}

const IdealPassage& IdealPassages::of_message(std::uint32_t id, Bytes bytes) {
  constexpr std::uint64_t kMix =
      0x9e3779b97f4a7c15;  // 2^64 by the golden ratio: Knuth's multiplicative hashing
  const std::span<const PortId> way = times_.way(id);
  const IdealTimes::Packets packets = times_.packets(id, bytes);
  if (kept_.empty()) kept_.resize(kKept);
  const std::uint64_t ends = static_cast<std::uint64_t>(way.front()) << 32 | way.back();
  Kept& kept = kept_[((ends * kMix ^ static_cast<std::uint64_t>(bytes)) * kMix >> 32) % kKept];
  if (kept.changes != times_.fabric_.passage_changes() || kept.packets != packets ||
      !std::equal(way.begin(), way.end(), kept.passage.ports.begin(), kept.passage.ports.end())) {
    kept.packets = packets;
    kept.passage.ports.assign(way.begin(), way.end());
    work_out(kept, id);
  }
  return kept.passage;
}

void IdealPassages::work_out(Kept& kept, std::uint32_t id) const {
  IdealPassage& passage = kept.passage;
  kept.changes = times_.fabric_.passage_changes();
  passage.waits.resize(passage.ports.size());
  passage.time = times_.time(passage.ports, kept.packets, passage.waits);
  passage.propagation = times_.time(passage.ports, times_.packets(id, 1));
  passage.slowest = *std::min_element(passage.ports.begin(), passage.ports.end(), [this](PortId a, PortId b) {
    return times_.fabric_.rate(a) < times_.fabric_.rate(b);
  });
}

}  // namespace netsim
