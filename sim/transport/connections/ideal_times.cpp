#include "sim/transport/connections/ideal_times.h"

namespace netsim {

Time IdealTimes::of_message(std::uint32_t id, Bytes bytes) const {
  const Bytes mtu = state_.senders[id].mtu;
  const Bytes packets = (bytes + mtu - 1) / mtu;
  const Bytes full = mtu + state_.framing.header;
  const Bytes last =
      bytes - (packets - 1) * mtu + state_.framing.header + (packets == 1 ? state_.framing.first_header : 0);
  return fabric_.ideal_time(fabric_.ports_of_path(state_.records[id].idle.first),
                            static_cast<std::uint64_t>(packets), full + state_.framing.first_header, full,
                            last);
}

}  // namespace netsim
