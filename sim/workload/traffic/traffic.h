// Common parts of the traffic workloads (traffic_*.cpp): limits, and the number of ranks of a pattern.
#pragma once

#include <cstdint>
#include <string>

#include "sim/core/config.h"
#include "sim/core/ids.h"
#include "sim/core/parameters.h"
#include "sim/transport/transfer_traits.h"

namespace netsim {

struct WorkloadContext;

inline constexpr std::int64_t kMaxTrafficRanks = 1 << 20;
// The range of the bytes of a message. The number of its packets fits 32 bits with the smallest MTU.
inline constexpr Range<Bytes> kMessageSizes{1, 100 * kGigabyte};
inline constexpr Range<Time> kStartTimes{0, 1'000'000 * kSecond};
// The data classes that a flow may name. The network checks whether it has the class.
inline constexpr Range<std::int64_t> kTrafficClasses{0, 5};
// Returns why a flow cannot be of this class in a network of `classes` data classes; "" if it can.
std::string class_problem(std::int64_t traffic_class, std::int64_t classes);
inline constexpr std::int64_t kMaxChannel = 1 << 30;
inline constexpr std::int64_t kMaxPathHint = kNoPathHint - 1;
// Deadlines of flows and communications (TransferTraits::deadline).
inline constexpr Range<Time> kFlowDeadlines{1, TransferTraits::kMostDeadline};
inline constexpr const char* kFlowDeadlineDoc =
    "time from the begin of a flow to its deadline, which flow schedulers may follow (scheduling.flows: "
    "deadline)";

// Returns the place of an entry of a section, or of the section if the entry is missing.
Place place_of(const ConfigNode& section, const char* key);

// Returns `wanted` ranks, or one for each GPU of the cluster if `wanted` is 0. Throws InputError at `place`
// for fewer than 2 and for more than WorkloadContext::most_ranks.
std::uint32_t traffic_ranks(std::int64_t wanted, const WorkloadContext& context, const Place& place);

}  // namespace netsim
