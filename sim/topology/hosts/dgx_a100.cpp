// dgx_a100: NVIDIA DGX A100: 8 A100 GPUs, one non-blocking NVSwitch stage, 8 NICs, one of them for each GPU.
//
// - NVLink: a GPU has 12 NVLink3 of 25 GB/s each way, spread over 6 NVSwitches (DGX A100 datasheet); striped,
//   they are one port of 300 GB/s into one switch stage. Of it nvlink_efficiency is usable: NCCL counts 20 of
//   25 GB/s per SM80 NVLink (src/graph/topo.h, SM80_NVLINK_BW 20.0), so 0.8 and 240 GB/s. Bulk copies move in
//   pieces of nvlink_piece, cut-through in the switch stage.
// - nvlink_credits: NVLink has credit-based flow control; NVIDIA publishes no buffer size. Assumed: four
//   pieces, with which a link is never idle for want of credits while its pieces leave, and a GPU whose
//   pieces nobody takes stops.
// - nvlink_delay: 25 ns, what SimAI's topology generator takes for an NVLink (gen_Topo_Template.py, 0.000025
//   ms).
// - nvswitch_latency: NVIDIA publishes no figure. 100 ns is an assumption, the order of a cut-through switch
//   chip of the same generation (Broadcom PEX88000: 105 ns between two x16 ports). Collectives do not feel
//   it: NCCL's 3.4 us per hop of the library's own (tuning.cc) is 30 times as much.
// - PCIe: GPU and NIC sit under one PCIe switch of Gen4 x16: 16 lanes x 16 GT/s x 128/130 = 252 Gb/s each
//   way. Every pcie_tlp_payload bytes cost pcie_tlp_overhead more (Gen3 and later: 4 B framing, 16 B header
//   with 64-bit address, 4 B LCRC); the link's rate is what that leaves. Not modelled: a last, shorter TLP,
//   flow-control and acknowledgement DLLPs, read requests.
// - pcie_delay: 300 ns = the PCIe switch's 105 ns (PEX88000, Linley Newsletter, 2019-09-24) and, an
//   assumption, 100 ns for each of the two end points. Half a DMA read's round trip, the order measured in
//   "Understanding PCIe performance for end host networking" (SIGCOMM 2018).
// - acknowledge_every: the NICs are ConnectX-6, whose Linux driver sets the QP context's log_ack_req_freq to
//   MLX5_IB_ACK_REQ_FREQ = 8 (drivers/infiniband/hw/mlx5/qp.c), a logarithm: every 256 packets. Libraries
//   that make their own queue pairs for GPUs set 0, every packet (NVSHMEM's IBGDA); NCCL uses the driver's.
#include <string>

#include "sim/core/registry.h"
#include "sim/topology/ethernet.h"
#include "sim/topology/topology.h"

