// The faults of a run for people and scripts: how long each lasted, and the iterations that it hit. Links
// have those of `network.faults`, and hosts those of `gpus.failures`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/compute/gpu_variation.h"
#include "sim/core/units.h"
#include "sim/network/faults.h"
#include "sim/report/results.h"
#include "sim/topology/graph.h"
#include "sim/topology/topology.h"

namespace netsim {

// Returns the links with faults. Both directions are one entry if their faults are the same.
std::vector<FaultyPart> faulty_links(const FaultSchedule& schedule, const Graph& graph,
                                     const std::vector<LinkResult>& links);
// Returns the hosts that fail, by host. `stopped` has, by job, the hosts on which its ranks stopped.
std::vector<FaultyPart> faulty_hosts(const std::vector<HostFailure>& failures,
                                     const std::vector<std::vector<HostId>>& stopped, const Cluster& cluster);
// Returns the faults in words: "edge0-agg0: down at 60.0 us, up at 400 us; 12 packets lost". Parts of one
// kind with the same faults share a line, which names the switch that links have in common. A fault after
// `end` has not happened.
std::vector<std::string> fault_lines(const std::vector<FaultyPart>& faults, Time end);

// HitIterations: the iterations of a job that ran while a fault lasted, from 0, both ends included. The last
// one may not have ended.
struct HitIterations {
  std::size_t job = 0;  // index in Results::jobs
  std::uint32_t first = 0, last = 0;
};

// FaultSpan: a fault while it lasted. A link is down until it comes up, and has a rate until the next one. A
// loss rate holds throughout.
struct FaultSpan {
  std::size_t part = 0;  // index in Results::faults
  FaultEvent event;      // its beginning, which is none of Kind::up
  Time end = kNever;     // kNever: it lasts until the end of the run
  std::vector<HitIterations> hits;
};
// Returns all faults of the run in the order of time, then of parts. A fault of a link hits the jobs that run
// meanwhile. That of a host hits the jobs that lost ranks there.
std::vector<FaultSpan> fault_spans(const Results& results);

}  // namespace netsim
