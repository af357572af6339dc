// SwitchGraph: fabrics of identical switches, joined as a graph says: random regular graphs, de Bruijn and
// Kautz graphs, SlimFly. Routes are the shortest paths, in virtual channels (ordered_routes.h).
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

// The parameters that all these fabrics have.
struct SwitchGraphParameters : EthernetParameters, ChannelParameters {
  std::optional<BitRate> switch_rate;
};
// Adds these parameters to those of a topology (P derives from SwitchGraphParameters).
template <class P>
Parameters<P>&& with_switch_graph(Parameters<P>&& parameters) {
  parameters.rate("switch_rate", static_cast<std::optional<BitRate> P::*>(&P::switch_rate), kLinkRates,
                  "the same as rate", "rate of the links between switches");
  return with_ethernet(with_channels(std::move(parameters)));
}

struct SwitchGraph {
  std::uint32_t switches = 0;
  std::uint32_t hosts_per_switch = 1;  // host port i is at switch i / hosts_per_switch
  // Pairs of switches, each a link in both directions. No pair occurs twice, none joins a switch to itself.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> links;

  // Sorts the links, the smaller switch of each first. Removes duplicates, and links from a switch to itself.
  void tidy();
  bool is_connected() const;
  // Returns the number of links between the two switches that are farthest apart; kNoId where the graph is
  // not connected.
  std::uint32_t diameter() const;
};

// Creates the topology. Throws a ConfigError at `where` where the graph is not connected or has more host
// ports than the limit.
std::unique_ptr<Topology> switch_graph(SwitchGraph graph, const SwitchGraphParameters& parameters,
                                       const ConfigNode& where);

}  // namespace netsim
