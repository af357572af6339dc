// Finds out which rank each file of a Kineto trace is of, and how many ranks the job has, where files do not
// say it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/collectives/collective_kind.h"
#include "sim/workload/trace/kineto_trace.h"

namespace netsim {

// Returns the name of a call without underscores, in lower case: "allgatherbase" for "_allgather_base".
std::string kineto_call_name(std::string_view call);
// Returns the collective of a call: "_allgather_base", "reduce_scatter_tensor_coalesced".
std::optional<CollectiveKind> kineto_collective(std::string_view call);

// Sets the ranks of files without distributedInfo. Such a rank follows from the caller's place in a group,
// from the file's name, or from the order of the files. Returns how many ranks follow from names and order.
std::uint64_t number_kineto_ranks(const std::vector<KinetoTrace*>& traces);

// Returns the number of ranks that the files state. Files without distributedInfo count the ranks that they
// mention.
std::int64_t kineto_world(const std::vector<KinetoTrace*>& traces);

}  // namespace netsim
