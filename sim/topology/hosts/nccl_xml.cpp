// nccl_xml: a host from a topology file of NCCL or RCCL (nccl_topology.h). NCCL_TOPO_DUMP_FILE writes such
// files, and cloud vendors provide them for NCCL_TOPO_FILE.
//
// Rates are those that NCCL takes as usable. Delays and pieces are those of other host kinds (host_links.h).
// Notes report entries without effect: gdr="0", the latency of nets, ranks in another order than `dev`.
#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "sim/core/named_file.h"
#include "sim/core/registry.h"
#include "sim/topology/gpu_links.h"
#include "sim/topology/host_links.h"
#include "sim/topology/hosts/nccl_topology.h"
#include "sim/topology/topology.h"

namespace netsim {

namespace {

struct NcclXmlParameters : NvlinkParameters, PcieTreeParameters {
  std::string file;
  std::int64_t sm = 80;
  ConfigNode nics;
  std::int64_t acknowledge_every = kConnectXAcknowledgeEvery;
};

Parameters<NcclXmlParameters> nccl_xml_parameters() {
  using P = NcclXmlParameters;
  Parameters<P> p = with_file(Parameters<P>(), "the XML file");
  p.integer("sm", &P::sm, {10, 999}, "compute capability of GPUs for which the file states none (80: A100)")
      .list("nics", &P::nics, "bus ids of the NICs, where the file does not state the type of its devices")
      .bytes("nvlink_piece", &P::nvlink_piece, {4 * kKibibyte, 16 * kMebibyte},
             "size of the pieces of bulk copies over NVLink")
      .time("nvlink_delay", &P::nvlink_delay, kHostDelays, "propagation of one NVLink (SimAI: 25 ns)")
      .time("nvswitch_latency", &P::nvswitch_latency, kHostDelays,
            "time from a piece's first byte into the NVSwitch stage to its first byte out (assumed)")
      .bytes("pcie_piece", &P::pcie_piece, {4 * kKibibyte, 16 * kMebibyte},
             "size of the pieces of messages between GPUs over PCIe (assumed)")
      .time("pcie_delay", &P::pcie_delay, kHostDelays,
            "delay from GPU to NIC behind one PCIe switch, one way")
      .time("cpu_delay", &P::cpu_delay, kHostDelays, "delay between CPUs (assumed)");
  return p;
}

// Returns the rate of one xGMI link of an AMD GPU by its architecture.
BitRate xgmi_rate(std::string_view gcn) {
  if (gcn.find("94") != std::string_view::npos || gcn.find("95") != std::string_view::npos)
    return kGfx94xXgmi;
  return gcn == "910" || gcn.find("90a") != std::string_view::npos ? kMi200Xgmi : kVegaXgmi;
}

class NcclXml final : public Host {
 public:
  NcclXml(NcclTopology described, const NcclXmlParameters& p) : host_(std::move(described)), p_(p) {
    gpus_ = in_order(NcclDevice::Kind::gpu);
    nics_ = in_order(NcclDevice::Kind::nic);
  }

  std::uint32_t gpus() const override { return static_cast<std::uint32_t>(gpus_.size()); }
  std::vector<HostFabric> fabrics() const override {
    return {{kScaleOut, static_cast<std::uint32_t>(nics_.size())}};
  }
  std::int64_t acknowledge_every() const override { return p_.acknowledge_every; }
  std::string gpu_model() const override { return {}; }
  std::int64_t compute_capability() const override {
    std::int64_t least = INT64_MAX;
    for (const std::uint32_t gpu : gpus_)
      least = std::min(least, host_.devices[gpu].gcn.empty() ? host_.devices[gpu].sm : 0);
    return least;
  }
  std::vector<std::string> notes() const override { return host_.notes; }

  HostBuild build(Graph& graph, std::uint32_t host_index,
                  std::span<const std::uint32_t> numbers) const override {
    const std::string host = host_name(host_index);
    const AtomId atom = graph.add_atom();
    HostBuild result;
    std::vector<NodeId> nodes(host_.devices.size(), kNoId);
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      nodes[gpus_[i]] = graph.add_node(NodeKind::gpu, atom, host + "/gpu" + std::to_string(i));
      result.gpus.push_back(nodes[gpus_[i]]);
    }
    std::vector<NodeId>& nics = result.ports.emplace_back();
    for (std::size_t i = 0; i < nics_.size(); ++i) {
      nodes[nics_[i]] = graph.add_node(NodeKind::nic, atom, nic_name(host, i, numbers));
      nics.push_back(nodes[nics_[i]]);
      result.nic_rates.push_back(host_.devices[nics_[i]].speed * kMbps);
    }
    add_pcie(graph, atom, host, nodes);
    add_nvlinks(graph, atom, host, nodes);
    return result;
  }

 private:
  std::vector<std::uint32_t> in_order(NcclDevice::Kind kind) const {
    std::vector<std::uint32_t> found;
    for (std::uint32_t i = 0; i < host_.devices.size(); ++i) {
      if (host_.devices[i].kind == kind) found.push_back(i);
    }
    std::stable_sort(found.begin(), found.end(), [this](std::uint32_t a, std::uint32_t b) {
      return host_.devices[a].order < host_.devices[b].order;
    });
    return found;
  }

