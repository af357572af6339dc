// Structure: a fabric in figures: switches by tier, links by kind and rate, distances, bisection bandwidth,
// oversubscription, cables. For people who want to know what a configuration describes before they run it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/topology/graph.h"
#include "sim/topology/topology.h"

namespace netsim {

struct Structure {
  // Switches of one tier.
  struct Tier {
    int tier = 0;
    std::uint64_t switches = 0;
    std::uint32_t radix = 0;  // ports of the switch that has most
    // All links of the tier towards hosts and lower tiers, towards its own tier, and upward, one way.
    BitRate down = 0, across = 0, up = 0;
    // down / up; 0 where nothing goes upward.
    double oversubscription() const;
  };
  // Links of one kind and rate.
  struct Links {
    LinkKind kind = LinkKind::ethernet;
    BitRate rate = 0;
    bool in_host = false;
    std::uint64_t count = 0;
  };

  std::uint64_t hosts = 0, gpus = 0, nics = 0;
  std::vector<Tier> tiers;   // from below
  std::vector<Links> links;  // of the fabric, then within hosts; the fastest first
  // Links between two different NICs of a packet fabric: of the farthest pair, and on average over all pairs.
  // Over shortest ways.
  std::uint32_t diameter = 0;
  double mean_hops = 0;
  bool sampled = false;                 // from some switches only, spread over all that have NICs
  std::uint64_t unreachable_pairs = 0;  // ordered; between rails that nothing joins
  // The least that one half of the NICs can send to the other, of the halvings that are tried: the lower half
  // of their numbers, and those that have a bit set. An upper bound of the bisection bandwidth, which is
  // exact for trees, and for tori and cubes whose sizes are powers of two. Of several packet fabrics the sum:
  // nothing joins them.
  BitRate bisection = 0;
  BitRate injection = 0;  // of all NICs together
  // Links of which faults take down one direction or both, and the bisection while all of them are down.
  std::uint64_t failing_links = 0;
  BitRate bisection_left = 0;
  // What optical switches make: circuits at the start, and all that they can.
  std::uint64_t optical_switches = 0, configurations = 0, circuits = 0, possible_circuits = 0;
  std::string channels;  // how many virtual channels, and by which rule; "": the shape of the fabric says it
  // Cables of the fabric outside hosts, and the transceivers at their ends.
  std::uint64_t cables = 0;
  std::uint64_t transceivers() const { return 2 * cables; }
};

// `failing`: by port, links that faults take down at some time; empty: none.
Structure structure_of(const Cluster& cluster, const std::vector<bool>& failing = {});

// What the fabric's links can carry at once from the NICs of which `side` is true to the others (maximum
// flow, by Boost.Graph); `side` by host port. `without`: ports that carry nothing, beside dark circuits.
BitRate cut_bandwidth(const Graph& graph, std::span<const HostPort> nics, const std::vector<bool>& side,
                      const std::vector<bool>& without = {});

}  // namespace netsim
