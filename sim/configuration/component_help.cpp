// Describes components, sections and their parameters: --list, --describe and --schema (configuration.h).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/configuration/configuration.h"
#include "sim/core/description.h"
#include "sim/core/registry.h"
#include "sim/core/schema.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

std::string known_names() {
  std::string text;
  for (const std::string& kind : Catalogue::instance().kinds()) append_item(text, kind);
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

// Returns the components that are named by a key and a kind that it takes:
// "transport.congestion_control.dcqcn".
std::vector<Subject> kinds_of_key(const std::string& name) {
  std::vector<Subject> found;
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return found;
  std::set<std::string> kinds;
  for (const Subject& key : subjects_called(name.substr(0, dot))) {
    if (key.parameter != nullptr) kinds.insert(key.parameter->component_kind);
  }
  for (const Subject& subject : subjects()) {
    if (subject.parameter == nullptr && subject.component->name == name.substr(dot + 1) &&
        kinds.count(subject.component->kind) > 0)
      found.push_back(subject);
  }
  return found;
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

// Adds the dotted names of all keys of a table.
void add_key_names(const ParameterTable& table, const std::string& prefix, std::string& names) {
  for (const ParameterInfo& info : table) {
    if (info.type == "section") {
      add_key_names(info.children, prefix + info.name + ".", names);
    } else {
      append_item(names, prefix + info.name);
    }
  }
}

// Adds the kinds of components that keys of a table take, each once, in the order of the keys.
void add_nested_kinds(const ParameterTable& table, std::vector<std::string>& kinds) {
  for (const ParameterInfo& info : table) {
    add_nested_kinds(info.children, kinds);
    if (info.component_kind.empty()) continue;
    if (std::find(kinds.begin(), kinds.end(), info.component_kind) == kinds.end())
      kinds.push_back(info.component_kind);
  }
}

// Returns the keys of all components of a kind, in a paragraph for all components that have the same keys.
std::string keys_of_kind(const std::string& kind, std::size_t width) {
  std::vector<std::pair<std::string, std::string>> paragraphs;  // components, keys
  for (const ComponentInfo* info : Catalogue::instance().all()) {
    if (info->kind != kind || !info->has_map() || info->parameters.empty()) continue;
    std::string names;
    add_key_names(info->parameters, "", names);
    const auto known = std::find_if(paragraphs.begin(), paragraphs.end(),
                                    [&](const auto& of) { return of.second == names; });
    if (known == paragraphs.end()) {
      paragraphs.emplace_back(kind + "." + info->name, names);
    } else {
      append_item(known->first, info->name);
    }
  }
  std::string text;
  for (const auto& [components, names] : paragraphs)
    text += "  " + wrapped(components + ": " + names, 2, 6, width) + "\n";
  return text;
}

// Returns the keys of all components that keys of the table take, or "".
std::string nested_keys(const ParameterTable& table, std::size_t width) {
  std::vector<std::string> kinds;
  add_nested_kinds(table, kinds);
  std::string text;
  for (const std::string& kind : kinds) text += keys_of_kind(kind, width);
  return text.empty() ? "" : "\nkeys of the kinds that these keys take\n" + text;
}

std::string describe_found(const Subject& subject, std::size_t width) {
  if (subject.parameter == nullptr)
    return describe(*subject.component, width) + nested_keys(subject.component->parameters, width);
  const ParameterInfo& info = *subject.parameter;
  if (info.type == "section" || info.type == "sections")
    return describe(title_of(subject), info.doc, info.children, width) + nested_keys(info.children, width);
  std::string text = describe(title_of(subject), "", {info}, width);
  if (!info.component_kind.empty())
    text += "\n" + list_components(info.component_kind, width) + nested_keys({info}, width);
  return text;
}

}  // namespace

std::vector<std::string> configuration_keys() {
  std::vector<std::string> keys;
  for (const Subject& subject : subjects()) {
    if (!subject.way.empty()) keys.push_back(subject.way);
  }
  return keys;
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
    if (info->kind != current) append_item(text, info->kind + "\n", "\n");
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
  std::vector<Subject> found = subjects_called(name);
  if (found.empty()) found = kinds_of_key(name);
  for (const Subject& subject : found) append_item(text, describe_found(subject, width), "\n");
  if (!text.empty()) return text;
  const std::vector<std::string> kinds = Catalogue::instance().kinds();
  if (std::find(kinds.begin(), kinds.end(), name) != kinds.end()) {
    const std::string keys = keys_of_kind(name, width);
    return list_components(name, width) + (keys.empty() ? "" : "\nkeys\n" + keys);
  }
  throw ConfigError("--describe: nothing is called '" + name + "'" + did_you_mean(name, subject_names()) +
                    " (--list shows all)");
}

}  // namespace netsim
