// Infrastructures of InfraGraph documents: instances of devices and the edges between them.
#pragma once

#include <string>

#include "sim/core/config.h"
#include "sim/topology/files/described_cluster.h"

namespace netsim::infragraph {

// Reads an Infrastructure: a map of devices, links, instances and edges. `file` is the document's path.
DescribedCluster read_infrastructure(const ConfigNode& infrastructure, const std::string& file);

}  // namespace netsim::infragraph
