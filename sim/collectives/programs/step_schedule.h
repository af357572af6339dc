// StepSchedule: what SCCL, TACCL and TE-CCL say of a collective: which addresses travel from which rank to
// which in each step. An address is a chunk wherever it is. All sends of a step read what was there when the
// step began.
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
    Place place;  // in the file
  };

  std::string name;
  CollectiveKind kind = CollectiveKind::all_gather;
  // Of each rank: the address of each chunk of its input, and of its output.
  std::vector<std::vector<std::uint32_t>> inputs, outputs;
  std::vector<std::vector<Send>> steps;
  Place place;  // for what concerns it as a whole
};

// The connected program: at each rank a thread block for each rank that it sends to, and one for each that it
// receives from; a send waits for the receive that brought its chunk, a receive for the sends that still read
// what it overwrites. What arrives is added to what is there where both are sums of different ranks, and
// replaces it where it is a sum of these and more (so is an all-reduce told from its second half).
//
// All but an all-to-all are in place. InputError at a send of what its rank does not have, of contributions
// that the other rank has in part, and for inputs and outputs that are not of the kind's size.
CollectiveProgram program_of(const StepSchedule& schedule);

}  // namespace netsim
