// The screen at the end of a run: one page of plain text that a person likes to read.
#pragma once

#include <cstdint>
#include <string>

#include "sim/report/prediction.h"
#include "sim/report/results.h"

namespace netsim {

std::string render_screen(const Results& results);
// What --dry-run says about a run of `prediction` on `gpus` GPUs.
std::string render_prediction(const Prediction& prediction, std::uint32_t gpus);

// 0.00123 -> "1.23 ms"; 1234567 -> "1.23 M"; 3 significant digits.
std::string human_seconds(double seconds);
std::string human_count(double count);
std::string human_bytes(double bytes);  // decimal: "1.23 GB"

}  // namespace netsim
