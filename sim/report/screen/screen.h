// The summary on the screen at the end of a run: one page of plain text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "sim/core/text.h"
#include "sim/report/prediction.h"
#include "sim/report/results.h"

namespace netsim {

// Returns lines of at most `width` columns: tables omit their least important columns, and sentences are
// wrapped. A run with traffic only is described by its flows, any other by its iterations.
std::string render_screen(const Results& results, std::size_t width = kDefaultWidth);
// Returns the text of --dry-run for a run of `prediction` on `gpus` GPUs.
std::string render_prediction(const Prediction& prediction, std::uint32_t gpus,
                              std::size_t width = kDefaultWidth);

}  // namespace netsim
