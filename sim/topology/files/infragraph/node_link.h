// The node-link form of networkx, in which InfraGraph's reference service writes its graph.
#pragma once

#include <string>

#include "sim/core/config.h"
#include "sim/topology/files/described_cluster.h"

namespace netsim::infragraph {

// Reads a map of `nodes` and `edges` (or `links`). `file` is the document's path.
DescribedCluster read_node_link(const ConfigNode& root, const std::string& file);

}  // namespace netsim::infragraph
