// storage_server: drives behind a PCIe switch with NICs, for checkpoints and data sets. One end point,
// numbered among the GPUs, represents all drives; it computes nothing. Messages to and from it take all NICs
// in turn.
//
// - drive_rate: 8 drives of 6.9 GB/s, the sequential read rate of a PCIe Gen4 x4 drive (Samsung PM9A3 data
//   sheet). Writes are slower, and depend on the drive.
// - nics: two at PCIe Gen4 x16; a NIC's rate is that of its link in the fabric.
// - fabric: the fabric that the NICs are joined to. Hosts reach servers in a fabric of their own by NICs for
//   that fabric (storage_nics of nvswitch_host.cpp).
#include <string>

#include "sim/core/registry.h"
#include "sim/topology/host_links.h"
#include "sim/topology/topology.h"

namespace netsim {

namespace {

struct StorageServerParameters : PcieTreeParameters {
  std::int64_t drives = 8;
  BitRate drive_rate = 8 * 6'900 * kMbps;
  std::int64_t nics = 2;
  std::string fabric = kScaleOut;
};

Parameters<StorageServerParameters> storage_server_parameters() {
  using P = StorageServerParameters;
  return with_pcie(Parameters<P>()
                       .integer("drives", &P::drives, {1, 1024}, "drives that work together")
                       .rate("drive_rate", &P::drive_rate, kLinkRates, "rate of one drive, each way")
                       .integer("nics", &P::nics, {1, 64}, "NICs behind the drives' PCIe switch")
                       .text("fabric", &P::fabric, "fabric of the NICs, one of `fabrics`"));
}

class StorageServer final : public Host {
 public:
  explicit StorageServer(const StorageServerParameters& p)
      : nics_(static_cast<std::uint32_t>(p.nics)),
        fabric_(p.fabric),
        drives_(p.pcie_link()),
        pcie_(p.pcie_link()) {
    drives_.rate = p.drives * p.drive_rate;
  }

  HostRole role() const override { return HostRole::storage; }
  std::uint32_t gpus() const override { return 1; }
  std::vector<HostFabric> fabrics() const override { return {{fabric_, nics_}}; }
  std::int64_t acknowledge_every() const override { return kConnectXAcknowledgeEvery; }
  std::string gpu_model() const override { return {}; }

  HostBuild build(Graph& graph, std::uint32_t host_index,
                  std::span<const std::uint32_t> numbers) const override {
    const std::string host = host_name(host_index);
    const AtomId atom = graph.add_atom();
    HostBuild result;
    result.gpus.push_back(graph.add_node(NodeKind::gpu, atom, host + "/drives"));
    const NodeId hub = graph.add_node(NodeKind::pcie_switch, atom, host + "/pcie");
    graph.add_link(result.gpus.front(), hub, drives_);
    std::vector<NodeId>& nics = result.ports.emplace_back();
    for (std::uint32_t i = 0; i < nics_; ++i) {
      nics.push_back(graph.add_node(NodeKind::nic, atom, nic_name(host, i, numbers)));
      graph.add_link(hub, nics.back(), pcie_);
    }
    return result;
  }

 private:
  std::uint32_t nics_;
  std::string fabric_;
  LinkSpec drives_, pcie_;
};

const Registration<Host> kStorageServer{
    "storage_server", "drives behind NICs, for checkpoints and data sets", storage_server_parameters(),
    [](const StorageServerParameters& p, const ConfigNode&) { return std::make_unique<StorageServer>(p); }};

}  // namespace

}  // namespace netsim
