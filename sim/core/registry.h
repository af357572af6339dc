// Registry: components of one kind by name. A component is one .cpp: its class and one registration line,
//
//   const Registration<CongestionControl> kRegistration{
//       "dcqcn", "one sentence on what it is and when to use it", parameters(),
//       [](const DcqcnParameters& p, const ConfigNode& where) { return std::make_unique<Dcqcn>(p); }};
//
// The interface names its kind: `static constexpr const char* kComponentKind = "congestion_control";`.
// Registration happens before main(); afterwards registries are only read.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/parameters.h"

namespace netsim {

struct ComponentInfo {
  std::string kind;     // "congestion_control"
  std::string name;     // "dcqcn"
  std::string summary;  // one sentence
  ParameterTable parameters;
};

// All registered components, for --list, --describe and --schema.
class Catalogue {
 public:
  static Catalogue& instance();
  void add(ComponentInfo info);
  // Sorted by kind, then name.
  std::vector<const ComponentInfo*> all() const;
  std::vector<std::string> kinds() const;
  std::vector<std::string> names(const std::string& kind) const;
  const ComponentInfo* find(const std::string& kind, const std::string& name) const;

 private:
  std::map<std::pair<std::string, std::string>, ComponentInfo> components_;
};

// Text of --describe: summary and a table of the parameters with type, default, range and doc.
std::string describe(const ComponentInfo& component);
// The table alone; parameters of sections have dotted names.
std::string describe_parameters(const ParameterTable& table);

template <class Interface>
class Registry {
 public:
  using Factory = std::function<std::unique_ptr<Interface>(const ConfigNode&)>;

  static Registry& instance() {
    static Registry registry;
    return registry;
  }
  void add(const std::string& name, Factory factory) { factories_[name] = std::move(factory); }
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& [name, factory] : factories_) result.push_back(name);
    return result;
  }
  // `node`: {kind: NAME, parameters...}, a bare NAME, or null / no kind for `default_name`.
  std::unique_ptr<Interface> create(const ConfigNode& node, const std::string& default_name) const {
    return factory(node, component_name(node, default_name))(node);
  }
  // The same for a component chosen by name, with all its defaults.
  std::unique_ptr<Interface> create(const std::string& name) const {
    return factory(ConfigNode(), name)(ConfigNode());
  }
  static std::string component_name(const ConfigNode& node, const std::string& default_name) {
    if (node.is_scalar()) return node.text();
    if (const ConfigNode* kind = node.find("kind"); kind != nullptr) return read_text(*kind);
    if (default_name.empty()) node.fail(std::string("'kind' is missing: which ") + Interface::kComponentKind);
    return default_name;
  }

 private:
  const Factory& factory(const ConfigNode& node, const std::string& name) const {
    const auto it = factories_.find(name);
    if (it != factories_.end()) return it->second;
    std::string allowed;
    for (const auto& [known, unused] : factories_) allowed += (allowed.empty() ? "" : ", ") + known;
    const std::string near = nearest(name, names());
    const ConfigNode* kind = node.find("kind");
    (kind != nullptr ? *kind : node)
        .fail("unknown " + std::string(Interface::kComponentKind) + " '" + name + "'" +
              (near.empty() ? "" : ", did you mean '" + near + "'?") + " (known: " + allowed + ")");
  }
  std::map<std::string, Factory> factories_;
};

template <class Interface>
class Registration {
 public:
  template <class P, class Make>
  Registration(const std::string& name, const std::string& summary, const Parameters<P>& parameters,
               Make make) {
    Catalogue::instance().add({Interface::kComponentKind, name, summary, parameters.table()});
    Registry<Interface>::instance().add(
        name, [parameters, make](const ConfigNode& node) -> std::unique_ptr<Interface> {
          const ConfigNode empty;
          return make(parameters.parse(node.is_scalar() ? empty : node, {"kind"}), node);
        });
  }
};

}  // namespace netsim
