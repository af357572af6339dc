// rail_optimized: the NICs with the same number in their hosts, a rail, share leaf switches. So traffic
// between GPUs of the same number crosses only one switch (NVIDIA DGX SuperPOD reference architecture). A
// scalable unit is hosts_per_leaf hosts and a leaf for each rail. Spines are above the leaves of a pod's
// units, and cores above pods.
//
// rail_only: the same without any link between rails; each rail is a tree of its own. (Wang et al.,
// Rail-only: A Low-Cost High-Performance Network for Training LLMs with Trillion Parameters, 2023.)
#include <string>

#include "sim/core/config_entries.h"
#include "sim/core/registry.h"
#include "sim/topology/ethernet.h"
#include "sim/topology/folded_clos.h"

namespace netsim {

namespace {

// The defaults are a DGX H100 SuperPOD's compute fabric of four scalable units: 32 hosts of 8 rails each,
// 64-port switches, 16 spines. Every leaf has two links to each spine (NVIDIA RA-11333-001).
struct RailParameters : EthernetParameters {
  std::int64_t rails = 8;
  std::int64_t hosts_per_leaf = 32;
  std::int64_t units = 4;
  std::int64_t spines = 16;
  std::int64_t links = 2;
  std::int64_t pods = 1;
  std::int64_t cores = 0;
  std::optional<BitRate> uplink_rate;
};

const Parameters<RailParameters>& rail_optimized_parameters() {
  using P = RailParameters;
  static const auto p = with_ethernet(
      Parameters<P>()
          .integer("rails", &P::rails, {1, 64}, "NICs of a host, each with leaves of its own")
          .integer("hosts_per_leaf", &P::hosts_per_leaf, {1, 4096}, "hosts of a scalable unit")
          .integer("units", &P::units, {1, 4096}, "scalable units of a pod: leaves of each rail")
          .integer("spines", &P::spines, {0, 4096},
                   "switches above a pod's leaves (rail_only: above those of one rail); 0 with one leaf only")
          .integer("links", &P::links, {1, 64}, "parallel links between two switches that are joined")
          .integer("pods", &P::pods, {1, 4096}, "pods, joined by cores")
          .integer("cores", &P::cores, {0, 4096}, "cores above each spine; 0 with one pod only")
          .rate("uplink_rate", &P::uplink_rate, kLinkRates, "the same as rate",
                "rate of the links between switches"));
  return p;
}

std::uint32_t u32(std::int64_t value) { return static_cast<std::uint32_t>(value); }

void check_tier(const char* key, std::int64_t above, std::int64_t below, const std::string& what,
                const ConfigNode& where) {
  if (above == 0 && below > 1) {
    entry_or_self(where, key)
        .fail(std::string(key) + " is 0, but there are " + std::to_string(below) + " " + what + " to join");
  }
}

ClosShape rail_optimized_shape(const RailParameters& p, bool joined, const ConfigNode& where) {
  const std::int64_t leaves = joined ? p.units * p.rails : p.units;
  check_tier("spines", p.spines, leaves, "leaves", where);
  check_tier("cores", p.cores, p.pods, "pods", where);
  const LinkSpec uplink = p.link(p.uplink_rate.value_or(p.rate));
  ClosShape shape;
  shape.rails = joined ? u32(p.rails) : 1;
  shape.planes = joined ? 1 : u32(p.rails);
  shape.tiers.push_back({.name = "leaf", .down = u32(p.hosts_per_leaf), .link = p.link()});
  if (p.spines > 0) {
    shape.tiers.push_back(
        {.name = "spine", .down = u32(leaves), .up = u32(p.spines), .links = u32(p.links), .link = uplink});
  }
  if (p.cores > 0) {
    shape.tiers.push_back(
        {.name = "core", .down = u32(p.pods), .up = u32(p.cores), .links = u32(p.links), .link = uplink});
  }
  return shape;
}

const Registration<Topology> kRailOptimized{
    "rail_optimized", "leaves by rail: NICs of the same number share a switch; spines and cores join them",
    rail_optimized_parameters(), [](const RailParameters& p, const ConfigNode& where) {
      return folded_clos(rail_optimized_shape(p, true, where), where);
    }};

const Registration<Topology> kRailOnly{"rail_only", "a tree for each rail, and no link between rails",
                                       rail_optimized_parameters(),
                                       [](const RailParameters& p, const ConfigNode& where) {
                                         return folded_clos(rail_optimized_shape(p, false, where), where);
                                       }};

}  // namespace

}  // namespace netsim
