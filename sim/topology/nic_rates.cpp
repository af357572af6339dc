#include "sim/topology/nic_rates.h"

#include <algorithm>

#include "sim/core/config.h"

namespace netsim {
namespace {

// Returns the rate that the fabric gave the NIC. Several links share the NIC's rate; optical circuits carry
// it in turns.
BitRate limit(Cluster& cluster, const NicRate& nic) {
  Graph& graph = cluster.graph;
  std::vector<PortId> links;
  BitRate fastest = 0;
  for (const PortId port : graph.ports_of(nic.node)) {
    if (!is_packet_link(graph.port(port).link.kind)) continue;
    links.push_back(port);
    fastest = std::max(fastest, graph.port(port).link.rate);
  }
  if (links.empty()) return nic.rate;
  const bool in_turns = !graph.optical_switches().empty();
  const BitRate carried = in_turns ? fastest : cluster.nic_rate(nic.node);
  const BitRate each = in_turns ? nic.rate : nic.rate / static_cast<BitRate>(links.size());
  for (const PortId link : links) {
    if (std::min(graph.port(link).link.rate, graph.port(link ^ 1U).link.rate) > each)
      graph.set_rate(link, std::max<BitRate>(each, 1));
  }
  return carried;
}

}  // namespace

void limit_nics(Cluster& cluster, const std::vector<NicRate>& rates) {
  std::vector<bool> told(cluster.groups.size(), false);
  for (const NicRate& nic : rates) {
    const BitRate carried = limit(cluster, nic);
    if (carried == nic.rate || told[nic.group]) continue;
    told[nic.group] = true;
    cluster.notes.push_back("host " + cluster.groups[nic.group].kind + ": its file gives " +
                            cluster.graph.node(nic.node).name + " " + format_rate(nic.rate) +
                            ", the fabric's link to it has " + format_rate(carried) +
                            ": the lower rate counts");
  }
}

}  // namespace netsim
