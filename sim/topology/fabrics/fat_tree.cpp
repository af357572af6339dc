// fat_tree: the k-ary fat tree of switches with k ports (Al-Fares, Loukissas, Vahdat, SIGCOMM 2008). With
// three tiers it has k pods of k/2 edge and k/2 aggregation switches, and (k/2)^2 cores. With two tiers it
// has k edges and k/2 cores.
//
// Host ports are numbered edge by edge: NIC i is at edge i / ports_per_edge. Pods follow one another, so NICs
// with near numbers share an edge, then a pod. Aggregation switch j of every pod is joined to cores j k/2 ..
// j k/2 + k/2 - 1.
//
// `links` replaces each link between switches by that many parallel links, and divides the number of
// neighbours by it. `core_oversubscription` removes uplinks of the aggregation switches, and the cores at
// their ends.
#include <string>

#include "sim/core/config_entries.h"
#include "sim/core/registry.h"
#include "sim/topology/ethernet.h"
#include "sim/topology/folded_clos.h"

namespace netsim {

namespace {

struct FatTreeParameters : EthernetParameters {
  std::int64_t k = 8;
  std::int64_t tiers = 3;
  double oversubscription = 1;
  double core_oversubscription = 1;
  BitRate uplink_rate = 0;
  std::int64_t links = 1;
  std::int64_t planes = 1;
};

const Parameters<FatTreeParameters>& fat_tree_parameters() {
  using P = FatTreeParameters;
  static const auto p = with_ethernet(
      Parameters<P>()
          .integer("k", &P::k, {2, 128}, "ports of a switch without oversubscription; even")
          .integer("tiers", &P::tiers, {2, 3}, "tiers of switches")
          .real(
              "oversubscription", &P::oversubscription, {1, 64},
              "host ports of an edge switch over its k/2 uplinks, by number; k/2 times it must be an integer")
          .real("core_oversubscription", &P::core_oversubscription, {1, 64},
                "links of an aggregation switch downward over those upward; 1 with two tiers")
          .rate("uplink_rate", &P::uplink_rate, {0, kLinkRates.maximum},
                "rate of the links between switches; 0: the same as rate")
          .integer("links", &P::links, {1, 64},
                   "parallel links between two switches that are joined; divides k/2")
          .integer("planes", &P::planes, {1, 64},
                   "separate trees; NIC n of a host is in plane n modulo planes"));
  return p;
}

std::uint32_t ports_per_edge(const FatTreeParameters& p, const ConfigNode& where) {
  const std::int64_t half = p.k / 2;
  const double exact = p.oversubscription * static_cast<double>(half);
  const auto rounded = static_cast<std::int64_t>(exact + 0.5);
  const double error = exact - static_cast<double>(rounded);
  if (error > 1e-6 || error < -1e-6) {
    entry_or_self(where, "oversubscription")
        .fail("oversubscription " + format_real(p.oversubscription) + " gives " + format_real(exact) +
              " host ports per edge switch with k = " + std::to_string(p.k) + "; it must be n / " +
              std::to_string(p.k / 2) + " with an integer n");
  }
  return static_cast<std::uint32_t>(rounded);
}

void check(const FatTreeParameters& p, const ConfigNode& where) {
  if (p.k % 2 != 0) entry_or_self(where, "k").fail("k is " + std::to_string(p.k) + "; it must be even");
  if (p.k / 2 % p.links != 0) {
    entry_or_self(where, "links")
        .fail(std::to_string(p.links) + " parallel links do not divide the k/2 = " + std::to_string(p.k / 2) +
              " uplinks of an edge switch");
  }
  if (p.tiers == 2 && p.core_oversubscription != 1) {
    entry_or_self(where, "core_oversubscription")
        .fail("with two tiers the edge switches' oversubscription is the only one");
  }
  if (p.uplink_rate != 0 && p.uplink_rate < kLinkRates.minimum) {
    entry_or_self(where, "uplink_rate")
        .fail("uplink_rate is " + format_rate(p.uplink_rate) +
              "; allowed: 0 (the same as rate) or at least " + format_rate(kLinkRates.minimum));
  }
}

ClosShape fat_tree_shape(const FatTreeParameters& p, const ConfigNode& where) {
  check(p, where);
  const auto k = static_cast<std::uint32_t>(p.k / p.links), links = static_cast<std::uint32_t>(p.links);
  const std::uint32_t half = k / 2;  // number of neighbours upward
  const LinkSpec uplink = p.link(p.uplink_rate == 0 ? p.rate : p.uplink_rate);
  ClosShape shape;
  shape.planes = static_cast<std::uint32_t>(p.planes);
  shape.tiers.push_back({.name = "edge", .down = ports_per_edge(p, where), .link = p.link()});
  std::uint32_t to_cores = half;
  if (p.tiers == 3) {
    shape.tiers.push_back({.name = "agg", .down = half, .up = half, .links = links, .link = uplink});
    to_cores = divide_exactly(half, p.core_oversubscription, where, "core_oversubscription");
  }
  shape.tiers.push_back({.name = "core", .down = k, .up = to_cores, .links = links, .link = uplink});
  return shape;
}

const Registration<Topology> kFatTree{
    "fat_tree",
    "k-ary fat tree of three tiers (k^3/4 host ports times the oversubscription) or two (k^2/2), full "
    "bisection bandwidth without oversubscription",
    fat_tree_parameters(), [](const FatTreeParameters& p, const ConfigNode& where) {
      return folded_clos(fat_tree_shape(p, where), where);
    }};

}  // namespace

}  // namespace netsim
