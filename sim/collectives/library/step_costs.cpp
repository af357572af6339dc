#include "sim/collectives/library/step_costs.h"

namespace netsim {

StepCosts step_costs(const CollectivesParameters& parameters, LatencyRow row, Protocol protocol,
                     std::size_t ranks, bool collective) {
  const ProtocolParameters& from = parameters.of(protocol);
  const bool pat = row == LatencyRow::pat, tree = row == LatencyRow::tree || pat;
  StepCosts costs;
  if (collective) {
    costs.base = parameters.launch_latency + (pat    ? parameters.pat_latency(ranks)
                                              : tree ? from.base_latency_tree
                                                     : from.base_latency_ring);
  }
  costs.hop_nvlink = tree ? from.hop_latency_nvlink_tree : from.hop_latency_nvlink_ring;
  costs.hop_pcie = tree ? from.hop_latency_pcie_tree : from.hop_latency_pcie_ring;
  const Time net = tree ? from.hop_latency_net_tree : from.hop_latency_net_ring;
  costs.hop_net = pat ? pat_step(net) : net;
  costs.fences = protocol == Protocol::simple;
  costs.passes_lines = tree && !costs.fences;
  // getNetOverhead in src/graph/tuning.cc
  costs.posting = parameters.net_overhead * (protocol == Protocol::simple ? 3 : 1);
  return costs;
}

}  // namespace netsim
