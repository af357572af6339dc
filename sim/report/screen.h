// The screen at the end of a run: one page of plain text that a person likes to read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "sim/core/text.h"
#include "sim/report/prediction.h"
#include "sim/report/results.h"

namespace netsim {

// Lines of at most `width` columns: tables leave out what matters least, sentences are wrapped. A run of
// traffic only is about flows, any other about iterations.
std::string render_screen(const Results& results, std::size_t width = kDefaultWidth);
// What --dry-run says about a run of `prediction` on `gpus` GPUs.
std::string render_prediction(const Prediction& prediction, std::uint32_t gpus);

}  // namespace netsim
