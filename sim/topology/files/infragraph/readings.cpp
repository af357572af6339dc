#include "sim/topology/files/infragraph/readings.h"

#include <algorithm>

#include "sim/core/parameters.h"
#include "sim/core/text.h"
#include "sim/topology/ethernet.h"
#include "sim/topology/host_links.h"

namespace netsim::infragraph {

const ConfigNode& needed(const ConfigNode& map, const char* key) {
  if (!map.is_map()) map.fail("a map is expected");
  const ConfigNode* found = map.find(key);
  if (found == nullptr || found->is_null()) map.fail(std::string("'") + key + "' is missing");
  return *found;
}

const std::vector<ConfigNode>& list_in(const ConfigNode& map, const char* key) {
  static const std::vector<ConfigNode> none;
  const ConfigNode* found = map.find(key);
  if (found == nullptr || found->is_null()) return none;
  if (!found->is_sequence()) found->fail("a list is expected");
  return found->items();
}

std::string text_in(const ConfigNode& map, const char* key) {
  const ConfigNode* found = map.find(key);
  return found == nullptr || found->is_null() ? "" : read_text(*found);
}

std::string name_in(const ConfigNode& map, const char* key) {
  const ConfigNode& node = needed(map, key);
  std::string name = read_text(node);
  if (name.empty() || name.find_first_of(".[]: \t") != std::string::npos)
    node.fail("'" + name + "' is no name: some text without '.', ':', brackets and blanks is expected");
  return name;
}

std::uint32_t count_in(const ConfigNode& map) {
  const ConfigNode& node = needed(map, "count");
  const std::int64_t count = read_integer(node);
  if (count < 1 || count > kMaxHostPorts) out_of_range(node, "1", std::to_string(kMaxHostPorts));
  return static_cast<std::uint32_t>(count);
}

std::int64_t rank_of(const ConfigNode& node) {
  const std::int64_t rank = read_integer(node);
  if (rank < 0 || rank > kMaxHostPorts) out_of_range(node, "0", std::to_string(kMaxHostPorts));
  return rank;
}

void fail_as_old(const ConfigNode& at, const char* expected) {
  at.fail(std::string("this is InfraGraph before its version 1.0; `") + expected + "` are expected");
}

void fail_as_unknown(const ConfigNode& at, const std::string& name, const std::vector<std::string>& known,
                     const std::string& what) {
  constexpr std::size_t kMostListed = 16;
  std::string list;
  for (std::size_t i = 0; i < std::min(known.size(), kMostListed); ++i)
    list += (i == 0 ? "" : ", ") + known[i];
  if (known.size() > kMostListed) list += ", ...";
  at.fail("'" + name + "' is no " + what + " (there are: " + (list.empty() ? "none" : list) + ")" +
          did_you_mean(name, known));
}

BitRate rate_of(const ConfigNode& at, double bits) {
  const bool fits =
      bits >= static_cast<double>(kLinkRates.minimum) && bits <= static_cast<double>(kLinkRates.maximum);
  if (!fits) out_of_range(at, format_rate(kLinkRates.minimum), format_rate(kLinkRates.maximum));
  return static_cast<BitRate>(bits + 0.5);
}

Time delay_of(const ConfigNode& at, double picoseconds) {
  const bool fits = picoseconds >= static_cast<double>(kFabricDelays.minimum) &&
                    picoseconds <= static_cast<double>(kFabricDelays.maximum);
  if (!fits) out_of_range(at, format_time(kFabricDelays.minimum), format_time(kFabricDelays.maximum));
  return static_cast<Time>(picoseconds + 0.5);
}

namespace {

// Returns a link's name. It may be any text ("AMD Infinity Fabric"), because no path refers to a link.
std::string link_name_in(const ConfigNode& map) {
  const ConfigNode& node = needed(map, "name");
  std::string name = read_text(node);
  if (name.empty()) node.fail("a link's name is some text");
  return name;
}

double positive(const ConfigNode& node) {
  const double value = read_real(node);
  if (value <= 0) node.fail(node.text() + "; a number above 0 is expected");
  return value;
}

// Returns the entry's unit and figure. It is {choice: NAME, NAME: figure}, or {NAME: figure}.
std::pair<std::string, const ConfigNode*> chosen(const ConfigNode& map,
                                                 const std::vector<std::string>& names) {
  std::vector<std::string> allowed = names;
  allowed.emplace_back("choice");
  map.allow_keys(allowed);
  const ConfigNode* choice = map.find("choice");
  for (const std::string& name : names) {
    const ConfigNode* figure = map.find(name);
    if (figure != nullptr && (choice == nullptr || read_text(*choice) == name)) return {name, figure};
  }
  std::string list;
  for (const std::string& name : names) append_item(list, name);
  (choice != nullptr ? *choice : map).fail("one of " + list + " is expected, with its figure");
}

BitRate bandwidth_of(const ConfigNode& node, const std::string& text) {
  const auto [unit, figure] =
      chosen(node, {"gigabits_per_second", "gigabytes_per_second", "gigatransfers_per_second"});
  const double value = positive(*figure);
  if (unit == "gigatransfers_per_second")
    return rate_of(*figure, static_cast<double>(usable_pcie(value, pcie_lanes(text))));
  return rate_of(*figure, value * (unit == "gigabits_per_second" ? 1e9 : 8e9));
}

Time latency_of(const ConfigNode& node) {
  const auto [unit, figure] = chosen(node, {"ms", "us", "ns"});
  const double factor = unit == "ms" ? 1e9 : unit == "us" ? 1e6 : 1e3;
  return delay_of(*figure, positive(*figure) * factor);
}

}  // namespace

Wires wires_of(const ConfigNode& owner) {
  Wires wires;
  for (const ConfigNode& item : list_in(owner, "links")) {
    const std::string name = link_name_in(item);
    if (const ConfigNode* old = item.find("bandwidth")) fail_as_old(*old, "physical properties");
    item.allow_keys({"name", "description", "physical"});
    Wire wire;
    wire.text = lower_case(name + " " + text_in(item, "description"));
    if (const ConfigNode* physical = item.find("physical"); physical != nullptr && !physical->is_null()) {
      physical->allow_keys({"bandwidth", "latency"});
      if (const ConfigNode* rate = physical->find("bandwidth"); rate != nullptr && !rate->is_null())
        wire.rate = bandwidth_of(*rate, wire.text);
      if (const ConfigNode* delay = physical->find("latency"); delay != nullptr && !delay->is_null())
        wire.delay = latency_of(*delay);
    }
    if (!wires.emplace(name, std::move(wire)).second) item.fail("a second link '" + name + "'");
  }
  return wires;
}

}  // namespace netsim::infragraph
