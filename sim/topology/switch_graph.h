// SwitchGraph: fabrics whose switches are all alike and joined as some graph says: random regular graphs, de
// Bruijn and Kautz graphs, SlimFly. Routes are the shortest paths, in virtual channels (ordered_routes.h).
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/topology/ethernet.h"
#include "sim/topology/ordered_routes.h"
#include "sim/topology/topology.h"

namespace netsim {

// What they have in common for the user.
struct SwitchGraphParameters : EthernetParameters, ChannelParameters {
  std::optional<BitRate> switch_rate;
};
// Adds them to the parameters of a topology (P derives from SwitchGraphParameters).
template <class P>
Parameters<P>&& with_switch_graph(Parameters<P>&& parameters) {
  parameters.rate("switch_rate", static_cast<std::optional<BitRate> P::*>(&P::switch_rate), kLinkRates,
                  "the same as rate", "rate of the links between switches");
  return with_ethernet(with_channels(std::move(parameters)));
}

struct SwitchGraph {
  std::uint32_t switches = 0;
  std::uint32_t hosts_per_switch = 1;  // host port i is at switch i / hosts_per_switch
  std::vector<std::pair<std::uint32_t, std::uint32_t>> links;  // both ways; none twice, none to itself

  // The links with the smaller end first, in order, each once, without those from a switch to itself.
  void tidy();
  bool is_connected() const;
  // Links between the two switches that are farthest apart; kNoId where they are not all joined.
  std::uint32_t diameter() const;
};

// ConfigError at `where` where the graph falls apart or has more host ports than any cluster.
std::unique_ptr<Topology> switch_graph(SwitchGraph graph, const SwitchGraphParameters& parameters,
                                       const ConfigNode& where);

}  // namespace netsim
