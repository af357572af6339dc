// star: all NICs at one switch. It is the smallest fabric with contention, for incast studies and exact
// tests.
#include <string>

#include "sim/core/registry.h"
#include "sim/topology/ethernet.h"
#include "sim/topology/topology.h"

namespace netsim {

namespace {

struct StarParameters : EthernetParameters {
  std::int64_t hosts = 2;
};

const Parameters<StarParameters>& star_parameters() {
  using P = StarParameters;
  static const auto p = with_ethernet(Parameters<P>().integer(
      "hosts", &P::hosts, {1, 65536}, "host ports of the switch: hosts with one NIC that it can join"));
  return p;
}

class Star final : public Topology {
 public:
  explicit Star(const StarParameters& p)
      : host_ports_(static_cast<std::uint32_t>(p.hosts)), link_(p.link()) {}

  std::uint32_t host_ports() const override { return host_ports_; }

  std::unique_ptr<Routes> build(Graph& graph, std::span<const HostPort> nics) const override {
    const NodeId hub = graph.add_node(NodeKind::fabric_switch, graph.add_atom(), "switch0");
    for (const HostPort& port : nics) graph.add_link(hub, port.nic, link_);
    return shortest_path_routes(graph, nics);
  }

 private:
  std::uint32_t host_ports_;
  LinkSpec link_;
};

const Registration<Topology> kStar{
    "star", "one switch that joins all NICs: for incast studies and exact tests", star_parameters(),
    [](const StarParameters& p, const ConfigNode&) { return std::make_unique<Star>(p); }};

}  // namespace

}  // namespace netsim
