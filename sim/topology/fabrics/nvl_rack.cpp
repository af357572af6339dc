// nvl_rack: racks whose GPUs, of several hosts, are joined by NVSwitches: a scale-up fabric. The defaults are
// GB200 NVL72: 72 GPUs of 18 NVLink5 (50 GB/s each way), one to each of the 18 chips in 9 switch trays.
// (NVIDIA GB200 NVL72 data sheet; multi-node tuning guide, "System".) Nothing joins the racks with each other
// here.
//
// A GPU's transfers are spread over all chips, because addresses are interleaved. So the chips of a rack are
// one non-blocking switch stage, and a GPU's links are one port into it. host_links.h has the figures of the
// links. Each GPU is a host port, and hosts are assigned rack by rack.
#include <string>
#include <utility>

#include "sim/core/registry.h"
#include "sim/topology/host_links.h"
#include "sim/topology/topology.h"

namespace netsim {

namespace {

struct NvlRackParameters : NvlinkParameters {
  NvlRackParameters() {
    nvlink_rate = 8 * 50 * kGbps;
    nvlink_efficiency = kNvlink5;
    nvls_efficiency = kNvlsBlackwell;
  }
  std::int64_t racks = 1;
  std::int64_t gpus = 72;
  std::int64_t chips = 18;
};

Parameters<NvlRackParameters> nvl_rack_parameters() {
  using P = NvlRackParameters;
  return with_nvls(with_nvswitch(
      Parameters<P>()
          .integer("racks", &P::racks, {1, 4096}, "racks, each a scale-up domain")
          .integer("gpus", &P::gpus, {1, 1024}, "host ports of a rack: GPUs")
          .integer("chips", &P::chips, {1, 1024}, "NVSwitches of a rack, each with one NVLink of every GPU"),
      "rate of one NVLink, each way, raw"));
}

class NvlRackRoutes final : public Routes {
 public:
  explicit NvlRackRoutes(std::size_t nodes) : up_(nodes, kNoId), down_(up_), rack_(up_) {}
  void add(NodeId gpu, NodeId rack, PortId up) {
    up_[gpu] = up;
    down_[gpu] = up ^ 1U;
    rack_[gpu] = rack;
  }
  std::span<const PortId> next_hops(NodeId at, NodeId destination) const override {
    if (rack_[destination] == at) return {&down_[destination], 1};
    if (rack_[at] == kNoId || rack_[at] != rack_[destination]) return {};
    return {&up_[at], 1};
  }

 private:
  std::vector<PortId> up_, down_;  // by node of a GPU
  std::vector<NodeId> rack_;       // by node of a GPU: the switch stage of its rack
};

class NvlRack final : public Topology {
 public:
  explicit NvlRack(const NvlRackParameters& p) : p_(p), gpus_(static_cast<std::uint32_t>(p.gpus)) {}

  bool scale_up() const override { return true; }
  std::uint32_t host_ports() const override { return static_cast<std::uint32_t>(p_.racks) * gpus_; }

  std::unique_ptr<Routes> build(Graph& graph, std::span<const HostPort> gpus) const override {
    std::vector<NodeId> racks;
    for (std::size_t i = 0; i < gpus.size(); i += gpus_) {
      const std::string name = "nvswitch" + std::to_string(racks.size());
      racks.push_back(graph.add_node(NodeKind::scale_up_switch, graph.add_atom(), name));
      graph.set_combining(racks.back(), p_.combining());
    }
    auto routes = std::make_unique<NvlRackRoutes>(graph.node_count());
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      const NodeId rack = racks[i / gpus_];
      routes->add(gpus[i].nic, rack,
                  graph.add_link(gpus[i].nic, rack, p_.into_nvswitch(p_.chips), p_.nvlink(p_.chips)));
    }
    return routes;
  }

 private:
  NvlRackParameters p_;
  std::uint32_t gpus_;
};

const Registration<Topology> kNvlRack{
    "nvl_rack", "racks of GPUs on NVSwitches beyond their hosts, 72 GPUs each by default: for the host gb200",
    nvl_rack_parameters(), [](const NvlRackParameters& p, const ConfigNode& where) {
      if (p.nvlink_delay < kNanosecond) {
        const ConfigNode* given = where.find("nvlink_delay");
        (given != nullptr ? *given : where)
            .fail("nvlink_delay is " + format_time(p.nvlink_delay) + "; between hosts it is at least 1 ns");
      }
      return std::make_unique<NvlRack>(p);
    }};

}  // namespace

}  // namespace netsim
