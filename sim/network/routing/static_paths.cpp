// Static paths: the ways between given hosts are prescribed switch by switch; all other flows go by hash.
#include <algorithm>
#include <map>
#include <utility>

#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/network/policies.h"
#include "sim/topology/graph.h"
#include "sim/topology/link_names.h"

namespace netsim {
namespace {

struct StaticParameters {
  ConfigNode paths;
  bool reroute = false;
};

Parameters<StaticParameters> static_paths_parameters() {
  return Parameters<StaticParameters>()
      .list("paths", &StaticParameters::paths,
            "entries {from: NIC, to: NIC, through: [switch, ...]} by the names of the topology's nodes; "
            "`core0#2` "
            "is reached by the second of several links to it, `core0` by the first")
      .flag("reroute", &StaticParameters::reroute,
            "while a link of a prescribed path is known to be down, its flows are routed by hash; false: "
            "they stay on the path and are lost, as with an explicit route without fast reroute (RFC 3209, "
            "RFC 4090)");
}

using Ends = std::pair<std::string, std::string>;

// Returns the neighbour of `at` with this name. Throws ConfigError, at `where`, if there is none.
NodeId next_node(const Graph& graph, NodeId at, const std::string& name, const ConfigNode& where) {
  const PortId port = port_to(graph, at, name);
  if (port != kNoId) return graph.port(port).peer_node;
  where.fail(graph.node(at).name + " has no link to '" + name + "'");
}

bool is_nic(const Graph& graph, NodeId node) {
  const auto ports = graph.ports_of(node);
  return !is_switch(graph, node) && std::any_of(ports.begin(), ports.end(), [&](PortId port) {
    return is_switch(graph, graph.port(port).peer_node);
  });
}

// Returns the NIC at the end of a path. Throws ConfigError for other nodes, because no flow comes from them
// or goes to them.
NodeId find_nic(const Graph& graph, const ConfigNode& where) {
  std::vector<std::string> names;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const bool nic = is_nic(graph, id);
    if (nic) names.push_back(graph.node(id).name);
    if (graph.node(id).name != where.text()) continue;
    if (!nic)
      where.fail("'" + where.text() + "' is no NIC with a link into a fabric; paths join two such NICs");
    return id;
  }
  where.fail("no NIC '" + where.text() + "'" + did_you_mean(where.text(), names));
}

class StaticPaths final : public RoutingPolicy {
 public:
  StaticPaths(std::map<Ends, std::vector<std::string>> paths, const StaticParameters& p)
      : paths_(std::move(paths)), given_(p.paths), reroute_(p.reroute) {}
  void prepare(const Graph& graph) override {
    for (const ConfigNode& path : given_.items()) {
      NodeId at = find_nic(graph, *path.find("from"));
      find_nic(graph, *path.find("to"));
      for (const ConfigNode& name : path.find("through")->items()) {
        at = next_node(graph, at, name.text(), name);
        if (!is_switch(graph, at)) name.fail("'" + name.text() + "' is no switch of the fabric");
      }
      next_node(graph, at, path.find("to")->text(), *path.find("to"));
    }
  }
  const std::vector<std::string>* fixed_path(const std::string& from, const std::string& to) const override {
    const auto at = paths_.find({from, to});
    return at != paths_.end() ? &at->second : nullptr;
  }
  std::vector<std::pair<std::string, std::string>> fixed_ends() const override {
    std::vector<Ends> ends;
    for (const auto& [pair, names] : paths_) ends.push_back(pair);
    return ends;
  }
  bool leaves_fixed_path() const override { return reroute_; }

 private:
  std::map<Ends, std::vector<std::string>> paths_;
  ConfigNode given_;
  bool reroute_;
};

const ConfigNode& entry(const ConfigNode& path, const char* key) {
  const ConfigNode* node = path.find(key);
  if (node == nullptr) path.fail(std::string("'") + key + "' is missing");
  return *node;
}

// Throws ConfigError if there are no paths. All flows would then go by hash, which is the policy ecmp.
void require_paths(const ConfigNode& paths, const ConfigNode& where) {
  if (!paths.is_null() && !paths.is_sequence()) paths.fail("expected a list of paths");
  if (!paths.items().empty()) return;
  (paths.is_null() ? where : paths)
      .fail(
          "'static' needs paths: {kind: static, paths: [{from: host0, to: host1, through: [switch0]}]}, "
          "names as in links.csv; flows without a path are routed by hash; 'ecmp' does so for all");
}

std::unique_ptr<RoutingPolicy> make(const StaticParameters& p, const ConfigNode& where) {
  std::map<Ends, std::vector<std::string>> paths;
  require_paths(p.paths, where);
  for (const ConfigNode& path : p.paths.items()) {
    path.allow_keys({"from", "to", "through"});
    const Ends ends{read_text(entry(path, "from")), read_text(entry(path, "to"))};
    const ConfigNode& through = entry(path, "through");
    if (ends.first == ends.second) {
      entry(path, "to")
          .fail("a path from '" + ends.first +
                "' to itself: a NIC sends itself nothing over a link; give another NIC");
    }
    if (!through.is_sequence() || through.items().empty()) through.fail("expected a list of switches");
    std::vector<std::string>& names = paths[ends];
    if (!names.empty()) path.fail("a second path from " + ends.first + " to " + ends.second);
    for (const ConfigNode& name : through.items()) names.push_back(read_text(name));
  }
  return std::make_unique<StaticPaths>(std::move(paths), p);
}

const Registration<RoutingPolicy> kStatic{
    "static", "prescribed paths between given NICs, switch by switch; other flows by hash",
    static_paths_parameters(), make};

}  // namespace
}  // namespace netsim
