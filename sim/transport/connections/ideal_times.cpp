#include "sim/transport/connections/ideal_times.h"

#include <algorithm>

namespace netsim {

// Within a host messages have no headers, and their way is all of their path.
Time IdealTimes::of_message(std::uint32_t id, Bytes bytes) const {
  const SenderState& s = state_.senders[id];
  const Bytes mtu = s.mtu;
  const Bytes packets = (bytes + mtu - 1) / mtu;
  if (s.scale_up) {
    return fabric_.ideal_time(fabric_.ports_of_path(s.path - 1), static_cast<std::uint64_t>(packets),
                              std::min(bytes, mtu), mtu, bytes - (packets - 1) * mtu);
  }
  const Bytes full = mtu + state_.framing.header;
  const Bytes last =
      bytes - (packets - 1) * mtu + state_.framing.header + (packets == 1 ? state_.framing.first_header : 0);
  return fabric_.ideal_time(fabric_.ports_of_path(state_.records[id].idle.first),
                            static_cast<std::uint64_t>(packets), full + state_.framing.first_header, full,
                            last);
}

void IdealTimes::tell(std::uint32_t id, SendRequest& request) const {
  request.idle = of_message(id, request.bytes);
  request.idle_first_byte = of_message(id, 1);
}

}  // namespace netsim
