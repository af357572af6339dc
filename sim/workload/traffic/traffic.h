// What the traffic workloads (traffic_*.cpp) share: limits, and how many ranks a pattern has.
#pragma once

#include <cstdint>
#include <string>

#include "sim/core/config.h"
#include "sim/core/parameters.h"

namespace netsim {

inline constexpr std::int64_t kMaxTrafficRanks = 1 << 20;
// One message; in packets of the smallest mtu it still counts in 32 bits.
inline constexpr Range<Bytes> kMessageSizes{1, 100 * kGigabyte};
inline constexpr Range<Time> kStartTimes{0, 1'000'000 * kSecond};
// Of the network's data classes; whether it has the one named is the network's business.
inline constexpr Range<std::int64_t> kTrafficClasses{0, 5};
// Why a flow cannot be of this class in a network of `classes` data classes; "" if it can.
std::string class_problem(std::int64_t traffic_class, std::int64_t classes);
inline constexpr std::int64_t kMaxChannel = 1 << 30;

// Where an entry of a section stands, or the section where the user left it out.
Place place_of(const ConfigNode& section, const char* key);

// `wanted` ranks, or one for each GPU of the cluster if 0. InputError at `place` for fewer than 2 and for
// more than the cluster has.
std::uint32_t traffic_ranks(std::int64_t wanted, std::uint32_t cluster_gpus, const Place& place);

}  // namespace netsim
