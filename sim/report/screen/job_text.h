// The parts of the screen about jobs: their times, memory and recovery.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/core/text.h"
#include "sim/report/results.h"
#include "sim/report/screen/screen_text.h"

namespace netsim::screen {

// Writes the title of a run of one job.
void header(Text out, const Results& results, const JobResult& job);
// Writes a line for each of several jobs.
void jobs(Text out, const Results& results, std::size_t width);
// Writes the times and the throughput of a job's iterations.
void job_headline(Text out, const JobResult& job, const JobSummary& summary);
// Writes the memory, the goodput and the task scheduler's work, a line each, as far as the job has them.
void job_details(Text out, const JobResult& job, std::size_t width);
// Writes compute, exposed communication by stream, and idle time. They add up to the iteration time.
void breakdown(Text out, const JobResult& job, const JobSummary& summary, std::size_t width);
// Returns the job's time, and how much of it is done if that is not one whole iteration.
std::string progress_text(const JobResult& job);

// Returns the FLOP/s of a GPU for the model, and their share of the peak; "" where they are unknown.
std::string throughput_text(const JobResult& job, const JobSummary& summary);
// Return what is beside a label, or "". These are the memory of the fullest GPU, the goodput of a job that
// restarts after failures, and what the task scheduler did.
std::string memory_text(const JobResult& job);
std::string recovery_text(const JobResult& job);
std::string scheduling_text(const JobResult& job);
// Returns the columns of the table of several jobs, with the first `most` jobs.
std::vector<TableColumn> job_table(const Results& results, std::size_t most);
// Returns the means over all jobs that are done, and how much of the cluster was held. Only runs in which
// jobs wait for GPUs have these lines.
std::vector<std::string> management_lines(const Results& results);

}  // namespace netsim::screen
