// Kinds, generations and rates that InfraGraph documents give only by names and descriptions ("nvlink_4",
// "H100", "PCIE_GEN5 x16"). infragraph.h states the rules.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/core/units.h"
#include "sim/topology/files/described_cluster.h"

namespace netsim::infragraph {

// A link's name and description in lower case, and its figures. A missing figure was not in the file.
struct Wire {
  std::string text;
  std::optional<BitRate> rate;
  std::optional<Time> delay;
};

// A node's kind, and its name and description in lower case.
struct Part {
  DescribedCluster::Kind kind = DescribedCluster::Kind::other;
  std::string text;
};

// Returns the kind of a component by its `choice`.
DescribedCluster::Kind kind_of(std::string_view choice);
// Returns the kind of a component by its type. InfraGraph's translator of NCCL's files writes NVSwitches as
// components of choice `custom` and type `switch`.
DescribedCluster::Kind kind_of_custom(const std::string& type);
// Returns the compute capability of an xpu by its name, as NCCL writes it (90 for 9.0); 0: unknown, or no
// xpu.
std::int64_t compute_capability_of(const Part& part);

// Returns the usable rate of a PCIe link. The raw rate is in whole Gb/s, as in host_links.h.
BitRate usable_pcie(double gigatransfers, int lanes);
// Returns the lanes that a PCIe link's text names ("x8"), or 16.
int pcie_lanes(std::string_view text);

// Returns the link between nodes `at_a` and `at_b`, which `a` and `b` describe. Where the file gives no rate
// and both are nodes of one unit (`inside`), names and descriptions give it.
DescribedCluster::Link described(std::uint32_t at_a, std::uint32_t at_b, const Wire& wire, const Part& a,
                                 const Part& b, bool inside, const Place& place);
// Sets the generation of the xpus of a link "nvlink_4" if nothing else determines it.
void learn_generation(const DescribedCluster::Link& link, const Wire& wire, DescribedCluster& cluster);
// Sets the rate of NVLinks for which neither figures nor names give it, by the compute capability of the GPU.
void rate_by_capability(DescribedCluster& cluster);

}  // namespace netsim::infragraph
