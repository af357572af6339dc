// tpu_v4: a TPU v4 board of 4 chips. Each chip is a host port for its inter-chip links (ICI). The fabric, a
// torus, determines their shape and rate (50 GB/s each way and link: Jouppi et al., TPU v4, ISCA 2023,
// section 2). Only that fabric joins the chips of a board. Each packet is acknowledged, because the links'
// own protocol is not published.
#include <string>

#include "sim/core/registry.h"
#include "sim/topology/host_links.h"
#include "sim/topology/topology.h"

namespace netsim {

namespace {

constexpr std::uint32_t kChips = 4;

class TpuV4 final : public Host {
 public:
  std::uint32_t gpus() const override { return kChips; }
  std::vector<HostFabric> fabrics() const override { return {{kScaleOut, kChips}}; }
  std::int64_t acknowledge_every() const override { return 1; }
  std::string gpu_model() const override { return {}; }

  HostBuild build(Graph& graph, std::uint32_t host_index,
                  std::span<const std::uint32_t> numbers) const override {
    const AtomId atom = graph.add_atom();
    HostBuild result;
    for (std::uint32_t i = 0; i < kChips; ++i) {
      const std::string number = numbers.empty() ? "" : "(" + std::to_string(numbers[i]) + ")";
      result.gpus.push_back(
          graph.add_node(NodeKind::nic, atom, host_name(host_index) + "/chip" + std::to_string(i) + number));
    }
    result.ports = {result.gpus};
    return result;
  }
};

const Registration<Host> kTpuV4{
    "tpu_v4", "a TPU v4 board: 4 chips, each with its links into a torus", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<TpuV4>(); }};

}  // namespace

}  // namespace netsim
