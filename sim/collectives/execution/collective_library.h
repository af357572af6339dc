// CollectiveLibrary: what holds for all communications of a run, decided by the configuration. Read by all
// sets; only the cache of plans grows, behind its lock.
#pragma once

#include "sim/collectives/execution/algorithm_choice.h"
#include "sim/collectives/execution/chunking.h"
#include "sim/collectives/execution/collectives_parameters.h"
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
        plans(algorithms),
        endpoint(network) {}
  CollectiveLibrary(const CollectiveLibrary&) = delete;
  CollectiveLibrary& operator=(const CollectiveLibrary&) = delete;

  Chunking chunking(const CommunicationRequest& request) const {
    return chunking_of(request, parameters, endpoint);
  }

  const CollectivesParameters parameters;
  const AlgorithmChoice algorithms;
  const LatencyModel latency;
  PlanCache plans;
  const Endpoint& endpoint;
};

}  // namespace netsim
