// leaf_spine: two tiers of switches, with any number of leaves and spines; each leaf is joined to each spine.
// NIC i is at leaf i / hosts_per_leaf.
#include <string>

#include "sim/core/registry.h"
#include "sim/topology/ethernet.h"
#include "sim/topology/folded_clos.h"

namespace netsim {

namespace {

struct LeafSpineParameters : EthernetParameters {
  std::int64_t leaves = 4;
  std::int64_t spines = 4;
  std::int64_t hosts_per_leaf = 4;
  std::int64_t links = 1;
  std::int64_t planes = 1;
  std::optional<BitRate> uplink_rate;
};

const Parameters<LeafSpineParameters>& leaf_spine_parameters() {
  using P = LeafSpineParameters;
  static const auto p = with_ethernet(
      Parameters<P>()
          .integer("leaves", &P::leaves, {1, 65536}, "switches next to the hosts")
          .integer("spines", &P::spines, {1, 4096}, "switches above them")
          .integer("hosts_per_leaf", &P::hosts_per_leaf, {1, 65536}, "host ports of a leaf")
          .integer("links", &P::links, {1, 64}, "parallel links between a leaf and a spine")
          .rate("uplink_rate", &P::uplink_rate, kLinkRates, "the same as rate",
                "rate of the links between leaves and spines")
          .integer("planes", &P::planes, {1, 64},
                   "separate fabrics of this size; NIC n of a host is in plane n modulo planes"));
  return p;
}

ClosShape leaf_spine_shape(const LeafSpineParameters& p) {
  return {.tiers = {{.name = "leaf", .down = static_cast<std::uint32_t>(p.hosts_per_leaf), .link = p.link()},
                    {.name = "spine",
                     .down = static_cast<std::uint32_t>(p.leaves),
                     .up = static_cast<std::uint32_t>(p.spines),
                     .links = static_cast<std::uint32_t>(p.links),
                     .link = p.link(p.uplink_rate.value_or(p.rate))}},
          .planes = static_cast<std::uint32_t>(p.planes)};
}

const Registration<Topology> kLeafSpine{"leaf_spine", "two tiers: every leaf is joined to every spine",
                                        leaf_spine_parameters(),
                                        [](const LeafSpineParameters& p, const ConfigNode& where) {
                                          return folded_clos(leaf_spine_shape(p), where);
                                        }};

}  // namespace

}  // namespace netsim
