// The faults of a run with the iterations that they hit, for report.html.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/units.h"
#include "sim/report/results.h"

namespace netsim {

// Span: a time from begin to end; the end is not part of it.
struct Span {
  Time begin = 0, end = 0;
};

// FaultRow: links with the same faults.
struct FaultRow {
  std::string time;                                 // of the first event; "throughout" for a loss rate
  std::string text;                                 // as on the screen
  std::string iterations;                           // "small_gpt: 0 to 3, 7"; "none"
  std::vector<std::pair<Time, std::string>> marks;  // times of its events, with words for a picture
};

// Returns the faults of links in the order of their first links. A fault after the end of the run hits
// nothing.
std::vector<FaultRow> fault_rows(const Results& results);
// Returns the times in which the events of a link act: while it is down, or has another rate than at first.
std::vector<Span> times_of_effect(const std::vector<FaultEvent>& events);
// Returns the iterations of a job that overlap with any of the times, as ranges: "0 to 3, 7"; "" for none.
std::string iterations_in(const JobResult& job, const std::vector<Span>& times);
// Returns a sentence for each job that failures of hosts stopped, or "".
std::string recovered_jobs(const Results& results);

}  // namespace netsim
