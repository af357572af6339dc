// infragraph: the fabric of an InfraGraph document (infragraph.h): switches, and the links between instances.
// A device without xpus is one switch, whatever it consists of. Parameters set rates and delays for links
// without figures in the file. Its latencies are taken as cable and forwarding together.
#include <string>

#include "sim/core/registry.h"
#include "sim/topology/files/file_parameters.h"
#include "sim/topology/files/infragraph/infragraph.h"

namespace netsim {

namespace {

struct InfragraphParameters : EthernetParameters, ChannelParameters {
  std::string file;
};

Parameters<InfragraphParameters> infragraph_fabric_parameters() {
  using P = InfragraphParameters;
  Parameters<P> p = with_file(Parameters<P>(), "the InfraGraph document (YAML, JSON or protobuf)");
  p.rate("rate", &P::rate, kLinkRates,
         "rate of links between instances for which the file states no bandwidth")
      .time("delay", &P::delay, kFabricDelays,
            "delay of links between instances for which the file states no latency");
  return with_link_kind(with_channels(std::move(p)));
}

}  // namespace

std::vector<HostsOfFile> infragraph_groups(const ConfigNode& component) {
  const DescribedCluster cluster = read_infragraph_file(component);
  const std::vector<DescribedHosts> kinds = hosts_of(cluster);
  std::vector<HostsOfFile> groups;
  if (kinds.size() == 1) return groups;
  groups.reserve(kinds.size());
  for (const DescribedHosts& hosts : kinds) {
    groups.push_back({{{"instance", cluster.units[hosts.units.front()].name}},
                      static_cast<std::uint32_t>(hosts.units.size())});
  }
  return groups;
}

namespace {

bool is_infragraph(const Excerpt& file) {
  if (file.has_any_key({"infrastructure", "devices"})) return true;
  if (file.has_key("components") && file.has_any_key({"edges", "links"})) return true;
  if (file.has_keys({"directed", "edges", "nodes"})) return true;
  return file.has_key("device") && file.contains("components:");
}

const FormatRegistration kInfragraphFabricFormat{{.name = "infragraph",
                                                  .what = "an InfraGraph infrastructure",
                                                  .use = Format::Use::topology,
                                                  .matches = is_infragraph,
                                                  .component = "infragraph",
                                                  .advice = {},
                                                  .endings = {".yaml", ".json"},
                                                  .groups = infragraph_groups}};

const Registration<Topology> kInfragraphFabric{
    "infragraph", "the switches and links of an InfraGraph document; for its hosts, the host infragraph",
    infragraph_fabric_parameters(), [](const InfragraphParameters& p, const ConfigNode& where) {
      const DescribedCluster cluster = read_infragraph_file(where);
      return described_fabric(cluster, p.link(), p, where);
    }};

}  // namespace

}  // namespace netsim
