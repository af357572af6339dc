#include "sim/report/run_view.h"

namespace netsim {

std::vector<std::string> nic_names(const Cluster& cluster) {
  std::vector<std::string> names;
  for (const Gpu& gpu : cluster.gpus) names.push_back(cluster.graph.node(gpu.nic).name);
  return names;
}

}  // namespace netsim
