#include "sim/topology/routes.h"

#include "sim/topology/hop_ordered_routes.h"
#include "sim/topology/topology.h"
#include "sim/topology/up_routes.h"

namespace netsim {

void Routes::add_hops(const Waypoint& packet, std::vector<Hop>& hops) const {
  for (const PortId port : next_hops(packet.at, packet.destination)) hops.push_back({port, 0});
}

std::unique_ptr<Routes> Routes::without(const Graph& graph, std::span<const HostPort> nics,
                                        const std::vector<bool>& down, std::uint32_t channels) const {
  return hop_ordered_routes(graph, up_routes(graph, nics, down), channels);
}

}  // namespace netsim
