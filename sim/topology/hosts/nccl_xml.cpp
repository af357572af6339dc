// nccl_xml: a host from a topology file of NCCL or RCCL. NCCL_TOPO_DUMP_FILE writes such files, and cloud
// vendors provide them for NCCL_TOPO_FILE. Elements and attributes are those of NCCL's src/graph/xml.cc; they
// are interpreted as in src/graph/topo.cc and topo.h:
//
// - cpu: a node. Every CPU is joined with every other at a rate by its model (GB/s: Intel 6, 10, 22 or 40 by
//   modelid, AMD 16, POWER9 32, ARM 6).
// - pci: a link to the element around it, at link_speed x link_width (12 GB/s for Gen3 x16; width 0 is 16, an
//   unknown speed is Gen3). The element inside or the class makes it a GPU (0x03, 0x12), a NIC (0x02), an
//   NVSwitch (0x0680), else a PCIe switch. NVSwitches are left out, because NVLinks name their targets. Some
//   vendors' files give bus ids only: then `nics` names the NICs, and the other devices are GPUs.
// - gpu: in the order of `dev`, else as in the file. nvlink and xgmi are `count` links to the GPU `target`,
//   each at NCCL's rate for the GPU's `sm` (`gcn`). Links to an NVSwitch (tclass 0x0680) form one port into
//   one switch stage. Links to a target that is not in the file are ignored, as in NCCL. c2c leads to the
//   GPU's CPU.
// - net: a host port of the fabric. Its link has at most the net's `speed` (Mb/s). Only the nets of the
//   highest speed count; the ports of one NIC share its PCIe link. A NIC without nets has one port.
// - sm: the least of the GPUs selects the generation in NCCL's tables. NVSwitches multicast and reduce (NVLS)
//   from 90 on, as in ncclTopoCompute (src/graph/search.cc).
//
// Rates are those that NCCL takes as usable. Delays and pieces are those of other host kinds (host_links.h).
// Notes report entries without effect: gdr="0", the latency of nets, ranks in another order than `dev`.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "sim/core/errors.h"
#include "sim/core/named_file.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/core/xml.h"
#include "sim/topology/host_links.h"
#include "sim/topology/topology.h"

namespace netsim {

namespace {

constexpr std::int64_t kMostDevices = 4096;
constexpr std::int64_t kMostSpeed = kLinkRates.maximum / kMbps;

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

// One device of the file.
struct Device {
  enum class Kind { cpu, pci_switch, gpu, nic_ports, nic } kind = Kind::pci_switch;
  std::string bus_id;
  std::uint32_t parent = kNoId;  // index of a device; kNoId: this is a CPU
  BitRate rate = 0;              // rate of the link to the parent
  std::int64_t order = 0;        // GPUs and nets: `dev`
  bool is_net = false;
  std::int64_t speed = 0;  // of nets, Mb/s; 0: the file gives none
  std::int64_t rank = -1;  // of GPUs; -1: the file gives none
  std::int64_t sm = 0;
  std::string gcn;
  BitRate cpu_rate = 0;  // of CPUs: rate to other CPUs
};

struct XmlLink {
  std::uint32_t gpu;  // index of its device
  std::string target;
  std::int64_t count;
  bool to_switch;
};

struct Described {
  std::vector<Device> devices;  // parents come before their children
  std::vector<XmlLink> nvlinks;
  std::vector<std::pair<std::uint32_t, BitRate>> c2c;  // GPUs with links to their CPU
  std::vector<std::string> notes;                      // Host::notes
};

constexpr BitRate giga_bytes(double rate) { return static_cast<BitRate>(rate * 8e9 + 0.5); }

BitRate nvlink_rate(std::int64_t sm) {
  constexpr std::array<std::pair<int, double>, 6> kBySm{
      {{60, 18.0}, {70, 20.0}, {80, 20.0}, {86, 12.0}, {90, 20.6}, {100, 40.1}}};
  double rate = kBySm[0].second;
  for (const auto& [from, value] : kBySm) {
    if (from == 86 ? sm == 86 || sm == 89 : sm >= from) rate = value;
  }
  return giga_bytes(rate);
}

BitRate xgmi_rate(std::string_view gcn) {
  if (gcn.find("94") != std::string_view::npos || gcn.find("95") != std::string_view::npos)
    return giga_bytes(48);
  return giga_bytes(gcn == "910" || gcn.find("90a") != std::string_view::npos ? 36 : 24);
}

class TopologyReader {
 public:
  TopologyReader(InputText input, const NcclXmlParameters& p)
      : file_(std::move(input.text), std::move(input.path)), p_(p) {
    if (!p.nics.is_null()) {
      for (const ConfigNode& item : read_names(p.nics, "")) named_nics_.push_back(lower(read_text(item)));
    }
  }

