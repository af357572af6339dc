// switch_line: a line of switches with one host port at each end, so that a packet crosses switches + 1
// links. It serves exact tests of store and forward.
#include <string>

#include "sim/core/registry.h"
#include "sim/topology/ethernet.h"
#include "sim/topology/topology.h"

namespace netsim {

namespace {

struct SwitchLineParameters : EthernetParameters {
  std::int64_t switches = 1;
};

const Parameters<SwitchLineParameters>& switch_line_parameters() {
  using P = SwitchLineParameters;
  static const auto p = with_ethernet(
      Parameters<P>().integer("switches", &P::switches, {1, 1024}, "switches between the two host ports"));
  return p;
}

class SwitchLine final : public Topology {
 public:
  explicit SwitchLine(const SwitchLineParameters& p)
      : switches_(static_cast<std::uint32_t>(p.switches)), link_(p.link()) {}

  std::uint32_t host_ports() const override { return 2; }

  std::unique_ptr<Routes> build(Graph& graph, std::span<const HostPort> nics) const override {
    const NodeId first = static_cast<NodeId>(graph.node_count());
    for (std::uint32_t i = 0; i < switches_; ++i) {
      graph.add_node(NodeKind::fabric_switch, graph.add_atom(), "switch" + std::to_string(i));
    }
    const NodeId ends[] = {first, first + switches_ - 1};
    for (std::size_t i = 0; i < nics.size(); ++i) graph.add_link(ends[i], nics[i].nic, link_);
    for (std::uint32_t i = 1; i < switches_; ++i) graph.add_link(first + i - 1, first + i, link_);
    return shortest_path_routes(graph, nics);
  }

 private:
  std::uint32_t switches_;
  LinkSpec link_;
};

const Registration<Topology> kSwitchLine{
    "switch_line",
    "two host ports with a line of switches between them: for exact tests of store and forward",
    switch_line_parameters(),
    [](const SwitchLineParameters& p, const ConfigNode&) { return std::make_unique<SwitchLine>(p); }};

}  // namespace

}  // namespace netsim
