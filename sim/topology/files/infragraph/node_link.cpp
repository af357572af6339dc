#include "sim/topology/files/infragraph/node_link.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/core/text.h"
#include "sim/topology/files/infragraph/descriptions.h"
#include "sim/topology/files/infragraph/readings.h"

namespace netsim::infragraph {
namespace {

// Returns the number and the unit of a figure such as "100 Gbps", "25 GBps", "32 GT/s" or "250 ns".
std::pair<double, std::string> figure_of(const ConfigNode& node) {
  const std::string text = read_text(node);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !(value > 0))
    node.fail("'" + text + "': a number above 0 and its unit are expected");
  std::string unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  std::erase(unit, ' ');
  return {value, unit};
}

// Returns an edge's link with its figures.
Wire edge_wire(const ConfigNode& item) {
  Wire wire;
  wire.text = lower_case(text_in(item, "link"));
  if (const ConfigNode* rate = item.find("bandwidth"); rate != nullptr && !rate->is_null()) {
    const auto [value, unit] = figure_of(*rate);
    if (unit == "Gbps") wire.rate = rate_of(*rate, value * 1e9);
    if (unit == "GBps") wire.rate = rate_of(*rate, value * 8e9);
    if (unit == "GT/s")
      wire.rate = rate_of(*rate, static_cast<double>(usable_pcie(value, pcie_lanes(wire.text))));
    if (!wire.rate) rate->fail("'" + read_text(*rate) + "': Gbps, GBps or GT/s is expected");
  }
  if (const ConfigNode* delay = item.find("latency"); delay != nullptr && !delay->is_null()) {
    const auto [value, unit] = figure_of(*delay);
    const double factor = unit == "ms" ? 1e9 : unit == "us" ? 1e6 : unit == "ns" ? 1e3 : 0;
    if (factor == 0) delay->fail("'" + read_text(*delay) + "': ms, us or ns is expected");
    wire.delay = delay_of(*delay, value * factor);
  }
  return wire;
}

// NodeLinkReader: reads the nodes, grouped by unit, and then the edges.
class NodeLinkReader {
 public:
  NodeLinkReader(const ConfigNode& root, const std::string& file) {
    cluster_.file = file;
    find_units(root);
    for (const ConfigNode* item : items_) add_node(*item);
    const char* key = root.find("edges") != nullptr ? "edges" : "links";
    for (const ConfigNode& item : list_in(root, key)) add_edge(item);
  }
  DescribedCluster take() { return std::move(cluster_); }

 private:
  // Groups the nodes by unit. Nodes of one unit have names with the same beginning ("host.0."), and become
  // consecutive.
  void find_units(const ConfigNode& root) {
    std::vector<std::pair<std::size_t, const ConfigNode*>> nodes;
    for (const ConfigNode& item : list_in(root, "nodes")) {
      const ConfigNode& id = needed(item, "id");
      const std::string name = read_text(id);
      const std::size_t dot = name.find('.'), end = dot == std::string::npos ? dot : name.find('.', dot + 1);
      if (end == std::string::npos) id.fail("'" + name + "' is no node: INSTANCE.0.COMPONENT.0 is expected");
      const auto unit = units_.emplace(name.substr(0, end), units_.size()).first;
      nodes.emplace_back(unit->second, &item);
    }
    std::stable_sort(nodes.begin(), nodes.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [unit, item] : nodes) items_.push_back(item);
    cluster_.units.resize(units_.size());
    for (const auto& [name, unit] : units_) cluster_.units[unit].name = name;
    for (const auto& [unit, item] : nodes) unit_of_.push_back(static_cast<std::uint32_t>(unit));
  }

  void add_node(const ConfigNode& item) {
    const auto number = static_cast<std::uint32_t>(cluster_.nodes.size());
    const std::string name = read_text(needed(item, "id"));
    DescribedCluster::Unit& unit = cluster_.units[unit_of_[number]];
    if (unit.nodes++ == 0) {
      unit.first = number;
      unit.kind = text_in(item, "device");
    }
    const Part part{kind_of_custom(text_in(item, "type")), lower_case(name.substr(unit.name.size() + 1))};
    cluster_.nodes.push_back({.kind = part.kind,
                              .name = name,
                              .unit = unit_of_[number],
                              .compute_capability = compute_capability_of(part)});
    parts_.push_back(part);
    if (const ConfigNode* rank = item.find("rank"); rank != nullptr && !rank->is_null())
      cluster_.nodes.back().rank = rank_of(*rank);
    if (!by_name_.emplace(name, number).second) item.fail("a second node '" + name + "'");
  }

  std::uint32_t end_of(const ConfigNode& item, const char* key) const {
    const ConfigNode& name = needed(item, key);
    const auto node = by_name_.find(read_text(name));
    if (node == by_name_.end()) unknown(name, read_text(name), by_name_, "node");
    return node->second;
  }

  void add_edge(const ConfigNode& item) {
    const Wire wire = edge_wire(item);
    const std::uint32_t a = end_of(item, "source"), b = end_of(item, "target");
    if (a == b) return;
    const std::uint64_t key = std::uint64_t{std::min(a, b)} << 32 | std::max(a, b);
    if (!joined_.emplace(key, 0).second) item.fail("a second edge between these nodes");
    const bool inside = unit_of_[a] == unit_of_[b];
    cluster_.links.push_back(described(a, b, wire, parts_[a], parts_[b], inside, item.place()));
    learn_generation(cluster_.links.back(), wire, cluster_);
  }

  std::map<std::string, std::size_t> units_;
  std::vector<const ConfigNode*> items_;
  std::vector<std::uint32_t> unit_of_;  // by node
  std::vector<Part> parts_;
  std::map<std::string, std::uint32_t> by_name_;
  std::unordered_map<std::uint64_t, int> joined_;
  DescribedCluster cluster_;
};

}  // namespace

DescribedCluster read_node_link(const ConfigNode& root, const std::string& file) {
  return NodeLinkReader(root, file).take();
}

}  // namespace netsim::infragraph
