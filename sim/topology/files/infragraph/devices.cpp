#include "sim/topology/files/infragraph/devices.h"

#include <algorithm>
#include <array>
#include <utility>

#include "sim/core/text.h"

namespace netsim::infragraph {
namespace {

// Returns the `choice` of a component.
std::string component_choice(const ConfigNode& item) {
  static constexpr std::array kChoices{"custom", "device", "cpu", "xpu", "nic", "memory", "port", "switch"};
  const ConfigNode& node = needed(item, "choice");
  std::string choice = read_text(node);
  if (std::find(kChoices.begin(), kChoices.end(), choice) == kChoices.end())
    node.fail("'" + choice + "' is none of custom, device, cpu, xpu, nic, memory, port, switch");
  return choice;
}

// Returns the kind and the text of one copy of a component.
Part component_part(const ConfigNode& item, const std::string& name, const std::string& choice) {
  const ConfigNode* custom = choice == "custom" ? item.find("custom") : nullptr;
  const std::string type = custom != nullptr && custom->is_map() ? text_in(*custom, "type") : "";
  return {type.empty() ? kind_of(choice) : kind_of_custom(type),
          lower_case(name + " " + text_in(item, "description") + (type.empty() ? "" : " " + type))};
}

// Adds the nodes and edges of a device inside this one. `name` is that of the component's copy.
void add_inner_device(const Device& inner, const std::string& name, const ConfigNode& item, Device& device) {
  const auto base = static_cast<std::uint32_t>(device.parts.size());
  device.parts.insert(device.parts.end(), inner.parts.begin(), inner.parts.end());
  for (const std::string& inner_name : inner.names) device.names.push_back(name + "." + inner_name);
  for (const Edge& edge : inner.edges.edges())
    device.edges.add({base + edge.a, base + edge.b, edge.wire, edge.place}, item);
}

// Returns the nodes that an end of an edge inside the device selects.
std::vector<std::uint32_t> device_end(const ConfigNode& edge, const char* key, const Device& device) {
  const ConfigNode& end = needed(edge, key);
  if (!end.is_map()) end.fail("{component: NAME[index]} is expected");
  end.allow_keys({"device", "component"});
  const ConfigNode& component = needed(end, "component");
  std::string path = text_in(end, "device");
  append_item(path, read_text(component), ".");
  return Devices::choose(device, steps_of(component, path), component);
}

}  // namespace

std::uint32_t Component::size() const {
  return device == nullptr ? 1 : static_cast<std::uint32_t>(device->parts.size());
}

Devices::Devices(const std::vector<ConfigNode>& list) {
  for (const ConfigNode& item : list) {
    if (!nodes_.emplace(name_in(item), &item).second) item.fail("a second device '" + name_in(item) + "'");
  }
}

const Device& Devices::get(const std::string& name, const ConfigNode& at) {
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

void Devices::read_all() {
  for (const auto& [name, node] : nodes_) get(name, *node);
}

std::vector<std::uint32_t> Devices::choose(const Device& device, const std::vector<Step>& steps,
                                           const ConfigNode& at, std::size_t from) {
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

void Devices::read(const ConfigNode& node, Device& device) {
  if (const ConfigNode* old = node.find("connections")) fail_as_old(*old, "edges");
  node.allow_keys({"name", "description", "components", "links", "edges"});
  for (const ConfigNode& item : list_in(node, "components")) add_component(item, device);
  device.wires = wires_of(node);
  for (const ConfigNode& item : list_in(node, "edges")) {
    add_edges(
        item, device.wires, "this device", [&](const char* end) { return device_end(item, end, device); },
        device.edges);
  }
}

void Devices::add_component(const ConfigNode& item, Device& device) {
  const std::string name = name_in(item);
  const ConfigNode* old = item.find("type");
  if (old != nullptr && item.find("choice") == nullptr) fail_as_old(*old, "components with a choice");
  item.allow_keys({"name", "description", "count", "choice", "custom", "device", "cpu", "xpu", "nic",
                   "memory", "port", "switch"});
  Component component;
  component.first = static_cast<std::uint32_t>(device.parts.size());
  component.count = count_in(item);
  const std::string choice = component_choice(item);
  if (choice == "device") component.device = &get(name, *item.find("name"));
  if (std::uint64_t{component.count} * component.size() + device.parts.size() > kMostNodes)
    item.fail("more than " + std::to_string(kMostNodes) + " components");
  const Part part = component_part(item, name, choice);
  for (std::uint32_t i = 0; i < component.count; ++i) {
    const std::string numbered = name + "." + std::to_string(i);
    if (component.device != nullptr) {
      add_inner_device(*component.device, numbered, item, device);
    } else {
      device.parts.push_back(part);
      device.names.push_back(numbered);
    }
  }
  if (!device.components.emplace(name, component).second) item.fail("a second component '" + name + "'");
}

}  // namespace netsim::infragraph
