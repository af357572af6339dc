// Hosts whose GPUs are joined by NVSwitches, one class for all of them. The GPUs have NVLinks into a
// non-blocking switch stage, and PCIe to NICs. Presets contain the differences.
//
// A GPU's NVLinks are spread over all NVSwitches, and so is every transfer (addresses are interleaved).
// Therefore they are one port into one switch stage. host_links.h has the figures of the links.
//
// - dgx_a100: 8 A100, 12 NVLink3 of 25 GB/s each way over 6 NVSwitches, 8 ConnectX-6 HDR (200 Gb/s). GPU and
//   NIC are under one PCIe switch of Gen4 x16 (NVIDIA DGX A100 data sheet and user guide).
// - dgx_h100, dgx_h200: 8 GPUs, 18 NVLink4 of 25 GB/s over 4 NVSwitches, 8 ConnectX-7 (400 Gb/s), PCIe Gen5
//   (NVIDIA DGX H100/H200 user guide).
// - hgx_h800: a DGX H100 with 8 of the 18 NVLinks of a GPU, 400 GB/s in both directions together. (DeepSeek,
//   "Insights into DeepSeek-V3", ISCA 2025, section 2: 200 GB/s each way, about 160 of them usable.) Figure 3
//   there shows the NICs, one of 400 Gb/s per GPU.
// - hgx_h20: an HGX H100 with other GPUs, 18 NVLink4 each, 900 GB/s in both directions together.
//   (SemiAnalysis, 9 November 2023, prints the H20's data sheet.) One NIC of 400 Gb/s per GPU is an
//   assumption.
// - dgx_b200: 8 B200, 18 NVLink5 of 50 GB/s over 2 NVSwitches, 8 ConnectX-7, PCIe Gen5 (NVIDIA DGX B200 user
//   guide).
// - dgx_2: 16 V100, 6 NVLink2 of 25 GB/s, one into each of the 6 NVSwitches of its board of 8 GPUs. The
//   boards' switches are joined by 8 links per pair, 48 in all, as many as the GPUs of a board have (NVIDIA
//   NVSwitch technical overview, 2018). 8 ConnectX-5 EDR (100 Gb/s), each with two GPUs under a PCIe switch
//   of Gen3 x16 (DGX-2 user guide).
// - aws_p4de: 8 A100 80 GB as in a DGX A100, but 4 EFA NICs of 100 Gb/s, each with two GPUs under a PCIe
//   switch. Links have 8 GT/s x16, as in AWS's own topology file (aws-ofi-nccl, topology/p4d-24xl-topo.xml).
//
// dgx_a100, dgx_h100, dgx_h200 and dgx_b200 may also have storage NICs in the fabric `storage` (storage_nics,
// none by default). A DGX A100 has one dual-port ConnectX-6, and a second one as an option. A DGX H100 or
// H200 has two dual-port ConnectX-7, a DGX B200 two dual-port BlueField-3 (data sheets and user guides). The
// reference architectures join one port of each to the storage fabric and the other to in-band management
// (DGX SuperPOD reference architecture). So a NIC here is a port.
//
// Storage NICs are at the root ports of the two CPUs, with half of the GPUs near each. (DGX A100 user guide,
// figure of the system topology; `nvidia-smi topo -m` says NODE and SYS.) Here this is a PCIe switch between
// these GPUs and the NIC. A GPU's traffic to it does not share the PCIe link to its other NIC. With 400 Gb/s
// NICs at Gen5 x16 (504 Gb/s), and a storage NIC for four GPUs, one link could carry both.
//
// `nics` sets another number of NICs. With fewer NICs than GPUs, two GPUs share a PCIe switch, as on HGX
// boards with four switches (Dell PowerEdge XE9680). The NICs are divided among the switches in blocks. A GPU
// whose switch has none uses another one's over NVLink (host_routes.h). With more NICs than GPUs each GPU has
// a switch with several.
//
// CPUs are left out by default, because only copies to the host's memory need them; `cpus` adds them, two in
// each of these servers. GPUs and their NIC are then at a PCIe switch, which has a link of the same width to
// its CPU. Each CPU has half of the switches (nvidia-smi topo -m). NVIDIA's data sheets do not say how many
// switches share a link to a CPU; each is assumed to have its own.
#include <algorithm>
#include <string>
#include <utility>

