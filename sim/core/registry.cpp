#include "sim/core/registry.h"

#include "sim/core/description.h"
#include "sim/core/text.h"

namespace netsim {

Catalogue& Catalogue::instance() {
  static Catalogue catalogue;
  return catalogue;
}

void Catalogue::add(ComponentInfo info, Factory factory) {
  const std::string what = info.kind + " '" + info.name + "' ";
  if (frozen_) {
    faults_.push_back(what + "is registered too late, after a component was made: " + info.source);
    return;
  }
  const std::string source = info.source;
  auto key = std::make_pair(info.kind, info.name);
  const auto [other, added] =
      components_.try_emplace(std::move(key), Entry{std::move(info), std::move(factory)});
  if (!added) {
    faults_.push_back(what + "is registered twice: " + other->second.info.source + " and " + source);
    return;
  }
  complete_ = false;
}

const Catalogue::Components& Catalogue::complete() const {
  if (!complete_) {
    complete_ = true;
    merge_keys();
  }
  return components_;
}

// The order of registration does not matter: the components are taken by their names.
void Catalogue::merge_keys() const {
  for (auto& [key, entry] : components_) {
    if (entry.own) entry.info.parameters = *entry.own;
  }
  for (const auto& [key, component] : components_) {
    const ComponentInfo& info = component.info;
    if (info.has_map()) continue;
    const auto owner = components_.find({info.owner_kind, info.owner});
    if (owner == components_.end()) continue;
    Entry& entry = owner->second;
    if (!entry.own) entry.own = entry.info.parameters;
    const std::string both = merge_parameters(entry.info.parameters, info.parameters);
    if (!both.empty()) {
      faults_.push_back(info.kind + " '" + info.name + "' has the key '" + both + "' of " + info.owner_kind +
                        " '" + info.owner + "', which is taken: " + info.source);
    }
  }
}

void Catalogue::check() const {
  complete();
  if (!faults_.empty()) throw ConfigError(faults_.front());
}

void Catalogue::freeze() {
  check();
  frozen_ = true;
}

std::vector<const ComponentInfo*> Catalogue::all() const {
  std::vector<const ComponentInfo*> result;
  for (const auto& [key, entry] : complete()) result.push_back(&entry.info);
  return result;
}

std::vector<std::string> Catalogue::kinds() const {
  std::vector<std::string> result;
  for (const auto& [key, entry] : complete()) {
    if (result.empty() || result.back() != key.first) result.push_back(key.first);
  }
  return result;
}

std::vector<std::string> Catalogue::names(const std::string& kind) const {
  std::vector<std::string> result;
  for (const auto& [key, entry] : complete()) {
    if (key.first == kind) result.push_back(key.second);
  }
  return result;
}

std::vector<std::string> Catalogue::chosen_names(const std::string& kind) const {
  std::vector<std::string> result;
  for (const auto& [key, entry] : complete()) {
    if (key.first == kind && entry.info.has_map()) result.push_back(key.second);
  }
  return result;
}

std::vector<const ComponentInfo*> Catalogue::keys_of(const std::string& kind, const std::string& name) const {
  std::vector<const ComponentInfo*> result;
  for (const auto& [key, entry] : complete()) {
    if (entry.info.owner_kind == kind && entry.info.owner == name && !entry.info.has_map())
      result.push_back(&entry.info);
  }
  return result;
}

const ComponentInfo* Catalogue::find(const std::string& kind, const std::string& name) const {
  const auto it = complete().find({kind, name});
  return it == components_.end() ? nullptr : &it->second.info;
}

const Catalogue::Factory* Catalogue::factory(const std::string& kind, const std::string& name) const {
  const auto it = complete().find({kind, name});
  return it == components_.end() || !it->second.factory ? nullptr : &it->second.factory;
}

std::string component_name(const ConfigNode& node, const std::string& default_name, const std::string& kind) {
  if (node.is_scalar()) return node.text();
  if (const ConfigNode* given = node.find("kind"); given != nullptr) return read_text(*given);
  if (default_name.empty()) node.fail("'kind' is missing: which " + kind);
  return default_name;
}

ConfigNode own_entries(const ConfigNode& node, const std::string& kind, const std::string& name,
                       const ParameterTable& own) {
  const Catalogue& catalogue = Catalogue::instance();
  if (catalogue.keys_of(kind, name).empty()) return node;
  refuse_unknown_keys(catalogue.find(kind, name)->parameters, node, {"kind"});
  ParameterTable also = own;
  also.edit().emplace_back().name = "kind";
  return entries_of(also, node);
}

void unknown_component(const ConfigNode& node, const std::string& kind, const std::string& name) {
  const std::vector<std::string> names = Catalogue::instance().chosen_names(kind);
  std::string known;
  for (const std::string& other : names) append_item(known, other);
  if (known.empty()) known = "none";
  const ConfigNode* given = node.find("kind");
  (given != nullptr ? *given : node)
      .fail("unknown " + kind + " '" + name + "'" + did_you_mean(name, names) + " (known: " + known +
            "; those of a plugin need --plugin FILE)");
}

namespace {

constexpr std::size_t kWideLines = 120;

}  // namespace

std::string describe_parameters(const ParameterTable& table) {
  return describe_parameters(table, kWideLines);
}
std::string describe(const ComponentInfo& component) { return describe(component, kWideLines); }

}  // namespace netsim
