#include "sim/topology/files/infragraph.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/parameters.h"
#include "sim/core/text.h"
#include "sim/topology/ethernet.h"
#include "sim/topology/files/file_parameters.h"
#include "sim/topology/host_links.h"

namespace netsim {
namespace {

constexpr std::size_t kMostNodes = 1 << 21, kMostEdges = 1 << 23;

// ---- Meaning of names and descriptions

std::string lower(std::string text) {
  for (char& c : text) c = to_lower(c);
  return text;
}

bool has_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// Returns the number after `word`, separated by nothing, a blank, '_' or '-'. 0: there is none.
int number_after(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    std::size_t digit = at + word.size();
    if (digit < text.size() && has_any(text.substr(digit, 1), {" ", "_", "-"})) ++digit;
    int number = 0;
    while (digit < text.size() && is_digit(text[digit]) && number < 1000)
      number = 10 * number + (text[digit++] - '0');
    if (number > 0) return number;
  }
  return 0;
}

// A generation of GPUs. `nvlinks` is the usable rate of all NVLinks of such a GPU, each way, in GB/s: links x
// NCCL's rate of one.
struct Generation {
  double nvlinks;
  std::int64_t compute_capability;
};
constexpr std::array<Generation, 6> kGenerations{
    {{0, 0}, {4 * 18.0, 60}, {6 * 20.0, 70}, {12 * 20.0, 80}, {18 * 20.6, 90}, {18 * 40.1, 100}}};

// Returns the generation of an xpu as an index of the table above, or 0 where it is unknown.
std::size_t generation_of_xpu(std::string_view xpu) {
  constexpr std::array<std::pair<std::string_view, std::size_t>, 12> kByName{{{"p100", 1},
                                                                              {"v100", 2},
                                                                              {"a100", 3},
                                                                              {"a800", 3},
                                                                              {"h100", 4},
                                                                              {"h200", 4},
                                                                              {"h800", 4},
                                                                              {"h20", 4},
                                                                              {"hopper", 4},
                                                                              {"b200", 5},
                                                                              {"b300", 5},
                                                                              {"blackwell", 5}}};
  for (const auto& [name, generation] : kByName) {
    if (xpu.find(name) != std::string_view::npos) return generation;
  }
  return 0;
}

std::size_t generation_of_nvlink(std::string_view link) {
  const int generation = number_after(link, "nvlink");
  return generation < static_cast<int>(kGenerations.size()) ? static_cast<std::size_t>(generation) : 0;
}

BitRate giga_bytes(double rate) { return static_cast<BitRate>(rate * 8e9 + 0.5); }

BitRate nvlink_rate(std::string_view link, std::string_view xpu) {  // 0: unknown
  const bool numbered = number_after(link, "nvlink") > 0;
  return giga_bytes(kGenerations[numbered ? generation_of_nvlink(link) : generation_of_xpu(xpu)].nvlinks);
}

// Returns the usable rate of one xGMI link between two Instinct GPUs, each way, as RCCL counts it; 0:
// unknown. (src/graph/topo.h: VEGA_, MI200_ and GFX94X_XGMI_WIDTH.)
BitRate xgmi_rate(std::string_view xpu) {
  constexpr std::array<std::pair<std::string_view, double>, 7> kByName{{{"mi300", 48},
                                                                        {"mi325", 48},
                                                                        {"mi350", 48},
                                                                        {"mi355", 48},
                                                                        {"mi210", 36},
                                                                        {"mi250", 36},
                                                                        {"mi100", 24}}};
  for (const auto& [name, rate] : kByName) {
    if (xpu.find(name) != std::string_view::npos) return giga_bytes(rate);
  }
  return 0;
}

// Returns the usable rate of a PCIe link. The raw rate is in whole Gb/s, as in host_links.h.
BitRate usable_pcie(double gigatransfers, int lanes) {
  const double coded = gigatransfers <= 5 ? 0.8 : gigatransfers <= 32 ? 128.0 / 130 : 236.0 / 256;
  PcieParameters pcie;
  pcie.pcie_rate = static_cast<BitRate>(gigatransfers * lanes * coded + 0.5) * kGbps;
  return pcie.pcie().rate;
}

int pcie_lanes(std::string_view text) {
  for (const int lanes : {16, 8, 4, 2, 1}) {
    if (number_after(text, "x") == lanes) return lanes;
  }
  return 16;
}

BitRate pcie_rate(std::string_view text) {  // 0: unknown
  constexpr std::array<double, 7> kGigatransfers{0, 2.5, 5, 8, 16, 32, 64};
  const int generation = number_after(text, "gen");
  if (generation <= 0 || generation >= static_cast<int>(kGigatransfers.size())) return 0;
  return usable_pcie(kGigatransfers[static_cast<std::size_t>(generation)], pcie_lanes(text));
}

// ---- Nodes and links with their descriptions

struct Wire {
  std::string text;  // name and description
  std::optional<BitRate> rate;
  std::optional<Time> delay;
};

struct Part {
  DescribedCluster::Kind kind = DescribedCluster::Kind::other;
  std::string text;  // name and description
};

std::int64_t compute_capability_of(const Part& part) {
  return part.kind == DescribedCluster::Kind::xpu
             ? kGenerations[generation_of_xpu(part.text)].compute_capability
             : 0;
}

bool is_pcie(std::string_view text) { return has_any(text, {"pci", "cxl"}); }

bool is_scale_up(const Wire& wire, const Part& a, const Part& b) {
  const auto may = [](const Part& part) {
    return part.kind == DescribedCluster::Kind::xpu || part.kind == DescribedCluster::Kind::network_switch;
  };
  if (!may(a) || !may(b) || is_pcie(wire.text)) return false;
  const auto carries = [](std::string_view text) {
    return has_any(text, {"nvlink", "nvsw", "nvl", "xgmi", "infinity", "ualink", "scale-up", "scale_up"});
  };
  if (carries(wire.text)) return true;
  for (const Part* part : {&a, &b}) {
    if (part->kind == DescribedCluster::Kind::network_switch && is_pcie(part->text)) return false;
  }
  return a.kind == DescribedCluster::Kind::xpu || b.kind == DescribedCluster::Kind::xpu || carries(a.text) ||
         carries(b.text);
}

// Sets the generation of the xpus of a link "nvlink_4" if nothing else determines it.
void learn_generation(const DescribedCluster::Link& link, const Wire& wire, DescribedCluster& cluster) {
  const std::size_t generation = link.scale_up ? generation_of_nvlink(wire.text) : 0;
  if (generation == 0) return;
  for (const std::uint32_t end : {link.a, link.b}) {
    DescribedCluster::Node& node = cluster.nodes[end];
    if (node.kind == DescribedCluster::Kind::xpu && node.compute_capability == 0)
      node.compute_capability = kGenerations[generation].compute_capability;
  }
}

DescribedCluster::Link described(std::uint32_t at_a, std::uint32_t at_b, const Wire& wire, const Part& a,
                                 const Part& b, bool inside, const Place& place) {
  DescribedCluster::Link link{at_a,       at_b, inside && is_scale_up(wire, a, b), wire.rate, {},
                              wire.delay, place};
  if (link.rate || !inside) return link;
  const bool of_xpu = a.kind == DescribedCluster::Kind::xpu || b.kind == DescribedCluster::Kind::xpu;
  if (link.scale_up) {
    const std::string& xpu = a.kind == DescribedCluster::Kind::xpu ? a.text : b.text;
    const BitRate together = nvlink_rate(wire.text, xpu), each = xgmi_rate(xpu);
    if (together != 0) link.together = together;
    const bool direct = a.kind == DescribedCluster::Kind::xpu && b.kind == DescribedCluster::Kind::xpu;
    if (together == 0 && each != 0 && direct) link.rate = each;
  } else if (of_xpu && (a.kind == DescribedCluster::Kind::cpu || b.kind == DescribedCluster::Kind::cpu) &&
             has_any(wire.text, {"c2c"})) {
    link.rate = 8 * 225 * kGbps;
  } else if (a.kind != DescribedCluster::Kind::cpu || b.kind != DescribedCluster::Kind::cpu) {
    BitRate rate = pcie_rate(wire.text);
    for (const Part* part : {&a, &b}) {
      if (rate == 0 && is_pcie(part->text)) rate = pcie_rate(part->text);
    }
    if (rate != 0) link.rate = rate;
  }
  return link;
}

// Returns the kind of a component by its `choice`.
DescribedCluster::Kind kind_of(std::string_view choice) {
  return choice == "xpu"      ? DescribedCluster::Kind::xpu
         : choice == "cpu"    ? DescribedCluster::Kind::cpu
         : choice == "nic"    ? DescribedCluster::Kind::nic
         : choice == "switch" ? DescribedCluster::Kind::network_switch
                              : DescribedCluster::Kind::other;
}

// Returns the kind of a component by its type. InfraGraph's translator of NCCL's files writes NVSwitches as
// components of choice `custom` and type `switch`.
DescribedCluster::Kind kind_of_custom(const std::string& type) {
  const std::string lowered = lower(type);
  if (lowered == "gpu" || lowered == "npu") return DescribedCluster::Kind::xpu;
  return lowered.ends_with("switch") ? DescribedCluster::Kind::network_switch : kind_of(lowered);
}

// ---- Readings of the document

const ConfigNode& needed(const ConfigNode& map, const char* key) {
  if (!map.is_map()) map.fail("a map is expected");
  const ConfigNode* found = map.find(key);
  if (found == nullptr || found->is_null()) map.fail(std::string("'") + key + "' is missing");
  return *found;
}

const std::vector<ConfigNode>& list_in(const ConfigNode& map, const char* key) {
  static const std::vector<ConfigNode> none;
  const ConfigNode* found = map.find(key);
  if (found == nullptr || found->is_null()) return none;
  if (!found->is_sequence()) found->fail("a list is expected");
  return found->items();
}

std::string text_in(const ConfigNode& map, const char* key) {
  const ConfigNode* found = map.find(key);
  return found == nullptr || found->is_null() ? "" : read_text(*found);
}

std::string name_in(const ConfigNode& map, const char* key = "name") {
  const ConfigNode& node = needed(map, key);
  std::string name = read_text(node);
  if (name.empty() || name.find_first_of(".[]: \t") != std::string::npos)
    node.fail("'" + name + "' is no name: some text without '.', ':', brackets and blanks is expected");
  return name;
}

// Returns a link's name. It may be any text ("AMD Infinity Fabric"), because no path refers to a link.
std::string link_name_in(const ConfigNode& map) {
  const ConfigNode& node = needed(map, "name");
  std::string name = read_text(node);
  if (name.empty()) node.fail("a link's name is some text");
  return name;
}

[[noreturn]] void fail_as_old(const ConfigNode& at, const char* expected) {
  at.fail(std::string("this is InfraGraph before its version 1.0; `") + expected + "` are expected");
}

std::uint32_t count_in(const ConfigNode& map) {
  const ConfigNode& node = needed(map, "count");
  const std::int64_t count = read_integer(node);
  if (count < 1 || count > kMaxHostPorts) out_of_range(node, "1", std::to_string(kMaxHostPorts));
  return static_cast<std::uint32_t>(count);
}

template <class Things>
[[noreturn]] void unknown(const ConfigNode& at, const std::string& name, const Things& things,
                          const std::string& what) {
  std::vector<std::string> names;
  std::string list;
  for (const auto& [known, value] : things) {
    if (names.size() < 16) list += (names.empty() ? "" : ", ") + known;
    names.push_back(known);
  }
  if (names.size() > 16) list += ", ...";
  const std::string near = nearest(name, names);
  at.fail("'" + name + "' is no " + what + " (there are: " + (list.empty() ? "none" : list) + ")" +
          (near.empty() ? "" : ", did you mean '" + near + "'?"));
}

double positive(const ConfigNode& node) {
  const double value = read_real(node);
  if (value <= 0) node.fail(node.text() + "; a number above 0 is expected");
  return value;
}

BitRate rate_of(const ConfigNode& at, double bits) {
  const bool fits =
      bits >= static_cast<double>(kLinkRates.minimum) && bits <= static_cast<double>(kLinkRates.maximum);
  if (!fits) out_of_range(at, format_rate(kLinkRates.minimum), format_rate(kLinkRates.maximum));
  return static_cast<BitRate>(bits + 0.5);
}

Time delay_of(const ConfigNode& at, double picoseconds) {
  const bool fits = picoseconds >= static_cast<double>(kFabricDelays.minimum) &&
                    picoseconds <= static_cast<double>(kFabricDelays.maximum);
  if (!fits) out_of_range(at, format_time(kFabricDelays.minimum), format_time(kFabricDelays.maximum));
  return static_cast<Time>(picoseconds + 0.5);
}

// Returns the entry's unit and figure. It is {choice: NAME, NAME: figure}, or {NAME: figure}.
std::pair<std::string, const ConfigNode*> chosen(const ConfigNode& map,
                                                 const std::vector<std::string>& names) {
  std::vector<std::string> allowed = names;
  allowed.emplace_back("choice");
  map.allow_keys(allowed);
  const ConfigNode* choice = map.find("choice");
  for (const std::string& name : names) {
    const ConfigNode* figure = map.find(name);
    if (figure != nullptr && (choice == nullptr || read_text(*choice) == name)) return {name, figure};
  }
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  (choice != nullptr ? *choice : map).fail("one of " + list + " is expected, with its figure");
}

BitRate bandwidth_of(const ConfigNode& node, const std::string& text) {
  const auto [unit, figure] =
      chosen(node, {"gigabits_per_second", "gigabytes_per_second", "gigatransfers_per_second"});
  const double value = positive(*figure);
  if (unit == "gigatransfers_per_second")
    return rate_of(*figure, static_cast<double>(usable_pcie(value, pcie_lanes(text))));
  return rate_of(*figure, value * (unit == "gigabits_per_second" ? 1e9 : 8e9));
}

Time latency_of(const ConfigNode& node) {
  const auto [unit, figure] = chosen(node, {"ms", "us", "ns"});
  const double factor = unit == "ms" ? 1e9 : unit == "us" ? 1e6 : 1e3;
  return delay_of(*figure, positive(*figure) * factor);
}

using Wires = std::map<std::string, Wire>;

Wires wires_of(const ConfigNode& owner) {
  Wires wires;
  for (const ConfigNode& item : list_in(owner, "links")) {
    const std::string name = link_name_in(item);
    if (const ConfigNode* old = item.find("bandwidth")) fail_as_old(*old, "physical properties");
    item.allow_keys({"name", "description", "physical"});
    Wire wire;
    wire.text = lower(name + " " + text_in(item, "description"));
    if (const ConfigNode* physical = item.find("physical"); physical != nullptr && !physical->is_null()) {
      physical->allow_keys({"bandwidth", "latency"});
      if (const ConfigNode* rate = physical->find("bandwidth"); rate != nullptr && !rate->is_null())
        wire.rate = bandwidth_of(*rate, wire.text);
      if (const ConfigNode* delay = physical->find("latency"); delay != nullptr && !delay->is_null())
        wire.delay = latency_of(*delay);
    }
    if (!wires.emplace(name, std::move(wire)).second) item.fail("a second link '" + name + "'");
  }
  return wires;
}

// One step of a path, "nic", "nic[3]" or "nic[a:b:c]", as a name and the text in the brackets.
struct Step {
  std::string name;
  std::optional<std::string> index;
};

std::vector<Step> steps_of(const ConfigNode& at, const std::string& text) {
  std::vector<Step> steps;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('.', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t open = part.find('[');
    Step step{part.substr(0, open), {}};
    if (open != std::string::npos) {
      if (!part.ends_with("]")) at.fail("'" + text + "': a ']' is missing");
      step.index = part.substr(open + 1, part.size() - open - 2);
    }
    if (step.name.empty())
      at.fail("'" + text + "': a name is missing; NAME, NAME[3] or NAME[0:4] is expected");
    steps.push_back(std::move(step));
  }
  return steps;
}

// Returns one number of an index or slice; none where it is empty.
std::optional<std::uint32_t> number_of(const ConfigNode& at, const std::string& text,
                                       const std::string& index) {
  const auto is_blank = [](char c) { return c == ' '; };
  std::string digits = text;
  std::erase_if(digits, is_blank);
  if (digits.empty()) return std::nullopt;
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size())
    at.fail("'[" + index + "]' is no index: [3] or a slice [begin:end:step] of numbers from 0 is expected");
  return value;
}

