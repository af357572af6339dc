// Drawings of a plan's schedule, for --show-schedule: a table for the terminal, and a picture.
#pragma once

#include <cstddef>
#include <string>

#include "sim/collectives/schedule.h"

namespace netsim {

// A table in which time goes down and ranks stand side by side, in lines of at most `width` columns: "3>1" is
// a message of chunk 3 to rank 1, "3+>1" one that rank 1 adds to what it has. Ranks that do not fit follow in
// another table. Of what is too much the first and the last is shown, and how much was left out.
std::string render_schedule(const PlanSchedule& schedule, std::size_t width);

// An SVG document: a line for each rank from above to below, and an arrow for each message in the colour of
// its chunk, which ends in a plus sign where the message is added. Of more than 64 ranks or times the
// first 64.
std::string draw_schedule(const PlanSchedule& schedule);

}  // namespace netsim
