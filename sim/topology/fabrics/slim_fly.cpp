// slim_fly: McKay-Miller-Siran graphs of diameter 2 (Besta and Hoefler, Slim Fly: A Cost Effective
// Low-Diameter Network Topology, SC 2014, section II.B): 2 q^2 switches of (3q - d) / 2 links to others, for
// a prime q = 4w + d with d = 1 or -1.
//
// Switches are (0, x, y) and (1, m, c) over the field of q elements. With a primitive element e, two of the
// first kind in a group x are joined where y - y' is in X, two of the second kind in a group m where c - c'
// is in X', and (0, x, y) and (1, m, c) where y = m x + c. X holds the even powers of e for d = 1; for d = -1
// it holds +-e^(2i) for i < w; X' is e X. Prime powers, whose fields are no residues, are not offered.
#include <algorithm>
#include <string>
#include <vector>

#include "sim/core/registry.h"
#include "sim/topology/folded_clos.h"
#include "sim/topology/switch_graph.h"

namespace netsim {

namespace {

struct SlimFlyParameters : SwitchGraphParameters {
  std::int64_t q = 5;
  std::optional<std::int64_t> hosts_per_switch;
};

const Parameters<SlimFlyParameters>& parameters() {
  using P = SlimFlyParameters;
  static const auto p = with_switch_graph(Parameters<P>()
                                              .integer("q", &P::q, {3, 181}, "a prime: 2 q^2 switches")
                                              .integer("hosts_per_switch", &P::hosts_per_switch, {1, 1024},
                                                       "half of the links to other switches, rounded up",
                                                       "host ports of a switch"));
  return p;
}

bool is_prime(std::int64_t q) {
  for (std::int64_t d = 2; d * d <= q; ++d) {
    if (q % d == 0) return false;
  }
  return q > 1;
}

// e^0 .. e^(q-2) of the smallest primitive element e.
std::vector<std::int64_t> powers_of_primitive(std::int64_t q) {
  for (std::int64_t e = 2;; ++e) {
    std::vector<std::int64_t> powers{1};
    while (powers.back() * e % q != 1) powers.push_back(powers.back() * e % q);
    if (static_cast<std::int64_t>(powers.size()) == q - 1) return powers;
  }
}

// X, and by `odd` X' = e X: by element, whether it holds it.
std::vector<bool> generators(std::int64_t q, bool odd) {
  const std::vector<std::int64_t> powers = powers_of_primitive(q);
  const std::int64_t w = (q + 1) / 4;
  std::vector<bool> held(static_cast<std::size_t>(q), false);
  const auto hold = [&](std::int64_t element) { held[static_cast<std::size_t>(element % q)] = true; };
  for (std::size_t i = odd ? 1 : 0; i < powers.size(); i += 2) {
    if (q % 4 == 1) hold(powers[i]);
    if (q % 4 == 3 && static_cast<std::int64_t>(i / 2) < w) {
      hold(powers[i]);
      hold(q - powers[i]);
    }
  }
  return held;
}

SwitchGraph graph_of(std::int64_t q) {
  const auto number = [q](std::int64_t side, std::int64_t group, std::int64_t place) {
    return static_cast<std::uint32_t>((side * q + group) * q + place);
  };
  SwitchGraph graph;
  graph.switches = static_cast<std::uint32_t>(2 * q * q);
  for (std::int64_t side = 0; side < 2; ++side) {
    const std::vector<bool> apart = generators(q, side == 1);
    for (std::int64_t group = 0; group < q; ++group) {
      for (std::int64_t y = 0; y < q; ++y) {
        for (std::int64_t other = 0; other < y; ++other) {
          if (apart[static_cast<std::size_t>(y - other)])
            graph.links.emplace_back(number(side, group, other), number(side, group, y));
        }
      }
    }
  }
  for (std::int64_t x = 0; x < q; ++x) {
    for (std::int64_t m = 0; m < q; ++m) {
      for (std::int64_t c = 0; c < q; ++c)
        graph.links.emplace_back(number(0, x, (m * x + c) % q), number(1, m, c));
    }
  }
  return graph;
}

std::unique_ptr<Topology> make(const SlimFlyParameters& p, const ConfigNode& where) {
  if (!is_prime(p.q))
    entry_or_self(where, "q")
        .fail("q is " + std::to_string(p.q) + "; an odd prime is expected: 3, 5, 7, 11, 13, 17, ...");
  SwitchGraph graph = graph_of(p.q);
  const std::int64_t degree = (3 * p.q - (p.q % 4 == 1 ? 1 : -1)) / 2;
  graph.hosts_per_switch = static_cast<std::uint32_t>(p.hosts_per_switch.value_or((degree + 1) / 2));
  return switch_graph(std::move(graph), p, where);
}

const Registration<Topology> kRegistration{
    "slim_fly", "a McKay-Miller-Siran graph: 2 q^2 switches, any two at most two links apart", parameters(),
    make};

}  // namespace

}  // namespace netsim
