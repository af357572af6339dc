// Lanes: what a task scheduler bounds. The collectives of one group are a lane, and all messages of a rank
// are one. A bound over several groups could make ranks wait for each other for ever, so every bound is a
// lane's.
//
// Schedulers of gradients bound the gradients of a lane only. P3, TicTac, PACE, ByteScheduler, MG-WFBP and
// DDP get the tensors of parameters and gradients from the framework; no other collective passes through
// them.
#pragma once

#include <cstddef>
#include <span>

#include "sim/scheduling/task/task_scheduler.h"

namespace netsim {

// Returns the number of parts in flight in the candidate's lane.
inline std::size_t parts_in_lane(const RankView& rank, const Candidate& candidate) {
  std::size_t count = 0;
  for (const InFlight& part : rank.in_flight) count += part.group == candidate.group ? 1 : 0;
  return count;
}

// Returns whether a scheduler of gradients orders the communication: a message, or a collective of stream dp.
// Collectives of other streams, such as all-to-alls of experts, are launched at once and whole.
inline bool may_be_gradient(const CommunicationFacts& facts) {
  return facts.kind == "message" || facts.stream == "dp";
}

// Returns the number of parts of gradients in flight in the candidate's lane.
inline std::size_t gradient_parts_in_lane(const RankView& rank, const Candidate& candidate) {
  std::size_t count = 0;
  for (const InFlight& part : rank.in_flight)
    count += part.group == candidate.group && may_be_gradient(part) ? 1 : 0;
  return count;
}

// Returns the bytes of gradients in flight in the candidate's lane.
inline Bytes gradient_bytes_in_lane(const RankView& rank, const Candidate& candidate) {
  Bytes sum = 0;
  for (const InFlight& part : rank.in_flight)
    sum += part.group == candidate.group && may_be_gradient(part) ? part.part : 0;
  return sum;
}

// Returns the index of the candidate that `fits` and comes first in the order `before`, or Launch::kNothing.
// The earlier one in the program is taken where two are equal.
template <class Fits, class Before>
std::size_t first_candidate(std::span<const Candidate> candidates, const Fits& fits, const Before& before) {
  std::size_t first = Launch::kNothing;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!candidates[i].decided_here || !fits(candidates[i])) continue;
    if (first == Launch::kNothing || before(candidates[i], candidates[first])) first = i;
  }
  return first;
}

inline bool is_needed_before(const Candidate& a, const Candidate& b) { return a.order < b.order; }
inline bool is_ready_before(const Candidate& a, const Candidate& b) { return a.ready < b.ready; }

// Returns the index of the candidate that became ready first, or Launch::kNothing. A gradient is taken only
// where none is in flight in its lane, so that gradients of a lane run one after the other.
inline std::size_t first_ready_alone(const RankView& rank, std::span<const Candidate> candidates) {
  const auto fits = [&](const Candidate& one) {
    return !may_be_gradient(one) || gradient_parts_in_lane(rank, one) == 0;
  };
  return first_candidate(candidates, fits, is_ready_before);
}

}  // namespace netsim
