#include "sim/network/ideal_time.h"

#include <algorithm>
#include <array>
#include <vector>

#include "sim/core/time_limits.h"

namespace netsim {
namespace {

// Times of a full packet and of the last one on a link. `full_wire` is the time on its wire; `full` and
// `last` reach from their start on the link to their start on the next one.
struct Passages {
  Time full_wire, full, last;
};

}  // namespace

Time wire_time(const FabricState& state, PortId port, Bytes bytes) {
  const LinkSpec& link = state.graph.port(port).link;
  const BitRate rate = state.best_rates.empty() ? link.rate : state.best_rates[port];
  return state.serialisation(bytes + link.overhead, rate);
}

Time passage_time(const FabricState& state, PortId port, Bytes bytes, Time on_wire) {
  const fabric::Link& link = state.links[port];
  if (!state.best_rates.empty()) {
    if (state.graph.port(port).link.cut_through) return state.ports[port].delay;
    const Bytes header = state.cut_through_header(port);
    if (header == 0) return on_wire + state.ports[port].delay;
    const Time head = transmission_time(std::min(header, bytes), state.best_rates[port]);
    return std::min(head, on_wire) + state.ports[port].delay;
  }
  Time head = on_wire;
  if (link.cut_through) head = link.header != 0 ? state.header_time(port, bytes) : 0;
  return head + state.ports[port].delay;
}

// The last packet starts on each link when it has arrived and the packet before it has been sent. That packet
// is the last of a train of equal packets behind the first. It starts when the longest of the following
// chains ends.
//
// A chain has the first packet up to some link, the second from there on, and the others all at the slowest
// link in between. This is a tandem of queues as a longest path (Glynn and Whitt, Departures from many queues
// in series, Annals of Applied Probability, 1991).
Time ideal_time(const FabricState& state, std::span<const PortId> path, const PacketTrain& train,
                std::span<Time> waits) {
  constexpr std::size_t kFew = 16;
  std::array<Passages, kFew> few;
  std::vector<Passages> many(path.size() > kFew ? path.size() : 0);
  Passages* const links = many.empty() ? few.data() : many.data();
  for (std::size_t link = 0; link < path.size(); ++link) {
    const PortId port = path[link];
    links[link].last = passage_time(state, port, train.last, wire_time(state, port, train.last));
    if (train.count <= 2) continue;
    links[link].full_wire = wire_time(state, port, train.full);
    links[link].full = passage_time(state, port, train.full, links[link].full_wire);
  }
  // `behind` is the delay of the last packet relative to one of its size that is sent with the first. It only
  // grows from link to link, by the wait there.
  Time first = 0, alone = 0, behind = 0;  // arrival of these two packets at the present link
  std::fill(waits.begin(), waits.end(), 0);
  const auto is_behind = [&](std::size_t link, Time later) {
    behind = std::max(behind, later);
    if (!waits.empty()) waits[link] = std::max(waits[link], later);
  };
  for (std::size_t from = 0; from < path.size(); ++from) {
    const Time first_wire = train.count > 1 ? wire_time(state, path[from], train.first) : 0;
    const Time second = first + first_wire;
    if (train.count == 2) is_behind(from, second - alone);
    Time chain = second, slowest = 0, last = alone;
    for (std::size_t to = from; train.count > 2 && to < path.size(); ++to) {
      slowest = std::max(slowest, links[to].full_wire);
      const Time others = bounded_time(static_cast<Int128>(train.count - 3) * slowest);
      is_behind(to, chain + others + links[to].full_wire - last);
      chain += links[to].full;
      last += links[to].last;
    }
    first += passage_time(state, path[from], train.first, first_wire);
    alone += links[from].last;
  }
  Time before = 0;
  for (Time& wait : waits) {
    const Time here = std::max(wait, before);
    wait = here - before;
    before = here;
  }
  return alone + behind;
}

}  // namespace netsim
