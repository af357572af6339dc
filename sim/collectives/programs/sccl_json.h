// Algorithms of SCCL (PPoPP 2021) and of TACCL's fork of it in JSON (*.msccl.json), as `msccl solve` and
// TACCL write them: input_map and output_map say which addresses a rank has and needs, steps which address is
// sent from where to where: [addr, src, dst], in TACCL's also when and over what, which the order of the
// steps says already. Of the collective its runtime_name, or else its name, is read; its chunks have to agree
// with the maps, and the topology to be one, of which nothing is made.
#pragma once

#include <string>

#include "sim/collectives/programs/program_plan.h"

namespace netsim {

// A connected program; InputError at the place of what is wrong. `path` stands for the text in messages.
CollectiveProgram read_sccl_json(std::string text, const std::string& path);

}  // namespace netsim
