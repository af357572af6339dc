#include "sim/topology/pcie_tree.h"

#include <string>

namespace netsim {
namespace {

// Returns the owner of a thing, where `things` are divided among `owners` in blocks.
std::uint32_t owner(std::uint32_t thing, std::uint32_t things, std::uint32_t owners) {
  return static_cast<std::uint32_t>(std::uint64_t{thing} * owners / things);
}

}  // namespace

HostBuild build_pcie_tree(Graph& graph, std::uint32_t host_index, const PcieTree& tree,
                          const PcieTreeParameters& p, std::span<const std::uint32_t> numbers) {
  const std::string host = host_name(host_index);
  const AtomId atom = graph.add_atom();
  HostBuild result;
  std::vector<NodeId>& nics = result.ports.emplace_back();
  std::vector<NodeId> cpus, switches;
  for (std::uint32_t i = 0; i < tree.gpus; ++i)
    result.gpus.push_back(graph.add_node(NodeKind::gpu, atom, host + "/gpu" + std::to_string(i)));
  for (std::uint32_t i = 0; i < tree.nics; ++i)
    nics.push_back(graph.add_node(NodeKind::nic, atom, nic_name(host, i, numbers)));
  for (std::uint32_t i = 0; i < tree.cpus; ++i) {
    cpus.push_back(graph.add_node(NodeKind::cpu, atom, host + "/cpu" + std::to_string(i)));
    for (std::uint32_t j = 0; j < i; ++j) graph.add_link(cpus[j], cpus[i], p.cpu_link());
  }
  for (std::uint32_t i = 0; i < tree.switches; ++i) {
    switches.push_back(graph.add_node(NodeKind::pcie_switch, atom, host + "/pcie" + std::to_string(i)));
    graph.add_link(switches[i], cpus[owner(i, tree.switches, tree.cpus)], p.pcie_link());
  }
  for (std::uint32_t i = 0; i < tree.gpus; ++i)
    graph.add_link(result.gpus[i], switches[owner(i, tree.gpus, tree.switches)], p.pcie_link());
  for (std::uint32_t i = 0; i < tree.nics; ++i)
    graph.add_link(nics[i], switches[owner(i, tree.nics, tree.switches)], p.pcie_link());
  return result;
}

}  // namespace netsim
