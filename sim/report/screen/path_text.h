// The part of the screen about the iterations' critical paths.
#pragma once

#include <cstddef>

#include "sim/report/results.h"
#include "sim/report/screen/screen_text.h"

namespace netsim::screen {

// Writes the parts of the iterations' critical paths, and how short an iteration could be without each of the
// largest. That is a lower bound, because another path may be longer then.
void critical_path(Text out, const Results& results, const JobResult& job, const JobSummary& summary,
                   std::size_t width);

}  // namespace netsim::screen
