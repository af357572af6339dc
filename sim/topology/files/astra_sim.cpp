// astra_sim: the network file of ASTRA-sim's analytical backend (network.yml). It has topology, npus_count,
// bandwidth and latency by dimension, the innermost first. An NPU is a host; bandwidth (GB/s) and latency
// (ns) are those of each link, one way (astra-network-analytical, input/*.yml).
//
// The size of a GB depends on the tool's version: 2^30 bytes until 2025, 10^9 since (common/NetworkFunction).
// The parameter `gigabyte` selects it; the default is decimal.
#include <algorithm>
#include <string>
#include <vector>

#include "sim/core/registry.h"
#include "sim/topology/files/file_parameters.h"
#include "sim/topology/multi_dimensional.h"

namespace netsim {

namespace {

struct AstraParameters : FileFabricParameters {
  bool binary = false;
};

const Parameters<AstraParameters>& astra_sim_parameters() {
  using P = AstraParameters;
  static const auto p =
      with_file_fabric(Parameters<P>(), "the network.yml")
          .choice("gigabyte", &P::binary, {{"decimal", false}, {"binary", true}},
                  "unit of the file's GB/s: 10^9 bytes, or 2^30 bytes as in the tool until 2025");
  return p;
}

const std::vector<ConfigNode>& list_of(const ConfigNode& root, const char* key, std::size_t count) {
  const ConfigNode* list = root.find(key);
  if (list == nullptr) root.fail(std::string("'") + key + "' is missing");
  if (!list->is_sequence()) list->fail("a list with an entry for each dimension is expected");
  if (count != 0 && list->items().size() != count) {
    list->fail(std::to_string(list->items().size()) + " entries; " + std::to_string(count) +
               " are expected, as `topology` has them");
  }
  return list->items();
}

GridDimension::Shape shape_of(const ConfigNode& item) {
  const std::string name = read_text(item);
  if (name == "Ring") return GridDimension::Shape::ring;
  if (name == "FullyConnected") return GridDimension::Shape::full_mesh;
  if (name == "Switch") return GridDimension::Shape::star;
  item.fail("'" + name + "' is none of Ring, FullyConnected, Switch");
}

std::uint32_t npus_of(const ConfigNode& item) {
  const std::int64_t npus = read_integer(item);
  if (npus < 1 || npus > kMaxHostPorts) out_of_range(item, "1", std::to_string(kMaxHostPorts));
  return static_cast<std::uint32_t>(npus);
}

BitRate read_bandwidth(const ConfigNode& item, bool binary) {
  constexpr double kBits = 8;
  const double gigabytes = read_real(item), bits = kBits * gigabytes * (binary ? double{1 << 30} : 1e9);
  const bool fits =
      bits >= static_cast<double>(kLinkRates.minimum) && bits <= static_cast<double>(kLinkRates.maximum);
  if (!fits) out_of_range(item, format_rate(kLinkRates.minimum), format_rate(kLinkRates.maximum));
  return static_cast<BitRate>(bits + 0.5);
}

Time read_latency(const ConfigNode& item) {
  const double delay = read_real(item) * static_cast<double>(kNanosecond);
  const bool fits = delay >= static_cast<double>(kFabricDelays.minimum) &&
                    delay <= static_cast<double>(kFabricDelays.maximum);
  if (!fits) out_of_range(item, format_time(kFabricDelays.minimum), format_time(kFabricDelays.maximum));
  return static_cast<Time>(delay + 0.5);
}

std::vector<GridDimension> dimensions_of(const ConfigNode& root, const AstraParameters& p) {
  root.allow_keys({"topology", "npus_count", "bandwidth", "latency"});
  const std::vector<ConfigNode>& shapes = list_of(root, "topology", 0);
  if (shapes.empty()) root.find("topology")->fail("no dimension is given");
  const std::size_t count = shapes.size();
  std::vector<GridDimension> dimensions;
  for (std::size_t d = 0; d < count; ++d) {
    const LinkSpec link{.kind = p.link_kind,
                        .rate = read_bandwidth(list_of(root, "bandwidth", count)[d], p.binary),
                        .delay = read_latency(list_of(root, "latency", count)[d]),
                        .overhead = p.overhead};
    dimensions.push_back({shape_of(shapes[d]), npus_of(list_of(root, "npus_count", count)[d]), link});
  }
  return dimensions;
}

std::unique_ptr<Topology> make(const AstraParameters& p, const ConfigNode& where) {
  const InputText input = read_named_file(where, "astra_network");
  const ConfigNode root = parse_config(input.text, input.path);
  return as_input([&] { return multi_dimensional(dimensions_of(root, p), root); });
}

const FormatRegistration kAstraSimFormat{{.name = "astra_network",
                                          .what = "a network of ASTRA-sim's analytical backend",
                                          .use = Format::Use::topology,
                                          .matches =
                                              [](const Excerpt& f) {
                                                return f.has_keys({"topology", "npus_count"});
                                              },
                                          .component = "astra_sim",
                                          .advice = {},
                                          .endings = {".yml"}}};

const Registration<Topology> kAstraSim{
    "astra_sim",
    "the network.yml of ASTRA-sim's analytical backend: rings, full meshes, switches by dimension",
    astra_sim_parameters(), make};

}  // namespace

}  // namespace netsim
