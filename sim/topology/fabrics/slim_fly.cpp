// slim_fly: McKay-Miller-Siran graphs of diameter 2. They have 2 q^2 switches with (3q - d) / 2 links to
// others, for a prime power q = 4w + d with d = 1, 0 or -1. (Besta and Hoefler, Slim Fly: A Cost Effective
// Low-Diameter Network Topology, SC 2014, section II.B.) (McKay, Miller and Siran, Journal of Combinatorial
// Theory B, 1998.)
//
// Switches are (0, x, y) and (1, m, c) over the field of q elements. Let e be a primitive element. Two
// switches of the first kind in a group x are joined where y - y' is in X. Two of the second kind in a group
// m are joined where c - c' is in X'. (0, x, y) and (1, m, c) are joined where y = m x + c.
//
// X holds the even powers of e for d = 1. For d = 0 it holds e^(2i) for i < q/2, and for d = -1 +-e^(2i) for
// i < w. X' is e X.
#include <algorithm>
#include <string>
#include <vector>

#include "sim/core/config_entries.h"
#include "sim/core/registry.h"
#include "sim/topology/switch_graph.h"

namespace netsim {

namespace {

struct SlimFlyParameters : SwitchGraphParameters {
  std::int64_t q = 5;
  std::optional<std::int64_t> hosts_per_switch;
};

const Parameters<SlimFlyParameters>& slim_fly_parameters() {
  using P = SlimFlyParameters;
  static const auto p = with_switch_graph(
      Parameters<P>()
          .integer("q", &P::q, {3, 181}, "a power of a prime, 4 w - 1, 4 w or 4 w + 1: 2 q^2 switches")
          .integer("hosts_per_switch", &P::hosts_per_switch, {1, 1024},
                   "half of the links to other switches, rounded up", "host ports of a switch"));
  return p;
}

// Represents q as p^k; p = 0 where q is not a power of a prime.
struct PrimePower {
  std::int64_t p = 0, k = 0;
};
PrimePower prime_power(std::int64_t q) {
  PrimePower result;
  for (std::int64_t p = 2; p <= q && result.p == 0; ++p) {
    if (q % p == 0) result.p = p;
  }
  for (; q > 1; q /= result.p, ++result.k) {
    if (q % result.p != 0) return {};
  }
  return result;
}

// The field of p^k elements. They are polynomials in x over the integers modulo p, of degree below k, modulo
// x^k minus a polynomial. That polynomial is chosen so that the powers of x are all elements but 0. An
// element is stored as the number whose base-p digits are its coefficients, the constant first.
class Field {
 public:
  explicit Field(PrimePower size) : p_(size.p), top_(1) {
    for (std::int64_t i = 1; i < size.k; ++i) top_ *= p_;
    for (reduced_ = 1; !find_powers(); ++reduced_) {
    }
    log_.assign(static_cast<std::size_t>(elements()), 0);
    for (std::size_t i = 0; i < powers_.size(); ++i) log_[static_cast<std::size_t>(powers_[i])] = i;
  }
  std::int64_t elements() const { return p_ * top_; }
  // Returns a power of x, which is primitive.
  std::int64_t power(std::size_t exponent) const { return powers_[exponent % powers_.size()]; }
  // Returns a + factor * b, digit by digit.
  std::int64_t sum(std::int64_t a, std::int64_t b, std::int64_t factor) const {
    std::int64_t result = 0;
    for (std::int64_t digit = 1; digit <= top_; digit *= p_)
      result += digit * ((a / digit % p_ + factor * (b / digit % p_)) % p_);
    return result;
  }
  std::int64_t sum(std::int64_t a, std::int64_t b) const { return sum(a, b, 1); }
  std::int64_t difference(std::int64_t a, std::int64_t b) const { return sum(a, b, p_ - 1); }
  std::int64_t product(std::int64_t a, std::int64_t b) const {
    if (a == 0 || b == 0) return 0;
    return power(log_[static_cast<std::size_t>(a)] + log_[static_cast<std::size_t>(b)]);
  }

 private:
  std::int64_t times_x(std::int64_t a) const { return sum(a % top_ * p_, reduced_, a / top_); }

  // Computes x^0, x^1, ... until they repeat. Returns whether they are all elements but 0.
  bool find_powers() {
    powers_.assign(1, 1);
    while (static_cast<std::int64_t>(powers_.size()) < elements()) {
      const std::int64_t next = times_x(powers_.back());
      if (next <= 1) return next == 1 && static_cast<std::int64_t>(powers_.size()) == elements() - 1;
      powers_.push_back(next);
    }
    return false;
  }

  std::int64_t p_, top_;      // top_ is p^(k-1)
  std::int64_t reduced_ = 0;  // the polynomial that x^k equals
  std::vector<std::int64_t> powers_;
  std::vector<std::size_t> log_;  // by element
};

// Returns d of q = 4w + d.
std::int64_t remainder_of(std::int64_t q) { return q % 4 == 3 ? -1 : q % 4; }

// Returns, by element, whether X holds it; with `odd`, whether X' = e X does.
std::vector<bool> generators(const Field& field, bool odd) {
  const std::int64_t q = field.elements();
  const auto count = static_cast<std::size_t>(q % 4 == 3 ? (q + 1) / 4 : q / 2);
  std::vector<bool> held(static_cast<std::size_t>(q), false);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t element = field.power(2 * i + (odd ? 1 : 0));
    held[static_cast<std::size_t>(element)] = true;
    if (q % 4 == 3) held[static_cast<std::size_t>(field.difference(0, element))] = true;
  }
  return held;
}

SwitchGraph graph_of(const Field& field) {
  const std::int64_t q = field.elements();
  const auto number = [q](std::int64_t side, std::int64_t group, std::int64_t place) {
    return static_cast<std::uint32_t>((side * q + group) * q + place);
  };
  SwitchGraph graph;
  graph.switches = static_cast<std::uint32_t>(2 * q * q);
  for (std::int64_t side = 0; side < 2; ++side) {
    const std::vector<bool> apart = generators(field, side == 1);
    for (std::int64_t group = 0; group < q; ++group) {
      for (std::int64_t y = 0; y < q; ++y) {
        for (std::int64_t other = 0; other < y; ++other) {
          if (apart[static_cast<std::size_t>(field.difference(y, other))])
            graph.links.emplace_back(number(side, group, other), number(side, group, y));
        }
      }
    }
  }
  for (std::int64_t x = 0; x < q; ++x) {
    for (std::int64_t m = 0; m < q; ++m) {
      for (std::int64_t c = 0; c < q; ++c)
        graph.links.emplace_back(number(0, x, field.sum(field.product(m, x), c)), number(1, m, c));
    }
  }
  return graph;
}

std::unique_ptr<Topology> make_slim_fly(const SlimFlyParameters& p, const ConfigNode& where) {
  const PrimePower size = prime_power(p.q);
  if (size.p == 0)
    entry_or_self(where, "q")
        .fail("q is " + std::to_string(p.q) +
              "; a power of a prime is expected: 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, ...");
  SwitchGraph graph = graph_of(Field(size));
  const std::int64_t degree = (3 * p.q - remainder_of(p.q)) / 2;
  graph.hosts_per_switch = static_cast<std::uint32_t>(p.hosts_per_switch.value_or((degree + 1) / 2));
  return switch_graph(std::move(graph), p, where);
}

const Registration<Topology> kSlimFly{
    "slim_fly", "a McKay-Miller-Siran graph: 2 q^2 switches, any two at most two links apart",
    slim_fly_parameters(), make_slim_fly};

}  // namespace

}  // namespace netsim