// Returns the indices below `count` that a step selects.
std::vector<std::uint32_t> indices_of(const ConfigNode& at, const Step& step, std::uint32_t count) {
  std::vector<std::uint32_t> result;
  const std::string index = step.index.value_or(":");
  std::array<std::optional<std::uint32_t>, 3> parts;
  std::size_t colons = 0, begin = 0;
  for (std::size_t i = 0; i <= index.size(); ++i) {
    if (i < index.size() && index[i] != ':') continue;
    if (colons == 3) at.fail("'[" + index + "]' has more than begin, end and step");
    parts[colons++] = number_of(at, index.substr(begin, i - begin), index);
    begin = i + 1;
  }
  const std::string there = "there " + std::string(count == 1 ? "is" : "are") + " " + std::to_string(count) +
                            " of '" + step.name + "'";
  if (colons == 1) {
    if (!parts[0]) at.fail("'[]' is no index: [3] or a slice [begin:end:step] is expected");
    if (*parts[0] >= count) at.fail("'[" + index + "]': " + there + ", numbered from 0");
    return {*parts[0]};
  }
  const std::uint32_t from = parts[0].value_or(0), to = parts[1].value_or(count), by = parts[2].value_or(1);
  if (by == 0) at.fail("'[" + index + "]': the step is 0; another number is expected");
  if (to > count) at.fail("'[" + index + "]': " + there);
  if (from >= to) at.fail("'[" + index + "]' selects nothing");
  for (std::uint64_t i = from; i < to; i += by) result.push_back(static_cast<std::uint32_t>(i));
  return result;
}