#include "sim/core/registry.h"
#include "sim/topology/host_links.h"
#include "sim/topology/topology.h"

namespace netsim {

namespace {

struct NvswitchHostParameters : NvlinkParameters, PcieTreeParameters {
  std::int64_t nics = 0;  // default: the preset's number
  std::int64_t storage_nics = 0;
  std::int64_t cpus = 0;
};

// Properties of a host kind that are not parameters.
struct Preset {
  std::uint32_t gpus = 8;
  std::uint32_t boards = 1;  // boards, each with an NVSwitch stage
  std::uint32_t nics = 8;
  const char* gpu_model = "";
  std::int64_t acknowledge_every = kConnectXAcknowledgeEvery;
  bool storage = false;  // whether the host may have storage NICs
  NvswitchHostParameters defaults;
};

constexpr NvswitchHostParameters figures(BitRate nvlink, double efficiency, BitRate pcie, double nvls = 0) {
  NvswitchHostParameters p;
  p.nvlink_rate = nvlink;
  p.nvlink_efficiency = efficiency;
  p.pcie_rate = pcie;
  p.nvls_efficiency = nvls;
  return p;
}

constexpr BitRate kGBps = 8 * kGbps;
constexpr Preset kDgxA100{
    .gpu_model = "a100_80gb", .storage = true, .defaults = figures(12 * 25 * kGBps, kNvlink3, kPcieGen4x16)};
constexpr Preset kDgxH100{.gpu_model = "h100_sxm",
                          .storage = true,
                          .defaults = figures(18 * 25 * kGBps, kNvlink4, kPcieGen5x16, kNvlsHopper)};
constexpr Preset kDgxH200{.gpu_model = "h200_sxm", .storage = true, .defaults = kDgxH100.defaults};
constexpr Preset kHgxH800{.gpu_model = "h800_sxm",
                          .defaults = figures(8 * 25 * kGBps, kNvlink4, kPcieGen5x16, kNvlsHopper)};
constexpr Preset kHgxH20{.gpu_model = "h20_sxm", .defaults = kDgxH100.defaults};
constexpr Preset kDgxB200{.gpu_model = "b200",
                          .storage = true,
                          .defaults = figures(18 * 50 * kGBps, kNvlink5, kPcieGen5x16, kNvlsBlackwell)};
constexpr Preset kDgx2{.gpus = 16,
                       .boards = 2,
                       .gpu_model = "v100_sxm2",
                       .defaults = figures(6 * 25 * kGBps, kNvlink2, kPcieGen3x16)};
// EFA's protocol (SRD) has acknowledgements of its own; nothing is published. ConnectX's value is assumed.
constexpr Preset kAwsP4de{
    .nics = 4, .gpu_model = "a100_80gb", .defaults = figures(12 * 25 * kGBps, kNvlink3, kPcieGen3x16)};

class NvswitchHost final : public Host {
 public:
  NvswitchHost(const Preset& preset, const NvswitchHostParameters& p)
      : preset_(preset),
        to_switch_(p.into_nvswitch()),
        from_switch_(p.nvlink()),
        trunk_(p.into_nvswitch(preset.gpus / preset.boards)),
        pcie_(p.pcie()),
        combining_(p.combining()),
        nics_(static_cast<std::uint32_t>(p.nics)),
        storage_nics_(static_cast<std::uint32_t>(p.storage_nics)),
        cpus_(static_cast<std::uint32_t>(p.cpus)),
        pcie_half_(p.pcie_link()),
        cpu_link_(p.cpu_link()) {}

  std::uint32_t gpus() const override { return preset_.gpus; }
  std::vector<HostFabric> fabrics() const override {
    std::vector<HostFabric> fabrics{{kScaleOut, nics_}};
    if (storage_nics_ > 0) fabrics.push_back({kStorage, storage_nics_});
    return fabrics;
  }
  std::int64_t acknowledge_every() const override { return preset_.acknowledge_every; }
  std::string gpu_model() const override { return preset_.gpu_model; }

