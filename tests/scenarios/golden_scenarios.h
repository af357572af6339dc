// The golden scenarios: small runs that between them use every part of the network. golden_test.cpp compares
// them with recorded fingerprints, threads_test.cpp with themselves on other numbers of sets and threads.
#pragma once

#include <string>
#include <vector>

namespace netsim::test {

// Paths are below configs/.
struct Scenario {
  std::string name, config, workload;
  std::vector<std::string> overlays;
};

inline const std::vector<Scenario>& golden_scenarios() {
  static const std::vector<Scenario> all = {
      {"incast_vendor", "bench/incast_8to1.yaml", "bench/incast_8to1_10MB.yaml", {}},
      {"incast_sigcomm15",
       "bench/incast_8to1.yaml",
       "bench/incast_8to1_10MB.yaml",
       {"transport.congestion_control={kind: dcqcn, profile: sigcomm15}"}},
      {"incast_pfc_only",
       "bench/incast_8to1.yaml",
       "bench/incast_8to1_10MB.yaml",
       {"transport.congestion_control=none"}},
      {"credits", "network/credits.yaml", "network/permutation.yaml", {}},
      {"virtual_lanes", "network/vl_arbitration.yaml", "network/two_classes.yaml", {}},
      {"irn_with_loss",
       "network/spray.yaml",
       "network/permutation.yaml",
       {"network.switch.routing=ecmp", "transport.reliability=irn",
        "network.faults=[{link: agg0-core0, loss: 1e-3}]"}},
      {"spray", "network/spray.yaml", "network/permutation.yaml", {"network.switch.routing.choice=random"}},
      {"adaptive", "network/adaptive.yaml", "network/permutation.yaml", {}},
      {"drr", "network/drr.yaml", "network/two_classes.yaml", {"network.switch.lossless=all"}},
      {"cut_through", "network/cut_through.yaml", "network/permutation.yaml", {}},
      {"faults", "network/faults.yaml", "network/permutation.yaml", {}},
      {"ptdp_two_dgx", "two_dgx.yaml", "workloads/small_gpt_ptdp.yaml", {"transport.acknowledge.every=1"}},
      {"ptdp_vendor_acks", "two_dgx.yaml", "workloads/small_gpt_ptdp.yaml", {}},
      {"ptdp_fat_tree",
       "fat_tree.yaml",
       "workloads/small_gpt_ptdp.yaml",
       {"hosts=2", "transport.acknowledge.every=1"}},
      {"ptdp_ideal", "two_dgx.yaml", "workloads/small_gpt_ptdp.yaml", {"network={kind: ideal}"}},
      {"ptdp_tree",
       "two_dgx.yaml",
       "workloads/small_gpt_ptdp.yaml",
       {"collectives.all_reduce=double_binary_tree", "transport.acknowledge.every=16"}},
  };
  return all;
}

}  // namespace netsim::test
