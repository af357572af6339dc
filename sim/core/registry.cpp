#include "sim/core/registry.h"

#include "sim/core/description.h"

namespace netsim {

Catalogue& Catalogue::instance() {
  static Catalogue catalogue;
  return catalogue;
}

void Catalogue::add(ComponentInfo info) {
  auto key = std::make_pair(info.kind, info.name);
  const std::string name = info.kind + "." + info.name;
  NETSIM_CHECK(components_.emplace(std::move(key), std::move(info)).second, name + " is registered twice");
}

std::vector<const ComponentInfo*> Catalogue::all() const {
  std::vector<const ComponentInfo*> result;
  for (const auto& [key, info] : components_) result.push_back(&info);
  return result;
}

std::vector<std::string> Catalogue::kinds() const {
  std::vector<std::string> result;
  for (const auto& [key, info] : components_) {
    if (result.empty() || result.back() != key.first) result.push_back(key.first);
  }
  return result;
}

std::vector<std::string> Catalogue::names(const std::string& kind) const {
  std::vector<std::string> result;
  for (const auto& [key, info] : components_) {
    if (key.first == kind) result.push_back(key.second);
  }
  return result;
}

const ComponentInfo* Catalogue::find(const std::string& kind, const std::string& name) const {
  const auto it = components_.find({kind, name});
  return it == components_.end() ? nullptr : &it->second;
}

namespace {

constexpr std::size_t kWideLines = 120;

}  // namespace

std::string describe_parameters(const ParameterTable& table) {
  return describe_parameters(table, kWideLines);
}
std::string describe(const ComponentInfo& component) { return describe(component, kWideLines); }

}  // namespace netsim
