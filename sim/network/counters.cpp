#include "sim/network/counters.h"

#include <algorithm>
#include <array>
#include <vector>

namespace netsim {
namespace {

using C = PortCounters;

constexpr std::array<PortCounterInfo, 15> kPortCounters{{
    {.column = "wire_bytes",
     .meaning = "bytes transmitted, preamble and inter-frame gap included",
     .field = &C::wire_bytes,
     .sampled = 1,
     .hashed = 1},
    {.column = "data_packets", .meaning = "transmitted data packets", .field = &C::data_packets, .hashed = 2},
    {.column = "ecn_marks",
     .meaning = "packets that this port marked",
     .field = &C::ecn_marks,
     .sampled = 4,
     .hashed = 3},
    {.column = "cnps", .meaning = "congestion notifications that a NIC's port sent", .field = &C::cnps},
    {.column = "pauses",
     .meaning = "PFC pauses that this port received",
     .field = &C::pauses,
     .sampled = 2,
     .hashed = 5},
    {.column = "paused_ps",
     .meaning = "time that PFC paused the data classes",
     .field = &C::paused,
     .hashed = 6},
    {.column = "credit_stalls",
     .meaning = "how often a class ran out of credits",
     .field = &C::credit_stalls,
     .sampled = 3,
     .hashed = 5},
    {.column = "credit_stalled_ps",
     .meaning = "time that classes waited for credits",
     .field = &C::credit_stalled,
     .hashed = 6},
    {.column = "drops",
     .meaning = "packets dropped because a switch had no buffer space",
     .field = &C::drops,
     .sampled = 5,
     .hashed = 4},
    {.column = "no_route",
     .meaning =
         "packets for which links that are down left no route, counted at the switch's end of the link "
         "that they arrived by",
     .field = &C::no_route,
     .sampled = 6,
     .hashed_if_set = "no route"},
    {.column = "lost",
     .meaning = "packets lost on the link, by its loss rate or while it was down",
     .field = &C::lost,
     .hashed_if_set = "lost"},
    {.column = "link_repeats",
     .meaning = "packets of aggregation trees that the link had lost and sent again",
     .field = &C::link_repeats},
    {.column = "max_queue_bytes",
     .meaning = "largest number of bytes that waited at the port",
     .field = &C::max_queue,
     .sum = CounterSum::largest,
     .hashed = 7},
    {.column = "headroom_bytes",
     .meaning = "PFC headroom or credit buffer of the link at its far end",
     .field = &C::headroom},
    {.column = "max_headroom_bytes",
     .meaning = "largest use of that headroom by one class",
     .field = &C::max_headroom_used,
     .sum = CounterSum::largest},
}};

}  // namespace

std::span<const PortCounterInfo> port_counters() { return kPortCounters; }

std::span<const PortCounterInfo* const> sampled_counters() {
  static const std::vector<const PortCounterInfo*> counters = [] {
    std::vector<const PortCounterInfo*> sampled;
    for (const PortCounterInfo& counter : kPortCounters) {
      if (counter.sampled > 0) sampled.push_back(&counter);
    }
    std::sort(sampled.begin(), sampled.end(),
              [](const PortCounterInfo* a, const PortCounterInfo* b) { return a->sampled < b->sampled; });
    return sampled;
  }();
  return counters;
}

}  // namespace netsim
