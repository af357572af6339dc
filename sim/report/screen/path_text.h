// The part of the screen about the iterations' critical paths.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "sim/report/results.h"
#include "sim/report/screen/screen_text.h"

namespace netsim::screen {

// Writes the parts of the iterations' critical paths, and how short an iteration could be without each of the
// largest. That is a lower bound, because another path may be longer then.
void critical_path(Text out, const Results& results, const JobResult& job, const JobSummary& summary,
                   std::size_t width);
// Returns the parts of the critical paths of all iterations together, the largest first.
std::vector<std::pair<std::string, Time>> path_parts(const Results& results, const JobResult& job);
// Returns a share of the critical paths in words: "compute mlp_forward".
std::string share_text(const PathShare& share);

}  // namespace netsim::screen
