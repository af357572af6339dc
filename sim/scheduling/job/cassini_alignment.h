// CassiniAlignment: keeps the iterations of running jobs at the time shifts of CASSINI (rules/cassini.h).
// The job scheduler `cassini` owns it.
//
// Jobs that share links, directly or through others, are one group. The job of a group with the longest
// iteration is never delayed. Each other job is aligned to the last begin of its iteration. So jobs that are
// all slower than expected stay aligned.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/core/ids.h"
#include "sim/core/units.h"
#include "sim/scheduling/job/job_phases.h"
#include "sim/scheduling/job/job_scheduler.h"
#include "sim/scheduling/job/rules/cassini.h"

namespace netsim {

// JobOnLinks: a job and its phases on the links that it crosses; not null.
struct JobOnLinks {
  JobId job;
  const IterationPhases* phases = nullptr;
};

// AlignmentSettings: how jobs are compared and aligned.
struct AlignmentSettings {
  CassiniSettings search;
  // A phase is taken to begin earlier by this part of the iteration time, so that phases that vary in length
  // stay apart. The paper has none.
  double margin = 0;
  double tolerance = 0.05;  // a job is aligned again if it is off by more than this part of its iteration
};

// Returns the links that several of the jobs share and on which their demands together can exceed the
// capacity. Links that the same jobs share count as one, the one with the lowest score without shifts.
std::vector<SharedLink> shared_links(std::vector<JobOnLinks> jobs, const AlignmentSettings& settings);

class CassiniAlignment {
 public:
  explicit CassiniAlignment(const AlignmentSettings& settings) : settings_(settings) {}

  // Delays the next iterations of running jobs that are off by more than the tolerance, where the delay
  // raises the score. Jobs of which no phases are known are left alone.
  void align(Time now, std::span<const JobState> jobs, JobDecisions& decisions);
  // Returns a note for each group that was not shifted because its links form a loop.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  // Group: jobs that share links, directly or through others.
  struct Group {
    std::vector<SharedLink> links;
    std::vector<JobShift> shifts;  // empty: its links form a loop
    double score = 0;              // mean over the links, with the shifts
    JobId anchor;                  // job to which the others are aligned
    std::uint32_t since = 0;       // iterations of the anchor that had ended when the shifts were found
    bool has(JobId job) const;
  };
  using Jobs = std::span<const JobState>;

  void find_groups(Jobs jobs);
  Group group_of(std::vector<SharedLink> links, Jobs jobs);
  void note_loop(const Group& group, Jobs jobs);
  void align(const Group& group, Time now, Jobs jobs, JobDecisions& decisions) const;
  double present_score(const Group& group, Time origin, Jobs jobs) const;
  Time on_circle(Time iteration) const;

  AlignmentSettings settings_;
  std::vector<SharedLink> links_;  // for which the groups were found
  std::vector<Group> groups_;
  std::vector<std::string> notes_;
};

}  // namespace netsim
