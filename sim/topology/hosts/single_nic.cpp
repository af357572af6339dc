// single_nic: a host of one node, which is accelerator and NIC at once, without PCIe. Messages start and end
// at its fabric link. It serves studies of the fabric alone. Each packet is acknowledged, as in the ns-3
// model that accompanies HPCC (L2_ACK_INTERVAL 1).
#include <string>

#include "sim/core/registry.h"
#include "sim/topology/topology.h"

namespace netsim {

namespace {

class SingleNic final : public Host {
 public:
  std::uint32_t gpus() const override { return 1; }
  std::vector<HostFabric> fabrics() const override { return {{kScaleOut, 1}}; }
  std::int64_t acknowledge_every() const override { return 1; }
  std::string gpu_model() const override { return {}; }

  // Adds the host's node. Its name has the number of the fabric's file, if there is one.
  HostBuild build(Graph& graph, std::uint32_t host_index,
                  std::span<const std::uint32_t> numbers) const override {
    const std::uint32_t number = numbers.empty() ? host_index : numbers.front();
    const NodeId node = graph.add_node(NodeKind::nic, graph.add_atom(), "host" + std::to_string(number));
    return {.gpus = {node}, .ports = {{node}}, .nic_rates = {}};
  }
};

const Registration<Host> kSingleNic{
    "single_nic", "one accelerator that is its own NIC, without PCIe: for studies of the fabric alone",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<SingleNic>(); }};

}  // namespace

}  // namespace netsim
