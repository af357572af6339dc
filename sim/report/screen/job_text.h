// The parts of the screen about jobs: their times, memory and recovery.
#pragma once

#include <cstddef>
#include <string>

#include "sim/report/results.h"
#include "sim/report/screen/screen_text.h"

namespace netsim::screen {

// Writes the title of a run of one job.
void header(Text out, const Results& results, const JobResult& job);
// Writes a line for each of several jobs.
void jobs(Text out, const Results& results, std::size_t width);
// Writes the times and the throughput of a job's iterations.
void job_headline(Text out, const JobResult& job, const JobSummary& summary);
// Writes the memory of the fullest GPU, if the job has a memory model.
void memory(Text out, const JobResult& job, std::size_t width);
// Writes the goodput, if the job restarts after failures.
void recovery(Text out, const JobResult& job, std::size_t width);
void scheduling(Text out, const JobResult& job, std::size_t width);
// Writes compute, exposed communication by stream, and idle time. They add up to the iteration time.
void breakdown(Text out, const JobResult& job, const JobSummary& summary, std::size_t width);
// Returns the job's time, and how much of it is done if that is not one whole iteration.
std::string progress_text(const JobResult& job);

}  // namespace netsim::screen
