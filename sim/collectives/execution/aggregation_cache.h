// AggregationCache: the aggregation and multicast groups of plans, over the GPUs of groups, as the endpoint
// uses them. They are made and registered with the endpoint when a group first runs a plan with such groups.
// The cache owns them for the endpoint.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "sim/collectives/library/collectives_parameters.h"
#include "sim/collectives/plan.h"
#include "sim/core/ids.h"
#include "sim/core/shared_lookup.h"
#include "sim/transport/endpoint.h"

namespace netsim {

class AggregationCache {
 public:
  // Plans are identified by their addresses, which the cache of plans keeps stable.
  using Key = std::pair<const Plan*, std::vector<GpuId>>;
  struct AggregationGroups {
    std::vector<SwitchAggregation> aggregations;  // by number in the plan
    std::vector<AggregationId> ids;               // of each: its number at the endpoint
    std::vector<std::vector<GpuId>> members;      // member lists that `aggregations` refers to
  };
  using Value = AggregationGroups;
  AggregationCache(Endpoint& endpoint, const CollectivesParameters& parameters)
      : endpoint_(endpoint), parameters_(parameters) {}
  static Key key(const Plan& plan, const std::vector<GpuId>& members, double /*share*/) {
    return {&plan, members};
  }
  // Returns the aggregation groups of a plan. `members` holds the group's GPUs by rank of the plan. `share`
  // is SwitchAggregation::share of each, which must be the same at each call for this group and plan. Throws
  // InputError, at the algorithm in the configuration, where the endpoint rejects a group.
  const AggregationGroups& get(const Plan& plan, const std::vector<GpuId>& members, double share);

 private:
  void check(const Plan& plan, const AggregationGroups& aggregations) const;

  Endpoint& endpoint_;
  const CollectivesParameters& parameters_;
  std::mutex mutex_;
  std::map<Key, AggregationGroups> aggregations_;
};

using AggregationLookup = SharedLookup<AggregationCache>;

}  // namespace netsim
