// Algorithms of SCCL (PPoPP 2021) and of TACCL's fork of it in JSON (*.msccl.json), as `msccl solve` and
// TACCL write them. input_map and output_map give the addresses that a rank has and needs. The steps list
// what is sent: [addr, src, dst]; TACCL adds the time and the link, which the order of the steps already
// implies.
//
// The collective is its runtime_name, or else its name. Its chunks must agree with the maps. The topology
// must be valid, but is not used.
#pragma once

#include <string>

#include "sim/collectives/programs/program_plan.h"

namespace netsim {

// Returns a connected program. Throws InputError at the place of an error. `path` names the text in messages.
CollectiveProgram read_sccl_json(std::string text, const std::string& path);

}  // namespace netsim
