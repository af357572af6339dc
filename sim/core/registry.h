// Registry: components of one kind by name. A component is one .cpp: its class and one registration line,
//
//   const Registration<CongestionControl> kRegistration{
//       "dcqcn", "one sentence on what it is and when to use it", parameters(),
//       [](const DcqcnParameters& p, const ConfigNode& where) { return std::make_unique<Dcqcn>(p); }};
//
// The interface names its kind: `static constexpr const char* kComponentKind = "congestion_control";`.
//
// Components register before main(), those of a plugin while it is loaded (sim/core/plugin.h). The first
// component that is made ends that: from then on the catalogue is only read, by any thread.
#pragma once

#include <atomic>
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
  std::string source = {};  // "file:line" of the registration
};

// All registered components of all kinds. The program, its plugins and whoever uses the library share the one
// in the library.
class Catalogue {
 public:
  // Makes a component by its part of the configuration: an Interface* of the kind's Registry, which the
  // caller owns.
  using Factory = std::function<void*(const ConfigNode&)>;

  static Catalogue& instance();
  // Never throws, because it is called before main() and within dlopen(): what is wrong with a registration
  // (a name that is taken, one that comes too late) is remembered for check().
  void add(ComponentInfo info, Factory factory = {});
  // ConfigError for the first registration that was wrong.
  void check() const;
  // Ends registration, after a check().
  void freeze();
  bool frozen() const { return frozen_; }

  // Sorted by kind, then name.
  std::vector<const ComponentInfo*> all() const;
  std::vector<std::string> kinds() const;
  std::vector<std::string> names(const std::string& kind) const;
  // Null where there is none.
  const ComponentInfo* find(const std::string& kind, const std::string& name) const;
  // Null where there is none.
  const Factory* factory(const std::string& kind, const std::string& name) const;

 private:
  struct Entry {
    ComponentInfo info;
    Factory factory;
  };

  std::map<std::pair<std::string, std::string>, Entry> components_;
  std::vector<std::string> faults_;
  std::atomic<bool> frozen_{false};
};

// Text of --describe: summary and a table of the parameters with type, default, range and doc.
std::string describe(const ComponentInfo& component);
// The table alone; parameters of sections have dotted names.
std::string describe_parameters(const ParameterTable& table);

// The name of the component that `node` chooses: {kind: NAME, parameters...}, a bare NAME, or null / no kind
// for `default_name`. ConfigError where nothing is chosen and there is no default.
std::string component_name(const ConfigNode& node, const std::string& default_name, const std::string& kind);
// The ConfigError for a name that `kind` has no component of.
[[noreturn]] void unknown_component(const ConfigNode& node, const std::string& kind, const std::string& name);

// The components of one kind. Holds nothing: everything is in the Catalogue.
template <class Interface>
class Registry {
 public:
  static const Registry& instance() {
    static constexpr Registry kRegistry;
    return kRegistry;
  }
  std::vector<std::string> names() const { return Catalogue::instance().names(Interface::kComponentKind); }
  // `node`: {kind: NAME, parameters...}, a bare NAME, or null / no kind for `default_name`. The first call
  // freezes the catalogue.
  std::unique_ptr<Interface> create(const ConfigNode& node, const std::string& default_name) const {
    return make(node, component_name(node, default_name));
  }
  // The same for a component chosen by name, with all its defaults.
  std::unique_ptr<Interface> create(const std::string& name) const { return make(ConfigNode(), name); }
  static std::string component_name(const ConfigNode& node, const std::string& default_name) {
    return netsim::component_name(node, default_name, Interface::kComponentKind);
  }

 private:
  static std::unique_ptr<Interface> make(const ConfigNode& node, const std::string& name) {
    Catalogue& catalogue = Catalogue::instance();
    if (!catalogue.frozen()) catalogue.freeze();
    const Catalogue::Factory* factory = catalogue.factory(Interface::kComponentKind, name);
    if (factory == nullptr) unknown_component(node, Interface::kComponentKind, name);
    return std::unique_ptr<Interface>(static_cast<Interface*>((*factory)(node)));
  }
};

// Registers a component while the object is made: a constant of the component's file. `file` and `line` are
// left to their defaults, which are where that constant stands.
template <class Interface>
class Registration {
 public:
  // `make`: of the parameters and the node they were read from, which knows places for errors.
  template <class P, class Make>
  Registration(const std::string& name, const std::string& summary, const Parameters<P>& parameters,
               Make make, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : Registration(
            name, summary, parameters.table(),
            [parameters, make](const ConfigNode& node) {
              const ConfigNode empty;
              return make(parameters.parse(node.is_scalar() ? empty : node, {"kind"}), node);
            },
            file, line) {}
  // For parameters that Parameters<> cannot say, such as lists: `make` reads the node by itself.
  template <class Make>
  Registration(const std::string& name, const std::string& summary, const ParameterTable& table, Make make,
               const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    Catalogue::instance().add(
        {Interface::kComponentKind, name, summary, table, std::string(file) + ":" + std::to_string(line)},
        [make](const ConfigNode& node) -> void* {
          std::unique_ptr<Interface> component = make(node);
          return component.release();
        });
  }
};

}  // namespace netsim
