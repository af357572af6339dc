// Shortest routes on any graph in virtual channels, for fabrics whose shape does not exclude deadlocks of
// lossless packets. The parameters select one of two rules for channels, and their number.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "sim/core/parameters.h"
#include "sim/topology/topology.h"

namespace netsim {

// A port has this many data queues.
inline constexpr std::int64_t kMostOrderedChannels = 6;

enum class ChannelOrder : std::uint8_t {
  automatic,  // `hops` where the channels suffice for the longest route, else `layers`
  hops,       // hop_ordered_routes.h
  layers      // layered_routes.h
};

struct ChannelParameters {
  std::int64_t channels = 0;
  ChannelOrder channel_order = ChannelOrder::automatic;
};
// Adds these parameters to those of a topology (P derives from ChannelParameters).
template <class P>
Parameters<P>&& with_channels(Parameters<P>&& parameters) {
  parameters.integer(
      "channels", static_cast<std::int64_t P::*>(&P::channels), {0, kMostOrderedChannels},
      "virtual channels of each link, so that lossless traffic has no deadlock; 0: as many as are needed, at "
      "most 6; 1: with channel_order: auto the shortest routes, which may deadlock");
  parameters.choice(
      "channel_order", static_cast<ChannelOrder P::*>(&P::channel_order),
      {{"auto", ChannelOrder::automatic}, {"hops", ChannelOrder::hops}, {"layers", ChannelOrder::layers}},
      "how packets choose their channels: hops, the next one with every hop; layers, the next one where the "
      "route goes up again in an order of the switches, and longer routes where channels are too few; auto: "
      "hops where the longest route has no more links between switches than there are channels, else layers");
  return std::move(parameters);
}

// Throws a ConfigError where layers are requested for more than kMostLayeredSwitches switches.
void check_channels(const ChannelParameters& parameters, std::size_t switches, const ConfigNode& where);

// Returns the shortest routes on the graph, in channels. `longest` is the number of links between the two
// switches that are farthest apart. 0: it is measured, and one channel is enough if the shortest routes have
// no cycle. Above kMostLayeredSwitches `automatic` means `hops`, with at most the allowed channels.
std::unique_ptr<Routes> ordered_routes(const Graph& graph, std::span<const HostPort> nics,
                                       const ChannelParameters& parameters, std::uint32_t longest = 0);

}  // namespace netsim
