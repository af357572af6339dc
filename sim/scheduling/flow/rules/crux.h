// Crux's rules for jobs that share links: paths, priorities and their compression to few levels, so that GPUs
// compute as much as possible. Source: Cao et al., "Crux: GPU-efficient communication scheduling for deep
// learning training", SIGCOMM 2024, section 4.
//
// The GPU intensity of a job is the work of an iteration per time that its fullest link needs for it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/units.h"
#include "sim/scheduling/job_facts.h"

namespace netsim {

// PathChoice: a part of a job's traffic that can go several ways, such as a flow with its equal-cost paths.
// Each option says what it puts on which links. There is at least one.
struct PathChoice {
  std::vector<std::vector<LinkBytes>> options;
};

// CruxJob: one iteration of a job. Communication begins `offset` after the iteration and goes on beside what
// is left of the computation. The next iteration begins when both have ended.
struct CruxJob {
  double work = 0;   // computation on all GPUs, in a unit that all jobs have in common
  Time compute = 0;  // computation without waiting for communication
  Time offset = 0;   // 0 to compute
  std::vector<PathChoice> traffic;
};

// JobPhases: the phases of a job's iteration on one link.
struct JobPhases {
  Time compute = 0, offset = 0, communication = 0;
};

// LinkShares: how long two jobs sent over a link, and how long they computed.
struct LinkShares {
  Time first_sent = 0, second_sent = 0;
  Time first_computed = 0, second_computed = 0;
};

// Returns what two jobs do in `window` on a link where the first preempts the second. Both begin to
// communicate at the begin of the window. The communication of each takes more than no time.
LinkShares share_link(const JobPhases& first, const JobPhases& second, Time window);

// Returns the correction factor of `job`, where `reference` has 1. It is the communication that the job gains
// by going first, per communication that the reference loses then, both in time on the link. Communication
// counts as far as the job has computed with it, because communication that computation hides may wait.
//
// The window has three iterations of the longer job, as the paper's figures 11 and 12 have. The factor is 1
// if gain and loss are equal. It is within 1/2 and 2. The paper has no such bounds: a reference that loses
// next to nothing would then give a factor without limit. On random clusters that is worse than factors of 1.
double correction_factor(const JobPhases& reference, const JobPhases& job);

// CruxPlan: what the rules decide.
struct CruxPlan {
  std::vector<std::vector<std::uint32_t>> option;  // by job and choice: the option taken
  std::vector<double> intensity;                   // by job, on these options; 0 without traffic
  std::vector<double> priority;                    // by job; more is better
  std::vector<std::uint32_t> level;                // by job; 0 is served first
};

// Returns the options of each job. Jobs choose by falling intensity, which is what they have alone. Each
// choice, the largest first, takes the option whose fullest link is least used then. Use is time on the link
// per time of an iteration. Ties go to the lower number. `capacity` is above 0 for all links.
std::vector<std::vector<std::uint32_t>> crux_paths(std::span<const BitRate> capacity,
                                                   std::span<const CruxJob> jobs);

// ContendingJob: a job with its traffic on the links that it has been given.
struct ContendingJob {
  double intensity = 0, priority = 0;
  std::vector<std::uint32_t> links;  // ascending
};

// Returns the level of each job, 0 to `levels` - 1. A job is never in a later level than a job of less
// priority with which it shares a link. If the two have one level, the intensity of the first is lost. The
// rule takes the cut with the smallest loss over `samples` topological orders of the graph of contention: one
// by priority, others drawn. Ties of priority go to the lower number.
std::vector<std::uint32_t> compress_priorities(std::span<const ContendingJob> jobs, std::uint32_t levels,
                                               std::uint32_t samples = 10);

// Returns all decisions for these jobs. The job with the most bytes per time is the reference of correction
// factors. A priority is the correction factor times the intensity. `levels` is at least 1.
CruxPlan crux_plan(std::span<const BitRate> capacity, std::span<const CruxJob> jobs, std::uint32_t levels);

}  // namespace netsim
