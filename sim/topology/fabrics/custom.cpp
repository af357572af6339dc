// custom: a fabric described link by link.
//
//   topology:
//     kind: custom
//     switches: [left, right]
//     links:
//       - {from: host0, to: left}
//       - {from: host1, to: right}
//       - {from: left, to: right, rate: 40 Gbps, rate_back: 10 Gbps, delay: 5 us}
//
// Hosts are host0, host1, ..., in the order of the host ports. A link goes both ways; two links between the
// same switches are two paths. A link has the same rate both ways, unless `rate_back` sets the rate from `to`
// to `from`. Links without a rate, delay, link kind or overhead of their own have the topology's.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/topology/ethernet.h"
#include "sim/topology/files/link_list.h"
#include "sim/topology/topology.h"

namespace netsim {

namespace {

struct CustomParameters : EthernetParameters, ChannelParameters {};

const Parameters<CustomParameters>& custom_parameters() {
  static const auto p = with_ethernet(with_channels(Parameters<CustomParameters>()));
  return p;
}

struct LinkEntry {
  std::string from, to;
  std::optional<BitRate> rate, rate_back;
  std::optional<Time> delay;
  std::optional<Bytes> overhead;
};

const Parameters<LinkEntry>& link_parameters() {
  using P = LinkEntry;
  const std::string as_topology = "the topology's";
  static const auto p = Parameters<P>()
                            .text("from", &P::from, "one end: a switch or host0, host1, ...")
                            .required()
                            .text("to", &P::to, "the other end")
                            .required()
                            .rate("rate", &P::rate, kLinkRates, as_topology, "each way")
                            .rate("rate_back", &P::rate_back, kLinkRates, "the same as rate",
                                  "rate from `to` to `from`, where it differs")
                            .time("delay", &P::delay, kFabricDelays, as_topology, "each way")
                            .bytes("overhead", &P::overhead, kLinkOverheads, as_topology,
                                   "bytes that a packet costs on the wire beyond its frame");
  return p;
}

// Sets `number` to the number of "host7"; returns false for other names.
bool host_number(const std::string& name, std::uint32_t& number) {
  constexpr std::size_t kPrefix = 4, kDigits = 7;
  if (!name.starts_with("host") || name.size() == kPrefix || name.size() > kPrefix + kDigits) return false;
  if (name.find_first_not_of("0123456789", kPrefix) != std::string::npos) return false;
  if (name[kPrefix] == '0' && name.size() > kPrefix + 1) return false;
  number = static_cast<std::uint32_t>(std::stoul(name.substr(kPrefix)));
  return number < kMaxHostPorts;
}

const ConfigNode& sequence_in(const ConfigNode& section, const char* key, const std::string& what) {
  const ConfigNode* list = section.find(key);
  if (list == nullptr || list->is_null()) section.fail(std::string("'") + key + "' is missing: " + what);
  if (!list->is_sequence() || list->items().empty()) list->fail(what + " is expected");
  return *list;
}

class ListReader {
 public:
  ListReader(const CustomParameters& defaults, const ConfigNode& section) : defaults_(defaults) {
    read_switches(sequence_in(section, "switches", "a list of the switches' names"));
    const ConfigNode& links =
        sequence_in(section, "links", "a list of {from, to, rate, rate_back, delay, overhead}");
    for (const ConfigNode& item : links.items()) list_.links.push_back(read_link(item));
    std::size_t wrong = 0;
    const std::string problem = list_.problem(wrong);
    if (!problem.empty()) (wrong < list_.links.size() ? links.items()[wrong] : links).fail(problem);
  }
  LinkList take() { return std::move(list_); }

 private:
  void read_switches(const ConfigNode& names) {
    for (const ConfigNode& item : names.items()) {
      const std::string name = read_text(item);
      std::uint32_t number = 0;
      if (host_number(name, number)) item.fail("'" + name + "' is the name of a host");
      const bool odd = name.empty() || name.find_first_of(" ->\t#") != std::string::npos;
      if (odd) item.fail("a name without spaces and '-', '>', '#' is expected");
      const auto index = static_cast<std::uint32_t>(list_.switches.size());
      if (!switches_.emplace(name, index).second) item.fail("a second switch '" + name + "'");
      list_.switches.push_back({name, 0});
    }
  }

  ListedLink read_link(const ConfigNode& item) {
    const LinkEntry entry = link_parameters().parse(item);
    LinkSpec link = defaults_.link(entry.rate.value_or(defaults_.rate));
    link.delay = entry.delay.value_or(link.delay);
    link.overhead = entry.overhead.value_or(link.overhead);
    LinkSpec back = link;
    back.rate = entry.rate_back.value_or(link.rate);
    return {end(*item.find("from"), entry.from), end(*item.find("to"), entry.to), link, back, item.place()};
  }

  LinkEnd end(const ConfigNode& node, const std::string& name) {
    std::uint32_t number = 0;
    if (host_number(name, number)) {
      list_.host_ports = std::max(list_.host_ports, number + 1);
      return {true, number};
    }
    const auto it = switches_.find(name);
    if (it != switches_.end()) return {false, it->second};
    std::vector<std::string> names;
    for (const auto& [known, index] : switches_) names.push_back(known);
    node.fail("'" + name + "' is neither a host (host0, host1, ...) nor one of `switches`" +
              did_you_mean(name, names));
  }

  CustomParameters defaults_;
  LinkList list_;
  std::map<std::string, std::uint32_t> switches_;
};

class Custom final : public Topology {
 public:
  Custom(LinkList list, const ChannelParameters& channels) : list_(std::move(list)), channels_(channels) {}
  std::uint32_t host_ports() const override { return list_.host_ports; }
  std::vector<std::uint32_t> host_numbers() const override { return list_.numbers(); }
  std::unique_ptr<Routes> build(Graph& graph, std::span<const HostPort> nics) const override {
    return list_.build(graph, nics, channels_);
  }

 private:
  LinkList list_;
  ChannelParameters channels_;
};

ParameterTable custom_table() {
  ParameterInfo switches;
  switches.name = "switches";
  switches.type = "list";
  switches.required = true;
  switches.doc = "names of the switches";
  ParameterInfo links;
  links.name = "links";
  links.type = "list";
  links.required = true;
  links.doc = "the links";
  links.children = link_parameters().table();
  ParameterTable table = custom_parameters().table();
  table.push_back(switches);
  table.push_back(links);
  return table;
}

const Registration<Topology> kCustom{
    "custom", "switches and links listed one by one", custom_table(), [](const ConfigNode& node) {
      const CustomParameters p =
          custom_parameters().parse(node.is_scalar() ? ConfigNode() : node, {"kind", "switches", "links"});
      LinkList list = ListReader(p, node).take();
      check_channels(p, list.switches.size(), node);
      return std::make_unique<Custom>(std::move(list), p);
    }};

}  // namespace

}  // namespace netsim
