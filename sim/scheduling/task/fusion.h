// Fusion: which communications are launched as one, decided once for a job. A rule gets the communications of
// one sequence as tensors and returns buckets of them; mg_wfbp.h, pace_fusion.h and ddp_buckets.h have rules.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <tuple>
#include <vector>

#include "sim/core/units.h"
#include "sim/scheduling/task/job_profile.h"

namespace netsim {

// FusionMap: buckets in launch order. Each is a list of communications that are launched as one, in the order
// in which they become ready. Buckets of one communication are included.
struct FusionMap {
  std::vector<std::vector<std::uint32_t>> buckets;
  bool operator==(const FusionMap&) const = default;
};

// FusionTensor: the facts about one communication that rules of fusion use. Times are in ps.
struct FusionTensor {
  Time ready = 0;     // CommunicationTimes::ready
  Time transfer = 0;  // CommunicationTimes::duration, which is without the start-up of a communication
  Time tail = 0;      // CommunicationTimes::tail
  Bytes bytes = 0;
};

// A rule gets tensors in the order in which they become ready, and returns buckets of their indexes.
using FusionRule = std::function<FusionMap(std::span<const FusionTensor>)>;

// SequenceKey: the group, the kind and the stream that all collectives of a sequence have.
using SequenceKey = std::tuple<std::uint32_t, std::uint8_t, std::uint8_t>;
inline SequenceKey sequence_key(const ProfileTask& task) {
  return {task.group, task.collective, task.stream};
}

// Returns the sequences of communications that may be fused with one another, in program order. The
// collectives of a sequence have the same kind, group and stream. None of them can begin only after another
// has ended, as the lowest rank of the group sees it; gradients are such.
std::vector<std::vector<std::uint32_t>> fusible_sequences(const JobProfile& profile);

// Applies the rule to each sequence and returns the buckets of all of them, with indexes of communications.
// Durations of the profile are taken as transfers: they have no start-up times.
//
// Buckets that would wait for one another in a circle are divided into single communications. With `in_order`
// the buckets of a sequence are launched one after the other, as they stand.
FusionMap fuse(const JobProfile& profile, const FusionRule& rule, bool in_order = false);

}  // namespace netsim
