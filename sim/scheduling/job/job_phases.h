// IterationPhases: when in an iteration a job communicates, on each link of the fabric that it crosses. A job
// scheduler that asks for them (JobNeeds::phases) gets them with the state of each job.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/ids.h"
#include "sim/core/units.h"
#include "sim/scheduling/job/rules/cassini.h"
#include "sim/topology/graph.h"

namespace netsim {

// LinkPhases: the communication phases of one iteration on one directed link.
struct LinkPhases {
  PortId port = 0;              // of the sending end
  BitRate capacity = 0;         // rate of the link
  std::vector<DemandArc> arcs;  // disjoint, in order of time; rates count payload
  bool operator==(const LinkPhases&) const = default;
};

struct IterationPhases {
  Time iteration = 0;  // time of one iteration without other jobs
  // The job was measured while it met others on links. The phases in which it did are as long as their bytes
  // need on the link that takes longest.
  bool estimated = false;
  std::vector<LinkPhases> links;  // by ascending port
  bool operator==(const IterationPhases&) const = default;
};

// Joins arcs, which may overlap, to disjoint ones. Where they overlap, their rates add up. Gaps and pieces
// shorter than `resolution` are joined with what is before them; the rate is then the mean.
std::vector<DemandArc> joined_arcs(const std::vector<DemandArc>& arcs, Time resolution);

// BusyTime: a time in which a job communicates, from the begin of the iteration on.
struct BusyTime {
  Time begin = 0, end = 0;
  Time alone = 0;  // its length if the job does not meet others: at most end - begin
};

// Returns the time at which something that happened at `time` would have happened if each busy time had its
// length alone. What happens within one is moved in proportion.
Time time_alone(Time time, const std::vector<BusyTime>& busy);

}  // namespace netsim
