// Parameters and links of all switched fabrics.
#pragma once

#include <optional>
#include <utility>

#include "sim/core/parameters.h"
#include "sim/topology/graph.h"

namespace netsim {

// Bytes of a frame that are on the wire, but in no buffer: preamble and start delimiter (8 B), inter-frame
// gap (12 B); IEEE 802.3.
inline constexpr Bytes kEthernetGap = 20;
inline constexpr Range<BitRate> kLinkRates{1 * kMbps, 100'000 * kGbps};
// Every delay between atoms is at least 1 ns (law 3).
inline constexpr Range<Time> kFabricDelays{1 * kNanosecond, 1 * kSecond};
inline constexpr Range<Bytes> kLinkOverheads{0, 10 * kKilobyte};
// Limit of the host ports of a fabric, above any existing cluster. It keeps a typing error from exhausting
// the memory.
inline constexpr std::int64_t kMaxHostPorts = 1 << 20;

// Returns the bytes on the wire of each packet in addition to its frame. InfiniBand's framing already
// includes all of them (IBTA 1.7, section 7.8: idle symbols between packets are not needed).
constexpr Bytes usual_overhead(LinkKind kind) { return kind == LinkKind::ethernet ? kEthernetGap : 0; }

struct EthernetParameters {
  BitRate rate = 100 * kGbps;
  Time delay = 1 * kMicrosecond;
  LinkKind link_kind = LinkKind::ethernet;
  std::optional<Bytes> overhead;  // bytes per packet; by default usual_overhead()

  LinkSpec link() const { return link(rate); }
  LinkSpec link(BitRate at_rate) const {
    return {.kind = link_kind,
            .rate = at_rate,
            .delay = delay,
            .overhead = overhead.value_or(usual_overhead(link_kind))};
  }
};

// Adds `link` and `overhead` to the parameters of a topology (P has the members of EthernetParameters).
template <class P>
Parameters<P>&& with_link_kind(Parameters<P>&& parameters) {
  parameters.choice("link", static_cast<LinkKind P::*>(&P::link_kind),
                    {{"ethernet", LinkKind::ethernet}, {"infiniband", LinkKind::infiniband}},
                    "type of the links; the transport's framing is chosen separately");
  parameters.bytes("overhead", &P::overhead, kLinkOverheads,
                   "20 B for ethernet (preamble and gap), 0 B for infiniband",
                   "bytes that a packet costs on the wire beyond its frame");
  return std::move(parameters);
}

// Adds `rate` and `delay` as well (P derives from EthernetParameters).
template <class P>
Parameters<P>&& with_ethernet(Parameters<P>&& parameters) {
  parameters.rate("rate", &P::rate, kLinkRates, "rate of a link, each way");
  parameters.time("delay", &P::delay, kFabricDelays,
                  "time from the end of a packet's transmission to its arrival: cable and forwarding");
  return with_link_kind(std::move(parameters));
}

}  // namespace netsim
