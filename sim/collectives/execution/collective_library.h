// CollectiveLibrary: what holds for all communications of a run, decided by the configuration. Read by all
// sets; only the caches grow, behind their locks.
#pragma once

#include "sim/collectives/execution/algorithm_choice.h"
#include "sim/collectives/execution/chunking.h"
#include "sim/collectives/execution/collectives_parameters.h"
#include "sim/collectives/execution/communicator_layout.h"
#include "sim/collectives/execution/latency_model.h"
#include "sim/collectives/execution/plan_cache.h"
#include "sim/transport/endpoint.h"

namespace netsim {

// How a communication runs.
struct Course {
  const Plan* plan = nullptr;
  CostFamily family = CostFamily::ring;
  Reach farthest = Reach::self;  // of a member from the first one
  Chunking chunking;
  ChannelOrders orders;
};

struct CollectiveLibrary {
  // `section`: `collectives` of the configuration, may be null. ConfigError.
  CollectiveLibrary(const ConfigNode& section, const Endpoint& network);
  CollectiveLibrary(const CollectiveLibrary&) = delete;
  CollectiveLibrary& operator=(const CollectiveLibrary&) = delete;

  const CollectivesParameters parameters;
  const AlgorithmChoice algorithms;
  const LatencyModel latency;
  LayoutCache layouts;
  PlanCache plans;
  const Endpoint& endpoint;
};

// The library as one set asks it: what it has found is found again without a lock.
class LibraryLookup {
 public:
  explicit LibraryLookup(CollectiveLibrary& library)
      : library_(library), layouts_(library.layouts), plans_(library.plans) {}
  // Of a group of two and more.
  Course course(const CommunicationRequest& request);

 private:
  Course point_to_point(const CommunicationRequest& request);
  Course collective(const CommunicationRequest& request);

  CollectiveLibrary& library_;
  LayoutLookup layouts_;
  PlanLookup plans_;
};

}  // namespace netsim