  Described read() {
    const XmlElement root = file_.root("system");
    for (const XmlElement& cpu : root.children("cpu")) add_cpu(cpu);
    if (result_.devices.empty()) root.fail("a system without CPUs");
    keep_fastest_nets();
    note_ranks();
    const auto is_gpu = [](const Device& device) { return device.kind == Device::Kind::gpu; };
    if (std::none_of(result_.devices.begin(), result_.devices.end(), is_gpu))
      root.fail("a system without GPUs");
    return std::move(result_);
  }

 private:
  // ---- Elements

  void add_cpu(const XmlElement& node) {
    Device cpu;
    cpu.kind = Device::Kind::cpu;
    cpu.cpu_rate = cpu_rate(node);
    const std::uint32_t index = add(node, std::move(cpu));
    for (const XmlElement& child : node.children()) add_child(child, index);
  }

  void add_child(const XmlElement& node, std::uint32_t parent) {
    const std::string name = node.name();
    if (name == "pci") add_pci(node, parent);
    if (name == "nic") add_nic(node, parent, giga_bytes(12), "");
  }

  void add_pci(const XmlElement& node, std::uint32_t parent) {
    const std::string bus_id = lower(node.text("busid"));
    if (bus_id.empty()) node.fail("'busid' is missing");
    if (!bus_ids_.emplace(bus_id, 0).second) node.fail("bus id " + bus_id + " is there twice");
    const BitRate rate = pci_rate(node);
    if (const XmlElement gpu = node.child("gpu")) return add_gpu(node, gpu, parent, rate, bus_id);
    if (const XmlElement nic = node.child("nic")) return add_nic(nic, parent, rate, bus_id);
    const std::string device_class = node.text("class");
    if (device_class.starts_with("0x0680")) return;
    if (device_class.starts_with("0x03") || device_class.starts_with("0x12"))
      return add_gpu(node, {}, parent, rate, bus_id);
    if (device_class.starts_with("0x02")) return add_port(node, parent, rate, bus_id);
    if (device_class.empty() && !node.child("pci")) return add_unknown(node, parent, rate, bus_id);
    Device bridge;
    bridge.parent = parent;
    bridge.rate = rate;
    const std::uint32_t index = add(node, std::move(bridge));
    for (const XmlElement& child : node.children()) add_child(child, index);
  }

  // Adds a device for which the file gives only the bus id.
  void add_unknown(const XmlElement& node, std::uint32_t parent, BitRate rate, const std::string& bus_id) {
    if (named_nics_.empty()) {
      node.fail("the file does not state what device " + bus_id +
                " is: name those that are NICs in the host's parameter `nics`");
    }
    const bool nic = std::find(named_nics_.begin(), named_nics_.end(), bus_id) != named_nics_.end();
    if (nic) return add_port(node, parent, rate, bus_id);
    add_gpu(node, {}, parent, rate, bus_id);
  }

