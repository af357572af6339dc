// pcie_server: a server whose GPUs are joined by PCIe only. CPUs have PCIe switches, and GPUs and NICs are at
// the switches. Messages between its GPUs go through the switches and CPUs. The defaults are a common 4U
// server of two CPUs with two Gen4 switches each; a switch has two GPUs and one NIC. (Supermicro SYS-420GP,
// ASUS ESC8000 and similar.)
#include <string>

#include "sim/core/registry.h"
#include "sim/topology/pcie_tree.h"

namespace netsim {

namespace {

struct PcieServerParameters : PcieTreeParameters {
  std::int64_t cpus = 2;
  std::int64_t switches = 4;
  std::int64_t gpus = 8;
  std::int64_t nics = 4;
};

Parameters<PcieServerParameters> pcie_server_parameters() {
  using P = PcieServerParameters;
  return with_pcie_tree(
      Parameters<P>()
          .integer("cpus", &P::cpus, {1, 8}, "CPUs, every one joined with every other")
          .integer("switches", &P::switches, {1, 64}, "PCIe switches, divided among the CPUs")
          .integer("gpus", &P::gpus, {1, 64}, "divided among the PCIe switches")
          .integer("nics", &P::nics, {1, 64}, "divided among the PCIe switches"));
}

class PcieServer final : public Host {
 public:
  explicit PcieServer(const PcieServerParameters& p)
      : p_(p),
        tree_{static_cast<std::uint32_t>(p.cpus), static_cast<std::uint32_t>(p.switches),
              static_cast<std::uint32_t>(p.gpus), static_cast<std::uint32_t>(p.nics)} {}

  std::uint32_t gpus() const override { return tree_.gpus; }
  std::vector<HostFabric> fabrics() const override { return {{kScaleOut, tree_.nics}}; }
  std::int64_t acknowledge_every() const override { return kConnectXAcknowledgeEvery; }
  std::string gpu_model() const override { return {}; }

  HostBuild build(Graph& graph, std::uint32_t host_index,
                  std::span<const std::uint32_t> numbers) const override {
    return build_pcie_tree(graph, host_index, tree_, p_, numbers);
  }

 private:
  PcieServerParameters p_;
  PcieTree tree_;
};

const Registration<Host> kPcieServer{
    "pcie_server", "a server of two CPUs with PCIe switches, GPUs and NICs, without NVLink",
    pcie_server_parameters(),
    [](const PcieServerParameters& p, const ConfigNode&) { return std::make_unique<PcieServer>(p); }};

}  // namespace

}  // namespace netsim
