// Writes the configuration with all defaults: resolved_configuration() of configuration.h.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "sim/configuration/component_node.h"
#include "sim/configuration/configuration.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/transport/packet_network.h"

namespace netsim {
namespace {

// Resolver: writes a parameter table with the values of a configuration as YAML.
class Resolver {
 public:
  // Fit: changes the table of one section of `sections`, with this name, where it differs from the others.
  using Fit = std::function<void(ParameterTable& section, const std::string& name)>;
  void set_fit(Fit fit) { fit_ = std::move(fit); }

  void write(const ParameterTable& table, const ConfigNode* given, int depth) {
    for (const ParameterInfo& info : table) {
      const ConfigNode* own = given != nullptr ? given->find(info.name) : nullptr;
      if (info.type == "sections" && own != nullptr && own->is_map()) {
        write_sections(info, *own, given, depth);
      } else {
        write(info, own, depth);
      }
    }
  }
  void write(const ParameterInfo& info, const ConfigNode* given, int depth) {
    if (given != nullptr && given->is_null()) given = nullptr;
    if (info.type == "section") {
      open(info.name, depth);
      write(info.children, given, depth + 1);
    } else if (info.type == "component") {
      write_component(info, given, depth);
    } else if (given != nullptr) {
      value(info.name, *given, depth);
    } else {
      line(info.name, info.default_text.empty() ? "null" : scalar(info.default_text),
           info.computed.empty() ? "default" : "default: " + info.computed, depth);
    }
  }
  std::string take() { return std::move(text_); }

 private:
  // Writes each section with all its values. A value that a section omits is taken from `common`.
  void write_sections(const ParameterInfo& info, const ConfigNode& given, const ConfigNode* common,
                      int depth) {
    open(info.name, depth);
    for (const auto& [name, section] : given.entries()) {
      ParameterTable table = info.children;
      if (fit_) fit_(table, name);
      open(scalar(name), depth + 1);
      write_over(table, &section, common, depth + 2);
    }
  }
  void write_over(const ParameterTable& table, const ConfigNode* given, const ConfigNode* common, int depth) {
    for (const ParameterInfo& info : table) {
      const ConfigNode* own = given != nullptr ? given->find(info.name) : nullptr;
      const ConfigNode* shared = common != nullptr ? common->find(info.name) : nullptr;
      if (info.type == "section") {
        open(info.name, depth);
        write_over(info.children, own, shared, depth + 1);
      } else {
        write(info, own != nullptr ? own : shared, depth);
      }
    }
  }
  static std::string one_line(std::string yaml) {
    while (!yaml.empty() && yaml.back() == '\n') yaml.pop_back();
    return yaml;
  }
  static std::string scalar(const std::string& text) {
    return one_line(to_yaml(ConfigNode::scalar(text, {})));
  }
  static std::string origin(const ConfigNode& node) {
    const Place& place = node.place();
    return printable(place.line > 0 ? fmt::format("{}:{}", place.file, place.line) : place.file);
  }
  void indent(int depth) { text_.append(static_cast<std::size_t>(depth) * 2, ' '); }
  void open(const std::string& name, int depth) {
    indent(depth);
    text_ += name + ":\n";
  }
  void line(const std::string& name, const std::string& shown, const std::string& from, int depth) {
    indent(depth);
    text_ += fmt::format("{}: {}  # {}\n", name, shown, from);
  }
  void value(const std::string& name, const ConfigNode& node, int depth) {
    if (node.is_scalar()) return line(name, one_line(to_yaml(node)), origin(node), depth);
    indent(depth);
    text_ += fmt::format("{}:  # {}\n", name, origin(node));
    std::string block = to_yaml(node);
    for (std::size_t from = 0; from < block.size();) {
      const std::size_t end = std::min(block.find('\n', from), block.size());
      indent(depth + 1);
      text_ += block.substr(from, end - from) + "\n";
      from = end + 1;
    }
  }
  void write_component(const ParameterInfo& info, const ConfigNode* given, int depth) {
    const ConfigNode* kind = component_kind(given);
    const std::string name = kind != nullptr ? kind->text() : info.default_text;
    if (name.empty()) return line(info.name, "null", "default", depth);
    open(info.name, depth);
    line("kind", scalar(name), kind != nullptr ? origin(*kind) : "default", depth + 1);
    const ComponentInfo* known = Catalogue::instance().find(info.component_kind, name);
    if (known != nullptr)
      write(known->parameters, given != nullptr && given->is_map() ? given : nullptr, depth + 1);
  }

  std::string text_;
  Fit fit_;
};

// Shows the value of `acknowledging`, whose default depends on the cluster and on congestion control, and the
// reason. `transport` is the table of the section, or of a fabric's section.
void show_acknowledging(ParameterTable& transport, const ConfigNode* given, const Cluster& cluster,
                        const std::string& fabric = "") {
  const Acknowledging holds =
      PacketNetwork::acknowledging(cluster, given != nullptr ? *given : ConfigNode(), fabric);
  for (ParameterInfo& section : transport.edit()) {
    if (section.name != "acknowledge") continue;
    for (ParameterInfo& info : section.children.edit()) {
      info.default_text = holds.every ? std::to_string(*holds.every) : "";
      info.computed = holds.because;
    }
  }
}

// Removes the common section's settings of its flow control for a fabric that has another flow control.
void leave_out_others(ParameterTable& network, const ConfigNode& root, const std::string& fabric) {
  const std::string flow_control = configured_in(root, fabric, "network", "switch.flow_control");
  const ConfigNode* own = root.find("network");
  for (const std::string& name : {std::string("fabrics"), fabric, std::string("switch")}) {
    if (own != nullptr) own = own->find(name);
  }
  for (ParameterInfo& section : network.edit()) {
    std::erase_if(section.children.edit(), [&](const ParameterInfo& info) {
      const bool other = (info.name == "lossless" && flow_control != "pfc") ||
                         (info.name == "queue_limit" && flow_control == "credits");
      return other && (own == nullptr || own->find(info.name) == nullptr);
    });
  }
}

bool is_given(const ConfigNode& root, const char* name) {
  const ConfigNode* node = root.find(name);
  return node != nullptr && !node->is_null();
}

// Returns whether the setting has two forms and the other one was given.
bool said_otherwise(const ConfigNode& root, const std::string& name) {
  const bool fabrics = is_given(root, "fabrics");
  if (name == "topology" || name == "fabrics") return (name == "topology") == fabrics;
  return name == "host" && is_given(root, "hosts") && root.find("hosts")->is_sequence();
}

}  // namespace

std::string resolved_configuration(const ConfigNode& root, const Cluster& cluster) {
  const bool ideal = network_kind(root) == "ideal";
  Resolver resolver;
  resolver.set_fit([&](ParameterTable& section, const std::string& fabric) {
    show_acknowledging(section, root.find("transport"), cluster, fabric);
    leave_out_others(section, root, fabric);
  });
  for (ParameterInfo info : configuration_table()) {
    if (info.name == "transport" && ideal) continue;
    if (said_otherwise(root, info.name)) continue;
    if (info.name == "compute") info.default_text = common_gpu_model(cluster);
    if (info.name == "transport") show_acknowledging(info.children, root.find("transport"), cluster);
    resolver.write(info, root.find(info.name), 0);
  }
  return resolver.take();
}

}  // namespace netsim