enum class Scheme : std::uint8_t { one2one, many2many, ring };

Scheme scheme_of(const ConfigNode& edge) {
  const ConfigNode& node = needed(edge, "scheme");
  const std::string name = read_text(node);
  if (name == "one2one") return Scheme::one2one;
  if (name == "many2many") return Scheme::many2many;
  if (name == "ring") return Scheme::ring;
  node.fail("'" + name + "' is none of one2one, many2many, ring");
}

// Calls join(a, b) for each pair of the scheme, except pairs of a node with itself.
template <class Join>
void join_by(Scheme scheme, const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b,
             Join join) {
  const auto pair = [&](std::uint32_t from, std::uint32_t to) {
    if (from != to) join(from, to);
  };
  const std::size_t shorter = std::min(a.size(), b.size());
  switch (scheme) {
    case Scheme::one2one:
      for (std::size_t i = 0; i < shorter; ++i) pair(a[i], b[i]);
      return;
    case Scheme::many2many:
      for (const std::uint32_t from : a) {
        for (const std::uint32_t to : b) pair(from, to);
      }
      return;
    case Scheme::ring:
      for (std::size_t i = 0; i < shorter; ++i) pair(a[i], b[(i + 1) % shorter]);
      return;
  }
}

// ---- Devices

struct Device;

