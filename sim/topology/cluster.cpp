#include <string>

#include "sim/core/parameters.h"
#include "sim/core/registry.h"
#include "sim/topology/topology.h"

namespace netsim {

namespace {

// The section, or a null node at the place of the whole configuration.
const ConfigNode& section(const ConfigNode& root, const char* key, const ConfigNode& absent) {
  const ConfigNode* node = root.find(key);
  return node != nullptr ? *node : absent;
}

void refuse_nothing(const ConfigNode* node, const std::string& type, const std::string& absent) {
  ParameterInfo info;
  info.type = type;
  info.default_text = absent;
  if (node != nullptr) refuse_empty(info, *node);
}

std::unique_ptr<Topology> create_topology(const ConfigNode& root) {
  const ConfigNode* node = root.find("topology");
  if (node == nullptr || node->is_null()) {
    std::string known;
    for (const std::string& name : Registry<Topology>::instance().names()) {
      known += (known.empty() ? "" : ", ") + name;
    }
    root.fail("'topology' is missing: {kind: ..., its parameters} (known: " + known + ")");
  }
  return Registry<Topology>::instance().create(*node, "");
}

// What fits, in words.
std::string capacity(std::uint32_t hosts, std::uint32_t nics, std::uint32_t host_ports) {
  return "the topology has " + std::to_string(host_ports) + " host ports, room for " + std::to_string(hosts) +
         " hosts of " + std::to_string(nics) + (nics == 1 ? " NIC" : " NICs");
}

std::uint32_t host_count(const ConfigNode& root, const Host& host, std::uint32_t host_ports) {
  const std::uint32_t room = host_ports / host.nics();
  const ConfigNode* hosts = root.find("hosts");
  refuse_nothing(hosts, "integer", "as many as fit, " + std::to_string(room));
  if (hosts == nullptr || hosts->is_null()) {
    if (room == 0) root.fail("no host fits: " + capacity(room, host.nics(), host_ports));
    return room;
  }
  const std::int64_t wanted = read_integer(*hosts);
  if (wanted < 1 || wanted > std::int64_t{room}) {
    hosts->fail(std::to_string(wanted) +
                " hosts; allowed: " + (room == 0 ? "none" : "1 to " + std::to_string(room)) + " (" +
                capacity(room, host.nics(), host_ports) + ")");
  }
  return static_cast<std::uint32_t>(wanted);
}

}  // namespace

Cluster build_cluster(const ConfigNode& root) {
  const std::unique_ptr<Topology> topology = create_topology(root);
  const ConfigNode absent;
  refuse_nothing(root.find("host"), "component", "single_nic");
  const std::unique_ptr<Host> host =
      Registry<Host>::instance().create(section(root, "host", absent), "single_nic");
  Cluster cluster;
  cluster.host_count = host_count(root, *host, topology->host_ports());
  cluster.gpu_model = host->gpu_model();
  cluster.acknowledge_every = host->acknowledge_every();
  cluster.host_numbers = topology->host_numbers();
  for (std::uint32_t h = 0; h < cluster.host_count; ++h) {
    const auto numbers = std::span<const std::uint32_t>(cluster.host_numbers);
    const HostBuild built =
        host->build(cluster.graph, h,
                    numbers.empty() ? numbers : numbers.subspan(std::size_t{h} * host->nics(), host->nics()));
    cluster.gpus.insert(cluster.gpus.end(), built.gpus.begin(), built.gpus.end());
    for (std::uint32_t rail = 0; rail < built.nics.size(); ++rail)
      cluster.nics.push_back({.nic = built.nics[rail], .host = h, .rail = rail});
  }
  cluster.routes = topology->build(cluster.graph, cluster.nics);
  return cluster;
}

}  // namespace netsim
