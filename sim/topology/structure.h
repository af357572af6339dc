// Structure: the figures of a fabric, for users who check a configuration before they run it. They are
// switches by tier, links by kind and rate, distances, bisection bandwidth, oversubscription and cables.
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
    std::uint32_t radix = 0;  // ports of the switch with the most ports
    // Total rates of the tier's links, one way: to hosts and lower tiers, within the tier, and to higher
    // tiers.
    BitRate down = 0, across = 0, up = 0;
    // Returns down / up; 0 where no link leads upward.
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
  std::vector<Tier> tiers;   // from the lowest to the highest
  std::vector<Links> links;  // fabric links, then links within hosts; the fastest first
  // Number of links on the shortest routes between two different NICs of a packet fabric. `diameter` is the
  // maximum, `mean_hops` the average over all pairs.
  std::uint32_t diameter = 0;
  double mean_hops = 0;
  bool sampled = false;                 // measured from a sample of the switches with NICs, spread over all
  std::uint64_t unreachable_pairs = 0;  // ordered pairs, for example on rails that nothing joins
  // Lowest rate at which one half of the NICs can send to the other, among the halvings that are tried. These
  // are the lower half of the numbers, and for each bit the numbers without it. It is an upper bound of the
  // bisection bandwidth, exact for trees, and for tori and cubes whose sizes are powers of two.
  // Several packet fabrics count with their sum, because nothing joins them.
  BitRate bisection = 0;
  BitRate injection = 0;  // total rate of all NICs
  // Links that faults take down in one or both directions, and the bisection while all of them are down.
  std::uint64_t failing_links = 0;
  BitRate bisection_left = 0;
  // Optical switches: their number, their configurations, the circuits at the start, and all circuits they
  // can make.
  std::uint64_t optical_switches = 0, configurations = 0, circuits = 0, possible_circuits = 0;
  // Number of virtual channels and the rule that assigns them; "": the topology's kind implies it.
  std::string channels;
  // Cables of the fabric outside hosts, and the transceivers at their ends.
  std::uint64_t cables = 0;
  std::uint64_t transceivers() const { return 2 * cables; }
};

// Returns the figures of the cluster. `failing` holds, by port, the links that faults take down at some time;
// empty: none.
Structure structure_of(const Cluster& cluster, const std::vector<bool>& failing = {});

// Returns the maximum flow over the fabric's links from NICs with `side` true to the others (Boost.Graph).
// `side` is by host port. `without` holds ports that carry nothing, in addition to circuits that are down.
BitRate cut_bandwidth(const Graph& graph, std::span<const HostPort> nics, const std::vector<bool>& side,
                      const std::vector<bool>& without = {});

}  // namespace netsim