struct Component {
  std::uint32_t first = 0, count = 0;  // index of its first node in the device, and number of copies
  const Device* device = nullptr;      // for choice `device`
  std::uint32_t size() const;          // number of nodes of one copy
};

struct Edge {
  std::uint32_t a, b;
  const Wire* wire;
  Place place;
};

// A set of edges. Edges between the same two nodes are one; the last one counts.
class EdgeSet {
 public:
  void add(Edge edge, const ConfigNode& at) {
    const std::uint64_t key = std::uint64_t{std::min(edge.a, edge.b)} << 32 | std::max(edge.a, edge.b);
    const auto [known, made] = known_.emplace(key, edges_.size());
    if (edges_.size() >= kMostEdges) at.fail("more than " + std::to_string(kMostEdges) + " edges");
    if (made) {
      edges_.push_back(std::move(edge));
    } else {
      edges_[known->second] = std::move(edge);
    }
  }
  const std::vector<Edge>& edges() const { return edges_; }

 private:
  std::vector<Edge> edges_;
  std::unordered_map<std::uint64_t, std::size_t> known_;
};

// A device, including the contents of the devices inside it.
struct Device {
  std::map<std::string, Component> components;
  std::vector<Part> parts;         // its nodes
  std::vector<std::string> names;  // names of its nodes, without the instance's
  Wires wires;
  EdgeSet edges;
};

std::uint32_t Component::size() const {
  return device == nullptr ? 1 : static_cast<std::uint32_t>(device->parts.size());
}

