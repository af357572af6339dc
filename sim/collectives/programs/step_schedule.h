// StepSchedule: a collective as SCCL, TACCL and TE-CCL describe it. Each step lists which addresses travel
// from which rank to which. An address identifies a chunk, wherever it is. All sends of a step read the data
// that was there when the step began.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/collectives/programs/program_plan.h"
#include "sim/core/errors.h"

namespace netsim {

struct StepSchedule {
  struct Send {
    std::uint32_t address = 0, from = 0, to = 0;
    Place place;  // position in the file
  };

  std::string name;
  CollectiveKind kind = CollectiveKind::all_gather;
  // For each rank: the address of each chunk of its input, and of its output.
  std::vector<std::vector<std::uint32_t>> inputs, outputs;
  std::vector<std::vector<Send>> steps;
  Place place;  // position of the whole schedule, for messages about it
};

// Returns the connected program. Each rank has a thread block for each rank that it sends to, and one for
// each rank that it receives from. A send waits for the receive that brought its chunk. A receive waits for
// the sends that still read the data that it overwrites.
//
// Arriving data is added to the present data where both are sums of different ranks. It replaces the present
// data where it is a sum of the same and further ranks. This tells the two halves of an all-reduce apart.
//
// All kinds but an all-to-all are in place. Throws InputError at a send of data that its rank does not have,
// or of contributions that the other rank has in part. Inputs and outputs must have the size of the kind.
CollectiveProgram program_of(const StepSchedule& schedule);

}  // namespace netsim