  HostBuild build(Graph& graph, std::uint32_t host_index,
                  std::span<const std::uint32_t> numbers) const override {
    const std::string host = host_name(host_index);
    const AtomId atom = graph.add_atom();
    HostBuild result;
    std::vector<NodeId>& nics = result.ports.emplace_back();
    for (std::uint32_t g = 0; g < preset_.gpus; ++g) {
      result.gpus.push_back(graph.add_node(NodeKind::gpu, atom, host + "/gpu" + std::to_string(g)));
      while (nics.size() < nics_ && nics.size() * preset_.gpus / nics_ == g)
        nics.push_back(graph.add_node(NodeKind::nic, atom, nic_name(host, nics.size(), numbers)));
    }
    const std::vector<NodeId> stages = add_stages(graph, atom, host);
    const std::vector<NodeId> ends = pcie_ends(graph, atom, host, nics);
    add_cpus(graph, atom, host, ends);
    for (std::uint32_t g = 0; g < preset_.gpus; ++g) {
      graph.add_link(result.gpus[g], stages[g * preset_.boards / preset_.gpus], to_switch_, from_switch_);
      graph.add_link(result.gpus[g], ends[g * ends.size() / preset_.gpus], gpu_pcie());
    }
    if (storage_nics_ > 0) add_storage(graph, atom, host, result);
    return result;
  }

 private:
  // Adds the storage NICs. NICs and GPUs are divided among the CPUs in blocks.
  void add_storage(Graph& graph, AtomId atom, const std::string& host, HostBuild& build) const {
    const std::uint32_t cpus = std::min(storage_nics_, 2U);
    LinkSpec link = pcie_;
    link.delay /= 2;
    const std::string root_name = host + (has_switches() ? "/storage_pcie" : "/pcie");
    std::vector<NodeId> roots, nics;
    for (std::uint32_t i = 0; i < cpus; ++i)
      roots.push_back(graph.add_node(NodeKind::pcie_switch, atom, root_name + std::to_string(i)));
    for (std::uint32_t i = 0; i < storage_nics_; ++i) {
      nics.push_back(graph.add_node(NodeKind::nic, atom, host + "/storage_nic" + std::to_string(i)));
      graph.add_link(roots[i * cpus / storage_nics_], nics.back(), link);
    }
    for (std::uint32_t g = 0; g < preset_.gpus; ++g)
      graph.add_link(build.gpus[g], roots[g * cpus / preset_.gpus], link);
    build.ports.push_back(std::move(nics));
  }

  std::vector<NodeId> add_stages(Graph& graph, AtomId atom, const std::string& host) const {
    std::vector<NodeId> stages;
    for (std::uint32_t board = 0; board < preset_.boards; ++board) {
      const std::string number = preset_.boards == 1 ? "" : std::to_string(board);
      stages.push_back(graph.add_node(NodeKind::scale_up_switch, atom, host + "/nvswitch" + number));
      graph.set_combining(stages.back(), combining_);
    }
    if (preset_.boards == 2) graph.add_link(stages[0], stages[1], trunk_);
    return stages;
  }

  // Adds the CPUs. Each PCIe switch has a link to one CPU; switches are divided among CPUs in blocks.
  void add_cpus(Graph& graph, AtomId atom, const std::string& host,
                const std::vector<NodeId>& switches) const {
    std::vector<NodeId> cpus;
    for (std::uint32_t i = 0; i < cpus_; ++i) {
      cpus.push_back(graph.add_node(NodeKind::cpu, atom, host + "/cpu" + std::to_string(i)));
      for (std::uint32_t j = 0; j < i; ++j) graph.add_link(cpus[j], cpus[i], cpu_link_);
    }
    for (std::size_t i = 0; i < switches.size() && cpus_ > 0; ++i)
      graph.add_link(switches[i], cpus[i * cpus_ / switches.size()], pcie_half_);
  }

