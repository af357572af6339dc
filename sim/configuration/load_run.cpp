#include "sim/configuration/load_run.h"

#include <algorithm>
#include <filesystem>

#include "sim/core/input_file.h"
#include "sim/core/output.h"
#include "sim/core/recognise.h"
#include "sim/core/registry.h"
#include "sim/topology/topology.h"

namespace netsim {
namespace {

const FormatRegistration kConfiguration{{.name = "netsim_configuration",
                                         .what = "a configuration of netsim",
                                         .use = Format::Use::configuration,
                                         .matches =
                                             [](const Excerpt& file) {
                                               return file.has_any_key({"topology", "fabrics"}) &&
                                                      !file.has_any_key(
                                                          {"kind", "npus_count", "msccl_type", "sccl_type"});
                                             },
                                         .component = {},
                                         .advice = {},
                                         .endings = {".yaml", ".yml"}}};

constexpr std::uint64_t kMostText = 4 << 20;

// Returns the section with the format's component, which reads the file.
ConfigNode component_of_file(const Format& format, const std::string& path, const std::string& section) {
  ConfigNode node = ConfigNode::map(Place{path, 0, 0, section});
  node.at_or_add("kind") = ConfigNode::scalar(format.component, Place{path, 0, 0, section + ".kind"});
  node.at_or_add("file") = ConfigNode::scalar(std::filesystem::path(path).filename().string(),
                                              Place{path, 0, 0, section + ".file"});
  return node;
}

// Returns a host group for each kind of host.
ConfigNode groups_of_file(const ConfigNode& host, const std::vector<HostsOfFile>& groups) {
  const std::string& file = host.place().file;
  ConfigNode list = ConfigNode::sequence(Place{file, 0, 0, "hosts"});
  for (const HostsOfFile& group : groups) {
    const Place place{file, 0, 0, "hosts[" + std::to_string(list.items().size()) + "]"};
    ConfigNode item = host;
    for (const auto& [key, value] : group.parameters) item.at_or_add(key) = ConfigNode::scalar(value, place);
    item.at_or_add("count") = ConfigNode::scalar(std::to_string(group.count), place);
    list.push_back(std::move(item));
  }
  return list;
}

// Reads the configuration. A file that also describes its hosts uses the host kind with its topology's name.
ConfiguredRun read_run(const std::string& path, const RunOverrides& overrides) {
  const Format* format = recognise_file(path);
  const auto refuse = [&](const std::string& message) { throw ConfigError(Place{path, 0, 0, ""}, message); };
  if (format == nullptr) return {load_config(path), "", kNever, {}};
  const bool topology = format->use == Format::Use::topology;
  if (!topology && format->use != Format::Use::configuration) refuse(refusal(*format));
  if (is_packed(path)) refuse("is " + format->what + ", packed: unpack it first");
  if (format->name == "ns3_config") return translate_ns3_config(read_file(path, kMostText), path, overrides);
  if (!topology) return {load_config(path), "", kNever, {}};
  ConfiguredRun run;
  run.config = ConfigNode::map(Place{path, 0, 0, ""});
  run.config.at_or_add("topology") = component_of_file(*format, path, "topology");
  const std::vector<std::string> hosts = Registry<Host>::instance().names();
  if (std::find(hosts.begin(), hosts.end(), format->component) == hosts.end()) return run;
  const ConfigNode host = component_of_file(*format, path, "host");
  const std::vector<HostsOfFile> groups =
      format->groups == nullptr ? std::vector<HostsOfFile>() : format->groups(host);
  if (groups.empty()) run.config.at_or_add("host") = host;
  if (!groups.empty()) run.config.at_or_add("hosts") = groups_of_file(host, groups);
  return run;
}

}  // namespace

ConfiguredRun load_run(const std::string& path, const RunOverrides& overrides) {
  ConfiguredRun run = read_run(path, overrides);
  for (const std::string& assignment : overrides.assignments) overlay_config(run.config, assignment);
  return run;
}

}  // namespace netsim
