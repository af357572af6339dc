// Reads topology files of NCCL and RCCL (XML). Elements and attributes are those of NCCL's src/graph/xml.cc;
// they are interpreted as in src/graph/topo.cc and topo.h:
//
// - cpu: a node. Every CPU is joined with every other at a rate by its model (GB/s: Intel 6, 10, 22 or 40 by
//   modelid, AMD 16, POWER9 32, ARM 6).
// - pci: a link to the element around it, at link_speed x link_width (12 GB/s for Gen3 x16; width 0 is 16, an
//   unknown speed is Gen3). The element inside or the class makes it a GPU (0x03, 0x12), a NIC (0x02), an
//   NVSwitch (0x0680), else a PCIe switch. NVSwitches are left out, because NVLinks name their targets. Some
//   vendors' files give bus ids only: then `nics` names the NICs, and the other devices are GPUs.
// - gpu: in the order of `dev`, else as in the file. nvlink and xgmi are `count` links to the GPU `target`,
//   each at NCCL's rate for the GPU's `sm` (`gcn`). Links to an NVSwitch (tclass 0x0680) form one port into
//   one switch stage. Links to a target that is not in the file are ignored, as in NCCL. c2c leads to the
//   GPU's CPU.
// - net: a host port of the fabric. Its link has at most the net's `speed` (Mb/s). Only the nets of the
//   highest speed count; the ports of one NIC share its PCIe link. A NIC without nets has one port.
// - sm: the least of the GPUs selects the generation in NCCL's tables. NVSwitches multicast and reduce (NVLS)
//   from 90 on, as in ncclTopoCompute (src/graph/search.cc).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/named_file.h"
#include "sim/core/units.h"
#include "sim/topology/graph.h"

namespace netsim {

// NcclDevice: one device of the file.
struct NcclDevice {
  enum class Kind : std::uint8_t { cpu, pci_switch, gpu, nic_ports, nic } kind = Kind::pci_switch;
  std::string bus_id;
  std::uint32_t parent = kNoId;  // index of a device; kNoId: this is a CPU
  BitRate rate = 0;              // rate of the link to the parent
  std::int64_t order = 0;        // GPUs and nets: `dev`
  bool is_net = false;
  std::int64_t speed = 0;  // of nets, Mb/s; 0: the file gives none
  std::int64_t rank = -1;  // of GPUs; -1: the file gives none
  std::int64_t sm = 0;
  std::string gcn;
  BitRate cpu_rate = 0;  // of CPUs: rate to other CPUs
};

// NcclNvlinks: NVLinks or xGMI links of a GPU to one target.
struct NcclNvlinks {
  std::uint32_t gpu;  // index of its device
  std::string target;
  std::int64_t count;
  bool to_switch;
};

// NcclTopology: the content of a file.
struct NcclTopology {
  std::vector<NcclDevice> devices;  // parents come before their children
  std::vector<NcclNvlinks> nvlinks;
  std::vector<std::pair<std::uint32_t, BitRate>> c2c;  // GPUs with links to their CPU
  std::vector<std::string> notes;                      // Host::notes
};

// Reads a file. `sm` is the compute capability of GPUs for which it gives none. `nics` lists the bus ids of
// the NICs where the file does not give the type of its devices; null: none. Throws an InputError for errors
// in it.
NcclTopology read_nccl_topology(InputText input, std::int64_t sm, const ConfigNode& nics);

}  // namespace netsim