  LinkSpec pcie_at(BitRate rate) const {
    LinkSpec link = p_.pcie_link();
    link.rate = rate;
    return link;
  }

  void add_pcie(Graph& graph, AtomId atom, const std::string& host, std::vector<NodeId>& nodes) const {
    std::vector<std::uint32_t> cpus;
    std::uint32_t bridges = 0;
    for (std::uint32_t i = 0; i < host_.devices.size(); ++i) {
      const NcclDevice& device = host_.devices[i];
      if (device.kind == NcclDevice::Kind::cpu) {
        nodes[i] = graph.add_node(NodeKind::cpu, atom, host + "/cpu" + std::to_string(cpus.size()));
        for (const std::uint32_t other : cpus) join_cpus(graph, other, i, nodes);
        cpus.push_back(i);
        continue;
      }
      if (nodes[i] == kNoId)
        nodes[i] = graph.add_node(NodeKind::pcie_switch, atom, host + "/pcie" + std::to_string(bridges++));
      graph.add_link(nodes[i], nodes[device.parent], pcie_at(device.rate));
    }
    for (const auto& [gpu, rate] : host_.c2c) {
      std::uint32_t cpu = gpu;
      while (host_.devices[cpu].parent != kNoId) cpu = host_.devices[cpu].parent;
      graph.add_link(nodes[gpu], nodes[cpu], pcie_at(rate));
    }
  }

  void join_cpus(Graph& graph, std::uint32_t a, std::uint32_t b, const std::vector<NodeId>& nodes) const {
    LinkSpec link = p_.cpu_link();
    link.rate = std::min(host_.devices[a].cpu_rate, host_.devices[b].cpu_rate);
    graph.add_link(nodes[a], nodes[b], link);
  }

  BitRate link_rate(std::uint32_t gpu) const {
    const NcclDevice& device = host_.devices[gpu];
    return device.gcn.empty() ? nvlink_rate_of(device.sm) : xgmi_rate(device.gcn);
  }

  // Adds the NVLinks. Both ends of a link between GPUs list it, so it is added once. A GPU's links to
  // NVSwitches are added as one link.
  void add_nvlinks(Graph& graph, AtomId atom, const std::string& host,
                   const std::vector<NodeId>& nodes) const {
    std::map<std::string, std::uint32_t> by_bus_id;
    for (const std::uint32_t gpu : gpus_) by_bus_id[host_.devices[gpu].bus_id] = gpu;
    std::map<std::pair<std::uint32_t, std::uint32_t>, BitRate> joined;
    std::map<std::uint32_t, BitRate> to_switch;
    for (const NcclNvlinks& joint : host_.nvlinks) {
      const BitRate rate = joint.count * link_rate(joint.gpu);
      if (joint.to_switch) {
        to_switch[joint.gpu] += rate;
      } else if (const auto target = by_bus_id.find(joint.target); target != by_bus_id.end()) {
        BitRate& sum = joined[std::minmax(joint.gpu, target->second)];
        sum = std::max(sum, rate);
      }
    }
    for (const auto& [pair, rate] : joined)
      graph.add_link(nodes[pair.first], nodes[pair.second], at(p_.nvlink(), rate));
    if (to_switch.empty()) return;
    const NodeId stage = graph.add_node(NodeKind::scale_up_switch, atom, host + "/nvswitch");
    graph.set_combining(stage, {nvls_efficiency_of(compute_capability()), p_.nvls_piece});
    const BitRate widest =
        std::max_element(to_switch.begin(), to_switch.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        })->second;
    for (const auto& [gpu, rate] : to_switch) {
      LinkSpec up = at(p_.into_nvswitch(), rate);
      up.cut_through = rate == widest;  // a faster egress link would transmit bytes that have not arrived yet
      graph.add_link(nodes[gpu], stage, up, at(p_.nvlink(), rate));
    }
  }

  static LinkSpec at(LinkSpec link, BitRate rate) {
    link.rate = rate;
    return link;
  }

  NcclTopology host_;
  NcclXmlParameters p_;
  std::vector<std::uint32_t> gpus_, nics_;  // indices of devices
};

const FormatRegistration kNcclXmlFormat{
    {.name = "nccl_topology",
     .what = "a topology of NCCL (XML)",
     .use = Format::Use::part,
     .matches = [](const Excerpt& file) { return file.xml_root() == "system"; },
     .component = "nccl_xml",
     .advice = "name it in the configuration: `host: {kind: nccl_xml, file: ...}`",
     .endings = {".xml"}}};

const Registration<Host> kNcclXml{
    "nccl_xml", "a host as a topology file of NCCL describes it (NCCL_TOPO_DUMP_FILE, cloud vendors' files)",
    nccl_xml_parameters(), [](const NcclXmlParameters& p, const ConfigNode& where) {
      return std::make_unique<NcclXml>(
          read_nccl_topology(read_named_file(where, "nccl_topology"), p.sm, p.nics), p);
    }};

}  // namespace

}  // namespace netsim
