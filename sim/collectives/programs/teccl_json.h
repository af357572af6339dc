// Schedules of TE-CCL (SIGCOMM 2024) in JSON, as its solvers write them: all-gathers and all-to-alls. Keys
// begin with a number, which differs ("6-Flows", "7-Flows"). "Flows" says which chunk of which GPU travels
// over which link in which epoch. An entry is "Chunk 0 from 15 traveled over 15->13 in epoch 0 via switches
// 0", or in an all-to-all "... over 15->13 with volume 0.5 in epoch 0".
//
// "Demand_Met" says when which GPU has which chunk. "Chunk paths" lists the links of each ("Demand at 8 for
// chunk 7 from 1 met by epoch 60"). Demand_Met, or without it the paths, tells which GPU gets what. That
// distinguishes an all-gather from an all-to-all.
//
// An all-gather is read from its flows; its paths, if present, must agree. An all-to-all is read from its
// paths, if present: its solver is a linear program, so parts of a chunk may take different paths. Each chunk
// is then cut into equal parts, so that all volumes are whole numbers of parts.
//
// Ranks are the GPUs in the order of their numbers; switches are numbered too. Switches and times belong to
// the topology of the schedule and are ignored.
#pragma once

#include <string>

#include "sim/collectives/programs/program_plan.h"

namespace netsim {

// Returns a connected program. Throws InputError at the place of an error. `path` names the text in messages.
CollectiveProgram read_teccl_json(std::string text, const std::string& path);

}  // namespace netsim
