// Shortest ways on any graph in virtual channels, for fabrics whose shape does not say how lossless packets
// keep from waiting for each other in a circle: which of the two rules for channels, and how many.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "sim/core/parameters.h"
#include "sim/topology/topology.h"

namespace netsim {

// As many channels as a port has data queues.
inline constexpr std::int64_t kMostOrderedChannels = 6;

enum class ChannelOrder : std::uint8_t {
  automatic,  // hops where there are channels enough for the longest way, else layers
  hops,       // hop_ordered_routes.h
  layers      // layered_routes.h
};

struct ChannelParameters {
  std::int64_t channels = 0;
  ChannelOrder channel_order = ChannelOrder::automatic;
};
// Adds them to the parameters of a topology (P derives from ChannelParameters).
template <class P>
Parameters<P>&& with_channels(Parameters<P>&& parameters) {
  parameters.integer(
      "channels", static_cast<std::int64_t P::*>(&P::channels), {0, kMostOrderedChannels},
      "virtual channels of each link, so that lossless traffic has no deadlock; 0: as many as are needed, at "
      "most 6; 1: with channel_order: auto the shortest ways, which may have one");
  parameters.choice(
      "channel_order", static_cast<ChannelOrder P::*>(&P::channel_order),
      {{"auto", ChannelOrder::automatic}, {"hops", ChannelOrder::hops}, {"layers", ChannelOrder::layers}},
      "how packets come to their channels: hops, the next one with every hop; layers, the next one where the "
      "way turns up again in an order of the switches, and longer ways where channels are too few; auto: "
      "hops where the longest way has no more links between switches than there are channels, else layers");
  return std::move(parameters);
}

// ConfigError where the fabric has more switches than layers are found for, and layers are asked for.
void check_channels(const ChannelParameters& parameters, std::size_t switches, const ConfigNode& where);

// The shortest ways on the graph, in channels. `longest`: links between the switches that are farthest apart;
// 0: it is looked for, and where the ways have no circle one channel is enough. Above kMostLayeredSwitches
// `automatic` is hops, as far as there are channels.
std::unique_ptr<Routes> ordered_routes(const Graph& graph, std::span<const HostPort> nics,
                                       const ChannelParameters& parameters, std::uint32_t longest = 0);

}  // namespace netsim
