#include "sim/collectives/library/nccl/nccl_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "sim/core/recognise.h"
#include "sim/core/text.h"
#include "sim/core/xml.h"

namespace netsim {
namespace {

using Channel = NcclGraph::Channel;
using Device = NcclGraph::Device;

constexpr std::uint32_t kRingPattern = 4, kPatterns = 6, kGraphs = 5, kMostChannels = 64, kMostDevices = 4096;
constexpr int kHostShift = 56;  // NCCL_TOPO_ID
constexpr const char* kTypes[] = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                  "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};

// ---- Reading

std::optional<double> real_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0) || value > 1e6)
    return std::nullopt;
  return value;
}

double real(const XmlElement& element, const char* name, std::optional<double> absent = std::nullopt) {
  if (!element.has(name) && absent) return *absent;
  const auto value = real_of(element.text(name));
  if (!value) {
    element.fail(fmt::format("{} is '{}'; allowed: a number from 0 to 1000000", name,
                             std::string_view(element.text(name)).substr(0, 40)));
  }
  return *value;
}

std::uint32_t number(const XmlElement& element, const char* name, std::uint32_t least, std::uint32_t most,
                     std::optional<std::int64_t> absent = std::nullopt) {
  return static_cast<std::uint32_t>(element.integer(name, {least, most}, absent));
}

std::string link_type(const XmlElement& element, const char* name) {
  std::string given = element.text(name), allowed;
  for (const char* type : kTypes) {
    if (given == type) return given;
    append_item(allowed, type);
  }
  element.fail(fmt::format("{} is '{}'; allowed: {}", name, std::string_view(given).substr(0, 40), allowed));
}

// Reads a hexadecimal number, with or without 0x before it.
std::uint64_t device_number(const XmlElement& element) {
  const std::string given = element.text("dev");
  const std::string_view digits = std::string_view(given).substr(given.starts_with("0x") ? 2 : 0);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error == std::errc() && end == digits.data() + digits.size() && !digits.empty() &&
      (value & ((std::uint64_t{1} << kHostShift) - 1)) < kMostDevices)
    return value;
  element.fail(fmt::format("dev is '{}'; allowed: a hexadecimal number of a device, from 0 to {:#x}",
                           std::string_view(given).substr(0, 40), kMostDevices - 1));
}

Device device_of(std::uint64_t number) {
  return {static_cast<std::uint32_t>(number >> kHostShift),
          static_cast<std::uint32_t>(number % kMostDevices)};
}

std::string to_string(Device device) {
  return device.host == 0 ? fmt::format("{:#x}", device.number)
                          : fmt::format("{:#x} of host {}", device.number, device.host);
}

Channel read_channel(const XmlElement& element) {
  Channel channel;
  channel.place = element.place();
  const std::vector<XmlElement> parts = element.children();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::uint64_t device = device_number(parts[i]);
    if (parts[i].name() == "gpu") {
      const Device gpu = device_of(device);
      if (std::find(channel.gpus.begin(), channel.gpus.end(), gpu) != channel.gpus.end())
        parts[i].fail("a channel passes GPU " + to_string(gpu) + " twice");
      channel.gpus.push_back(gpu);
    } else if (parts[i].name() == "net") {
      if (i != 0 && i + 1 != parts.size())
        parts[i].fail("a channel has a net at its beginning and one at its end; this one is between GPUs");
      channel.nets.push_back(static_cast<std::uint32_t>(device % kMostDevices));
    } else {
      parts[i].fail("allowed in a channel: gpu, net");
    }
  }
  if (channel.gpus.empty()) element.fail("a channel has no GPUs; it needs at least one");
  if (channel.nets.size() == 1)
    element.fail("the channel has one net; allowed are none, or one at the beginning and one at the end");
  return channel;
}

// Checks that all channels of rings and trees pass the same GPUs.
void check_channels(const NcclGraph::Graph& graph, const XmlElement& element) {
  const auto sorted = [](std::vector<Device> devices) {
    std::sort(devices.begin(), devices.end());
    return devices;
  };
  const std::vector<Device> all = sorted(graph.channels.front().gpus);
  const std::vector<XmlElement> channels = element.children("channel");
  for (std::size_t i = 1; i < graph.channels.size(); ++i) {
    if (sorted(graph.channels[i].gpus) != all)
      channels[i].fail("it passes other GPUs than the first channel of its graph");
    if (graph.channels[i].nets.size() != graph.channels.front().nets.size())
      channels[i].fail("channels of a graph have nets, or they have none");
  }
}

