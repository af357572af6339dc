// Drawings of a plan's schedule for --show-schedule: a table for the terminal, and a picture.
#pragma once

#include <cstddef>
#include <string>

#include "sim/collectives/schedule.h"

namespace netsim {

// Returns a table of at most `width` columns in which time goes down and ranks are side by side. "3>1" is a
// message of chunk 3 to rank 1; "3+>1" is one that rank 1 reduces with its own data. Ranks that do not fit
// follow in another table. A long table shows only its first and last rows, with the number of omitted
// ones.
std::string render_schedule(const PlanSchedule& schedule, std::size_t width);

// Returns an SVG document with a vertical line for each rank and an arrow for each message in the colour of
// its chunk. The arrow ends in a plus sign if the message is reduced. Chunks' numbers stand where they cross
// nothing, or are left out. At most the first 64 ranks and times are shown.
std::string draw_schedule(const PlanSchedule& schedule);

}  // namespace netsim
