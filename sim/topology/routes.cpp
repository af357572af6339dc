#include "sim/topology/routes.h"

namespace netsim {

void Routes::add_hops(const Waypoint& packet, std::vector<Hop>& hops) const {
  for (const PortId port : next_hops(packet.at, packet.destination)) hops.push_back({port, 0});
}

}  // namespace netsim
