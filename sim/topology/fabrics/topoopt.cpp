// topoopt: servers joined directly by a patch panel, which stays as configured for one job. (Wang, Khazraee,
// Zhong, Ghobadi, Jia, Mudigere, Zhang, Kewitsch, TopoOpt: Co-optimizing Network Topology and Parallelization
// Strategy for Distributed Training Jobs, NSDI 2023, section 4.) Some ports of each server are for rings of
// all-reduce, the others for the pairs with the highest demand. Servers forward all other traffic.
//
// Rings go from each server to the server p further on, for a p that has no common divisor with their number
// (TotientPerms). The p of several rings grow about geometrically, so that routes are short. A patch panel
// joins ports both ways, so a ring takes two ports of each server and carries both directions.
//
// The other ports are assigned by successive matchings of maximum weight. After each matching, the demand of
// a pair that got a circuit is halved.
#include <algorithm>
#include <numeric>
#include <string>

#include "sim/core/config_entries.h"
#include "sim/core/registry.h"
#include "sim/topology/circuit_fabric.h"
#include "sim/topology/matching.h"

namespace netsim {
namespace {

struct TopooptParameters : CircuitFabricParameters {
  std::int64_t servers = 16;
  std::int64_t degree = 4;
  std::optional<std::int64_t> rings;
  Bytes all_reduce = 0;
  ConfigNode demand;
};

const Parameters<TopooptParameters>& topoopt_parameters() {
  using P = TopooptParameters;
  static const auto p = with_circuit_fabric(
      Parameters<P>()
          .integer("servers", &P::servers, {3, 4096},
                   "servers, each with one host port and a switch that forwards")
          .integer("degree", &P::degree, {2, 64}, "ports of a server into the patch panel")
          .integer("rings", &P::rings, {1, 32},
                   "the share of the ports that all_reduce has of all bytes, at least one ring",
                   "rings of all-reduce, of two ports each")
          .bytes("all_reduce", &P::all_reduce, {0, 1'000'000 * kGigabyte},
                 "bytes that each server sends for all-reduces in an iteration, compared with `demand`")
          .list("demand", &P::demand,
                "other bytes that pairs of servers send each other in an iteration: [[0, 5, 100 MB], ...]"));
  return p;
}

PairWeights read_demand(const TopooptParameters& p) {
  PairWeights demand;
  if (p.demand.is_null()) return demand;
  if (!p.demand.is_sequence()) p.demand.fail("expected a list of [server, server, bytes]");
  for (const ConfigNode& entry : p.demand.items()) {
    if (!entry.is_sequence() || entry.items().size() != 3) entry.fail("expected [server, server, bytes]");
    const auto server = [&](const ConfigNode& node) {
      const std::int64_t value = read_integer(node);
      if (value < 0 || value >= p.servers)
        node.fail("'" + node.text() + "' is no server: 0 to " + std::to_string(p.servers - 1));
      return static_cast<std::uint32_t>(value);
    };
    const std::uint32_t a = server(entry.items()[0]), b = server(entry.items()[1]);
    if (a == b) entry.fail("a demand of a server to itself");
    const Bytes bytes = read_bytes(entry.items()[2]);
    if (bytes <= 0) entry.items()[2].fail("'" + entry.items()[2].text() + "' is out of range: above 0");
    demand[std::minmax(a, b)] += bytes;
  }
  return demand;
}

// Returns the number whose `power`-th power is `value`, by bisection. It uses only products, which every
// machine rounds alike.
double root(double value, std::int64_t power) {
  double low = 1, high = value;
  for (int i = 0; i < 64; ++i) {
    const double middle = (low + high) / 2;
    double product = 1;
    for (std::int64_t k = 0; k < power; ++k) product *= middle;
    (product < value ? low : high) = middle;
  }
  return high;
}

// Returns `rings` different jumps without a common divisor with `servers`, or fewer where there are no more.
// Each is longer than the one before by about the same factor. They are at most half of `servers`, because
// rings go both ways.
std::vector<std::uint32_t> ring_jumps(std::uint32_t servers, std::int64_t rings) {
  std::vector<std::uint32_t> candidates;
  for (std::uint32_t p = 1; 2 * p <= servers; ++p) {
    if (std::gcd(p, servers) == 1) candidates.push_back(p);
  }
  const double factor = root(static_cast<double>(servers) / 2, rings);
  std::vector<std::uint32_t> chosen;
  for (double wanted = 1; static_cast<std::int64_t>(chosen.size()) < rings && !candidates.empty();
       wanted *= factor) {
    const auto off = [&](std::uint32_t p) { return p > wanted ? p - wanted : wanted - p; };
    const auto nearest = std::min_element(candidates.begin(), candidates.end(),
                                          [&](std::uint32_t a, std::uint32_t b) { return off(a) < off(b); });
    chosen.push_back(*nearest);
    candidates.erase(nearest);
  }
  return chosen;
}

std::int64_t rings_of(const TopooptParameters& p, const PairWeights& demand, const ConfigNode& where) {
  Bytes pairs = 0;
  for (const auto& [ends, bytes] : demand) pairs += bytes;
  std::int64_t rings = p.degree / 2;
  if (p.rings) {
    rings = *p.rings;
  } else if (pairs > 0) {  // the all-reduce's share of all ports, rounded up to whole rings
    const Int128 reduced = static_cast<Int128>(p.all_reduce) * p.servers;
    const Int128 ports = (reduced * p.degree + reduced + pairs - 1) / (reduced + pairs);
    rings = std::clamp<std::int64_t>(static_cast<std::int64_t>((ports + 1) / 2), 1, p.degree / 2);
  }
  if (2 * rings > p.degree) {
    entry_or_self(where, "rings")
        .fail(std::to_string(rings) + " rings take " + std::to_string(2 * rings) +
              " ports of a server, which has " + std::to_string(p.degree) + " (`degree`)");
  }
  return rings;
}

std::unique_ptr<Topology> make_topoopt(const TopooptParameters& p, const ConfigNode& where) {
  PairWeights demand = read_demand(p);
  const std::int64_t rings = rings_of(p, demand, where);
  CircuitFabric fabric;
  fabric.switches = static_cast<std::uint32_t>(p.servers);
  fabric.server_ports = static_cast<std::uint32_t>(p.degree);
  CircuitFabric::Configuration panel{"panel", {}};
  for (const std::uint32_t jump : ring_jumps(fabric.switches, rings)) {
    const Circuits ring = jumps(fabric.switches, jump);
    panel.circuits.insert(panel.circuits.end(), ring.begin(), ring.end());
  }
  for (std::int64_t port = 2 * rings; port < p.degree && !demand.empty(); ++port) {
    for (const auto& pair : heaviest_matching(fabric.switches, demand)) {
      panel.circuits.push_back(pair);
      demand[pair] = (demand[pair] + 1) / 2;
    }
  }
  fabric.optical.push_back({"patch_panel", {std::move(panel)}});
  return circuit_fabric(std::move(fabric), p, where);
}

const Registration<Topology> kTopoopt{"topoopt", "servers joined directly, as one job needs it",
                                      topoopt_parameters(), make_topoopt};

}  // namespace
}  // namespace netsim