namespace netsim {

namespace {

constexpr std::uint32_t kGpus = 8;
constexpr std::int64_t kAcknowledgeEvery = 1 << 8;

struct DgxA100Parameters {
  BitRate nvlink_rate = 8 * 300 * kGbps;
  double nvlink_efficiency = 0.8;
  Bytes nvlink_piece = 512 * kKibibyte;
  std::int64_t nvlink_credits = 4;
  Time nvlink_delay = 25 * kNanosecond;
  Time nvswitch_latency = 100 * kNanosecond;
  BitRate pcie_rate = 252 * kGbps;
  Bytes pcie_tlp_payload = 256;
  Bytes pcie_tlp_overhead = 24;
  Time pcie_delay = 300 * kNanosecond;
};

const Parameters<DgxA100Parameters>& parameters() {
  using P = DgxA100Parameters;
  static constexpr Range<Time> kDelays{0, 1 * kMillisecond};
  static const auto p =
      Parameters<P>()
          .rate("nvlink_rate", &P::nvlink_rate, kLinkRates, "a GPU's NVLinks together, each way, raw")
          .real("nvlink_efficiency", &P::nvlink_efficiency, {0.01, 1},
                "usable part of nvlink_rate (NCCL counts 20 of 25 GB/s per NVLink3)")
          .bytes("nvlink_piece", &P::nvlink_piece, {4 * kKibibyte, 16 * kMebibyte},
                 "bulk copies move in pieces of so many bytes (an NCCL slice is 256 KiB to 1 MiB)")
          .integer("nvlink_credits", &P::nvlink_credits, {0, 1024},
                   "pieces that the NVSwitch stage has room for of each GPU, given back as credits; at least "
                   "2; 0: no "
                   "limit")
          .time("nvlink_delay", &P::nvlink_delay, kDelays, "propagation of one NVLink (SimAI: 25 ns)")
          .time("nvswitch_latency", &P::nvswitch_latency, kDelays,
                "from a piece's first byte into the NVSwitch stage to its first byte out (assumed)")
          .rate("pcie_rate", &P::pcie_rate, kLinkRates,
                "PCIe between a GPU and its NIC, each way, raw (Gen4 x16)")
          .bytes("pcie_tlp_payload", &P::pcie_tlp_payload, {64, 4096}, "payload of a PCIe packet (TLP)")
          .bytes("pcie_tlp_overhead", &P::pcie_tlp_overhead, {0, 64}, "framing, header and LCRC of a TLP")
          .time("pcie_delay", &P::pcie_delay, kDelays,
                "latency of PCIe, one way: the PCIe switch (105 ns) and two end points");
  return p;
}

LinkSpec nvlink(const DgxA100Parameters& p) {
  const double usable = static_cast<double>(p.nvlink_rate) * p.nvlink_efficiency;
  return {.kind = LinkKind::nvlink,
          .rate = static_cast<BitRate>(usable + 0.5),
          .delay = p.nvlink_delay,
          .mtu = p.nvlink_piece};
}

LinkSpec pcie(const DgxA100Parameters& p) {
  const BitRate on_wire = p.pcie_tlp_payload + p.pcie_tlp_overhead;
  return {.kind = LinkKind::pcie, .rate = p.pcie_rate * p.pcie_tlp_payload / on_wire, .delay = p.pcie_delay};
}

class DgxA100 final : public Host {
 public:
  explicit DgxA100(const DgxA100Parameters& p)
      : to_switch_(nvlink(p)), from_switch_(nvlink(p)), pcie_(pcie(p)) {
    to_switch_.delay += p.nvswitch_latency;
    to_switch_.cut_through = true;
    to_switch_.credits = p.nvlink_credits * p.nvlink_piece;
  }

  std::uint32_t gpus() const override { return kGpus; }
  std::uint32_t nics() const override { return kGpus; }
  std::int64_t acknowledge_every() const override { return kAcknowledgeEvery; }
  std::string gpu_model() const override { return "a100_80gb"; }

  // A NIC has the number that the file of the fabric knows it by behind its name: "host1/nic1(9)".
  HostBuild build(Graph& graph, std::uint32_t host_index,
                  std::span<const std::uint32_t> numbers) const override {
    const std::string host = "host" + std::to_string(host_index);
    const AtomId atom = graph.add_atom();
    HostBuild result;
    for (std::uint32_t g = 0; g < kGpus; ++g) {
      const NodeId gpu = graph.add_node(NodeKind::gpu, atom, host + "/gpu" + std::to_string(g));
      const std::string number = numbers.empty() ? "" : "(" + std::to_string(numbers[g]) + ")";
      const NodeId nic = graph.add_node(NodeKind::nic, atom, host + "/nic" + std::to_string(g) + number);
      result.gpus.push_back({.node = gpu, .host = host_index, .local = g, .nic = nic});
      result.nics.push_back(nic);
    }
    const NodeId nvswitch = graph.add_node(NodeKind::scale_up_switch, atom, host + "/nvswitch");
    for (const Gpu& gpu : result.gpus) {
      graph.add_link(gpu.node, nvswitch, to_switch_, from_switch_);
      graph.add_link(gpu.node, gpu.nic, pcie_);
    }
    return result;
  }

 private:
  LinkSpec to_switch_, from_switch_, pcie_;
};

const Registration<Host> kRegistration{
    "dgx_a100", "DGX A100: 8 GPUs on one NVSwitch stage, each with a NIC of its own behind PCIe",
    parameters(), [](const DgxA100Parameters& p, const ConfigNode&) { return std::make_unique<DgxA100>(p); }};

}  // namespace

}  // namespace netsim
