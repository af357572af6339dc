// CollectiveLibrary: what holds for all communications of a run, decided by the configuration. Read by all
// sets; only the caches grow, behind their locks.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sim/collectives/execution/algorithm_choice.h"
#include "sim/collectives/execution/chunking.h"
#include "sim/collectives/execution/collectives_parameters.h"
#include "sim/collectives/execution/communicator_layout.h"
#include "sim/collectives/execution/fan_cache.h"
#include "sim/collectives/execution/latency_model.h"
#include "sim/collectives/execution/plan_cache.h"
#include "sim/transport/endpoint.h"

namespace netsim {

// How a communication runs, besides its plan.
struct Course {
  Reach farthest = Reach::self;  // of a member from the first one
  Chunking chunking;
  // The rings that its channels run on; none: as the group stands.
  std::span<const std::vector<std::uint32_t>> rings;
  // Of kernels that do not run by the parameters of their protocol; nothing: these do.
  std::optional<OwnKernels> kernels;
};

struct CollectiveLibrary {
  // `section`: `collectives` of the configuration, may be null. ConfigError.
  CollectiveLibrary(const ConfigNode& section, const Endpoint& network);
  CollectiveLibrary(const CollectiveLibrary&) = delete;
  CollectiveLibrary& operator=(const CollectiveLibrary&) = delete;

  // Of a group of two and more; `known`: the asking set's.
  Course course(const CommunicationRequest& request, LayoutLookup& known) const;

  const CollectivesParameters parameters;
  const AlgorithmChoice algorithms;
  const LatencyModel latency;
  LayoutCache layouts;
  PlanCache plans;
  FanCache fans;
  const Endpoint& endpoint;

 private:
  Protocol protocol(const CommunicationRequest& request, const CommunicatorLayout* layout) const;
};

}  // namespace netsim
