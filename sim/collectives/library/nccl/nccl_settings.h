// NcclSettings: what users say to NCCL by its own files and lists, from the section `collectives`.
#pragma once

#include <optional>

#include "sim/collectives/library/collectives_parameters.h"
#include "sim/collectives/library/nccl/nccl_graph.h"
#include "sim/collectives/library/nccl/nccl_rules.h"
#include "sim/transport/endpoint.h"

namespace netsim {

struct NcclSettings {
  NcclRules rules;                 // nccl_algo, nccl_proto and tuner
  std::optional<NcclGraph> graph;  // contents of the file that `graph` names
};

// Reads the lists and files that the parameters name. Throws ConfigError, IoError, or InputError at a place
// in a file.
NcclSettings read_nccl_settings(const CollectivesParameters& parameters);

// Checks that the GPUs of a graph exist in a host, or in several hosts that NVLink joins. Throws InputError
// at the channel's place.
void check_gpus(const NcclGraph& graph, const Endpoint& network);

}  // namespace netsim