  void add_gpu(const XmlElement& node, const XmlElement& gpu, std::uint32_t parent, BitRate rate,
               const std::string& bus_id) {
    Device device;
    device.kind = Device::Kind::gpu;
    device.bus_id = bus_id;
    device.parent = parent;
    device.rate = rate;
    device.order = gpu.integer("dev", {0, 1 << 20}, static_cast<std::int64_t>(result_.devices.size()));
    device.sm = gpu.integer("sm", {1, 100'000}, p_.sm);
    device.gcn = gpu.text("gcn");
    device.rank = gpu.integer("rank", {-1, 1 << 20}, -1);
    note_gdr(gpu, "gpu");
    const std::uint32_t index = add(node, std::move(device));
    for (const char* kind : {"nvlink", "xgmi"}) {
      for (const XmlElement& link : gpu.children(kind)) add_nvlink(link, index, bus_id);
    }
    for (const XmlElement& link : gpu.children("c2c")) {
      const std::int64_t mega_bytes = link.integer("bw", {1, 100'000'000}, 0);
      result_.c2c.emplace_back(index, link.integer("count", {1, 1024}, 1) * mega_bytes * 8 * kMbps);
    }
  }

  void add_nvlink(const XmlElement& node, std::uint32_t gpu, const std::string& bus_id) {
    const std::string target = lower(node.text("target"));
    if (target.empty()) node.fail("'target' is missing");
    const std::int64_t count = node.integer("count", {1, 1024}, 1);
    const bool to_switch = node.text("tclass").starts_with("0x0680");
    if (to_switch || target != bus_id) result_.nvlinks.push_back({gpu, target, count, to_switch});
  }

  void add_nic(const XmlElement& nic, std::uint32_t parent, BitRate rate, const std::string& bus_id) {
    const std::vector<XmlElement> nets = nic.children("net");
    if (nets.empty()) return add_port(nic, parent, rate, bus_id);
    std::uint32_t at = parent;
    if (nets.size() > 1) {
      Device ports;
      ports.kind = Device::Kind::nic_ports;
      ports.parent = parent;
      ports.rate = rate;
      at = add(nic, std::move(ports));
    }
    for (const XmlElement& net : nets) {
      Device port;
      port.kind = Device::Kind::nic;
      port.is_net = true;
      port.bus_id = bus_id;
      port.parent = at;
      port.rate = rate;
      note_gdr(net, "net");
      note_latency(net);
      port.order = net.integer("dev", {0, 1 << 20}, 0);
      port.speed = std::max<std::int64_t>(net.integer("speed", {INT32_MIN, kMostSpeed}, 0), 0);
      add(net, std::move(port));
    }
  }

  void note(const std::string& text) {
    if (std::find(result_.notes.begin(), result_.notes.end(), text) == result_.notes.end())
      result_.notes.push_back(text);
  }
  void note_gdr(const XmlElement& element, const char* name) {
    if (element.text("gdr") == "0") {
      note(
          std::string("its file has gdr=\"0\" for a ") + name +
          ", which says that NICs do not reach the GPU's memory; here they do, without a copy in the host's");
    }
  }
  void note_latency(const XmlElement& net) {
    const std::string latency = net.text("latency");
    if (std::strtod(latency.c_str(), nullptr) > 0) {
      note("its file gives a net the latency " + latency +
           " us, which NCCL's cost model adds; here collectives.plugin_latency sets it");
    }
  }
  // Adds a note where ranks are not in the order of `dev`, because ranks are assigned to GPUs in that order.
  void note_ranks() {
    std::vector<const Device*> gpus;
    for (const Device& device : result_.devices) {
      if (device.kind == Device::Kind::gpu && device.rank >= 0) gpus.push_back(&device);
    }
    std::stable_sort(gpus.begin(), gpus.end(),
                     [](const Device* a, const Device* b) { return a->order < b->order; });
    const auto before = [](const Device* a, const Device* b) { return a->rank < b->rank; };
    if (!std::is_sorted(gpus.begin(), gpus.end(), before)) {
      note(
          "its file gives GPUs ranks in another order than `dev`; ranks are placed in the order of `dev`, "
          "and "
          "`placement` changes that");
    }
  }

  void add_port(const XmlElement& node, std::uint32_t parent, BitRate rate, const std::string& bus_id) {
    Device port;
    port.kind = Device::Kind::nic;
    port.bus_id = bus_id;
    port.parent = parent;
    port.rate = rate;
    port.order = static_cast<std::int64_t>(result_.devices.size());
    add(node, std::move(port));
  }

  std::uint32_t add(const XmlElement& node, Device device) {
    if (static_cast<std::int64_t>(result_.devices.size()) >= kMostDevices)
      node.fail("more than " + std::to_string(kMostDevices) + " devices");
    result_.devices.push_back(std::move(device));
    return static_cast<std::uint32_t>(result_.devices.size() - 1);
  }

  // Removes the slower nets. NCCL's channels use the fastest ones, and a management port would become a host
  // port.
  void keep_fastest_nets() {
    constexpr std::int64_t kUnknown = 10'000;  // NCCL's value where the file gives no speed
    const auto speed = [](const Device& net) { return net.speed == 0 ? kUnknown : net.speed; };
    std::int64_t fastest = 0;
    for (const Device& device : result_.devices) {
      if (device.is_net) fastest = std::max(fastest, speed(device));
    }
    for (Device& device : result_.devices) {
      if (device.is_net && speed(device) < fastest) device.kind = Device::Kind::nic_ports;  // a dead end
    }
  }

  // ---- Values

  static BitRate cpu_rate(const XmlElement& cpu) {
    const std::string arch = cpu.text("arch"), vendor = cpu.text("vendor");
    const int family = number(cpu, "familyid"), model = number(cpu, "modelid");
    if (arch == "arm64") return giga_bytes(6);
    if (arch == "ppc64") return giga_bytes(32);
    if (vendor == "AuthenticAMD") return giga_bytes(16);
    if (vendor != "GenuineIntel" || family != 6) return giga_bytes(10);
    return giga_bytes(model >= 0xCF ? 40 : model >= 0x8F ? 22 : model >= 0x55 ? 10 : 6);
  }

  // Returns the rate of a link. `kLanes` holds 100 Mb/s per lane and GT/s; 80 of them on one lane are 1 GB/s.
  BitRate pci_rate(const XmlElement& node) const {
    constexpr std::array<std::pair<std::string_view, int>, 6> kLanes{
        {{"2.5", 15}, {"5", 30}, {"8", 60}, {"16", 120}, {"32", 240}, {"64", 480}}};
    std::int64_t width = node.integer("link_width", {0, 64}, 16);
    if (width == 0) width = 16;
    const std::string given = node.text("link_speed");
    std::string_view speed = given;
    speed = speed.substr(0, speed.find(' '));
    if (speed.ends_with(".0")) speed.remove_suffix(2);
    int lane = 60;
    for (const auto& [name, rate] : kLanes) {
      if (speed == name) lane = rate;
    }
    return width * lane * kGbps / 10;
  }

  static std::string lower(std::string text) {
    for (char& c : text) c = to_lower(c);
    return text;
  }
  // Returns the attribute as NCCL reads it; 0 if it is not a number.
  static int number(const XmlElement& node, const char* name) {
    return static_cast<int>(std::strtol(node.text(name).c_str(), nullptr, 0));
  }

  XmlFile file_;
  const NcclXmlParameters& p_;
  std::vector<std::string> named_nics_;
  std::map<std::string, int> bus_ids_;
  Described result_;
};

class NcclXml final : public Host {
 public:
  NcclXml(Described described, const NcclXmlParameters& p) : host_(std::move(described)), p_(p) {
    gpus_ = in_order(Device::Kind::gpu);
    nics_ = in_order(Device::Kind::nic);
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
  std::vector<std::uint32_t> in_order(Device::Kind kind) const {
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
      const Device& device = host_.devices[i];
      if (device.kind == Device::Kind::cpu) {
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
    const Device& device = host_.devices[gpu];
    return device.gcn.empty() ? nvlink_rate(device.sm) : xgmi_rate(device.gcn);
  }

  // Adds the NVLinks. Both ends of a link between GPUs list it, so it is added once. A GPU's links to
  // NVSwitches are added as one link.
  void add_nvlinks(Graph& graph, AtomId atom, const std::string& host,
                   const std::vector<NodeId>& nodes) const {
    std::map<std::string, std::uint32_t> by_bus_id;
    for (const std::uint32_t gpu : gpus_) by_bus_id[host_.devices[gpu].bus_id] = gpu;
    std::map<std::pair<std::uint32_t, std::uint32_t>, BitRate> joined;
    std::map<std::uint32_t, BitRate> to_switch;
    for (const XmlLink& joint : host_.nvlinks) {
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

  Described host_;
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
      return std::make_unique<NcclXml>(TopologyReader(read_named_file(where, "nccl_topology"), p).read(), p);
    }};

}  // namespace

}  // namespace netsim
