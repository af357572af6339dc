#include "sim/topology/folded_clos.h"

#include <cmath>

#include "sim/core/config_entries.h"
#include "sim/core/parameters.h"
#include "sim/topology/ethernet.h"

namespace netsim {
namespace {

constexpr std::uint64_t kMaxSwitches = 1 << 20;

// A NIC's plane, and its number among the host ports of that plane.
struct SwitchPlace {
  std::uint32_t plane = kNoId;
  std::uint32_t number = 0;
};

// Numbers of a plane's switches and host ports. Switch s of tier t is copy s % copies(t) above subtree s /
// copies(t). Subtree a holds the host ports from a x below(t) on.
struct Numbers {
  explicit Numbers(const ClosShape& shape) {
    std::uint32_t below = 1, copies = 1, first = 0;
    for (std::size_t t = 0; t < shape.tiers.size(); ++t) {
      const ClosTier& tier = shape.tiers[t];
      below *= tier.down;
      copies *= tier.up;
      const bool top = t + 1 == shape.tiers.size();
      tiers.push_back({.first = first,
                       .below = below,
                       .copies = copies,
                       .down = tier.down,
                       .links = tier.links,
                       .uplinks = top ? 0 : shape.tiers[t + 1].up * shape.tiers[t + 1].links});
      first += static_cast<std::uint32_t>(shape.switches(t));
    }
    switches = first;
  }

  struct Tier {
    std::uint32_t first;  // number of its first switch in the plane
    std::uint32_t below, copies, down, links, uplinks;
  };
  std::vector<Tier> tiers;
  std::uint32_t switches = 0;  // number of switches in a plane
};

class ClosRoutes final : public Routes {
 public:
  ClosRoutes(const Graph& graph, const ClosShape& shape, NodeId first_switch, std::span<const HostPort> nics,
             const std::vector<SwitchPlace>& places)
      : numbers_(shape),
        first_switch_(first_switch),
        place_(graph.node_count()),
        access_(graph.node_count()) {
    for (NodeId id = 0; id < graph.node_count(); ++id) ports_.push_back(graph.ports_of(id));
    for (std::size_t i = 0; i < nics.size(); ++i) {
      const NodeId nic = nics[i].nic;
      place_[nic] = places[i];
      access_[nic] = {ports_[nic].back(), ports_[nic].back() ^ 1U};
    }
  }

  std::span<const PortId> next_hops(NodeId at, NodeId destination) const override {
    const SwitchPlace& to = place_[destination];
    if (at < first_switch_) {
      return place_[at].plane == to.plane ? std::span(&access_[at].up, 1) : std::span<const PortId>();
    }
    const std::uint32_t number = at - first_switch_, plane = number / numbers_.switches;
    if (plane != to.plane) return {};
    return hops(at, number - plane * numbers_.switches, destination);
  }
  const char* free_of_cycles() const override { return "packets go up, then down"; }

 private:
  struct Access {
    PortId up, down;
  };

  std::span<const PortId> hops(NodeId at, std::uint32_t number, NodeId destination) const {
    std::size_t t = numbers_.tiers.size() - 1;
    while (number < numbers_.tiers[t].first) --t;
    const Numbers::Tier& tier = numbers_.tiers[t];
    const std::uint32_t target = place_[destination].number;
    const std::uint32_t subtree = (number - tier.first) / tier.copies;
    if (target / tier.below != subtree) return ports_[at].last(tier.uplinks);
    if (t == 0) return {&access_[destination].down, 1};
    const std::uint32_t child = (target - subtree * tier.below) / numbers_.tiers[t - 1].below;
    return ports_[at].subspan(std::size_t{child} * tier.links, tier.links);
  }

  Numbers numbers_;
  NodeId first_switch_;
  std::vector<SwitchPlace> place_;              // by node of a NIC
  std::vector<Access> access_;                  // by node of a NIC
  std::vector<std::span<const PortId>> ports_;  // by node: the graph's own lists, which never move
};

class FoldedClos final : public Topology {
 public:
  FoldedClos(const ClosShape& shape, const ConfigNode& where)
      : shape_(shape), numbers_(shape), where_(where) {}

  std::uint32_t host_ports() const override { return static_cast<std::uint32_t>(shape_.host_ports()); }

  std::unique_ptr<Routes> build(Graph& graph, std::span<const HostPort> nics) const override {
    const auto first_switch = static_cast<NodeId>(graph.node_count());
    for (std::uint32_t plane = 0; plane < shape_.planes; ++plane) add_switches(graph, plane);
    const std::vector<SwitchPlace> places = place_nics(nics);
    for (std::size_t i = 0; i < nics.size(); ++i) {
      const NodeId plane = first_switch + places[i].plane * numbers_.switches;
      graph.add_link(plane + places[i].number / shape_.tiers[0].down, nics[i].nic, shape_.tiers[0].link);
    }
    for (std::uint32_t plane = 0; plane < shape_.planes; ++plane)
      join_children(graph, first_switch + plane * numbers_.switches, shape_.tiers.size() - 1, 0);
    return std::make_unique<ClosRoutes>(graph, shape_, first_switch, nics, places);
  }

 private:
  void add_switches(Graph& graph, std::uint32_t plane) const {
    const std::string prefix = shape_.planes > 1 ? "plane" + std::to_string(plane) + "/" : "";
    for (std::size_t t = 0; t < shape_.tiers.size(); ++t) {
      for (std::uint32_t i = 0; i < shape_.switches(t); ++i) {
        graph.add_node(NodeKind::fabric_switch, graph.add_atom(),
                       prefix + shape_.tiers[t].name + std::to_string(i), static_cast<int>(t));
      }
    }
  }

