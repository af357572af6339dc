#include "sim/network/ideal_time.h"

#include <algorithm>

namespace netsim {

// When the last packet starts on each link in turn: when it is there and the one before it has been sent.
// That one, the last of a train of equal packets behind the first, starts when the longest of these chains
// ends: the first packet up to some link, the second from there on, and the others all at the slowest link
// between there and here (a tandem of queues as a longest path: Glynn and Whitt, Departures from many queues
// in series, Annals of Applied Probability, 1991).
Time ideal_time(const FabricState& state, std::span<const PortId> path, std::uint64_t packets,
                Bytes first_bytes, Bytes full_bytes, Bytes last_bytes) {
  const auto time = [&state](PortId port, Bytes bytes) {
    const LinkSpec& link = state.graph.port(port).link;
    return state.serialisation(bytes + link.overhead, link.rate);
  };
  const auto head = [&](PortId port, Bytes bytes) {
    if (!state.links[port].cut_through) return time(port, bytes);
    return state.links[port].header != 0 ? state.header_time(port, bytes) : 0;
  };
  const auto passage = [&](PortId port, Bytes bytes) { return head(port, bytes) + state.ports[port].delay; };
  // `behind`: how much later than a packet of the last one's size, sent with the first, the last one is.
  Time first = 0, alone = 0, behind = 0;  // first, alone: when these two are at the present link
  for (std::size_t from = 0; from < path.size(); ++from) {
    const Time second = first + time(path[from], first_bytes);
    if (packets == 2) behind = std::max(behind, second - alone);
    Time chain = second, slowest = 0, last = alone;
    for (std::size_t to = from; packets > 2 && to < path.size(); ++to) {
      const Time full = time(path[to], full_bytes);
      slowest = std::max(slowest, full);
      behind = std::max(behind, chain + static_cast<Time>(packets - 3) * slowest + full - last);
      chain += passage(path[to], full_bytes);
      last += passage(path[to], last_bytes);
    }
    first += passage(path[from], first_bytes);
    alone += passage(path[from], last_bytes);
  }
  return alone + behind;
}

}  // namespace netsim