class Devices {
 public:
  explicit Devices(const std::vector<ConfigNode>& list) {
    for (const ConfigNode& item : list) {
      if (!nodes_.emplace(name_in(item), &item).second) item.fail("a second device '" + name_in(item) + "'");
    }
  }

  // Returns the device of that name; `at` is the place of an error.
  const Device& get(const std::string& name, const ConfigNode& at) {
    if (const auto made = made_.find(name); made != made_.end()) return made->second;
    const auto node = nodes_.find(name);
    if (node == nodes_.end()) unknown(at, name, nodes_, "device");
    if (std::find(open_.begin(), open_.end(), name) != open_.end()) {
      std::string way;
      for (const std::string& outer : open_) way += outer + " holds ";
      at.fail("a device holds itself: " + way + name);
    }
    open_.push_back(name);
    Device device;
    read(*node->second, device);
    open_.pop_back();
    return made_.emplace(name, std::move(device)).first->second;
  }

  // Reads all devices, so that errors in devices without instances are found too.
  void read_all() {
    for (const auto& [name, node] : nodes_) get(name, *node);
  }

  // Returns the nodes that a path of components selects, e.g. card[1].port.
  static std::vector<std::uint32_t> choose(const Device& device, const std::vector<Step>& steps,
                                           const ConfigNode& at, std::size_t from = 0) {
    const Step& step = steps[from];
    const auto found = device.components.find(step.name);
    if (found == device.components.end()) unknown(at, step.name, device.components, "component");
    const Component& component = found->second;
    if (component.device == nullptr && from + 1 < steps.size())
      at.fail("'" + step.name + "' is no device: no component can follow it");
    if (component.device != nullptr && from + 1 == steps.size())
      at.fail("'" + step.name + "' is a device: one of its components is expected after it, " + step.name +
              ".NAME");
    std::vector<std::uint32_t> result, inner{0};
    if (component.device != nullptr) inner = choose(*component.device, steps, at, from + 1);
    for (const std::uint32_t index : indices_of(at, step, component.count)) {
      for (const std::uint32_t node : inner)
        result.push_back(component.first + index * component.size() + node);
    }
    return result;
  }

 private:
  void read(const ConfigNode& node, Device& device) {
    if (const ConfigNode* old = node.find("connections")) fail_as_old(*old, "edges");
    node.allow_keys({"name", "description", "components", "links", "edges"});
    for (const ConfigNode& item : list_in(node, "components")) add_component(item, device);
    device.wires = wires_of(node);
    for (const ConfigNode& item : list_in(node, "edges")) add_edges(item, device);
  }

  void add_component(const ConfigNode& item, Device& device) {
    const std::string name = name_in(item);
    const ConfigNode* old = item.find("type");
    if (old != nullptr && item.find("choice") == nullptr) fail_as_old(*old, "components with a choice");
    item.allow_keys({"name", "description", "count", "choice", "custom", "device", "cpu", "xpu", "nic",
                     "memory", "port", "switch"});
    Component component;
    component.first = static_cast<std::uint32_t>(device.parts.size());
    component.count = count_in(item);
    const ConfigNode& choice = needed(item, "choice");
    const std::string chosen = read_text(choice);
    if (chosen == "device") component.device = &get(name, *item.find("name"));
    const bool known =
        has_any("|custom|device|cpu|xpu|nic|memory|port|switch|", {"|" + chosen + "|"}) && !chosen.empty();
    if (!known)
      choice.fail("'" + chosen + "' is none of custom, device, cpu, xpu, nic, memory, port, switch");
    if (std::uint64_t{component.count} * component.size() + device.parts.size() > kMostNodes)
      item.fail("more than " + std::to_string(kMostNodes) + " components");
    const ConfigNode* custom = chosen == "custom" ? item.find("custom") : nullptr;
    const std::string type = custom != nullptr && custom->is_map() ? text_in(*custom, "type") : "";
    const Part part{type.empty() ? kind_of(chosen) : kind_of_custom(type),
                    lower(name + " " + text_in(item, "description") + (type.empty() ? "" : " " + type))};
    for (std::uint32_t i = 0; i < component.count; ++i) {
      const std::string numbered = name + "." + std::to_string(i);
      if (component.device == nullptr) {
        device.parts.push_back(part);
        device.names.push_back(numbered);
        continue;
      }
      const auto base = static_cast<std::uint32_t>(device.parts.size());
      const Device& inner = *component.device;
      device.parts.insert(device.parts.end(), inner.parts.begin(), inner.parts.end());
      for (const std::string& inner_name : inner.names) device.names.push_back(numbered + "." + inner_name);
      for (const Edge& edge : inner.edges.edges())
        device.edges.add({base + edge.a, base + edge.b, edge.wire, edge.place}, item);
    }
    if (!device.components.emplace(name, component).second) item.fail("a second component '" + name + "'");
  }

  static std::vector<std::uint32_t> end_of(const ConfigNode& edge, const char* key, const Device& device) {
    const ConfigNode& end = needed(edge, key);
    if (!end.is_map()) end.fail("{component: NAME[index]} is expected");
    end.allow_keys({"device", "component"});
    const ConfigNode& component = needed(end, "component");
    std::string path = text_in(end, "device");
    path += (path.empty() ? "" : ".") + read_text(component);
    return choose(device, steps_of(component, path), component);
  }

