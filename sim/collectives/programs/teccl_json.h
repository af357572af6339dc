// Schedules of TE-CCL (SIGCOMM 2024) in JSON, as its solvers write them: "7-Flows" says which chunk of which
// GPU travels over which link in which epoch ("Chunk 0 from 15 traveled over 15->13 in epoch 0 via switches
// 0"), "6-Demand_Met" when which GPU has what. Only all-gathers are read: every GPU gets every chunk of every
// other. Ranks are the GPUs in the order of their numbers, which switches have too; switches and the times
// are of the topology that it was made for, and of no meaning for a program.
#pragma once

#include <string>

#include "sim/collectives/programs/program_plan.h"

namespace netsim {

// A connected program; InputError at the place of what is wrong. `path` stands for the text in messages.
CollectiveProgram read_teccl_json(std::string text, const std::string& path);

}  // namespace netsim
