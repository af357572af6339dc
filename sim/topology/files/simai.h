// The topologies of SimAI's ns-3 (astra-sim-alibabacloud, gen_Topo_Template.py): `nodes gpus_per_server
// nvswitches switches links gpu_type`; the NVSwitches' and then the switches' node numbers; then `node node
// rate delay error_rate` for each link. Nodes that are no switches are GPUs, and servers so many of them in a
// row.
//
// The tool has no PCIe, no CPUs and no NICs: a GPU's links to switches are its NICs. Rates and delays are the
// file's; NVLinks have what is usable of them (2880 Gbps = 360 GB/s of an H100's 450). The type says the
// GPUs' generation: NVSwitches of Hopper's and later copy and add up (NVLS), and NCCL's tables are theirs.
#pragma once

#include <string>
#include <string_view>

#include "sim/topology/files/described_cluster.h"

namespace netsim {

// Servers are called "server0", switches and GPUs by their numbers: "node20", "gpu5". InputError for what is
// wrong with the text. `ignore_error_rates`: links may have them.
DescribedCluster parse_simai_topology(std::string_view text, const std::string& path,
                                      bool ignore_error_rates);

}  // namespace netsim