  static void add_edges(const ConfigNode& item, Device& device) {
    item.allow_keys({"ep1", "ep2", "scheme", "link"});
    const ConfigNode& link = needed(item, "link");
    const auto wire = device.wires.find(read_text(link));
    if (wire == device.wires.end()) unknown(link, read_text(link), device.wires, "link of this device");
    const auto a = end_of(item, "ep1", device), b = end_of(item, "ep2", device);
    join_by(scheme_of(item), a, b, [&](std::uint32_t from, std::uint32_t to) {
      device.edges.add({from, to, &wire->second, item.place()}, item);
    });
  }

  std::map<std::string, const ConfigNode*> nodes_;
  std::map<std::string, Device> made_;
  std::vector<std::string> open_;  // devices being read, the outermost first
};

// ---- Infrastructures

class InfrastructureReader {
 public:
  InfrastructureReader(const ConfigNode& infrastructure, const std::string& file)
      : root_(infrastructure), devices_(list_in(infrastructure, "devices")) {
    cluster_.file = file;
    root_.allow_keys({"name", "description", "devices", "links", "instances", "edges"});
    devices_.read_all();
    wires_ = wires_of(root_);
    for (const ConfigNode& item : list_in(root_, "instances")) add_instances(item);
    for (const ConfigNode& item : list_in(root_, "edges")) add_edges(item);
    add_links();
  }

  DescribedCluster take() { return std::move(cluster_); }

 private:
  struct Instances {
    const Device* device;
    std::uint32_t first, count;  // index of the first node, and number of instances
    std::uint32_t size() const { return static_cast<std::uint32_t>(device->parts.size()); }
  };

  void add_instances(const ConfigNode& item) {
    const std::string name = name_in(item);
    item.allow_keys({"name", "description", "device", "count"});
    const ConfigNode& kind = needed(item, "device");
    const Device& device = devices_.get(read_text(kind), kind);
    const Instances instances{&device, static_cast<std::uint32_t>(cluster_.nodes.size()), count_in(item)};
    if (std::uint64_t{instances.count} * instances.size() + cluster_.nodes.size() > kMostNodes)
      item.fail("more than " + std::to_string(kMostNodes) + " components of instances");
    if (!instances_.emplace(name, instances).second) item.fail("a second instance '" + name + "'");
    for (std::uint32_t i = 0; i < instances.count; ++i)
      add_unit(name + "." + std::to_string(i), read_text(kind), device, item);
  }

  void add_unit(const std::string& name, const std::string& kind, const Device& device,
                const ConfigNode& item) {
    const auto unit = static_cast<std::uint32_t>(cluster_.units.size());
    const auto base = static_cast<std::uint32_t>(cluster_.nodes.size());
    cluster_.units.push_back({name, kind, base, static_cast<std::uint32_t>(device.parts.size())});
    for (std::size_t i = 0; i < device.parts.size(); ++i) {
      cluster_.nodes.push_back({.kind = device.parts[i].kind,
                                .name = name + "." + device.names[i],
                                .unit = unit,
                                .compute_capability = compute_capability_of(device.parts[i])});
      parts_.push_back(&device.parts[i]);
    }
    for (const Edge& edge : device.edges.edges())
      edges_.add({base + edge.a, base + edge.b, edge.wire, edge.place}, item);
  }

  std::vector<std::uint32_t> end_of(const ConfigNode& edge, const char* key) const {
    const ConfigNode& end = needed(edge, key);
    if (!end.is_map()) end.fail("{instance: NAME[index], component: NAME[index]} is expected");
    end.allow_keys({"instance", "component"});
    const ConfigNode &instance = needed(end, "instance"), &component = needed(end, "component");
    const std::vector<Step> steps = steps_of(instance, read_text(instance));
    if (steps.size() != 1)
      instance.fail("'" + read_text(instance) + "' is no instance; NAME[index] is expected");
    const auto found = instances_.find(steps[0].name);
    if (found == instances_.end()) unknown(instance, steps[0].name, instances_, "instance");
    const auto nodes =
        Devices::choose(*found->second.device, steps_of(component, read_text(component)), component);
    std::vector<std::uint32_t> result;
    for (const std::uint32_t index : indices_of(instance, steps[0], found->second.count)) {
      for (const std::uint32_t node : nodes)
        result.push_back(found->second.first + index * found->second.size() + node);
    }
    return result;
  }

  void add_edges(const ConfigNode& item) {
    item.allow_keys({"ep1", "ep2", "scheme", "link"});
    const ConfigNode& link = needed(item, "link");
    const auto wire = wires_.find(read_text(link));
    if (wire == wires_.end()) unknown(link, read_text(link), wires_, "link of the infrastructure");
    const auto a = end_of(item, "ep1"), b = end_of(item, "ep2");
    join_by(scheme_of(item), a, b, [&](std::uint32_t from, std::uint32_t to) {
      edges_.add({from, to, &wire->second, item.place()}, item);
    });
  }

  void add_links() {
    for (const Edge& edge : edges_.edges()) {
      const bool inside = cluster_.nodes[edge.a].unit == cluster_.nodes[edge.b].unit;
      cluster_.links.push_back(
          described(edge.a, edge.b, *edge.wire, *parts_[edge.a], *parts_[edge.b], inside, edge.place));
      learn_generation(cluster_.links.back(), *edge.wire, cluster_);
    }
  }

