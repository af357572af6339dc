#include "sim/topology/hosts/nccl_topology.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <string_view>

#include "sim/core/parameters.h"
#include "sim/core/text.h"
#include "sim/core/xml.h"
#include "sim/topology/ethernet.h"
#include "sim/topology/gpu_links.h"

namespace netsim {
namespace {

constexpr std::int64_t kMostDevices = 4096;
constexpr std::int64_t kMostSpeed = kLinkRates.maximum / kMbps;

class NcclTopologyReader {
 public:
  NcclTopologyReader(InputText input, std::int64_t sm, const ConfigNode& nics)
      : file_(std::move(input.text), std::move(input.path)), sm_(sm) {
    if (nics.is_null()) return;
    for (const ConfigNode& item : read_names(nics, "")) named_nics_.push_back(lower_case(read_text(item)));
  }

  NcclTopology read() {
    const XmlElement root = file_.root("system");
    for (const XmlElement& cpu : root.children("cpu")) add_cpu(cpu);
    if (result_.devices.empty()) root.fail("a system without CPUs");
    keep_fastest_nets();
    note_ranks();
    const auto is_gpu = [](const NcclDevice& device) { return device.kind == NcclDevice::Kind::gpu; };
    if (std::none_of(result_.devices.begin(), result_.devices.end(), is_gpu))
      root.fail("a system without GPUs");
    return std::move(result_);
  }

 private:
  // ---- Elements

  void add_cpu(const XmlElement& node) {
    NcclDevice cpu;
    cpu.kind = NcclDevice::Kind::cpu;
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
    const std::string bus_id = lower_case(node.text("busid"));
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
    NcclDevice bridge;
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
    NcclDevice device;
    device.kind = NcclDevice::Kind::gpu;
    device.bus_id = bus_id;
    device.parent = parent;
    device.rate = rate;
    device.order = gpu.integer("dev", {0, 1 << 20}, static_cast<std::int64_t>(result_.devices.size()));
    device.sm = gpu.integer("sm", {1, 100'000}, sm_);
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
    const std::string target = lower_case(node.text("target"));
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
      NcclDevice ports;
      ports.kind = NcclDevice::Kind::nic_ports;
      ports.parent = parent;
      ports.rate = rate;
      at = add(nic, std::move(ports));
    }
    for (const XmlElement& net : nets) {
      NcclDevice port;
      port.kind = NcclDevice::Kind::nic;
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
    std::vector<const NcclDevice*> gpus;
    for (const NcclDevice& device : result_.devices) {
      if (device.kind == NcclDevice::Kind::gpu && device.rank >= 0) gpus.push_back(&device);
    }
    std::stable_sort(gpus.begin(), gpus.end(),
                     [](const NcclDevice* a, const NcclDevice* b) { return a->order < b->order; });
    const auto before = [](const NcclDevice* a, const NcclDevice* b) { return a->rank < b->rank; };
    if (!std::is_sorted(gpus.begin(), gpus.end(), before)) {
      note(
          "its file gives GPUs ranks in another order than `dev`; ranks are placed in the order of `dev`, "
          "and "
          "`placement` changes that");
    }
  }

  void add_port(const XmlElement& node, std::uint32_t parent, BitRate rate, const std::string& bus_id) {
    NcclDevice port;
    port.kind = NcclDevice::Kind::nic;
    port.bus_id = bus_id;
    port.parent = parent;
    port.rate = rate;
    port.order = static_cast<std::int64_t>(result_.devices.size());
    add(node, std::move(port));
  }

  std::uint32_t add(const XmlElement& node, NcclDevice device) {
    if (static_cast<std::int64_t>(result_.devices.size()) >= kMostDevices)
      node.fail("more than " + std::to_string(kMostDevices) + " devices");
    result_.devices.push_back(std::move(device));
    return static_cast<std::uint32_t>(result_.devices.size() - 1);
  }

  // Removes the slower nets. NCCL's channels use the fastest ones, and a management port would become a host
  // port.
  void keep_fastest_nets() {
    constexpr std::int64_t kUnknown = 10'000;  // NCCL's value where the file gives no speed
    const auto speed = [](const NcclDevice& net) { return net.speed == 0 ? kUnknown : net.speed; };
    std::int64_t fastest = 0;
    for (const NcclDevice& device : result_.devices) {
      if (device.is_net) fastest = std::max(fastest, speed(device));
    }
    for (NcclDevice& device : result_.devices) {
      if (device.is_net && speed(device) < fastest) device.kind = NcclDevice::Kind::nic_ports;  // a dead end
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

  // Returns the attribute as NCCL reads it; 0 if it is not a number.
  static int number(const XmlElement& node, const char* name) {
    return static_cast<int>(std::strtol(node.text(name).c_str(), nullptr, 0));
  }

  XmlFile file_;
  std::int64_t sm_;
  std::vector<std::string> named_nics_;
  std::map<std::string, int> bus_ids_;
  NcclTopology result_;
};

}  // namespace

NcclTopology read_nccl_topology(InputText input, std::int64_t sm, const ConfigNode& nics) {
  return NcclTopologyReader(std::move(input), sm, nics).read();
}

}  // namespace netsim
