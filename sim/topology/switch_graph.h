// SwitchGraph: fabrics whose switches are all alike and joined as some graph says: random regular graphs, de
// Bruijn and Kautz graphs, SlimFly. Routes are the shortest paths, in as many virtual channels as the longest
// way has links between switches, by hops.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/topology/ethernet.h"
#include "sim/topology/topology.h"

namespace netsim {

// What they have in common for the user.
struct SwitchGraphParameters : EthernetParameters {
  std::optional<BitRate> switch_rate;
};
// Adds them to the parameters of a topology (P derives from SwitchGraphParameters).
template <class P>
Parameters<P>&& with_switch_graph(Parameters<P>&& parameters) {
  parameters.rate("switch_rate", static_cast<std::optional<BitRate> P::*>(&P::switch_rate), kLinkRates,
                  "the same as rate", "rate of the links between switches");
  return with_ethernet(std::move(parameters));
}

struct SwitchGraph {
  std::uint32_t switches = 0;
  std::uint32_t hosts_per_switch = 1;  // host port i is at switch i / hosts_per_switch
  std::vector<std::pair<std::uint32_t, std::uint32_t>> links;  // both ways; none twice, none to itself

  // The links with the smaller end first, in order, each once, without those from a switch to itself.
  void tidy();
  bool is_connected() const;
  // Links of the longest of all shortest ways; of very many switches, from a thousand of them.
  std::uint32_t longest_way() const;
  std::vector<std::vector<std::uint32_t>> neighbours() const;
};

// ConfigError at `where` where the graph falls apart or has more host ports than any cluster.
std::unique_ptr<Topology> switch_graph(SwitchGraph graph, const SwitchGraphParameters& parameters,
                                       const ConfigNode& where);

}  // namespace netsim
