// dgx_1, dgx_1v: NVIDIA DGX-1 with P100 and V100: 8 GPUs in a hybrid cube mesh of NVLinks, 4 NICs.
//
// - NVLink: two groups of four GPUs. Each GPU is joined with all of its group and with one of the other group
//   (NVIDIA DGX-1 with Tesla V100 System Architecture, WP-08437-002, figure 4). P100 has 4 NVLink1 of 20 GB/s
//   each way, one to each neighbour. V100 has 6 NVLink2 of 25 GB/s: two of its neighbours are joined by two
//   links (`nvidia-smi topo -m` of DGX-1V and AWS p3.16xlarge). So each GPU has no link to three others, and
//   NCCL forwards through a GPU in between: host_routes.h.
// - PCIe: two CPUs with two Gen3 x16 switches each. A switch has two GPUs and one ConnectX-4 EDR, 100 Gb/s
//   (the same paper, figure 3).
#include <array>
#include <string>

#include "sim/core/registry.h"
#include "sim/topology/host_links.h"
#include "sim/topology/pcie_tree.h"
#include "sim/topology/topology.h"

namespace netsim {

namespace {

constexpr std::uint32_t kDgx1Gpus = 8, kDgx1Nics = 4, kDgx1Cpus = 2;

// A pair of GPUs and the number of NVLinks between them.
struct Joint {
  std::uint32_t a, b;
  std::int64_t links;
};
using CubeMesh = std::array<Joint, 16>;
constexpr CubeMesh kP100{{{0, 1, 1},
                          {0, 2, 1},
                          {0, 3, 1},
                          {1, 2, 1},
                          {1, 3, 1},
                          {2, 3, 1},
                          {4, 5, 1},
                          {4, 6, 1},
                          {4, 7, 1},
                          {5, 6, 1},
                          {5, 7, 1},
                          {6, 7, 1},
                          {0, 4, 1},
                          {1, 5, 1},
                          {2, 6, 1},
                          {3, 7, 1}}};
constexpr CubeMesh kV100{{{0, 1, 1},
                          {0, 2, 1},
                          {0, 3, 2},
                          {1, 2, 2},
                          {1, 3, 1},
                          {2, 3, 2},
                          {4, 5, 1},
                          {4, 6, 1},
                          {4, 7, 2},
                          {5, 6, 2},
                          {5, 7, 1},
                          {6, 7, 2},
                          {0, 4, 2},
                          {1, 5, 2},
                          {2, 6, 1},
                          {3, 7, 1}}};

struct Dgx1Parameters : NvlinkParameters, PcieTreeParameters {
  Dgx1Parameters(BitRate rate, double efficiency) {
    nvlink_rate = rate;
    nvlink_efficiency = efficiency;
    pcie_rate = kPcieGen3x16;
  }
};
struct P100Parameters : Dgx1Parameters {
  P100Parameters() : Dgx1Parameters(8 * 20 * kGbps, kNvlink1) {}
};
struct V100Parameters : Dgx1Parameters {
  V100Parameters() : Dgx1Parameters(8 * 25 * kGbps, kNvlink2) {}
};

class Dgx1 final : public Host {
 public:
  Dgx1(const CubeMesh& mesh, const char* gpu_model, const Dgx1Parameters& p)
      : mesh_(mesh), gpu_model_(gpu_model), p_(p) {}

  std::uint32_t gpus() const override { return kDgx1Gpus; }
  std::vector<HostFabric> fabrics() const override { return {{kScaleOut, kDgx1Nics}}; }
  std::int64_t acknowledge_every() const override { return kConnectXAcknowledgeEvery; }
  std::string gpu_model() const override { return gpu_model_; }

  HostBuild build(Graph& graph, std::uint32_t host_index,
                  std::span<const std::uint32_t> numbers) const override {
    HostBuild result =
        build_pcie_tree(graph, host_index, {kDgx1Cpus, kDgx1Nics, kDgx1Gpus, kDgx1Nics}, p_, numbers);
    for (const Joint& joint : mesh_)
      graph.add_link(result.gpus[joint.a], result.gpus[joint.b], p_.nvlink(joint.links));
    return result;
  }

 private:
  const CubeMesh& mesh_;
  const char* gpu_model_;
  Dgx1Parameters p_;
};

template <class P>
Parameters<P> dgx_1_parameters() {
  return with_pcie_tree(with_nvlink(Parameters<P>(), "rate of one NVLink, each way, raw"));
}

const Registration<Host> kP100Registration{
    "dgx_1", "DGX-1 with P100: 8 GPUs in a hybrid cube mesh of 4 NVLinks each, 4 NICs",
    dgx_1_parameters<P100Parameters>(),
    [](const P100Parameters& p, const ConfigNode&) { return std::make_unique<Dgx1>(kP100, "", p); }};
const Registration<Host> kV100Registration{
    "dgx_1v", "DGX-1 with V100: 8 GPUs in a hybrid cube mesh of 6 NVLinks each, 4 NICs",
    dgx_1_parameters<V100Parameters>(),
    [](const V100Parameters& p, const ConfigNode&) { return std::make_unique<Dgx1>(kV100, "v100_sxm2", p); }};

}  // namespace

}  // namespace netsim
