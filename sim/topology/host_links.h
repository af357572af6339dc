// Parameters and links that several host kinds have inside hosts: NVLink and PCIe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "sim/core/parameters.h"
#include "sim/topology/ethernet.h"
#include "sim/topology/graph.h"

namespace netsim {

inline constexpr Range<Time> kHostDelays{0, 1 * kMillisecond};

// Number of packets after which ConnectX NICs request an acknowledgement. Their Linux driver sets the QP
// context's log_ack_req_freq, a logarithm, to MLX5_IB_ACK_REQ_FREQ = 8: every 256 packets
// (drivers/infiniband/hw/mlx5/qp.c). NCCL uses the driver's value. Libraries that create their own queue
// pairs for GPUs set 0, every packet (NVSHMEM's IBGDA).
inline constexpr std::int64_t kConnectXAcknowledgeEvery = 1 << 8;

// Usable fraction of an NVLink's raw rate, each way, from NCCL's rates (src/graph/topo.h, SM*_NVLINK_BW).
// NVLink1 (P100) has 18 of 20 GB/s; NVLink2 and 3 (V100 and A100) have 20 of 25. NVLink4 (H100) has 20.6 of
// 25, NVLink5 (B200) 40.1 of 50. RCCL counts 48 of MI300X's 64 GB/s (GFX94X_XGMI_WIDTH).
inline constexpr double kNvlink1 = 0.9, kNvlink2 = 0.8, kNvlink3 = 0.8, kNvlink4 = 0.824, kNvlink5 = 0.802;
inline constexpr double kXgmiMi300 = 0.75;

// Raw PCIe rates, each way: lanes x GT/s x 128/130 (PCI Express Base Specification, Gen3 and later).
inline constexpr BitRate kPcieGen3x16 = 126 * kGbps, kPcieGen4x16 = 252 * kGbps, kPcieGen5x16 = 504 * kGbps;

// Fraction of a port's usable rate that NCCL counts for NVLS traffic, on Hopper and on Blackwell
// (src/graph/tuning.cc, nvlsEfficiency).
inline constexpr double kNvlsHopper = 0.85, kNvlsBlackwell = 0.74;
// Returns that fraction for GPUs of a compute capability (NCCL's `sm`); 0: their NVSwitches have no NVLS.
constexpr double nvls_efficiency_of(std::int64_t compute_capability) {
  if (compute_capability >= 100) return kNvlsBlackwell;
  return compute_capability >= 90 ? kNvlsHopper : 0;
}

// Parameters of NVLinks and NVSwitches.
// - nvlink_efficiency: usable fraction of nvlink_rate, as above.
// - nvlink_piece: bulk copies move in pieces of this size. An NVSwitch forwards them cut-through; a GPU in
//   between forwards a piece when it has received all of it.
// - nvlink_credits: NVLink has credit-based flow control; NVIDIA publishes no buffer size. Four pieces are
//   assumed: a link is then never idle for lack of credits while its pieces leave the switch. A GPU whose
//   pieces are not taken stops. GPUs accept all pieces that arrive, because their memory is the buffer.
// - nvlink_delay: 25 ns, as in SimAI's topology generator (gen_Topo_Template.py, 0.000025 ms).
// - nvswitch_latency: NVIDIA publishes no figure. 100 ns is an assumption, the order of a cut-through switch
//   chip of the same generation (Broadcom PEX88000: 105 ns between two x16 ports). It does not affect
//   collectives: the latency per hop in NCCL's tables (tuning.cc) includes it
//   (collectives/execution/latency_model.h).
// - nvls_efficiency: NVSwitches since the third generation (H100) multicast and reduce (NVLink SHARP: Elster
//   and Haugdahl, "Nvidia Hopper GPU and Grace CPU Highlights", CiSE 2022; Ishii et al., "The NVLink-Network
//   Switch", Hot Chips 34, 2022). Earlier ones do not: 0.
// - nvls_piece: assumed. Ports take such traffic from all GPUs at once, in packets of 128 bytes. Pieces of 16
//   KiB alternate every 50 ns on H100. With 4 KiB an all-reduce of 1 MiB to 1 GiB takes 1 to 4 % more time.
// - nvls_groups: the fabric manager of an HGX H200 allocates 128 multicast groups (github.com/NVIDIA/nccl,
//   issue 2077), and a GB200 NVL72 rack has 1,024. Their outstanding operations and memory are not published.
struct NvlinkParameters {
  BitRate nvlink_rate = 8 * 300 * kGbps;
  double nvlink_efficiency = kNvlink3;
  Bytes nvlink_piece = 512 * kKibibyte;
  std::int64_t nvlink_credits = 4;
  Time nvlink_delay = 25 * kNanosecond;
  Time nvswitch_latency = 100 * kNanosecond;
  double nvls_efficiency = 0;
  Bytes nvls_piece = 16 * kKibibyte;
  std::int64_t nvls_groups = 0;

