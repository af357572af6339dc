// Parameters: the one declaration of a component's parameters. It parses them, gives defaults, ranges and
// units, and rejects unknown keys with the nearest name. It also prints --describe, the JSON schema and the
// table of the docs.
//
//   struct RedParameters { Bytes kmin = 400 * kKilobyte; double pmax = 0.2; };
//   const Parameters<RedParameters>& red_parameters() {
//     static const auto p = Parameters<RedParameters>()
//         .bytes("kmin", &RedParameters::kmin, {0, 1 * kGigabyte}, "queue length where marking starts")
//         .real("pmax", &RedParameters::pmax, {0, 1}, "marking probability at kmax");
//     return p;
//   }
//
// Defaults are the member initialisers of the struct: they are written in one place only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/text.h"
#include "sim/core/units.h"

namespace netsim {

// Range: the inclusive limits of a numeric parameter.
template <class T>
struct Range {
  T minimum;
  T maximum;
};

struct ParameterInfo;

// ParameterTable: a list of parameters. Copies share the list until one of them is edited. The program makes
// the tables of all components when it starts, and several of them have the same list.
class ParameterTable {
 public:
  ParameterTable() = default;
  ParameterTable(std::initializer_list<ParameterInfo> parameters);
  const ParameterInfo* begin() const;
  const ParameterInfo* end() const;
  std::size_t size() const;
  bool empty() const { return size() == 0; }
  const ParameterInfo& operator[](std::size_t index) const;
  const ParameterInfo& front() const { return (*this)[0]; }
  const ParameterInfo& back() const { return (*this)[size() - 1]; }
  void push_back(ParameterInfo parameter);
  // Returns the list to change it. Other tables do not see the changes.
  std::vector<ParameterInfo>& edit();

