// The screen at the end of a run: one page of plain text that a person likes to read.
#pragma once

#include <string>

#include "sim/report/results.h"

namespace netsim {

std::string render_screen(const Results& results);

// 0.00123 -> "1.23 ms"; 1234567 -> "1.23 M"; 3 significant digits.
std::string human_seconds(double seconds);
std::string human_count(double count);
std::string human_bytes(double bytes);  // decimal: "1.23 GB"

}  // namespace netsim