  InNetworkCapability combining() const { return {nvls_efficiency, nvls_piece, nvls_groups}; }

  // Returns a link that stands for `links` NVLinks of nvlink_rate.
  LinkSpec nvlink(std::int64_t links = 1) const {
    const double usable = static_cast<double>(nvlink_rate) * nvlink_efficiency;
    return {.kind = LinkKind::nvlink,
            .rate = static_cast<BitRate>(usable + 0.5) * links,
            .delay = nvlink_delay,
            .mtu = nvlink_piece};
  }
  // Returns such a link from a GPU into an NVSwitch.
  LinkSpec into_nvswitch(std::int64_t links = 1) const {
    LinkSpec link = nvlink(links);
    link.delay += nvswitch_latency;
    link.cut_through = true;
    link.credits = nvlink_credits * nvlink_piece * links;
    return link;
  }
};

// Adds rate, efficiency, piece and delay (P derives from NvlinkParameters). `rate_doc` documents which links
// nvlink_rate counts.
template <class P>
Parameters<P>&& with_nvlink(Parameters<P>&& parameters, const std::string& rate_doc) {
  parameters.rate("nvlink_rate", &P::nvlink_rate, kLinkRates, rate_doc)
      .real("nvlink_efficiency", &P::nvlink_efficiency, {0.01, 1},
            "usable share of nvlink_rate (NCCL counts 20 of 25 GB/s per NVLink3)")
      .bytes("nvlink_piece", &P::nvlink_piece, {4 * kKibibyte, 16 * kMebibyte},
             "size of the pieces of bulk copies (an NCCL slice is 256 KiB to 1 MiB)")
      .time("nvlink_delay", &P::nvlink_delay, kHostDelays, "propagation of one NVLink (SimAI: 25 ns)");
  return std::move(parameters);
}

// Adds with_nvlink() and the parameters of NVSwitches.
template <class P>
Parameters<P>&& with_nvswitch(Parameters<P>&& parameters, const std::string& rate_doc) {
  return with_nvlink(std::move(parameters), rate_doc)
      .integer("nvlink_credits", &P::nvlink_credits, {0, 1024},
               "pieces of each GPU that the NVSwitch stage can buffer, returned as credits; at least 2; 0: "
               "no limit")
      .time("nvswitch_latency", &P::nvswitch_latency, kHostDelays,
            "time from a piece's first byte into the NVSwitch stage to its first byte out (assumed)");
}

// Adds the parameters of NVSwitches that multicast and reduce (NVLS).
template <class P>
Parameters<P>&& with_nvls(Parameters<P>&& parameters) {
  parameters
      .real("nvls_efficiency", &P::nvls_efficiency, {0.01, 1},
            "share of the usable NVLink rate at which NVSwitches copy and add up (NCCL: Hopper 0.85, "
            "Blackwell 0.74)")
      .bytes("nvls_piece", &P::nvls_piece, {kKibibyte, 16 * kMebibyte},
             "size of the pieces that NVSwitches copy and add up (assumed)")
      .integer(
          "nvls_groups", &P::nvls_groups, {0, 1 << 20},
          "multicast groups that the NVSwitches of a host or rack hold at once (HGX H100 and H200: 128, "
          "GB200 NVL72: 1024; the operations that they have outstanding, and their memory, are not "
          "published). Communicators that find none run without NVLS (collectives.nvls_groups). Where it "
          "is given, all hosts and switches are one logical process; 0: no limit");
  return std::move(parameters);
}

// Parameters of PCIe.
// - pcie_rate: raw, each way. Every pcie_tlp_payload bytes cost pcie_tlp_overhead more (Gen3 and later: 4 B
//   framing, 16 B header with 64-bit address, 4 B LCRC). The link's rate is what remains. A last, shorter
//   TLP, flow-control and acknowledgement DLLPs, and read requests are not modelled.
// - pcie_delay: 300 ns = a PCIe switch's 105 ns (PEX88000, Linley Newsletter, 2019-09-24) and an assumed 100
//   ns for each of the two end points. It is half a DMA read's round trip, of the order measured in
//   "Understanding PCIe performance for end host networking" (SIGCOMM 2018). Where switches and CPUs are
//   nodes of their own, each link has half of it: an end point and half of the switch.
struct PcieParameters {
  BitRate pcie_rate = kPcieGen4x16;
  Bytes pcie_tlp_payload = 256;
  Bytes pcie_tlp_overhead = 24;
  Time pcie_delay = 300 * kNanosecond;

