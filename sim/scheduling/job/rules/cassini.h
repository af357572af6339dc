// CASSINI shifts jobs in time so that their communication phases on a shared link do not meet. The rule is
// that of Rajasekaran, Ghobadi and Akella, "CASSINI: Network-Aware Job Scheduling in Machine Learning
// Clusters", NSDI 2024. Everything here is a pure function of its arguments; a job scheduler calls it between
// events.
//
// The demands of the jobs on a link are laid around one circle, whose perimeter is the least common multiple
// of their iteration times. A job is rotated on it by a multiple of 5 degrees. Two choices are not the
// paper's. Rotations are searched exactly where they are few, and links with equal demands of equal jobs
// count as one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/core/ids.h"
#include "sim/core/units.h"

namespace netsim {

// DemandArc: a communication phase of an iteration. Where arcs of one job overlap, their rates add up.
struct DemandArc {
  Time begin = 0, end = 0;  // since the begin of the iteration: 0 <= begin < end <= the iteration time
  BitRate rate = 0;         // demanded of the link, at least 0
  bool operator==(const DemandArc&) const = default;
};

// PeriodicDemand: what one job demands of one link in each of its iterations.
struct PeriodicDemand {
  JobId job;
  Time iteration = 0;  // iteration time without other jobs, above 0; the same on all links of the job
  std::vector<DemandArc> arcs;
  bool operator==(const PeriodicDemand&) const = default;
};

// SharedLink: a directed link and the demands of the jobs that cross it. There is at least one demand; each
// job has one, and they are ordered by ascending id.
struct SharedLink {
  BitRate capacity = 0;  // above 0
  std::vector<PeriodicDemand> demands;
  bool operator==(const SharedLink&) const = default;
};

// CassiniSettings: resolution and bounds of the search.
struct CassiniSettings {
  // Iteration times are rounded to multiples of it, at least one. It is doubled until no job has more than
  // `steps` iterations on the circle. The arcs are stretched with their iteration.
  Time resolution = kMicrosecond;
  // Rotations of a full circle: 72 are the paper's steps of 5 degrees.
  std::uint32_t steps = 72;
  // Up to so many combinations of rotations are all tried. Beyond, the jobs are placed one after the other,
  // and then moved one at a time until no move improves the score.
  std::uint32_t most_combinations = 10'000;
};

// LinkRotations: how the jobs of one link are rotated.
struct LinkRotations {
  Time perimeter = 0;        // of the circle
  std::vector<Time> shifts;  // by demand: its iterations begin so much later; below the iteration time
  double unshifted = 0;      // score when all iterations begin together
  double score = 0;          // score with the shifts
  bool exhaustive = false;   // all combinations of rotations were tried
};

// Returns 1 - mean over the circle of max(0, sum of demands - capacity) / capacity. It is 1 if the demands
// never exceed the capacity, and may be negative. `shifts` are by demand; none means that all are 0.
double compatibility_score(const SharedLink& link, std::span<const Time> shifts = {},
                           const CassiniSettings& settings = {});

// Returns the rotations with the best score. The first of the jobs with the longest iteration is not rotated,
// because only differences count. Equal scores go to the smaller rotations, that of the first job foremost.
LinkRotations best_rotations(const SharedLink& link, const CassiniSettings& settings = {});

// JobShift: how much later the iterations of a job begin; below its iteration time.
struct JobShift {
  JobId job;
  Time shift = 0;
  bool operator==(const JobShift&) const = default;
};

// Returns one shift for each job that shares a link, by ascending job, from the rotations of each link. It
// goes through the affinity graph of jobs and shared links breadth-first. From job j over link l to job k,
// t_k = (t_j - t_j^l + t_k^l) mod iteration_k. The lowest job of a component has shift 0.
// Returns nothing if the graph has a loop, because its links may ask for different shifts of one job.
std::optional<std::vector<JobShift>> time_shifts(std::span<const SharedLink> links,
                                                 std::span<const LinkRotations> rotations);

// RankedPlacement: a candidate placement without loops.
struct RankedPlacement {
  std::uint32_t candidate = 0;   // its index among the candidates
  double score = 0;              // mean over the links that several jobs share; 1 if there is none
  std::vector<JobShift> shifts;  // as time_shifts() returns them
};

// Returns the candidate placements by falling score, equal ones in the order given. A candidate is all links
// that its jobs cross. Candidates with a loop in their affinity graph are left out.
std::vector<RankedPlacement> rank_placements(std::span<const std::vector<SharedLink>> candidates,
                                             const CassiniSettings& settings = {});

// Returns how long a job has to delay its next iteration so that it keeps its shift. It is 0 while the
// iteration that began at `begin` is off by at most `tolerance` iteration times, in either direction; 5 % is
// the paper's. `aligned` is a time at which an iteration should begin; all multiples of the iteration time
// from there are aligned, too.
Time realignment_delay(Time aligned, Time begin, Time iteration, double tolerance = 0.05);

}  // namespace netsim
