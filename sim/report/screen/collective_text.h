// The part of the screen about collectives: a table like that of nccl-tests.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/core/text.h"
#include "sim/report/results.h"
#include "sim/report/screen/screen_text.h"

namespace netsim::screen {

// Returns the columns of nccl-tests and the algorithm, a row for each of Results::collectives.
std::vector<TableColumn> collective_table(const Results& results);
// Writes the columns of nccl-tests, and the algorithm if the workload names any. There is one row where
// nccl-tests has two, because in place and out of place are the same here.
void collectives(Text out, const Results& results, std::size_t width);

}  // namespace netsim::screen
