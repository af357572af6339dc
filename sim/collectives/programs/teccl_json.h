// Schedules of TE-CCL (SIGCOMM 2024) in JSON, as its solvers write them: all-gathers and all-to-alls. Keys
// have a number before them, which differs ("6-Flows", "7-Flows"). "Flows" says which chunk of which GPU
// travels over which link in which epoch ("Chunk 0 from 15 traveled over 15->13 in epoch 0 via switches 0",
// in an all-to-all's "... over 15->13 with volume 0.5 in epoch 0"), "Demand_Met" when which GPU has what,
// "Chunk paths" over which links each of them got it ("Demand at 8 for chunk 7 from 1 met by epoch 60"). Who
// gets what is Demand_Met's, or that of the paths where it is not there, and tells an all-gather from an
// all-to-all.
//
// An all-gather is its flows; its paths, where there are any, have to say the same. An all-to-all is its
// paths, where there are any: its solver is a linear program, so parts of a chunk may go different ways.
// Chunks are then cut into as many equal parts as all volumes are multiples of.
//
// Ranks are the GPUs in the order of their numbers, which switches have too; switches and the times are of
// the topology that it was made for, and of no meaning for a program.
#pragma once

#include <string>

#include "sim/collectives/programs/program_plan.h"

namespace netsim {

// A connected program; InputError at the place of what is wrong. `path` stands for the text in messages.
CollectiveProgram read_teccl_json(std::string text, const std::string& path);

}  // namespace netsim