  LinkSpec pcie() const {
    const BitRate on_wire = pcie_tlp_payload + pcie_tlp_overhead;
    return {.kind = LinkKind::pcie, .rate = pcie_rate * pcie_tlp_payload / on_wire, .delay = pcie_delay};
  }
};

template <class P>
Parameters<P>&& with_pcie(Parameters<P>&& parameters) {
  parameters
      .rate("pcie_rate", &P::pcie_rate, kLinkRates, "rate of PCIe between a GPU and its NIC, each way, raw")
      .bytes("pcie_tlp_payload", &P::pcie_tlp_payload, {64, 4096}, "payload of a PCIe packet (TLP)")
      .bytes("pcie_tlp_overhead", &P::pcie_tlp_overhead, {0, 64}, "framing, header and LCRC of a TLP")
      .time(
          "pcie_delay", &P::pcie_delay, kHostDelays,
          "latency of PCIe from GPU to NIC behind one PCIe switch, one way: the switch (105 ns) and two end "
          "points");
  return std::move(parameters);
}

// Parameters of PCIe whose switches and CPUs are nodes. It carries messages between GPUs as well, in pieces.
// - pcie_piece: assumed. PCIe interleaves the traffic of several senders TLP by TLP. A piece of 16 KiB delays
//   a NIC's packets by half a microsecond at Gen4 x16, less than the NIC's buffer holds
//   (transport.nic_buffer).
// - cpu_rate: usable rate between CPUs, each way. NCCL counts 10 GB/s for Skylake's UPI (src/graph/topo.h,
//   SKL_QPI_BW) and 16 for AMD.
// - cpu_delay: an assumption, of the order of a remote memory access.
struct PcieTreeParameters : PcieParameters {
  Bytes pcie_piece = 16 * kKibibyte;
  BitRate cpu_rate = 8 * 10 * kGbps;
  Time cpu_delay = 150 * kNanosecond;

  // Returns one of the two links that make up a route through a switch.
  LinkSpec pcie_link() const {
    LinkSpec link = pcie();
    link.delay = pcie_delay / 2;
    link.mtu = pcie_piece;
    return link;
  }
  LinkSpec cpu_link() const {
    return {.kind = LinkKind::pcie, .rate = cpu_rate, .delay = cpu_delay, .mtu = pcie_piece};
  }
};

template <class P>
Parameters<P>&& with_pcie_tree(Parameters<P>&& parameters) {
  return with_pcie(std::move(parameters))
      .bytes("pcie_piece", &P::pcie_piece, {4 * kKibibyte, 16 * kMebibyte},
             "size of the pieces of messages between GPUs over PCIe (assumed)")
      .rate("cpu_rate", &P::cpu_rate, kLinkRates,
            "rate between CPUs, each way, usable (NCCL: Skylake 10 GB/s)")
      .time("cpu_delay", &P::cpu_delay, kHostDelays, "delay between CPUs (assumed)");
}

// host_name() returns "host3". nic_name() returns "host3/nic1", or "host3/nic1(9)" where the fabric's file
// gives the host port the number 9.
inline std::string host_name(std::uint32_t host_index) { return "host" + std::to_string(host_index); }
inline std::string nic_name(const std::string& host, std::size_t nic,
                            std::span<const std::uint32_t> numbers) {
  const std::string number = numbers.empty() ? "" : "(" + std::to_string(numbers[nic]) + ")";
  return host + "/nic" + std::to_string(nic) + number;
}

}  // namespace netsim