 private:
  std::shared_ptr<std::vector<ParameterInfo>> parameters_;  // null: empty
};

// ParameterInfo: the description of one parameter, for documentation and schemas.
struct ParameterInfo {
  std::string name;
  // One of bool, integer, real, time, bytes, rate, text, choice, names, component, section, list. Maps by
  // name are `components` and `sections`. `groups` is a number or a list of components with a `count` each.
  // `component_list` is a list of components, `lists` a map of lists by name.
  std::string type;
  std::string default_text;  // in the notation the user writes; "" = required or computed
  std::string computed;      // how the default follows from other values, in words: "by profile"
  bool required = false;
  std::string minimum_text, maximum_text;  // "" = unlimited
  std::vector<std::string> choices;        // names that may be given, for choice and component
  std::string component_kind;              // name of the registry, for components
  std::string doc;
  ParameterTable children;  // parameters of the section, or of each of the sections
};

// Return the table entries of a map with fixed keys, and of a component of the registry `component_kind`. An
// empty `default_name` means that `kind` must be given.
ParameterInfo section_info(std::string name, ParameterTable parameters, std::string doc);
ParameterInfo component_info(std::string name, std::string component_kind, std::string default_name,
                             std::string doc);

// Returns the entry of a list, or of a map of lists, which the component reads. `type` is "list" or "lists".
ParameterInfo list_info(std::string name, std::string type, std::string doc);
ParameterInfo names_info(std::string name, std::string default_name, std::string doc);
// Returns the names that a parameter of type `names` holds, as nodes with their places.
std::vector<ConfigNode> read_names(const ConfigNode& node, const std::string& default_name);

// Adds the parameters of one table to another. Sections that both have become one, with the documentation of
// the table that has it first. Returns the dotted name of a parameter that both have, or "".
std::string merge_parameters(ParameterTable& into, const ParameterTable& from);
// Returns the entries of a map that a table has, in its sections too. Whatever is no map is returned as it
// is.
ConfigNode entries_of(const ParameterTable& table, const ConfigNode& node);
// Throws ConfigError at a key that is neither in the table nor in `also_allowed`, in its sections too.
void refuse_unknown_keys(const ParameterTable& table, const ConfigNode& node,
                         const std::vector<std::string>& also_allowed);

// Throws ConfigError at a key that has no value. A section may be empty: its parameters then have their
// defaults.
void refuse_empty(const ParameterInfo& parameter, const ConfigNode& node);

// Throws the ConfigError for a value outside its range.
[[noreturn]] void out_of_range(const ConfigNode& node, const std::string& minimum,
                               const std::string& maximum);
// Returns whether the node is a number below zero, with a unit or without.
bool is_negative(const ConfigNode& node);
// Returns a limit's text, or "" where it is the largest or smallest value of its type.
std::string shown_limit(const std::string& type, const std::string& limit);
// Returns the exact text of a real, for defaults and ranges.
std::string format_real(double value);

// NoParameters: the parameters of a component without any, `Parameters<NoParameters>()`.
struct NoParameters {};

template <class P>
class Parameters {
 public:
  Parameters&& flag(std::string name, bool P::*member, std::string doc) {
    return add<bool>(std::move(name), "bool", member, std::nullopt, std::move(doc), read_bool,
                     [](bool v) { return std::string(v ? "true" : "false"); });
  }
  Parameters&& integer(std::string name, std::int64_t P::*member, Range<std::int64_t> range,
                       std::string doc) {
    return add<std::int64_t>(std::move(name), "integer", member, range, std::move(doc), read_integer,
                             [](std::int64_t v) { return std::to_string(v); });
  }
  Parameters&& real(std::string name, double P::*member, Range<double> range, std::string doc) {
    return add<double>(std::move(name), "real", member, range, std::move(doc), read_real, format_real);
  }
  Parameters&& time(std::string name, Time P::*member, Range<Time> range, std::string doc) {
    return add<Time>(std::move(name), "time", member, range, std::move(doc), read_time, format_time);
  }
  Parameters&& bytes(std::string name, Bytes P::*member, Range<Bytes> range, std::string doc) {
    return add<Bytes>(std::move(name), "bytes", member, range, std::move(doc), read_bytes, format_bytes);
  }
  Parameters&& rate(std::string name, BitRate P::*member, Range<BitRate> range, std::string doc) {
    return add<BitRate>(std::move(name), "rate", member, range, std::move(doc), read_rate, format_rate);
  }
  // Declare parameters whose default depends on other parameters or on the network. An absent key leaves the
  // member empty; `computed` describes the value that is then used.
  Parameters&& integer(std::string name, std::optional<std::int64_t> P::*member, Range<std::int64_t> range,
                       std::string computed, std::string doc) {
    return compute(add<std::int64_t>(std::move(name), "integer", member, range, std::move(doc), read_integer,
                                     [](std::int64_t v) { return std::to_string(v); }),
                   std::move(computed));
  }
  Parameters&& time(std::string name, std::optional<Time> P::*member, Range<Time> range, std::string computed,
                    std::string doc) {
    return compute(add<Time>(std::move(name), "time", member, range, std::move(doc), read_time, format_time),
                   std::move(computed));
  }
  Parameters&& bytes(std::string name, std::optional<Bytes> P::*member, Range<Bytes> range,
                     std::string computed, std::string doc) {
    return compute(
        add<Bytes>(std::move(name), "bytes", member, range, std::move(doc), read_bytes, format_bytes),
        std::move(computed));
  }
  Parameters&& rate(std::string name, std::optional<BitRate> P::*member, Range<BitRate> range,
                    std::string computed, std::string doc) {
    return compute(
        add<BitRate>(std::move(name), "rate", member, range, std::move(doc), read_rate, format_rate),
        std::move(computed));
  }
  Parameters&& text(std::string name, std::string P::*member, std::string doc) {
    return add<std::string>(std::move(name), "text", member, std::nullopt, std::move(doc), read_text,
                            [](const std::string& v) { return v; });
  }
  // Declares a name or a list of names, which the component itself checks. The node is kept for read_names().
  // An absent key leaves it null, which read_names() takes for `default_name`.
  Parameters&& names(std::string name, ConfigNode P::*member, std::string default_name, std::string doc);
  // Declares a parameter that is one of a few names, each mapped to an enum value.
  template <class E>
  Parameters&& choice(std::string name, E P::*member, std::vector<std::pair<std::string, E>> names,
                      std::string doc);
  // Declares a nested map with parameters of its own.
  template <class S>
  Parameters&& section(std::string name, S P::*member, const Parameters<S>& nested, std::string doc);
  // Declares a nested map whose parameters are members of the same struct.
  Parameters&& section(std::string name, const Parameters& nested, std::string doc);
  // Declares a nested component `{kind: NAME, its parameters...}` of the registry `component_kind`. The node
  // is kept, and its keys are checked when the component is created. An absent key leaves it null, which
  // stands for the registry's default. A bare scalar NAME stands for {kind: NAME}.
  Parameters&& component(std::string name, ConfigNode P::*member, std::string component_kind,
                         std::string default_name, std::string doc);

