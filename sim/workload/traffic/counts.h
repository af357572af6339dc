// The counts of an all_to_all_v, as a workload in YAML has them:
//
//   counts: counts.csv                              # line s: what rank s sends to ranks 0, 1, ...
//   counts: [[0, 1 MB], [64 KB, 0]]                 # the same here
//   counts: [0, 1 MB, 64 KB, 64 KB]                 # each rank sends so much to ranks 0, 1, ...
//   counts: next                                    # each rank sends `bytes` to the next one: sendrecv
//
// Numbers without a unit are bytes.
#pragma once

#include <cstdint>

#include "sim/collectives/block_counts.h"
#include "sim/collectives/collective_kind.h"
#include "sim/core/config.h"
#include "sim/core/units.h"

namespace netsim {

inline constexpr const char* kCountsDoc =
    "for an all_to_all_v: the bytes that each rank sends to each, as a CSV file with a row for each rank, as "
    "a list of rows, or as one row for all ranks; or 'next': each rank sends 'bytes' to the next one only, "
    "the last one to the first, as nccl-tests' sendrecv";

// Reads the counts of a group of `members`, by whose indices ranks are numbered. `bytes` are those of 'next'.
// Throws ConfigError at the node, or InputError in the file. The causes are counts of another number of
// ranks, entries that are no sizes, and counts without any traffic.
BlockCounts read_counts(const ConfigNode& node, std::uint32_t members, Bytes bytes);

// Returns whether the counts are 'next', so that the collective also has bytes or sizes.
bool counts_are_next(const ConfigNode& counts);

// Checks that the section of a collective gives what its kind needs: counts, tokens or bytes, or none of
// them. Throws ConfigError.
void check_bytes(CollectiveKind kind, const ConfigNode& section);

}  // namespace netsim
