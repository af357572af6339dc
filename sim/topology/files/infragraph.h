// InfraGraph (github.com/Keysight/infragraph, schema 2.x): infrastructures of devices, instances and edges,
// as YAML, JSON or protobuf. A file is an Infrastructure, a bare Device (one instance of it), a result of
// the reference service's get_graph ({infrastructure, annotations}) or its networkx graph.
// The annotation `rank` orders nodes, `sm` is an xpu's compute capability, `speed` a NIC's rate in Mb/s.
//
// - An index is all, `[3]` or a slice `[a:b:c]`, the end excluded; none may be beyond the count. Of an
//   instance's and a component's indices the instance's vary slowest. Components of choice `device` hold the
//   components of that device: `card[1].port`, or {device: "card[1]", component: port}.
// - one2one joins the lists of both ends pair by pair and leaves the longer one's rest; many2many all with
//   all; ring the i-th of one end with the (i + 1)-th of the other, round. Nothing is joined with itself, and
//   of two edges between the same nodes the later one holds.
// - Names and descriptions say what links are that have no figures. Those between xpus and switches are
//   NVLinks unless they, or the switch, are called PCI Express; all others in hosts are PCIe's kind.
//   "nvlink_4", else the xpu's "H100", gives the generation, whose rate is what NCCL counts for all NVLinks
//   of such a GPU (host_links.h; 4 x NVLink1, 6 x 2, 12 x 3, 18 x 4, 18 x 5); a GPU's edges share it alike.
//   It also says whether NVSwitches add up, and which of NCCL's tables count. An "MI300X" has what RCCL
//   counts for each xGMI link. "PCIE_GEN5 x16" gives generation and lanes, 16 where they are missing, as for
//   figures in GT/s. Data are 8 of 10 bits up to Gen2, 128 of 130 up to Gen5 and 236 of 256 bytes in Gen6
//   (PCI Express Base Specification), less the TLP headers. "c2c" between an xpu and a CPU
//   is NVLink-C2C: 225 GB/s for a GPU (hosts/gb200.cpp). Other figures are taken as they are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/recognise.h"
#include "sim/topology/files/described_cluster.h"

namespace netsim {

// The nodes, in the order of instances and components, called "host.0.card.1.port.0"; links likewise, then
// those between instances. ConfigError at the place of what is wrong.
DescribedCluster read_infragraph(const ConfigNode& document, const std::string& file);
// An Infrastructure as a protobuf message, as the document that it would be. ConfigError where it is broken.
ConfigNode parse_infragraph_message(std::string_view bytes, const std::string& file);
// Of the file that the entry `file` of a component's configuration names. InputError for what is wrong in it.
DescribedCluster read_infragraph_file(const ConfigNode& where);
// As Format::groups: where hosts are linked differently, an instance of each kind.
std::vector<HostsOfFile> infragraph_groups(const ConfigNode& component);

}  // namespace netsim