NcclGraph::Graph read_graph(const XmlElement& element) {
  NcclGraph::Graph graph;
  graph.place = element.place();
  graph.id = number(element, "id", 0, kGraphs - 1);
  graph.pattern = number(element, "pattern", 1, kPatterns);
  const bool ring = graph.id == NcclGraph::kRing, tree = graph.id == NcclGraph::kTree;
  if (ring && graph.pattern != kRingPattern) element.fail("graph 0 has the rings, whose pattern is 4");
  if (tree && graph.pattern >= kRingPattern)
    element.fail("graph 1 has the trees, whose pattern is 1 (balanced), 2 (split) or 3 (plain)");
  graph.cross_nic = number(element, "crossnic", 0, 2);
  const std::uint32_t channels = number(element, "nchannels", 0, kMostChannels);
  graph.speed_intra = real(element, "speedintra");
  graph.speed_inter = real(element, "speedinter");
  graph.latency_inter = real(element, "latencyinter", 0);
  graph.type_intra = link_type(element, "typeintra");
  graph.type_inter = link_type(element, "typeinter");
  graph.same_channels = number(element, "samechannels", 0, 1, 0) == 1;
  for (const XmlElement& child : element.children()) {
    if (child.name() != "channel") child.fail("allowed in a graph: channel");
    graph.channels.push_back(read_channel(child));
  }
  if (graph.channels.size() != channels)
    element.fail(fmt::format("nchannels is {}, and {} channels are in it", channels, graph.channels.size()));
  if (!ring && !tree) return graph;
  if (channels == 0) element.fail("the graph has no channels; allowed are 1 to 64");
  if (graph.speed_intra == 0 || graph.speed_inter == 0)
    element.fail("speedintra and speedinter of rings and trees are more than 0");
  check_channels(graph, element);
  return graph;
}

// ---- Writing

std::string hexadecimal(std::uint64_t value) { return value == 0 ? "0" : fmt::format("{:#x}", value); }

void write_channel(std::string& text, const Channel& channel) {
  text += "    <channel>\n";
  const auto net = [&](std::size_t index) {
    if (index < channel.nets.size())
      text += fmt::format("      <net dev=\"{}\"/>\n", hexadecimal(channel.nets[index]));
  };
  net(0);
  for (const Device& gpu : channel.gpus) {
    text += fmt::format("      <gpu dev=\"{}\"/>\n",
                        hexadecimal(std::uint64_t{gpu.host} << kHostShift | gpu.number));
  }
  net(1);
  text += "    </channel>\n";
}

const FormatRegistration kNcclGraphFormat{
    {.name = "nccl_graph",
     .what = "a graph of NCCL (NCCL_GRAPH_FILE)",
     .use = Format::Use::part,
     .matches = [](const Excerpt& file) { return file.xml_root() == "graphs"; },
     .component = {},
     .advice = "name it as `graph` in the section `collectives`",
     .endings = {".xml"}}};

}  // namespace

const NcclGraph::Graph* NcclGraph::find(std::uint32_t id) const {
  const auto found = std::find_if(graphs.begin(), graphs.end(),
                                  [&](const NcclGraph::Graph& graph) { return graph.id == id; });
  return found == graphs.end() ? nullptr : &*found;
}

NcclGraph read_nccl_graph(std::string text, const std::string& path) {
  require_format(text, path, "nccl_graph");
  const XmlFile file(std::move(text), path);
  const XmlElement root = file.root("graphs");
  root.integer("version", {1, 1});
  NcclGraph all;
  all.path = path;
  for (const XmlElement& element : root.children()) {
    if (element.name() != "graph") element.fail("allowed in graphs: graph");
    NcclGraph::Graph graph = read_graph(element);
    if (all.find(graph.id) != nullptr) element.fail(fmt::format("a second graph {}", graph.id));
    all.graphs.push_back(std::move(graph));
  }
  if (all.find(NcclGraph::kRing) == nullptr && all.find(NcclGraph::kTree) == nullptr)
    root.fail("the file has neither rings (graph 0) nor trees (graph 1)");
  return all;
}

std::string write_nccl_graph(const NcclGraph& all) {
  std::string text = "<graphs version=\"1\">\n";
  for (const NcclGraph::Graph& graph : all.graphs) {
    text += fmt::format(
        "  <graph id=\"{}\" pattern=\"{}\" crossnic=\"{}\" nchannels=\"{}\" speedintra=\"{}\" "
        "speedinter=\"{}\" "
        "latencyinter=\"{}\" typeintra=\"{}\" typeinter=\"{}\" samechannels=\"{}\">\n",
        graph.id, graph.pattern, graph.cross_nic, graph.channels.size(), graph.speed_intra, graph.speed_inter,
        graph.latency_inter, graph.type_intra, graph.type_inter, graph.same_channels ? 1 : 0);
    for (const Channel& channel : graph.channels) write_channel(text, channel);
    text += "  </graph>\n";
  }
  return text + "</graphs>\n";
}

}  // namespace netsim
