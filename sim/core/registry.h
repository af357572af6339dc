// Registry: finds components of one kind by name. A component is one .cpp with its class and one registration
// line:
//
//   const Registration<CongestionControl> kRegistration{
//       "dcqcn", "one sentence on what it is and when to use it", parameters(),
//       [](const DcqcnParameters& p, const ConfigNode& where) { return std::make_unique<Dcqcn>(p); }};
//
// The interface names its kind: `static constexpr const char* kComponentKind = "congestion_control";`.
//
// The parameters of a component may also be keys in the map of another one, beside the keys of others
// (KeysOf). That component's own factory and its descriptions then allow them.
//
// Components register before main(), those of a plugin while it is loaded (sim/core/plugin.h). Registration
// ends when the first component is made. From then on the catalogue is only read, by any thread.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/parameters.h"

namespace netsim {

// ColumnInfo: a column of a table that a component writes.
struct ColumnInfo {
  std::string name;  // with the unit where it is not a count: "start_ps"
  std::string meaning;
};

struct ComponentInfo {
  std::string kind;     // "congestion_control"
  std::string name;     // "dcqcn"
  std::string summary;  // one sentence
  ParameterTable parameters;
  std::string source = {};  // "file:line" of the registration
  // Kind and name of the component in whose map the parameters are given; empty: they have a map of their
  // own.
  std::string owner_kind = {}, owner = {};
  std::vector<ColumnInfo> columns = {};  // of the table that it writes, in their order
  bool has_map() const { return owner.empty(); }
};

// KeysOf: parameters of a component that are keys in the map of another one, whose kind and name these are.
// The other component's table has them too.
template <class P>
struct KeysOf {
  std::string owner_kind, owner;
  Parameters<P> parameters;
};

// Catalogue: holds all registered components of all kinds. The program, its plugins and other users of the
// library share the one instance in the library.
class Catalogue {
 public:
  // Makes a component from its part of the configuration. The result is an Interface* of the kind's Registry,
  // which the caller owns.
  using Factory = std::function<void*(const ConfigNode&)>;

  static Catalogue& instance();
  // Adds a component. It never throws, because it is called before main() and within dlopen(). A wrong
  // registration (the name is taken, or the catalogue is frozen) is recorded for check().
  void add(ComponentInfo info, Factory factory = {});
  // Throws ConfigError for the first wrong registration: a name or a key that is taken, or a late one.
  void check() const;
  // Ends registration after a check().
  void freeze();
  bool frozen() const { return frozen_; }

  // Return components, kinds and names sorted by kind, then name. chosen_names() leaves out the components
  // whose parameters are keys of another one: no `kind` chooses them.
  std::vector<const ComponentInfo*> all() const;
  std::vector<std::string> kinds() const;
  std::vector<std::string> names(const std::string& kind) const;
  std::vector<std::string> chosen_names(const std::string& kind) const;
  // Returns the components whose parameters are keys of this one, sorted by kind, then name.
  std::vector<const ComponentInfo*> keys_of(const std::string& kind, const std::string& name) const;
  // Returns the component, or null where there is none.
  const ComponentInfo* find(const std::string& kind, const std::string& name) const;
  // Returns the component's factory, or null where there is none.
  const Factory* factory(const std::string& kind, const std::string& name) const;

 private:
  struct Entry {
    ComponentInfo info;
    Factory factory;
    // The parameters without those of other components. Filled in once others have keys in its map.
    std::optional<ParameterTable> own = {};
  };
  using Components = std::map<std::pair<std::string, std::string>, Entry>;  // by kind and name

  // Returns the components, each with the keys that others have in its map. The first call after a
  // registration merges them.
  const Components& complete() const;
  void merge_keys() const;