  const ConfigNode& root_;
  Devices devices_;
  Wires wires_;
  std::map<std::string, Instances> instances_;
  std::vector<const Part*> parts_;  // by node
  EdgeSet edges_;
  DescribedCluster cluster_;
};

std::int64_t rank_of(const ConfigNode& node) {
  const std::int64_t rank = read_integer(node);
  if (rank < 0 || rank > kMaxHostPorts) out_of_range(node, "0", std::to_string(kMaxHostPorts));
  return rank;
}

// Sets the rate of NVLinks for which neither figures nor names give it, by the compute capability of the GPU.
void rate_by_capability(DescribedCluster& cluster) {
  for (DescribedCluster::Link& link : cluster.links) {
    if (!link.scale_up || link.rate || link.together) continue;
    const DescribedCluster::Node &a = cluster.nodes[link.a], &b = cluster.nodes[link.b];
    const std::int64_t capability =
        a.kind == DescribedCluster::Kind::xpu ? a.compute_capability : b.compute_capability;
    const auto known = std::find_if(kGenerations.rbegin(), kGenerations.rend(), [&](const Generation& one) {
      return one.compute_capability <= capability;
    });
    if (known->nvlinks > 0) link.together = giga_bytes(known->nvlinks);
  }
}

// Reads `rank` and `sm` of xpus, and `speed` of NICs (Mb/s), as the translator of NCCL's files writes them.
void read_annotations(const ConfigNode& annotations, DescribedCluster& cluster) {
  std::map<std::string, DescribedCluster::Node*> by_name;
  for (DescribedCluster::Node& node : cluster.nodes) by_name.emplace(node.name, &node);
  for (const ConfigNode& item : list_in(annotations, "nodes")) {
    const ConfigNode& name = needed(item, "name");
    const auto node = by_name.find(read_text(name));
    if (node == by_name.end()) name.fail("'" + read_text(name) + "' is no node of the infrastructure");
    for (const ConfigNode& attribute : list_in(item, "attributes")) {
      const std::string what = text_in(attribute, "attribute");
      DescribedCluster::Node& annotated = *node->second;
      if (what == "rank") annotated.rank = rank_of(needed(attribute, "value"));
      if (what == "sm" && annotated.kind == DescribedCluster::Kind::xpu) {
        const ConfigNode& value = needed(attribute, "value");
        annotated.compute_capability = read_integer(value);
        if (annotated.compute_capability < 1 || annotated.compute_capability > 100'000)
          out_of_range(value, "1", "100000");
      }
      if (what == "speed" && annotated.kind == DescribedCluster::Kind::nic) {
        const ConfigNode& value = needed(attribute, "value");
        annotated.nic_rate = rate_of(value, static_cast<double>(read_integer(value)) * 1e6);
      }
    }
  }
}

// Reads a Device alone: one instance of it, with its name.
DescribedCluster read_device(const ConfigNode& device, const std::string& file) {
  const Place& place = device.place();
  ConfigNode root = ConfigNode::map(place), devices = ConfigNode::sequence(place),
             instances = ConfigNode::sequence(place), instance = ConfigNode::map(place);
  devices.push_back(device);
  const std::string name = name_in(device);
  instance.at_or_add("name") = ConfigNode::scalar(name, place);
  instance.at_or_add("device") = ConfigNode::scalar(name, place);
  instance.at_or_add("count") = ConfigNode::scalar("1", place);
  instances.push_back(std::move(instance));
  root.at_or_add("devices") = std::move(devices);
  root.at_or_add("instances") = std::move(instances);
  return InfrastructureReader(root, file).take();
}

// ---- networkx's node-link form

// Returns the number and the unit of a figure such as "100 Gbps", "25 GBps", "32 GT/s" or "250 ns".
std::pair<double, std::string> figure_of(const ConfigNode& node) {
  const std::string text = read_text(node);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !(value > 0))
    node.fail("'" + text + "': a number above 0 and its unit are expected");
  std::string unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  std::erase(unit, ' ');
  return {value, unit};
}

class NodeLinkReader {
 public:
  NodeLinkReader(const ConfigNode& root, const std::string& file) {
    cluster_.file = file;
    find_units(root);
    for (const ConfigNode* item : items_) add_node(*item);
    const char* key = root.find("edges") != nullptr ? "edges" : "links";
    for (const ConfigNode& item : list_in(root, key)) add_edge(item);
  }
  DescribedCluster take() { return std::move(cluster_); }

 private:
  // Groups the nodes by unit. Nodes of one unit have names with the same beginning ("host.0."), and become
  // consecutive.
  void find_units(const ConfigNode& root) {
    std::vector<std::pair<std::size_t, const ConfigNode*>> nodes;
    for (const ConfigNode& item : list_in(root, "nodes")) {
      const ConfigNode& id = needed(item, "id");
      const std::string name = read_text(id);
      const std::size_t dot = name.find('.'), end = dot == std::string::npos ? dot : name.find('.', dot + 1);
      if (end == std::string::npos) id.fail("'" + name + "' is no node: INSTANCE.0.COMPONENT.0 is expected");
      const auto unit = units_.emplace(name.substr(0, end), units_.size()).first;
      nodes.emplace_back(unit->second, &item);
    }
    std::stable_sort(nodes.begin(), nodes.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [unit, item] : nodes) items_.push_back(item);
    cluster_.units.resize(units_.size());
    for (const auto& [name, unit] : units_) cluster_.units[unit].name = name;
    for (const auto& [unit, item] : nodes) unit_of_.push_back(static_cast<std::uint32_t>(unit));
  }