  std::vector<SwitchPlace> place_nics(std::span<const HostPort> nics) const {
    std::vector<SwitchPlace> places;
    std::vector<std::uint32_t> taken(shape_.planes, 0);
    for (const HostPort& port : nics) {
      SwitchPlace place{.plane = port.rail % shape_.planes};
      place.number = shape_.rails == 1 ? taken[place.plane]++ : number_on_rail(port);
      if (place.number >= numbers_.tiers.back().below) refuse(port, place.plane);
      places.push_back(place);
    }
    return places;
  }

  std::uint32_t number_on_rail(const HostPort& port) const {
    const std::uint32_t rail = port.rail / shape_.planes, group = shape_.tiers[0].down;
    if (rail >= shape_.rails) {
      where_.fail("host " + std::to_string(port.host) + " has a NIC " + std::to_string(port.rail) +
                  ", but the fabric has " + std::to_string(shape_.rails * shape_.planes) + " rails");
    }
    return (port.host / group * shape_.rails + rail) * group + port.host % group;
  }

  [[noreturn]] void refuse(const HostPort& port, std::uint32_t plane) const {
    const std::string nic = "NIC " + std::to_string(port.rail) + " of host " + std::to_string(port.host);
    const std::string all = std::to_string(numbers_.tiers.back().below);
    if (shape_.planes > 1) {
      where_.fail("no host port of plane " + std::to_string(plane) + " is left for " + nic + ": it has " +
                  all + ", for the NICs whose number modulo " + std::to_string(shape_.planes) +
                  " is the plane's");
    }
    where_.fail("no host port is left for " + nic + ": there are " + all + ", on " +
                std::to_string(shape_.rails) + " rails");
  }

  // Adds the links inside subtree `subtree` of tier t, after those inside its children. ClosRoutes relies on
  // the order: each switch has its links downward first, by child, then those upward.
  void join_children(Graph& graph, NodeId plane, std::size_t t, std::uint32_t subtree) const {
    if (t == 0) return;
    for (std::uint32_t child = 0; child < shape_.tiers[t].down; ++child) {
      const std::uint32_t below = subtree * shape_.tiers[t].down + child;
      join_children(graph, plane, t - 1, below);
      join_upward(graph, plane, t, subtree, below);
    }
  }

  void join_upward(Graph& graph, NodeId plane, std::size_t t, std::uint32_t subtree,
                   std::uint32_t child) const {
    const Numbers::Tier &upper = numbers_.tiers[t], &lower = numbers_.tiers[t - 1];
    const std::uint32_t up = shape_.tiers[t].up;
    for (std::uint32_t copy = 0; copy < lower.copies; ++copy) {
      const NodeId from = plane + lower.first + child * lower.copies + copy;
      const NodeId to = plane + upper.first + subtree * upper.copies + copy * up;
      for (std::uint32_t i = 0; i < up * upper.links; ++i)
        graph.add_link(from, to + i / upper.links, shape_.tiers[t].link);
    }
  }

  ClosShape shape_;
  Numbers numbers_;
  ConfigNode where_;
};

}  // namespace

std::uint64_t ClosShape::below(std::size_t tier) const {
  std::uint64_t ports = 1;
  for (std::size_t t = 0; t <= tier; ++t) ports *= tiers[t].down;
  return ports;
}

std::uint64_t ClosShape::switches(std::size_t tier) const {
  std::uint64_t count = 1;
  for (std::size_t t = 0; t < tiers.size(); ++t) count *= t <= tier ? tiers[t].up : tiers[t].down;
  return count;
}

void ClosShape::check(const ConfigNode& where) const {
  // The products are checked in steps, so that none overflows.
  std::uint64_t ports = planes, switches_here = planes;
  for (std::size_t t = 0; t < tiers.size(); ++t) {
    ports *= tiers[t].down;
    switches_here = planes * switches(t);
    if (ports > static_cast<std::uint64_t>(kMaxHostPorts)) {
      where.fail("a fabric of " + std::to_string(ports) + " host ports; at most " +
                 std::to_string(kMaxHostPorts) + " are allowed");
    }
    if (switches_here > kMaxSwitches) {
      where.fail("a fabric of " + std::to_string(switches_here) + " switches in tier " + std::to_string(t) +
                 "; at most " + std::to_string(kMaxSwitches) + " are allowed");
    }
  }
  const std::uint64_t lowest = switches(0);
  if (lowest % rails != 0) {
    where.fail(std::to_string(lowest) + " switches next to the hosts cannot be divided among " +
               std::to_string(rails) + " rails");
  }
}

std::unique_ptr<Topology> folded_clos(const ClosShape& shape, const ConfigNode& where) {
  shape.check(where);
  return std::make_unique<FoldedClos>(shape, where);
}

std::uint32_t divide_exactly(std::int64_t ports, double ratio, const ConfigNode& where, const char* key) {
  const double exact = static_cast<double>(ports) / ratio;
  const auto whole = static_cast<std::int64_t>(exact + 0.5);
  if (whole < 1 || std::abs(exact - static_cast<double>(whole)) > 1e-6) {
    entry_or_self(where, key)
        .fail(std::string(key) + " " + format_real(ratio) + " gives " + format_real(exact) + " uplinks for " +
              std::to_string(ports) + " links downward; it must be " + std::to_string(ports) +
              " / n with an integer n");
  }
  return static_cast<std::uint32_t>(whole);
}

}  // namespace netsim
