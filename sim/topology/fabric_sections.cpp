#include "sim/topology/fabric_sections.h"

#include <algorithm>

#include "sim/core/text.h"

namespace netsim {
namespace {

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) append_item(text, name);
  return text;
}

bool has(const ParameterTable& table, const std::string& name) {
  return std::any_of(table.begin(), table.end(),
                     [&](const ParameterInfo& info) { return info.name == name; });
}

[[noreturn]] void refuse_name(const std::string& name, const ConfigNode& section, const Cluster& cluster) {
  const std::vector<std::string> packet = cluster.packet_fabric_names();
  const std::string allowed = packet.empty() ? "none, the cluster has no packet fabric" : listed(packet);
  const bool there = std::any_of(cluster.fabrics.begin(), cluster.fabrics.end(),
                                 [&](const ClusterFabric& fabric) { return fabric.name == name; });
  if (there) {
    throw ConfigError(section.key_place(), "fabric '" + name +
                                               "' is no packet fabric: its links are NVLinks, whose figures "
                                               "are the topology's and the host's (allowed: " +
                                               allowed + ")");
  }
  throw ConfigError(section.key_place(),
                    "no fabric '" + name + "'" + did_you_mean(name, packet) + " (allowed: " + allowed + ")");
}

}  // namespace

std::vector<const ConfigNode*> fabric_sections(const ConfigNode& map, const Cluster& cluster) {
  std::vector<const ConfigNode*> sections(cluster.fabrics.size(), nullptr);
  if (map.is_null()) return sections;
  if (!map.is_map()) map.fail("expected sections by fabric, {NAME: {...}, ...}");
  for (const auto& [name, section] : map.entries()) {
    const auto at = std::find_if(
        cluster.fabrics.begin(), cluster.fabrics.end(),
        [&wanted = name](const auto& fabric) { return !fabric.scale_up && fabric.name == wanted; });
    if (at == cluster.fabrics.end()) refuse_name(name, section, cluster);
    sections[static_cast<std::size_t>(at - cluster.fabrics.begin())] = &section;
  }
  return sections;
}

void check_fabric_keys(const ConfigNode& section, const ParameterTable& of_all,
                       const ParameterTable& of_fabric, const std::string& path) {
  std::vector<std::string> allowed;
  for (const ParameterInfo& info : of_fabric) allowed.push_back(info.name);
  for (const auto& [key, value] : section.entries()) {
    if (!has(of_all, key) || has(of_fabric, key)) continue;
    throw ConfigError(value.key_place(), "'" + key + "' is common to all fabrics: give it in " + path +
                                             " (a fabric may have its own " + listed(allowed) + ")");
  }
  section.allow_keys(allowed);
}

}  // namespace netsim
