#include "sim/network/faults.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "sim/core/text.h"
#include "sim/topology/link_names.h"

namespace netsim {
namespace {

constexpr Range<Time> kFaultTimes{0, 1'000'000 * kSecond};
constexpr Range<BitRate> kRates{1 * kMbps, 100'000 * kGbps};

const ConfigNode* given(const ConfigNode& fault, const char* key) {
  const ConfigNode* node = fault.find(key);
  return node != nullptr && !node->is_null() ? node : nullptr;
}

// Returns whether the link belongs to the fabric. Nothing repairs losses inside a host.
bool of_fabric(const PortSpec& port, const Graph& graph) {
  return is_switch(graph, port.node) || is_switch(graph, port.peer_node);
}

// Returns the ports of the fabric that "a->b" means, or both ports of "a-b". A bundle means all its cables;
// with "#2" behind the name it means the second. Names may contain a dash, so names are compared rather than
// split.
std::vector<PortId> ports_of_link(const ConfigNode& node, const Graph& graph) {
  const std::string name = read_text(node);
  std::vector<PortId> ports;
  for (PortId id = 0; id < graph.port_count(); ++id) {
    const PortSpec& port = graph.port(id);
    if (!of_fabric(port, graph)) continue;
    if (means_port(graph, id, name)) ports.push_back(id);
    if (means_link(graph, id, name)) {
      ports.push_back(id);
      ports.push_back(id ^ 1U);
    }
  }
  if (ports.empty()) {
    std::vector<std::string> names;
    for (PortId id = 0; id < graph.port_count(); ++id) {
      if (of_fabric(graph.port(id), graph)) names.push_back(graph.port_name(id));
    }
    node.fail("no link of the fabric '" + name + "'" + did_you_mean(name, names) +
              " (\"a->b\" is one direction, \"a-b\" both; a and b are names of nodes, as in links.csv; "
              "\"#2\" after them means the second of several links, nothing means all)");
  }
  return ports;
}

// Returns all ports to and from the switch of that name.
std::vector<PortId> ports_of_switch(const ConfigNode& node, const Graph& graph) {
  const std::string name = read_text(node);
  std::vector<std::string> names;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    if (graph.node(id).kind != NodeKind::fabric_switch) continue;
    names.push_back(graph.node(id).name);
    if (names.back() != name) continue;
    std::vector<PortId> ports;
    for (const PortId port : graph.ports_of(id)) {
      ports.push_back(port);
      ports.push_back(port ^ 1U);
    }
    return ports;
  }
  node.fail("no switch of the fabric '" + name + "'" + did_you_mean(name, names));
}

std::vector<PortId> ports_of_fault(const ConfigNode& fault, const Graph& graph) {
  const ConfigNode *link = given(fault, "link"), *at = given(fault, "switch");
  if (link != nullptr && at != nullptr) fault.fail("'link' and 'switch' exclude each other");
  if (link == nullptr && at == nullptr) fault.fail("'link' is missing: \"a->b\" or \"a-b\"; or 'switch'");
  return link != nullptr ? ports_of_link(*link, graph) : ports_of_switch(*at, graph);
}

template <class Value>
Value in_range(const ConfigNode& node, Value value, Value low, Value high, const std::string& allowed) {
  if (value < low || value > high) node.fail("'" + node.text() + "' is out of range: " + allowed);
  return value;
}

Time read_moment(const ConfigNode& node) {
  return in_range(node, read_time(node), kFaultTimes.minimum, kFaultTimes.maximum, "0 to 10^6 s");
}

struct Outage {
  PortId port;
  // `end` is kNever if the link does not come back.
  Time begin, end;
};

// Merges outages of a port that overlap or meet. A link is down while any of its outages lasts.
std::vector<Outage> united(std::vector<Outage> outages) {
  const auto order = [](const Outage& o) { return std::tuple(o.port, o.begin, o.end); };
  std::sort(outages.begin(), outages.end(),
            [&](const Outage& a, const Outage& b) { return order(a) < order(b); });
  std::vector<Outage> result;
  for (const Outage& outage : outages) {
    if (!result.empty() && result.back().port == outage.port && outage.begin <= result.back().end) {
      result.back().end = std::max(result.back().end, outage.end);
    } else {
      result.push_back(outage);
    }
  }
  return result;
}

}  // namespace

FaultSchedule read_faults(const ConfigNode& faults, const Graph& graph, Time detection_delay) {
  FaultSchedule plan;
  std::vector<Outage> outages;
  if (faults.is_null()) return plan;
  if (!faults.is_sequence()) faults.fail("expected a list of faults");
  for (const ConfigNode& fault : faults.items()) {
    fault.allow_keys({"link", "switch", "loss", "down", "up", "rate", "at"});
    const std::vector<PortId> ports = ports_of_fault(fault, graph);
    const ConfigNode* down = given(fault, "down");
    const ConfigNode* up = given(fault, "up");
    const ConfigNode* rate = given(fault, "rate");
    const ConfigNode* at = given(fault, "at");
    const ConfigNode* loss = given(fault, "loss");
    if (down == nullptr && up == nullptr && rate == nullptr && loss == nullptr) {
      fault.fail("no fault is given: write loss, down, up, or rate with at");
    }
    if ((rate == nullptr) != (at == nullptr)) fault.fail("'rate' and 'at' belong together");
    if (up != nullptr && down == nullptr) fault.fail("'up' without 'down': links start up");
    if (up != nullptr && read_moment(*up) <= read_moment(*down)) up->fail("'up' must be later than 'down'");
    for (const PortId port : ports) {
      if (loss != nullptr) {
        plan.losses.push_back({port, in_range(*loss, read_real(*loss), 0.0, 1.0, "0 to 1")});
      }
      if (down != nullptr)
        outages.push_back({port, read_moment(*down), up != nullptr ? read_moment(*up) : kNever});
      if (rate != nullptr) {
        plan.changes.push_back(
            {read_moment(*at), port, LinkChange::Kind::rate,
             in_range(*rate, read_rate(*rate), kRates.minimum, kRates.maximum, "1 Mbps to 100 Tbps")});
      }
    }
  }
  for (const Outage& outage : united(std::move(outages))) {
    const auto change = [&](Time when, LinkChange::Kind kind) {
      if (when == kNever) return;
      plan.changes.push_back({when, outage.port, kind, 0});
      plan.changes.push_back({when + detection_delay, outage.port, LinkChange::Kind::detected, 0});
    };
    change(outage.begin, LinkChange::Kind::down);
    change(outage.end, LinkChange::Kind::up);
  }
  return plan;
}

}  // namespace netsim
