// Parameters: a component's parameters are declared once; that one declaration parses them, gives defaults,
// ranges and units, rejects unknown keys with the nearest name, and prints --describe, the JSON schema and
// the docs table.
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

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/units.h"

namespace netsim {

// Inclusive limits of a numeric parameter.
template <class T>
struct Range {
  T minimum;
  T maximum;
};

// What is known about one parameter, for documentation and schemas.
struct ParameterInfo {
  std::string name;
  // bool integer real time bytes rate text choice names component section list; components, sections: by
  // name; groups: a number, or a list of components with a `count` each.
  std::string type;
  std::string default_text;  // in the notation the user writes; "" = required or computed
  std::string computed;      // in words, where the default depends on other values: "by profile"
  bool required = false;
  std::string minimum_text, maximum_text;  // "" = unlimited
  std::vector<std::string> choices;        // for choice: the names; for component: filled from the registry
  std::string component_kind;              // for components: the registry's name
  std::string doc;
  std::vector<ParameterInfo> children;  // for section; for sections: of each
};
using ParameterTable = std::vector<ParameterInfo>;

// Entries of a table: a map with fixed keys, or a component of the registry `component_kind` ("" as
// default_name: `kind` must be given).
ParameterInfo section_info(std::string name, ParameterTable parameters, std::string doc);
ParameterInfo component_info(std::string name, std::string component_kind, std::string default_name,
                             std::string doc);

ParameterInfo names_info(std::string name, std::string default_name, std::string doc);
// What a parameter of type `names` holds, as nodes that know their places.
std::vector<ConfigNode> read_names(const ConfigNode& node, const std::string& default_name);

// A key with nothing behind it, where a value belongs: ConfigError at the key. A section may be empty: all
// its parameters then have their defaults.
void refuse_empty(const ParameterInfo& parameter, const ConfigNode& node);

// Throws the ConfigError for a value outside its range.
[[noreturn]] void out_of_range(const ConfigNode& node, const std::string& minimum,
                               const std::string& maximum);
// A limit's text, or "" where it is the largest or smallest value of its type and so limits nothing.
std::string shown_limit(const std::string& type, const std::string& limit);
// Exact text of a real for defaults and ranges.
std::string format_real(double value);

// Of a component that has none: Parameters<NoParameters>().
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
  // The same for values whose default depends on other parameters or on the network: absent leaves the member
  // empty, and `computed` says in words what then holds.
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
  // A name or a list of names, whose meaning its user knows and checks: the node is kept, read_names() reads
  // it. Absent it stays null, which read_names() takes for `default_name`.
  Parameters&& names(std::string name, ConfigNode P::*member, std::string default_name, std::string doc);
  // One of a few names, mapped to an enum.
  template <class E>
  Parameters&& choice(std::string name, E P::*member, std::vector<std::pair<std::string, E>> names,
                      std::string doc);
  // A nested map with parameters of its own.
  template <class S>
  Parameters&& section(std::string name, S P::*member, const Parameters<S>& nested, std::string doc);
  // A nested component `{kind: NAME, its parameters...}` of the registry `component_kind`; the node itself is
  // kept (an absent one stays null: the registry's default is then used by whoever creates it) and its keys
  // are checked when the component is created. A bare scalar NAME stands for {kind: NAME}.
  Parameters&& component(std::string name, ConfigNode P::*member, std::string component_kind,
                         std::string default_name, std::string doc);

  // A list that whoever uses it reads by hand; absent: a null node.
  Parameters&& list(std::string name, ConfigNode P::*member, std::string doc);

  // A map of sections by name, each with parameters of `each`, that whoever uses it reads; absent: a null
  // node.
  Parameters&& sections(std::string name, ConfigNode P::*member, ParameterTable each, std::string doc);

  // Makes the last parameter required: absent is a ConfigError at the enclosing map's place.
  Parameters&& required();

  // Parses a map (or null: all defaults). `also_allowed`: further keys that someone else reads ("kind").
  P parse(const ConfigNode& node, const std::vector<std::string>& also_allowed = {}) const {
    P values;
    read_map(node, also_allowed, false, values);
    return values;
  }
  // The same over values that were read before: what the map does not speak of stays as it was, in sections
  // too; a component or list is given as a whole; null stands for the default.
  P parse_over(P values, const ConfigNode& node) const {
    read_map(node, {}, true, values);
    return values;
  }
  const ParameterTable& table() const { return table_; }

 private:
  struct Binding {
    std::function<void(P&, const ConfigNode&)> read;
    std::function<void(P&)> clear;                              // back to the default
    std::function<void(P&, const ConfigNode&)> read_over = {};  // of sections, where it is not `read`
    bool required = false;
  };
  void read_map(const ConfigNode& node, const std::vector<std::string>& also_allowed, bool over,
                P& values) const;
  // Of a parameter that is kept as the node it is.
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
        const T value = read(node);
        if (value < range.minimum || value > range.maximum) out_of_range(node, low, high);
        p.*member = value;
      };
    }
    table_.push_back(std::move(info));
    bindings_.push_back(std::move(binding));
    return std::move(*this);
  }

  // Marks the parameter just added.
  static Parameters&& compute(Parameters&& parameters, std::string computed) {
    parameters.table_.back().computed = std::move(computed);
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
      allowed += (allowed.empty() ? "" : ", ") + word;
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
                       [](P&) {},  // an empty section says nothing
                       [member, nested](P& p, const ConfigNode& node) {
                         p.*member = nested.parse_over(std::move(p.*member), node);
                       }});
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
  ParameterInfo info;
  info.name = std::move(name);
  info.type = "list";
  info.doc = std::move(doc);
  keep(std::move(info), member);
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
  table_.back().required = true;
  table_.back().default_text.clear();
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
