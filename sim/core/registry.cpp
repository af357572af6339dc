#include "sim/core/registry.h"

#include "sim/core/description.h"

namespace netsim {

Catalogue& Catalogue::instance() {
  static Catalogue catalogue;
  return catalogue;
}

void Catalogue::add(ComponentInfo info, Factory factory) {
  const std::string what = info.kind + " '" + info.name + "' ";
  const std::string source = info.source;
  if (frozen_) {
    faults_.push_back(what + "is registered too late, after a component was made: " + source);
    return;
  }
  auto key = std::make_pair(info.kind, info.name);
  const auto [other, added] =
      components_.try_emplace(std::move(key), Entry{std::move(info), std::move(factory)});
  if (!added)
    faults_.push_back(what + "is registered twice: " + other->second.info.source + " and " + source);
}

void Catalogue::check() const {
  if (!faults_.empty()) throw ConfigError(faults_.front());
}

void Catalogue::freeze() {
  check();
  frozen_ = true;
}

std::vector<const ComponentInfo*> Catalogue::all() const {
  std::vector<const ComponentInfo*> result;
  for (const auto& [key, entry] : components_) result.push_back(&entry.info);
  return result;
}

std::vector<std::string> Catalogue::kinds() const {
  std::vector<std::string> result;
  for (const auto& [key, entry] : components_) {
    if (result.empty() || result.back() != key.first) result.push_back(key.first);
  }
  return result;
}

std::vector<std::string> Catalogue::names(const std::string& kind) const {
  std::vector<std::string> result;
  for (const auto& [key, entry] : components_) {
    if (key.first == kind) result.push_back(key.second);
  }
  return result;
}

const ComponentInfo* Catalogue::find(const std::string& kind, const std::string& name) const {
  const auto it = components_.find({kind, name});
  return it == components_.end() ? nullptr : &it->second.info;
}

const Catalogue::Factory* Catalogue::factory(const std::string& kind, const std::string& name) const {
  const auto it = components_.find({kind, name});
  return it == components_.end() || !it->second.factory ? nullptr : &it->second.factory;
}

std::string component_name(const ConfigNode& node, const std::string& default_name, const std::string& kind) {
  if (node.is_scalar()) return node.text();
  if (const ConfigNode* given = node.find("kind"); given != nullptr) return read_text(*given);
  if (default_name.empty()) node.fail("'kind' is missing: which " + kind);
  return default_name;
}

void unknown_component(const ConfigNode& node, const std::string& kind, const std::string& name) {
  const std::vector<std::string> names = Catalogue::instance().names(kind);
  std::string known;
  for (const std::string& other : names) known += (known.empty() ? "" : ", ") + other;
  const std::string near = nearest(name, names);
  const ConfigNode* given = node.find("kind");
  (given != nullptr ? *given : node)
      .fail("unknown " + kind + " '" + name + "'" + (near.empty() ? "" : ", did you mean '" + near + "'?") +
            " (known: " + known + ")");
}

namespace {

constexpr std::size_t kWideLines = 120;

}  // namespace

std::string describe_parameters(const ParameterTable& table) {
  return describe_parameters(table, kWideLines);
}
std::string describe(const ComponentInfo& component) { return describe(component, kWideLines); }

}  // namespace netsim
