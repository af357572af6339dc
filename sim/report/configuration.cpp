#include "sim/report/configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/collectives/execution/executor.h"
#include "sim/compute/compute_devices.h"
#include "sim/core/description.h"
#include "sim/core/registry.h"
#include "sim/core/schema.h"
#include "sim/core/text.h"
#include "sim/report/output_parameters.h"
#include "sim/scheduling/placement.h"
#include "sim/topology/partition.h"
#include "sim/transport/packet_network.h"

namespace netsim {
namespace {

ParameterInfo hosts_info() {
  ParameterInfo info;
  info.name = "hosts";
  info.type = "groups";
  info.component_kind = "host";
  info.minimum_text = "1";
  info.doc =
      "how many hosts of the kind `host`, by default as many as the fabrics' host ports hold; or a list of "
      "groups, {kind: ..., count: ..., parameters}, that take host ports one after the other";
  return info;
}

ParameterInfo fabrics_info() {
  ParameterInfo info;
  info.name = "fabrics";
  info.type = "components";
  info.component_kind = "topology";
  info.doc =
      "several fabrics by name, {scale_out: {kind: ...}, rack: {kind: ...}}; `topology` is the short form of "
      "one that is called scale_out";
  return info;
}

// Registers the two networks for --list and --describe. They are no components with a factory, because their
// makers need the cluster.
bool add_network_kinds() {
  Catalogue& catalogue = Catalogue::instance();
  catalogue.add({"network", "packet", "simulates every packet in NICs, links and switches",
                 PacketNetwork::network_parameters()});
  catalogue.add({"network", "ideal",
                 "every transfer takes a constant time: for studies of schedules and pipelines alone",
                 ideal_parameters().table()});
  return true;
}
[[maybe_unused]] const bool kNetworkKindsAdded = add_network_kinds();

ParameterTable make_table() {
  return {
      component_info("topology", "topology", "", "the fabric: switches and links"),
      fabrics_info(),
      component_info("host", "host", "single_nic", "hosts at the fabric's host ports"),
      hosts_info(),
      component_info("network", "network", "packet",
                     "network that carries messages: queues, marking, flow control"),
      section_info("transport", PacketNetwork::transport_parameters(), "queue pairs and congestion control"),
      section_info("collectives", Executor::parameter_table(),
                   "algorithms, channels and costs of the collective library"),
      component_info("compute", "compute_model", "", "time of kernels; default: the host's GPU"),
      section_info("gpus", gpu_parameters().table(),
                   "mutual slowdown of computing and communication, variation and failures of GPUs"),
      component_info("placement", "placement", "packed", "which GPU each rank of a job runs on"),
      section_info("output", output_parameters().table(), "tables"),
      section_info("engine", engine_parameters().table(), "parameters of the simulator itself")};
}

// Returns the node of a component's name: its `kind`, or a bare name.
const ConfigNode* kind_of(const ConfigNode* given) {
  if (given == nullptr || given->is_scalar()) return given;
  return given->find("kind");
}

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
    const ConfigNode* kind = kind_of(given);
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
  for (ParameterInfo& section : transport) {
    if (section.name != "acknowledge") continue;
    for (ParameterInfo& info : section.children) {
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
  for (ParameterInfo& section : network) {
    std::erase_if(section.children, [&](const ParameterInfo& info) {
      const bool other = (info.name == "lossless" && flow_control != "pfc") ||
                         (info.name == "queue_limit" && flow_control == "credits");
      return other && (own == nullptr || own->find(info.name) == nullptr);
    });
  }
}

std::string known_names() {
  std::string text;
  for (const std::string& kind : Catalogue::instance().kinds()) text += (text.empty() ? "" : ", ") + kind;
  return text;
}

// Subject: anything that --describe knows, a place in the configuration or a component, with all its names.
struct Subject {
  // "transport.congestion_control.alpha_timer"; ends of the paths are names too
  std::vector<std::string> paths;
  std::string way;                           // shortest path from the top of the configuration; "": none
  const ParameterInfo* parameter = nullptr;  // null for components
  // The component itself, or the component of the parameter. It is null for a section's parameter.
  const ComponentInfo* component = nullptr;
};

// Subjects: all subjects, each parameter once, by whatever paths it can be reached.
class Subjects {
 public:
  Subjects() {
    for (const ComponentInfo* info : Catalogue::instance().all()) add_component(*info);
    in_configuration_ = true;
    add_table(configuration_table(), "", nullptr);
  }
  const std::vector<Subject>& all() const { return subjects_; }

 private:
  void add_component(const ComponentInfo& info) {
    const std::string path = info.kind + "." + info.name;
    subjects_.push_back({{path}, "", nullptr, &info});
    add_parameters(info, path + ".");
  }
  // Adds the parameters of a component. A component inside one of its own kind is followed, but a third level
  // of that kind is not.
  // Parameters in the map of another component are that component's subjects.
  void add_parameters(const ComponentInfo& info, const std::string& prefix) {
    if (!info.has_map()) return;
    const auto of_kind = std::count_if(inside_.begin(), inside_.end(),
                                       [&](const ComponentInfo* outer) { return outer->kind == info.kind; });
    if (of_kind > 1 || std::find(inside_.begin(), inside_.end(), &info) != inside_.end()) return;
    inside_.push_back(&info);
    add_table(info.parameters, prefix, &info);
    inside_.pop_back();
  }
  void add_table(const ParameterTable& table, const std::string& prefix, const ComponentInfo* of) {
    for (const ParameterInfo& info : table) {
      const std::string path = prefix + info.name;
      add(info, path, of);
      if (info.type == "sections") continue;  // parameters that all sections share
      add_table(info.children, path + ".", of);
      if (info.type != "component" && info.type != "component_list") continue;
      for (const ComponentInfo* component : Catalogue::instance().all()) {
        if (component->kind == info.component_kind) add_parameters(*component, path + ".");
      }
    }
  }
  void add(const ParameterInfo& info, const std::string& path, const ComponentInfo* of) {
    const auto [it, fresh] = places_.try_emplace(&info, subjects_.size());
    if (fresh) subjects_.push_back({{}, "", &info, of});
    Subject& subject = subjects_[it->second];
    subject.paths.push_back(path);
    if (in_configuration_ && (subject.way.empty() || path.size() <= subject.way.size())) subject.way = path;
  }

  bool in_configuration_ = false;
  std::vector<const ComponentInfo*> inside_;
  std::vector<Subject> subjects_;
  std::map<const ParameterInfo*, std::size_t> places_;
};

const std::vector<Subject>& subjects() {
  static const Subjects subjects;
  return subjects.all();
}

bool ends_with_path(const std::string& path, const std::string& name) {
  return path == name || path.ends_with("." + name);
}

// Returns the subjects with exactly this name. Only if there is none, it returns those for which the name is
// the end of a path.
std::vector<Subject> subjects_called(const std::string& name) {
  std::vector<Subject> whole, part;
  for (const Subject& subject : subjects()) {
    const auto& paths = subject.paths;
    if (std::find(paths.begin(), paths.end(), name) != paths.end()) whole.push_back(subject);
    const auto ends = [&](const std::string& path) { return ends_with_path(path, name); };
    if (std::any_of(paths.begin(), paths.end(), ends)) part.push_back(subject);
  }
  return whole.empty() ? part : whole;
}

std::vector<std::string> subject_names() {
  std::set<std::string> names;
  for (const Subject& subject : subjects()) {
    for (const std::string& path : subject.paths) {
      names.insert(path);
      names.insert(path.substr(path.rfind('.') + 1));
    }
  }
  for (const std::string& kind : Catalogue::instance().kinds()) names.insert(kind);
  return {names.begin(), names.end()};
}

// Returns the subject's path through the configuration, if there is one. Several components may share it.
std::string title_of(const Subject& subject) {
  const bool shared = subject.component != nullptr && subject.paths.size() > 1;
  return (subject.way.empty() ? subject.paths.front() : subject.way) +
         (shared ? " (" + subject.component->name + ")" : "");
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

std::string describe_found(const Subject& subject, std::size_t width) {
  if (subject.parameter == nullptr) return describe(*subject.component, width);
  const ParameterInfo& info = *subject.parameter;
  if (info.type == "section" || info.type == "sections")
    return describe(title_of(subject), info.doc, info.children, width);
  std::string text = describe(title_of(subject), "", {info}, width);
  if (info.type == "component") text += "\n" + list_components(info.component_kind, width);
  return text;
}

}  // namespace

const Parameters<IdealParameters>& ideal_parameters() {
  static const auto parameters = Parameters<IdealParameters>().time(
      "delay", &IdealParameters::delay, {0, kSecond}, "time from the start of a transfer to its end");
  return parameters;
}

const ParameterTable& configuration_table() {
  static const ParameterTable table = make_table();
  return table;
}

void check_sections(const ConfigNode& root) {
  std::vector<std::string> names;
  for (const ParameterInfo& info : configuration_table()) names.push_back(info.name);
  root.allow_keys(names);
}

std::string network_kind(const ConfigNode& root) {
  const ConfigNode* network = root.find("network");
  if (network == nullptr || network->is_null()) return "packet";
  if (network->is_sequence()) network->fail("a map or one of: packet, ideal");
  const ConfigNode* kind = network->is_map() ? network->find("kind") : network;
  if (kind == nullptr || kind->is_null()) return "packet";
  std::string name = read_text(*kind);
  if (name != "packet" && name != "ideal") kind->fail("'" + name + "' is not one of: packet, ideal");
  return name;
}

std::string configured(const ConfigNode& root, const std::string& path) {
  const ConfigNode* node = &root;
  const ParameterTable* table = &configuration_table();
  for (std::size_t from = 0;;) {
    const std::size_t dot = path.find('.', from);
    const std::string name = path.substr(from, dot == std::string::npos ? dot : dot - from);
    const auto info = std::find_if(table->begin(), table->end(),
                                   [&](const ParameterInfo& candidate) { return candidate.name == name; });
    if (info == table->end()) return "";
    node = node != nullptr ? node->find(name) : nullptr;
    if (node != nullptr && node->is_null()) node = nullptr;
    std::string text = info->default_text;
    table = &info->children;
    if (info->type == "sections" && dot != std::string::npos) {  // the next name is that of one section
      const std::size_t end = path.find('.', dot + 1);
      if (end == std::string::npos) return "";
      if (node != nullptr) node = node->find(path.substr(dot + 1, end - dot - 1));
      if (node != nullptr && node->is_null()) node = nullptr;
      from = end + 1;
      continue;
    }
    if (info->type == "component") {
      if (const ConfigNode* kind = kind_of(node); kind != nullptr) text = kind->text();
      const ComponentInfo* known = Catalogue::instance().find(info->component_kind, text);
      table = known != nullptr ? &known->parameters : &info->children;
    } else if (node != nullptr) {
      text = node->is_scalar() ? node->text() : "";
    }
    if (dot == std::string::npos) return text;
    from = dot + 1;
  }
}

std::string configured_in(const ConfigNode& root, const std::string& fabric, const std::string& section,
                          const std::string& path) {
  const ConfigNode* node = root.find(section);
  for (const std::string& name : {std::string("fabrics"), fabric}) {
    if (node != nullptr) node = node->find(name);
  }
  for (std::size_t from = 0; node != nullptr && from < path.size();) {
    const std::size_t end = std::min(path.find('.', from), path.size());
    node = node->find(path.substr(from, end - from));
    from = end + 1;
  }
  return configured(root, section + (node != nullptr ? ".fabrics." + fabric : "") + "." + path);
}

std::string common_gpu_model(const Cluster& cluster) {
  const std::string& first = cluster.groups.front().gpu_model;
  const bool common = std::all_of(cluster.groups.begin(), cluster.groups.end(),
                                  [&](const HostGroup& group) { return group.gpu_model == first; });
  return common ? first : "";
}

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

std::string configuration_schema() { return json_schema(configuration_table(), Catalogue::instance()); }

std::string list_components(const std::string& kind, std::size_t width) {
  constexpr std::size_t kIndent = 23;
  const Catalogue& catalogue = Catalogue::instance();
  const std::vector<std::string> kinds = catalogue.kinds();
  if (!kind.empty() && std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
    throw ConfigError("--list: no kind '" + kind + "'" + did_you_mean(kind, kinds) +
                      " (known: " + known_names() + ")");
  }
  std::string text, current;
  const auto add = [&](const std::string& name, const std::string& doc) {
    text +=
        fmt::format("  {:<20} {}\n", name, wrapped(doc, std::max(kIndent, name.size() + 3), kIndent, width));
  };
  for (const ComponentInfo* info : catalogue.all()) {
    if (!kind.empty() && info->kind != kind) continue;
    if (info->kind != current) text += (text.empty() ? "" : "\n") + info->kind + "\n";
    current = info->kind;
    add(info->name, info->summary);
  }
  if (kind.empty()) {
    text += "\nsections of the configuration\n";
    for (const ParameterInfo& info : configuration_table()) add(info.name, info.doc);
    text += "\nnetsim --describe NAME describes one of them\n";
  }
  return text;
}

std::string describe_subject(const std::string& name, std::size_t width) {
  std::string text;
  for (const Subject& subject : subjects_called(name))
    text += (text.empty() ? "" : "\n") + describe_found(subject, width);
  if (!text.empty()) return text;
  const std::vector<std::string> kinds = Catalogue::instance().kinds();
  if (std::find(kinds.begin(), kinds.end(), name) != kinds.end()) return list_components(name, width);
  throw ConfigError("--describe: nothing is called '" + name + "'" + did_you_mean(name, subject_names()) +
                    " (--list shows all)");
}

}  // namespace netsim