  // Declares a list of nested components, which the component makes from the kept node. An absent key leaves
  // it null.
  Parameters&& component_list(std::string name, ConfigNode P::*member, std::string component_kind,
                              std::string doc);

  // Declares a list that the component reads from the kept node. An absent key leaves it null.
  Parameters&& list(std::string name, ConfigNode P::*member, std::string doc);

  // Declares a map of lists by name, which the component reads from the kept node. An absent key leaves it
  // null.
  Parameters&& lists_by_name(std::string name, ConfigNode P::*member, std::string doc);

  // Declares a map of sections by name, each with the parameters `each`. The component reads it from the kept
  // node. An absent key leaves it null.
  Parameters&& sections(std::string name, ConfigNode P::*member, ParameterTable each, std::string doc);

  // Makes the last parameter required: where it is absent, parse() throws ConfigError at the enclosing map.
  Parameters&& required();

  // Parses a map; null stands for all defaults. `also_allowed` names keys that other code reads ("kind").
  P parse(const ConfigNode& node, const std::vector<std::string>& also_allowed = {}) const {
    P values;
    read_map(node, also_allowed, false, values);
    return values;
  }
  // Parses a map over `values` that were read before. Parameters that the map does not have keep their value,
  // in sections too. A component or list replaces the earlier one as a whole, and null stands for the
  // default.
  P parse_over(P values, const ConfigNode& node) const {
    read_map(node, {}, true, values);
    return values;
  }
  const ParameterTable& table() const { return table_; }

 private:
  struct Binding {
    std::function<void(P&, const ConfigNode&)> read;
    std::function<void(P&)> clear;                              // restores the default
    std::function<void(P&, const ConfigNode&)> read_over = {};  // used by parse_over() for sections
    bool required = false;
  };
  void read_map(const ConfigNode& node, const std::vector<std::string>& also_allowed, bool over,
                P& values) const;
  // Adds a parameter that is kept as a node.
  void keep(ParameterInfo info, ConfigNode P::*member) {
    table_.push_back(std::move(info));
    bindings_.push_back({[member](P& p, const ConfigNode& node) { p.*member = node; },
                         [member](P& p) { p.*member = ConfigNode(); }});
  }
  template <class T, class Member, class Limits, class Read, class Format>
  Parameters&& add(std::string name, std::string type, Member member, Limits range, std::string doc,
                   Read read, Format format) {
    ParameterInfo info;
    info.name = std::move(name);
    info.type = std::move(type);
    info.doc = std::move(doc);
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(P{}.*member)>, T>)
      info.default_text = format(P{}.*member);
    Binding binding;
    binding.clear = [member](P& p) { p.*member = P{}.*member; };
    if constexpr (std::is_same_v<Limits, std::nullopt_t>) {
      binding.read = [member, read](P& p, const ConfigNode& node) { p.*member = read(node); };
    } else {
      info.minimum_text = format(range.minimum);
      info.maximum_text = format(range.maximum);
      binding.read = [member, read, range, low = info.minimum_text, high = info.maximum_text](
                         P& p, const ConfigNode& node) {
        if (range.minimum > T{} && is_negative(node)) out_of_range(node, low, high);
        const T value = read(node);
        if (value < range.minimum || value > range.maximum) out_of_range(node, low, high);
        p.*member = value;
      };
    }
    table_.push_back(std::move(info));
    bindings_.push_back(std::move(binding));
    return std::move(*this);
  }

  // Marks the parameter that was added last as computed.
  static Parameters&& compute(Parameters&& parameters, std::string computed) {
    parameters.table_.edit().back().computed = std::move(computed);
    return std::move(parameters);
  }

  ParameterTable table_;
  std::vector<Binding> bindings_;
};

template <class P>
template <class E>
Parameters<P>&& Parameters<P>::choice(std::string name, E P::*member,
                                      std::vector<std::pair<std::string, E>> names, std::string doc) {
  ParameterInfo info;
  info.name = std::move(name);
  info.type = "choice";
  info.doc = std::move(doc);
  for (const auto& [word, value] : names) {
    info.choices.push_back(word);
    if (value == P{}.*member) info.default_text = word;
  }
  Binding binding;
  binding.clear = [member](P& p) { p.*member = P{}.*member; };
  binding.read = [member, names](P& p, const ConfigNode& node) {
    const std::string given = read_text(node);
    std::string allowed;
    for (const auto& [word, value] : names) {
      if (word == given) {
        p.*member = value;
        return;
      }
      append_item(allowed, word);
    }
    node.fail("'" + given + "' is not one of: " + allowed);
  };
  table_.push_back(std::move(info));
  bindings_.push_back(std::move(binding));
  return std::move(*this);
}

