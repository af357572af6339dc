// de_bruijn and kautz: direct-connect graphs of small diameter for any number of switches.
//
// In a generalized de Bruijn graph, switch i of n is joined to d i + a mod n for a = 0 .. d-1 (Reddy,
// Pradhan, Kuhl, 1980). In a generalized Kautz graph it is joined to -(d i + a) mod n for a = 1 .. d (Imase
// and Itoh, IEEE Trans. Computers C-32, 1983). Graphs with n = d^k + d^(k-1) are the Kautz graphs. Their
// diameter is at most ceil(log_d n).
//
// Links go both ways here, so a switch has at most 2 d links. Links from a switch to itself are left out, and
// two links between the same switches are one.
#include <string>

#include "sim/core/registry.h"
#include "sim/topology/switch_graph.h"

namespace netsim {

namespace {

struct ShiftGraphParameters : SwitchGraphParameters {
  std::int64_t switches = 16;
  std::int64_t degree = 2;
  std::int64_t hosts_per_switch = 1;
};

const Parameters<ShiftGraphParameters>& de_bruijn_parameters() {
  using P = ShiftGraphParameters;
  static const auto p = with_switch_graph(
      Parameters<P>()
          .integer("switches", &P::switches, {2, 65536}, "how many")
          .integer("degree", &P::degree, {2, 64}, "d: each switch has d links to others and d from others")
          .integer("hosts_per_switch", &P::hosts_per_switch, {1, 1024}, "host ports of a switch"));
  return p;
}

enum class Family { de_bruijn, kautz };

std::unique_ptr<Topology> make_de_bruijn(Family family, const ShiftGraphParameters& p,
                                         const ConfigNode& where) {
  SwitchGraph graph;
  graph.switches = static_cast<std::uint32_t>(p.switches);
  graph.hosts_per_switch = static_cast<std::uint32_t>(p.hosts_per_switch);
  const std::int64_t n = p.switches, first = family == Family::de_bruijn ? 0 : 1;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t a = first; a < p.degree + first; ++a) {
      const std::int64_t ahead = (p.degree * i + a) % n;
      const std::int64_t to = family == Family::de_bruijn ? ahead : (n - ahead) % n;
      graph.links.emplace_back(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(to));
    }
  }
  return switch_graph(std::move(graph), p, where);
}

const Registration<Topology> kDeBruijn{
    "de_bruijn", "a generalized de Bruijn graph: switch i is joined to d i + a mod n", de_bruijn_parameters(),
    [](const ShiftGraphParameters& p, const ConfigNode& where) {
      return make_de_bruijn(Family::de_bruijn, p, where);
    }};

const Registration<Topology> kKautz{
    "kautz", "a generalized Kautz (Imase-Itoh) graph: switch i is joined to -(d i + a) mod n",
    de_bruijn_parameters(), [](const ShiftGraphParameters& p, const ConfigNode& where) {
      return make_de_bruijn(Family::kautz, p, where);
    }};

}  // namespace

}  // namespace netsim
