// What the links of every Ethernet fabric have in common, for the topologies: parameters and the link they
// describe.
#pragma once

#include <utility>

#include "sim/core/parameters.h"
#include "sim/topology/graph.h"

namespace netsim {

// Preamble and start delimiter (8 B) and inter-frame gap (12 B) of IEEE 802.3: on the wire, in no buffer.
inline constexpr Bytes kEthernetGap = 20;
inline constexpr Range<BitRate> kLinkRates{1 * kMbps, 100'000 * kGbps};
// Between atoms every delay is at least 1 ns (law 3).
inline constexpr Range<Time> kFabricDelays{1 * kNanosecond, 1 * kSecond};
// More host ports than any cluster has; keeps a slip of the pen from eating the memory.
inline constexpr std::int64_t kMaxHostPorts = 1 << 20;

struct EthernetParameters {
  BitRate rate = 100 * kGbps;
  Time delay = 1 * kMicrosecond;

  LinkSpec link() const { return link(rate); }
  LinkSpec link(BitRate at_rate) const {
    return {.kind = LinkKind::ethernet, .rate = at_rate, .delay = delay, .overhead = kEthernetGap};
  }
};

// Adds rate and delay to the parameters of a topology (P derives from EthernetParameters).
template <class P>
Parameters<P>&& with_ethernet(Parameters<P>&& parameters) {
  parameters.rate("rate", &P::rate, kLinkRates, "rate of a link, each way");
  parameters.time("delay", &P::delay, kFabricDelays,
                  "from the end of a packet's transmission to its arrival: cable and forwarding");
  return std::move(parameters);
}

}  // namespace netsim
