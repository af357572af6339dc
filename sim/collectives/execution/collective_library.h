// CollectiveLibrary: what holds for all communications of a run, decided by the configuration. Read by all
// sets; only the caches grow, behind their locks.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "sim/collectives/execution/algorithm_choice.h"
#include "sim/collectives/execution/chunking.h"
#include "sim/collectives/execution/collectives_parameters.h"
#include "sim/collectives/execution/communicator_layout.h"
#include "sim/collectives/execution/latency_model.h"
#include "sim/collectives/execution/plan_cache.h"
#include "sim/transport/endpoint.h"

namespace netsim {

struct CollectiveLibrary {
  // `section`: `collectives` of the configuration, may be null. ConfigError.
  CollectiveLibrary(const ConfigNode& section, const Endpoint& network)
      : parameters(parse_collectives(section)),
        algorithms(parameters),
        latency(parameters, network),
        layouts(network),
        plans(algorithms),
        endpoint(network) {}
  CollectiveLibrary(const CollectiveLibrary&) = delete;
  CollectiveLibrary& operator=(const CollectiveLibrary&) = delete;

  // The rings that an operation of this kind runs on in such a layout; none: as the group stands.
  std::span<const std::vector<std::uint32_t>> rings(CollectiveKind kind,
                                                    const CommunicatorLayout& layout) const {
    if (algorithms.of(kind).runs_in_rings()) return layout.rings;
    return {};
  }
  Chunking chunking(const CommunicationRequest& request, const CommunicatorLayout& layout) const {
    const std::size_t rings_run = rings(request.kind, layout).size();
    return chunking_of(request, parameters, layout.farthest, std::max<std::size_t>(1, rings_run));
  }

  const CollectivesParameters parameters;
  const AlgorithmChoice algorithms;
  const LatencyModel latency;
  LayoutCache layouts;
  PlanCache plans;
  const Endpoint& endpoint;
};

}  // namespace netsim
