// InfraGraph (github.com/Keysight/infragraph, schema 2.x): infrastructures of devices, instances and edges,
// as YAML, JSON or protobuf. A file is an Infrastructure, a bare Device (one instance of it), a result of the
// reference service's get_graph ({infrastructure, annotations}), or its networkx graph. The annotation `rank`
// orders nodes, `sm` is an xpu's compute capability, and `speed` is a NIC's rate in Mb/s.
//
// - An index is missing (all), `[3]`, or a slice `[a:b:c]` that excludes its end. No index may exceed the
//   count. In a list of an instance's and a component's indices, the instance's vary slowest. Components of
//   choice `device` hold the components of that device: `card[1].port`, or {device: "card[1]", component:
//   port}.
// - one2one joins the lists of both ends pair by pair and leaves out the rest of the longer one. many2many
//   joins all pairs. ring joins the i-th of one end with the (i + 1)-th of the other, cyclically. No node is
//   joined with itself, and of two edges between the same nodes the later one counts.
// - Names and descriptions identify links without figures. Links between xpus and switches are NVLinks unless
//   they, or the switch, are called PCI Express; all others in hosts are of PCIe's kind.
// - NVLinks: "nvlink_4", else the xpu's "H100", gives the generation. Its rate is NCCL's for all NVLinks of
//   such a GPU (host_links.h; 4 x NVLink1, 6 x 2, 12 x 3, 18 x 4, 18 x 5), shared equally by the GPU's edges.
//   The generation also decides about NVLS and about which of NCCL's tables apply. An "MI300X" has RCCL's
//   rate for each xGMI link.
// - PCIe: "PCIE_GEN5 x16" gives generation and lanes, 16 where they are missing, also for figures in GT/s.
//   Data are 8 of 10 bits up to Gen2, 128 of 130 up to Gen5 and 236 of 256 bytes in Gen6 (PCI Express Base
//   Specification), less the TLP headers. "c2c" between an xpu and a CPU is NVLink-C2C: 225 GB/s for a GPU
//   (hosts/gb200.cpp). Other figures are taken as they are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/recognise.h"
#include "sim/topology/files/described_cluster.h"

namespace netsim {

// Reads a document. Nodes are in the order of instances and components, with names such as
// "host.0.card.1.port.0". Links within instances come in the same order, then the links between instances.
// Throws a ConfigError at the place of an error.
DescribedCluster read_infragraph(const ConfigNode& document, const std::string& file);
// Converts an Infrastructure in protobuf's encoding to the equivalent document. Throws a ConfigError where it
// is malformed.
ConfigNode parse_infragraph_message(std::string_view bytes, const std::string& file);
// Reads the file that the entry `file` of a component's configuration names. Throws an InputError for errors
// in it.
DescribedCluster read_infragraph_file(const ConfigNode& where);
// Returns the groups of hosts for Format::groups: one instance of each kind where hosts are linked
// differently.
std::vector<HostsOfFile> infragraph_groups(const ConfigNode& component);

}  // namespace netsim