  // Returns the nodes at the other ends of the GPUs' PCIe links: a GPU's own NIC, or a PCIe switch with NICs.
  std::vector<NodeId> pcie_ends(Graph& graph, AtomId atom, const std::string& host,
                                const std::vector<NodeId>& nics) const {
    if (!has_switches()) return nics;
    const std::size_t count = nics_ < preset_.gpus ? preset_.gpus / 2 : preset_.gpus;
    std::vector<NodeId> switches;
    for (std::size_t i = 0, nic = 0; i < count; ++i) {
      switches.push_back(graph.add_node(NodeKind::pcie_switch, atom, host + "/pcie" + std::to_string(i)));
      for (; nic < nics.size() && nic * count / nics.size() == i; ++nic)
        graph.add_link(switches.back(), nics[nic], gpu_pcie());
    }
    return switches;
  }

  // Returns the PCIe link of a GPU. The delays of the links between GPU and NIC add up to that of the whole
  // route.
  LinkSpec gpu_pcie() const {
    if (cpus_ > 0) return pcie_half_;
    LinkSpec link = pcie_;
    if (has_switches()) link.delay /= 2;
    return link;
  }
  bool has_switches() const { return nics_ != preset_.gpus || cpus_ > 0; }

  Preset preset_;
  LinkSpec to_switch_, from_switch_, trunk_, pcie_;
  InNetworkCapability combining_;
  std::uint32_t nics_, storage_nics_, cpus_;
  LinkSpec pcie_half_, cpu_link_;
};

// Parameters whose defaults are the preset's values.
template <const Preset& preset>
struct PresetParameters : NvswitchHostParameters {
  PresetParameters() : NvswitchHostParameters(preset.defaults) { nics = preset.nics; }
};

template <const Preset& preset>
Parameters<PresetParameters<preset>> nvswitch_host_parameters() {
  using P = PresetParameters<preset>;
  auto nvswitch =
      with_pcie(with_nvswitch(Parameters<P>(), "rate of a GPU's NVLinks together, each way, raw"));
  auto all = preset.defaults.nvls_efficiency == 0 ? nvswitch : with_nvls(std::move(nvswitch));
  all.integer("nics", static_cast<std::int64_t P::*>(&P::nics), {1, 64},
              "NICs in the fabric between hosts, divided among the GPUs' PCIe switches");
  all.integer("cpus", static_cast<std::int64_t P::*>(&P::cpus), {0, 8},
              "CPUs whose memory GPUs copy to and from over their PCIe switches (2 in these servers); 0: "
              "none are simulated");
  if (preset.storage) {
    all.integer("storage_nics", static_cast<std::int64_t P::*>(&P::storage_nics), {0, 8},
                "additional NICs in the fabric `storage`, shared by the GPUs of a CPU");
  }
  return all;
}

template <const Preset& preset>
Registration<Host> registration(const char* name, const char* summary, int line = __builtin_LINE()) {
  using P = PresetParameters<preset>;
  return Registration<Host>(
      name, summary, nvswitch_host_parameters<preset>(),
      [](const P& p, const ConfigNode&) { return std::make_unique<NvswitchHost>(preset, p); }, {}, __FILE__,
      line);
}

const Registration<Host> kRegistrations[] = {
    registration<kDgxA100>("dgx_a100",
                           "DGX A100: 8 GPUs on one NVSwitch stage, each with a NIC of its own behind PCIe"),
    registration<kDgxH100>("dgx_h100",
                           "DGX H100: 8 GPUs on one NVSwitch stage, each with a NIC of its own behind PCIe"),
    registration<kDgxH200>("dgx_h200", "DGX H200: the links of a DGX H100"),
    registration<kHgxH800>("hgx_h800", "HGX H800: a DGX H100 with 8 NVLinks a GPU instead of 18"),
    registration<kHgxH20>("hgx_h20", "HGX H20: the links of a DGX H100"),
    registration<kDgxB200>("dgx_b200",
                           "DGX B200: 8 GPUs on one NVSwitch stage, each with a NIC of its own behind PCIe"),
    registration<kDgx2>("dgx_2",
                        "DGX-2: 16 V100 on two boards with an NVSwitch stage each, a NIC for two GPUs"),
    registration<kAwsP4de>("aws_p4de",
                           "AWS p4de.24xlarge: 8 A100 on one NVSwitch stage, a NIC for two GPUs")};

}  // namespace

}  // namespace netsim