template <class P>
template <class S>
Parameters<P>&& Parameters<P>::section(std::string name, S P::*member, const Parameters<S>& nested,
                                       std::string doc) {
  table_.push_back(section_info(std::move(name), nested.table(), std::move(doc)));
  bindings_.push_back({[member, nested](P& p, const ConfigNode& node) { p.*member = nested.parse(node); },
                       [](P&) {},  // an empty section changes nothing
                       [member, nested](P& p, const ConfigNode& node) {
                         p.*member = nested.parse_over(std::move(p.*member), node);
                       }});
  return std::move(*this);
}

template <class P>
Parameters<P>&& Parameters<P>::section(std::string name, const Parameters& nested, std::string doc) {
  table_.push_back(section_info(std::move(name), nested.table(), std::move(doc)));
  bindings_.push_back({[nested](P& p, const ConfigNode& node) { nested.read_map(node, {}, false, p); },
                       [](P&) {},  // an empty section changes nothing
                       [nested](P& p, const ConfigNode& node) { nested.read_map(node, {}, true, p); }});
  return std::move(*this);
}

template <class P>
Parameters<P>&& Parameters<P>::component_list(std::string name, ConfigNode P::*member,
                                              std::string component_kind, std::string doc) {
  ParameterInfo info = component_info(std::move(name), std::move(component_kind), "", std::move(doc));
  info.type = "component_list";
  keep(std::move(info), member);
  return std::move(*this);
}

template <class P>
Parameters<P>&& Parameters<P>::component(std::string name, ConfigNode P::*member, std::string component_kind,
                                         std::string default_name, std::string doc) {
  keep(component_info(std::move(name), std::move(component_kind), std::move(default_name), std::move(doc)),
       member);
  return std::move(*this);
}

template <class P>
Parameters<P>&& Parameters<P>::list(std::string name, ConfigNode P::*member, std::string doc) {
  keep(list_info(std::move(name), "list", std::move(doc)), member);
  return std::move(*this);
}

template <class P>
Parameters<P>&& Parameters<P>::lists_by_name(std::string name, ConfigNode P::*member, std::string doc) {
  keep(list_info(std::move(name), "lists", std::move(doc)), member);
  return std::move(*this);
}

template <class P>
Parameters<P>&& Parameters<P>::sections(std::string name, ConfigNode P::*member, ParameterTable each,
                                        std::string doc) {
  ParameterInfo info = section_info(std::move(name), std::move(each), std::move(doc));
  info.type = "sections";
  keep(std::move(info), member);
  return std::move(*this);
}

template <class P>
Parameters<P>&& Parameters<P>::names(std::string name, ConfigNode P::*member, std::string default_name,
                                     std::string doc) {
  keep(names_info(std::move(name), std::move(default_name), std::move(doc)), member);
  return std::move(*this);
}

template <class P>
Parameters<P>&& Parameters<P>::required() {
  bindings_.back().required = true;
  ParameterInfo& last = table_.edit().back();
  last.required = true;
  last.default_text.clear();
  return std::move(*this);
}

template <class P>
void Parameters<P>::read_map(const ConfigNode& node, const std::vector<std::string>& also_allowed, bool over,
                             P& values) const {
  std::vector<std::string> allowed = also_allowed;
  for (const auto& info : table_) allowed.push_back(info.name);
  node.allow_keys(allowed);
  for (std::size_t i = 0; i < table_.size(); ++i) {
    const ConfigNode* entry = node.find(table_[i].name);
    const Binding& binding = bindings_[i];
    if (entry != nullptr && entry->is_null() && !binding.required) refuse_empty(table_[i], *entry);
    if (entry != nullptr && !entry->is_null()) {
      (over && binding.read_over ? binding.read_over : binding.read)(values, *entry);
    } else if (over) {
      if (entry != nullptr) binding.clear(values);
    } else if (binding.required) {
      node.fail("'" + table_[i].name + "' is missing (" + table_[i].type + "): " + table_[i].doc);
    }
  }
}

}  // namespace netsim
