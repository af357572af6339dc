#include "sim/workload/traffic/traffic.h"

#include <string>

#include "sim/core/config_entries.h"
#include "sim/core/errors.h"
#include "sim/workload/workload.h"

namespace netsim {

Place place_of(const ConfigNode& section, const char* key) { return entry_or_self(section, key).place(); }

std::string class_problem(std::int64_t traffic_class, std::int64_t classes) {
  if (traffic_class < classes) return {};
  std::string problem = "class " + std::to_string(traffic_class) + ", but the network has " +
                        std::to_string(classes) + (classes == 1 ? " data class" : " data classes") +
                        ", numbered from 0";
  if (traffic_class <= kTrafficClasses.maximum)
    problem += ": set network.switch.classes to " + std::to_string(traffic_class + 1);
  return problem;
}

std::uint32_t traffic_ranks(std::int64_t wanted, const WorkloadContext& context, const Place& place) {
  const std::int64_t ranks = wanted == 0 ? std::int64_t{context.gpus} : wanted;
  if (ranks < 2)
    throw InputError(place, "a traffic pattern needs at least 2 ranks, not " + std::to_string(ranks));
  if (ranks > std::int64_t{context.most_ranks}) {
    throw InputError(place, std::to_string(ranks) + " ranks, but the cluster has " +
                                std::to_string(context.most_ranks) + " GPUs");
  }
  return static_cast<std::uint32_t>(ranks);
}

}  // namespace netsim
