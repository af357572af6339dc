// clos: a folded Clos network described tier by tier, for networks without a topology kind of their own.
//
//   topology:
//     kind: clos
//     down: [16, 8, 4]   # host ports of a lowest switch, then children of a switch of each tier above
//     up: [8, 4]         # to how many switches of the next tier a switch is joined
//     links: [1, 2]      # with how many links to each
//     rates: [200 Gbps, 400 Gbps, 400 Gbps]
#include <string>
#include <vector>

#include "sim/core/registry.h"
#include "sim/topology/ethernet.h"
#include "sim/topology/folded_clos.h"

namespace netsim {

namespace {

constexpr std::size_t kMaxTiers = 4;
constexpr std::int64_t kMaxDown = 65536, kMaxUp = 4096;

struct ClosParameters : EthernetParameters {
  ConfigNode down, up, links, rates;
  std::int64_t planes = 1;
  std::int64_t rails = 1;
};

const Parameters<ClosParameters>& clos_parameters() {
  using P = ClosParameters;
  static const auto p = with_ethernet(
      Parameters<P>()
          .list("down", &P::down,
                "children of a switch of each tier, from below: host ports first; 1 to 4 tiers")
          .required()
          .list("up", &P::up,
                "switches of the next tier that a switch is joined to, for all tiers but the last")
          .list("links", &P::links, "parallel links to each of them; default 1")
          .list("rates", &P::rates, "rates of the links below each tier; default: rate")
          .integer("planes", &P::planes, {1, 64},
                   "separate networks; NIC n of a host is in plane n modulo planes")
          .integer("rails", &P::rails, {1, 64},
                   "rails of a plane: the NICs of a host are at as many lowest switches"));
  return p;
}

const std::vector<ConfigNode>& items_of(const ConfigNode& list, std::size_t count, const char* key,
                                        const ConfigNode& where) {
  if (list.is_null() && count > 0) where.fail(std::string("'") + key + "' is missing");
  if (!list.is_sequence() && !list.is_null()) list.fail("a list is expected");
  if (list.items().size() != count) {
    list.fail(std::to_string(list.items().size()) + " values; " + std::to_string(count) +
              " are expected, as `down` has it");
  }
  return list.items();
}

std::uint32_t read_count(const ConfigNode& item, std::int64_t maximum) {
  const std::int64_t value = read_integer(item);
  if (value < 1 || value > maximum) out_of_range(item, "1", std::to_string(maximum));
  return static_cast<std::uint32_t>(value);
}

BitRate read_link_rate(const ConfigNode& item) {
  const BitRate rate = read_rate(item);
  if (rate < kLinkRates.minimum || rate > kLinkRates.maximum)
    out_of_range(item, format_rate(kLinkRates.minimum), format_rate(kLinkRates.maximum));
  return rate;
}

ClosShape clos_shape(const ClosParameters& p, const ConfigNode& where) {
  if (!p.down.is_sequence()) p.down.fail("a list is expected");
  const std::size_t tiers = p.down.items().size();
  if (tiers < 1 || tiers > kMaxTiers) p.down.fail(std::to_string(tiers) + " tiers; allowed: 1 to 4");
  ClosShape shape;
  shape.planes = static_cast<std::uint32_t>(p.planes);
  shape.rails = static_cast<std::uint32_t>(p.rails);
  const std::vector<ConfigNode>& up = items_of(p.up, tiers - 1, "up", where);
  for (std::size_t t = 0; t < tiers; ++t) {
    ClosTier tier;
    tier.name = "tier" + std::to_string(t) + "_";
    tier.link = p.link();
    tier.down = read_count(p.down.items()[t], kMaxDown);
    if (t > 0) tier.up = read_count(up[t - 1], kMaxUp);
    if (t > 0 && !p.links.is_null())
      tier.links = read_count(items_of(p.links, tiers - 1, "links", where)[t - 1], kMaxUp);
    if (!p.rates.is_null()) tier.link = p.link(read_link_rate(items_of(p.rates, tiers, "rates", where)[t]));
    shape.tiers.push_back(tier);
  }
  return shape;
}

const Registration<Topology> kClos{"clos", "a folded Clos network, tier by tier", clos_parameters(),
                                   [](const ClosParameters& p, const ConfigNode& where) {
                                     return folded_clos(clos_shape(p, where), where);
                                   }};

}  // namespace

}  // namespace netsim