  void add_node(const ConfigNode& item) {
    const auto number = static_cast<std::uint32_t>(cluster_.nodes.size());
    const std::string name = read_text(needed(item, "id"));
    DescribedCluster::Unit& unit = cluster_.units[unit_of_[number]];
    if (unit.nodes++ == 0) {
      unit.first = number;
      unit.kind = text_in(item, "device");
    }
    const Part part{kind_of_custom(text_in(item, "type")), lower(name.substr(unit.name.size() + 1))};
    cluster_.nodes.push_back({.kind = part.kind,
                              .name = name,
                              .unit = unit_of_[number],
                              .compute_capability = compute_capability_of(part)});
    parts_.push_back(part);
    if (const ConfigNode* rank = item.find("rank"); rank != nullptr && !rank->is_null())
      cluster_.nodes.back().rank = rank_of(*rank);
    if (!by_name_.emplace(name, number).second) item.fail("a second node '" + name + "'");
  }

  std::uint32_t end_of(const ConfigNode& item, const char* key) const {
    const ConfigNode& name = needed(item, key);
    const auto node = by_name_.find(read_text(name));
    if (node == by_name_.end()) unknown(name, read_text(name), by_name_, "node");
    return node->second;
  }

  void add_edge(const ConfigNode& item) {
    Wire wire;
    wire.text = lower(text_in(item, "link"));
    if (const ConfigNode* rate = item.find("bandwidth"); rate != nullptr && !rate->is_null()) {
      const auto [value, unit] = figure_of(*rate);
      if (unit == "Gbps") wire.rate = rate_of(*rate, value * 1e9);
      if (unit == "GBps") wire.rate = rate_of(*rate, value * 8e9);
      if (unit == "GT/s")
        wire.rate = rate_of(*rate, static_cast<double>(usable_pcie(value, pcie_lanes(wire.text))));
      if (!wire.rate) rate->fail("'" + read_text(*rate) + "': Gbps, GBps or GT/s is expected");
    }
    if (const ConfigNode* delay = item.find("latency"); delay != nullptr && !delay->is_null()) {
      const auto [value, unit] = figure_of(*delay);
      const double factor = unit == "ms" ? 1e9 : unit == "us" ? 1e6 : unit == "ns" ? 1e3 : 0;
      if (factor == 0) delay->fail("'" + read_text(*delay) + "': ms, us or ns is expected");
      wire.delay = delay_of(*delay, value * factor);
    }
    const std::uint32_t a = end_of(item, "source"), b = end_of(item, "target");
    if (a == b) return;
    const std::uint64_t key = std::uint64_t{std::min(a, b)} << 32 | std::max(a, b);
    if (!joined_.emplace(key, 0).second) item.fail("a second edge between these nodes");
    const bool inside = unit_of_[a] == unit_of_[b];
    cluster_.links.push_back(described(a, b, wire, parts_[a], parts_[b], inside, item.place()));
    learn_generation(cluster_.links.back(), wire, cluster_);
  }

  std::map<std::string, std::size_t> units_;
  std::vector<const ConfigNode*> items_;
  std::vector<std::uint32_t> unit_of_;  // by node
  std::vector<Part> parts_;
  std::map<std::string, std::uint32_t> by_name_;
  std::unordered_map<std::uint64_t, int> joined_;
  DescribedCluster cluster_;
};

}  // namespace

DescribedCluster read_infragraph(const ConfigNode& document, const std::string& file) {
  const ConfigNode* inner = document.find("infrastructure");
  const ConfigNode& root = inner != nullptr ? *inner : document;
  if (const ConfigNode* old = root.find("connections")) fail_as_old(*old, "edges");
  if (const ConfigNode* old = document.find("device")) fail_as_old(*old, "devices");
  if (inner != nullptr) {
    document.allow_keys({"infrastructure", "annotations"});
    DescribedCluster cluster = InfrastructureReader(*inner, file).take();
    if (const ConfigNode* notes = document.find("annotations"); notes != nullptr && !notes->is_null())
      read_annotations(*notes, cluster);
    rate_by_capability(cluster);
    return cluster;
  }
  if (document.find("components") != nullptr) return read_device(document, file);
  if (document.find("nodes") != nullptr) return NodeLinkReader(document, file).take();
  return InfrastructureReader(document, file).take();
}

DescribedCluster read_infragraph_file(const ConfigNode& where) {
  const InputText input = read_named_file(where);
  const Format* format = recognise(input.text, input.path);
  return as_input([&] {
    if (format != nullptr && format->name == "infragraph_pb")
      return read_infragraph(parse_infragraph_message(input.text, input.path), input.path);
    require_format(input.text, input.path, "infragraph");
    return read_infragraph(parse_config(input.text, input.path), input.path);
  });
}

}  // namespace netsim
