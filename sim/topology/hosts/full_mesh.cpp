// full_mesh: GPUs with a link to every other one, without switches in between, as on an HGX or OAM board. The
// defaults are 8 AMD Instinct MI300X. Each has 7 Infinity Fabric (xGMI) links of 64 GB/s each way (AMD
// Instinct MI300X Platform data sheet: 128 GB/s both ways). RCCL counts 48 of these 64 GB/s
// (src/graph/topo.h, GFX94X_XGMI_WIDTH). Each GPU has a NIC of its own behind PCIe Gen5 x16.
#include <string>

#include "sim/core/registry.h"
#include "sim/topology/host_links.h"
#include "sim/topology/topology.h"

namespace netsim {

namespace {

struct FullMeshParameters : NvlinkParameters, PcieParameters {
  FullMeshParameters() {
    nvlink_rate = 8 * 64 * kGbps;
    nvlink_efficiency = kXgmiMi300;
    pcie_rate = kPcieGen5x16;
  }
  std::int64_t gpus = 8;
};

Parameters<FullMeshParameters> full_mesh_parameters() {
  using P = FullMeshParameters;
  return with_pcie(
      with_nvlink(Parameters<P>().integer("gpus", &P::gpus, {1, 64}, "GPUs, each joined with all others"),
                  "rate of the link between two GPUs, each way, raw"));
}

class FullMesh final : public Host {
 public:
  explicit FullMesh(const FullMeshParameters& p)
      : gpus_(static_cast<std::uint32_t>(p.gpus)), link_(p.nvlink()), pcie_(p.pcie()) {}

  std::uint32_t gpus() const override { return gpus_; }
  std::vector<HostFabric> fabrics() const override { return {{kScaleOut, gpus_}}; }
  std::int64_t acknowledge_every() const override { return kConnectXAcknowledgeEvery; }
  std::string gpu_model() const override { return "mi300x"; }

  HostBuild build(Graph& graph, std::uint32_t host_index,
                  std::span<const std::uint32_t> numbers) const override {
    const std::string host = host_name(host_index);
    const AtomId atom = graph.add_atom();
    HostBuild result;
    std::vector<NodeId>& nics = result.ports.emplace_back();
    for (std::uint32_t g = 0; g < gpus_; ++g) {
      result.gpus.push_back(graph.add_node(NodeKind::gpu, atom, host + "/gpu" + std::to_string(g)));
      nics.push_back(graph.add_node(NodeKind::nic, atom, nic_name(host, g, numbers)));
    }
    for (std::uint32_t g = 0; g < gpus_; ++g) {
      for (std::uint32_t peer = 0; peer < g; ++peer) graph.add_link(result.gpus[peer], result.gpus[g], link_);
      graph.add_link(result.gpus[g], nics[g], pcie_);
    }
    return result;
  }

 private:
  std::uint32_t gpus_;
  LinkSpec link_, pcie_;
};

const Registration<Host> kFullMesh{
    "full_mesh", "GPUs with a link to every other one, each with a NIC: 8 MI300X by default",
    full_mesh_parameters(),
    [](const FullMeshParameters& p, const ConfigNode&) { return std::make_unique<FullMesh>(p); }};

}  // namespace

}  // namespace netsim
