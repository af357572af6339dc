#include "sim/transport/connections/ideal_times.h"

#include <algorithm>

namespace netsim {

// Within a host a message's way is all of its path.
std::span<const PortId> IdealTimes::way(std::uint32_t id) const {
  const SenderState& s = state_.senders[id];
  return fabric_.ports_of_path(s.scale_up ? s.path - 1 : state_.records[id].idle.first);
}

// Within a host messages have no headers.
Time IdealTimes::time(std::uint32_t id, Bytes bytes, std::span<Time> waits) const {
  const SenderState& s = state_.senders[id];
  const Bytes mtu = s.mtu;
  const Bytes packets = (bytes + mtu - 1) / mtu;
  const auto count = static_cast<std::uint64_t>(packets);
  const Bytes last = bytes - (packets - 1) * mtu;
  if (s.scale_up) return fabric_.ideal_time(way(id), count, std::min(bytes, mtu), mtu, last, waits);
  const Bytes header = state_.framing.header, first_header = state_.framing.first_header;
  return fabric_.ideal_time(way(id), count, mtu + header + first_header, mtu + header,
                            last + header + (packets == 1 ? first_header : 0), waits);
}

void IdealTimes::of_message(std::uint32_t id, Bytes bytes, IdealPassage& passage) const {
  passage.ports = way(id);
  passage.waits.resize(passage.ports.size());
  passage.time = time(id, bytes, passage.waits);
  passage.slowest = *std::min_element(passage.ports.begin(), passage.ports.end(), [this](PortId a, PortId b) {
    return fabric_.rate(a) < fabric_.rate(b);
  });
}

}  // namespace netsim
