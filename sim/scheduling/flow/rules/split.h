// The rule of splits: each way gets a share in proportion to its rate, so all shares end together.
#pragma once

#include <cstdint>
#include <span>

#include "sim/core/units.h"
#include "sim/scheduling/flow/flow_splitter.h"

namespace netsim {

// SplitBy: the rates by which ways are weighed.
enum class SplitBy : std::uint8_t {
  equal,    // all ways alike
  links,    // rate_by_links()
  measured  // SplitWay::measured, or all alike while a way has no measurement
};

// Returns the rate of a way by the host's graph, in bit/s: min(host_rate, nic_rate / (1 + others)), rounded
// down. A NIC is thus shared equally with each message of its own GPU.
BitRate rate_by_links(const SplitWay& way);

// Returns the mean rate of a way after one more share of `bytes` > 0 that took `time` > 0, in bit/s, at
// least 1. It is the share's rate r if `measured` is 0, and otherwise (measured + r) / 2, rounded down.
BitRate mean_with(BitRate measured, Bytes bytes, Time time);

// Writes the weight of each way into `weights`, which has as many elements as `ways`.
void weigh_ways(SplitBy by, std::span<const SplitWay> ways, std::span<BitRate> weights);

// Divides `bytes`: way i > 0 gets floor(bytes * w_i / sum(w)), and way 0 gets the rest. If all weights are 0,
// way 0 gets everything.
void divide_bytes(Bytes bytes, std::span<const BitRate> weights, std::span<Bytes> shares);

}  // namespace netsim
