// The topologies of SimAI's ns-3 (astra-sim-alibabacloud, gen_Topo_Template.py). A file has `nodes
// gpus_per_server nvswitches switches links gpu_type`; then the node numbers of the NVSwitches and of the
// switches; then `node node rate delay error_rate` for each link. All other nodes are GPUs, and
// gpus_per_server consecutive GPUs are a server.
//
// The tool has no PCIe, CPUs or NICs: the links of a GPU to switches are its NICs. Rates and delays are the
// file's; NVLinks have their usable rate (2880 Gbps = 360 GB/s of an H100's 450). The type gives the GPUs'
// generation: NVSwitches of Hopper and later multicast and reduce (NVLS), and NCCL's tables of that
// generation apply.
#pragma once

#include <string>
#include <string_view>

#include "sim/topology/files/described_cluster.h"

namespace netsim {

// Parses the text. Servers are called "server0", switches and GPUs by their numbers: "node20", "gpu5". Throws
// an InputError for errors in the text. `ignore_error_rates` allows links to have error rates.
DescribedCluster parse_simai_topology(std::string_view text, const std::string& path,
                                      bool ignore_error_rates);

}  // namespace netsim
