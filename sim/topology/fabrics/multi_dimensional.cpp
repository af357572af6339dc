// multi_dimensional: a grid of nodes, joined along each dimension by rings, full meshes or switches.
//
//   topology:
//     kind: multi_dimensional
//     dimensions:
//       - {shape: full_mesh, size: 4, rate: 400 Gbps, delay: 25 ns}
//       - {shape: ring, size: 8}
//       - {shape: switch, size: 2, rate: 50 Gbps}
#include <optional>
#include <string>
#include <vector>

#include "sim/core/registry.h"
#include "sim/topology/ethernet.h"
#include "sim/topology/multi_dimensional.h"

namespace netsim {

namespace {

constexpr std::size_t kMostDimensions = 8;

struct MultiDimensionalParameters : EthernetParameters {
  ConfigNode dimensions;
};

struct DimensionEntry {
  GridDimension::Shape shape = GridDimension::Shape::ring;
  std::int64_t size = 1;
  std::optional<BitRate> rate;
  std::optional<Time> delay;
};

const Parameters<DimensionEntry>& dimension_parameters() {
  using P = DimensionEntry;
  using Shape = GridDimension::Shape;
  static const auto p =
      Parameters<P>()
          .choice("shape", &P::shape,
                  {{"ring", Shape::ring}, {"full_mesh", Shape::full_mesh}, {"switch", Shape::star}},
                  "how nodes that differ in this dimension only are joined")
          .integer("size", &P::size, {1, 65536}, "nodes along this dimension")
          .required()
          .rate("rate", &P::rate, kLinkRates, "the topology's", "rate of a link, each way")
          .time("delay", &P::delay, kFabricDelays, "the topology's", "delay of a link");
  return p;
}

std::unique_ptr<Topology> make_multi_dimensional(const MultiDimensionalParameters& p,
                                                 const ConfigNode& where) {
  if (!p.dimensions.is_sequence()) p.dimensions.fail("a list of {shape, size, rate, delay} is expected");
  const std::size_t count = p.dimensions.items().size();
  if (count < 1 || count > kMostDimensions)
    p.dimensions.fail(std::to_string(count) + " dimensions; allowed: 1 to " +
                      std::to_string(kMostDimensions));
  std::vector<GridDimension> dimensions;
  for (const ConfigNode& item : p.dimensions.items()) {
    const DimensionEntry entry = dimension_parameters().parse(item);
    LinkSpec link = p.link(entry.rate.value_or(p.rate));
    link.delay = entry.delay.value_or(link.delay);
    dimensions.push_back({entry.shape, static_cast<std::uint32_t>(entry.size), link});
  }
  return multi_dimensional(std::move(dimensions), where);
}

ParameterTable multi_dimensional_table() {
  ParameterTable table = with_ethernet(Parameters<MultiDimensionalParameters>()).table();
  ParameterInfo dimensions;
  dimensions.name = "dimensions";
  dimensions.type = "list";
  dimensions.required = true;
  dimensions.doc = "the grid, the dimension that varies fastest in the hosts' numbers first";
  dimensions.children = dimension_parameters().table();
  table.push_back(dimensions);
  return table;
}

const Registration<Topology> kMultiDimensional{
    "multi_dimensional", "a grid of hosts, joined along each dimension by rings, full meshes or switches",
    multi_dimensional_table(), [](const ConfigNode& node) {
      const auto p = with_ethernet(Parameters<MultiDimensionalParameters>())
                         .parse(node.is_scalar() ? ConfigNode() : node, {"kind", "dimensions"});
      MultiDimensionalParameters complete = p;
      const ConfigNode* dimensions = node.find("dimensions");
      if (dimensions == nullptr || dimensions->is_null())
        node.fail("'dimensions' is missing: a list of {shape, size, rate, delay}");
      complete.dimensions = *dimensions;
      return make_multi_dimensional(complete, node);
    }};

}  // namespace

}  // namespace netsim