  mutable Components components_;
  mutable std::vector<std::string> faults_;
  mutable bool complete_ = true;
  std::atomic<bool> frozen_{false};
};

// Returns the text of --describe: summary and a table of the parameters with type, default, range and doc.
std::string describe(const ComponentInfo& component);
// Returns the table alone. Parameters of sections have dotted names.
std::string describe_parameters(const ParameterTable& table);

// Returns the name of the component that `node` chooses: {kind: NAME, parameters...} or a bare NAME. A null
// node or one without `kind` chooses `default_name`. Throws ConfigError where there is no default.
std::string component_name(const ConfigNode& node, const std::string& default_name, const std::string& kind);
// Returns the part of a component's map that has its own parameters, `own`. Throws ConfigError at a key that
// neither the component has nor another one whose parameters are keys of it.
ConfigNode own_entries(const ConfigNode& node, const std::string& kind, const std::string& name,
                       const ParameterTable& own);
// Throws the ConfigError for a name that no component of `kind` has.
[[noreturn]] void unknown_component(const ConfigNode& node, const std::string& kind, const std::string& name);

// Registry: a stateless view of the components of one kind in the Catalogue.
template <class Interface>
class Registry {
 public:
  static const Registry& instance() {
    static constexpr Registry kRegistry;
    return kRegistry;
  }
  std::vector<std::string> names() const { return Catalogue::instance().names(Interface::kComponentKind); }
  // Makes the component that `node` chooses (see component_name()). The first call freezes the catalogue.
  std::unique_ptr<Interface> create(const ConfigNode& node, const std::string& default_name) const {
    return make(node, component_name(node, default_name));
  }
  // Makes the component of that name with all its defaults.
  std::unique_ptr<Interface> create(const std::string& name) const { return make(ConfigNode(), name); }
  // Makes the component of that name from `node`, whose own `kind` does not matter.
  std::unique_ptr<Interface> create_named(const std::string& name, const ConfigNode& node) const {
    return make(node, name);
  }
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

// Registration: registers a component when it is constructed, as a constant of the component's file. `file`
// and `line` keep their defaults, which are the place of that constant.
template <class Interface>
class Registration {
 public:
  // `make` is called with the parameters and with the node that they were read from, for places in errors.
  // `parameters` must outlive the program or plugin, as a function's static does; a temporary is kept.
  template <class P, class Make>
  Registration(const std::string& name, const std::string& summary, const Parameters<P>& parameters,
               Make make, std::vector<ColumnInfo> columns = {}, const char* file = __builtin_FILE(),
               int line = __builtin_LINE())
      : Registration(name, summary, Kept<P>(std::shared_ptr<void>(), &parameters), std::move(make),
                     std::move(columns), file, line) {}
  template <class P, class Make>
  Registration(const std::string& name, const std::string& summary, Parameters<P>&& parameters, Make make,
               std::vector<ColumnInfo> columns = {}, const char* file = __builtin_FILE(),
               int line = __builtin_LINE())
      : Registration(name, summary, Kept<P>(std::make_shared<const Parameters<P>>(std::move(parameters))),
                     std::move(make), std::move(columns), file, line) {}
  // Serves parameters that are keys of another component. `make` gets that component's whole map.
  template <class P, class Make>
  Registration(const std::string& name, const std::string& summary, const KeysOf<P>& keys, Make make,
               const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    Catalogue::instance().add({Interface::kComponentKind,
                               name,
                               summary,
                               keys.parameters.table(),
                               place(file, line),
                               keys.owner_kind,
                               keys.owner,
                               {}},
                              [parameters = keys.parameters, make](const ConfigNode& node) -> void* {
                                const ConfigNode map =
                                    node.is_scalar() ? ConfigNode() : entries_of(parameters.table(), node);
                                std::unique_ptr<Interface> component = make(parameters.parse(map), node);
                                return component.release();
                              });
  }
  // Serves parameters that Parameters<> cannot express, such as lists: `make` reads the node itself.
  template <class Make>
  Registration(const std::string& name, const std::string& summary, const ParameterTable& table, Make make,
               std::vector<ColumnInfo> columns = {}, const char* file = __builtin_FILE(),
               int line = __builtin_LINE()) {
    Catalogue::instance().add(
        {Interface::kComponentKind, name, summary, table, place(file, line), {}, {}, std::move(columns)},
        [make](const ConfigNode& node) -> void* {
          std::unique_ptr<Interface> component = make(node);
          return component.release();
        });
  }

 private:
  template <class P>
  using Kept = std::shared_ptr<const Parameters<P>>;

  template <class P, class Make>
  Registration(const std::string& name, const std::string& summary, Kept<P> parameters, Make make,
               std::vector<ColumnInfo> columns, const char* file, int line)
      : Registration(
            name, summary, parameters->table(),
            [parameters, make, name](const ConfigNode& node) {
              const ConfigNode map = own_entries(node.is_scalar() ? ConfigNode() : node,
                                                 Interface::kComponentKind, name, parameters->table());
              return make(parameters->parse(map, {"kind"}), node);
            },
            std::move(columns), file, line) {}

  static std::string place(const char* file, int line) {
    return std::string(file) + ":" + std::to_string(line);
  }
};

}  // namespace netsim
