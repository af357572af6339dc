// gb200: a compute tray of GB200 NVL72. It has two superchips of a Grace CPU and two B200 each, and four
// ConnectX-7 of 400 Gb/s. Its GPUs' NVLinks lead to the fabric `rack` (nvl_rack), which also carries
// messages between GPUs of one tray. (NVIDIA GB200 NVL multi-node tuning guide, "System".)
//
// - c2c_rate: NVLink-C2C between Grace and its two GPUs. It has 450 GB/s each way for both (NVIDIA GB200 data
//   sheet: 900 GB/s both ways), so 225 GB/s for a GPU. It carries the PCIe traffic between GPU and NIC, which
//   Grace joins; NCCL calls this path P2C.
// - PCIe: each ConnectX-7 is at Gen5 x16 of a Grace, two at each CPU.
#include <string>

#include "sim/core/registry.h"
#include "sim/topology/host_links.h"
#include "sim/topology/topology.h"

namespace netsim {

namespace {

constexpr std::uint32_t kGpus = 4, kNics = 4, kCpus = 2;

struct Gb200Parameters : PcieTreeParameters {
  Gb200Parameters() { pcie_rate = kPcieGen5x16; }
  std::string rack = "rack";
  BitRate c2c_rate = 8 * 225 * kGbps;
};

Parameters<Gb200Parameters> gb200_parameters() {
  using P = Gb200Parameters;
  return with_pcie(Parameters<P>()
                       .text("rack", &P::rack, "the fabric that the GPUs' NVLinks go to")
                       .rate("c2c_rate", &P::c2c_rate, kLinkRates, "rate of a GPU's NVLink-C2C, each way"));
}

class Gb200 final : public Host {
 public:
  explicit Gb200(const Gb200Parameters& p) : rack_(p.rack), pcie_(p.pcie_link()), c2c_(p.pcie_link()) {
    c2c_.rate = p.c2c_rate;
  }

  std::uint32_t gpus() const override { return kGpus; }
  std::vector<HostFabric> fabrics() const override { return {{rack_, kGpus}, {kScaleOut, kNics}}; }
  std::int64_t acknowledge_every() const override { return kConnectXAcknowledgeEvery; }
  std::string gpu_model() const override { return "gb200"; }

  HostBuild build(Graph& graph, std::uint32_t host_index,
                  std::span<const std::uint32_t> numbers) const override {
    const std::string host = host_name(host_index);
    const AtomId atom = graph.add_atom();
    HostBuild result;
    std::vector<NodeId> nics, cpus;
    for (std::uint32_t i = 0; i < kGpus; ++i)
      result.gpus.push_back(graph.add_node(NodeKind::gpu, atom, host + "/gpu" + std::to_string(i)));
    for (std::uint32_t i = 0; i < kNics; ++i)
      nics.push_back(graph.add_node(NodeKind::nic, atom, nic_name(host, i, numbers)));
    for (std::uint32_t i = 0; i < kCpus; ++i)
      cpus.push_back(graph.add_node(NodeKind::cpu, atom, host + "/grace" + std::to_string(i)));
    for (std::uint32_t i = 0; i < kGpus; ++i) graph.add_link(result.gpus[i], cpus[i * kCpus / kGpus], c2c_);
    for (std::uint32_t i = 0; i < kNics; ++i) graph.add_link(nics[i], cpus[i * kCpus / kNics], pcie_);
    result.ports = {result.gpus, nics};
    return result;
  }

 private:
  std::string rack_;
  LinkSpec pcie_, c2c_;
};

const Registration<Host> kGb200{
    "gb200", "a tray of GB200 NVL72: 4 GPUs with NVLinks into the rack's switches, 2 Grace CPUs, 4 NICs",
    gb200_parameters(),
    [](const Gb200Parameters& p, const ConfigNode&) { return std::make_unique<Gb200>(p); }};

}  // namespace

}  // namespace netsim
