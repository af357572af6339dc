// ns3: the fabric of a topology.txt (ns3_topology.h). Rates and delays are the file's. The tool has no
// preamble and no gap, so a packet has no further bytes on the wire unless `overhead` sets them.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "sim/core/registry.h"
#include "sim/topology/files/file_parameters.h"
#include "sim/topology/files/ns3_topology.h"

namespace netsim {

LinkEnd Ns3Topology::end(std::uint32_t node) const {
  const auto host = std::lower_bound(hosts.begin(), hosts.end(), node);
  if (host != hosts.end() && *host == node) return {true, static_cast<std::uint32_t>(host - hosts.begin())};
  const auto at = std::find(switches.begin(), switches.end(), node);
  return {false, static_cast<std::uint32_t>(at - switches.begin())};
}

LinkList Ns3Topology::list(LinkKind kind, Bytes overhead) const {
  LinkList result;
  result.host_ports = static_cast<std::uint32_t>(hosts.size());
  result.host_numbers = hosts;
  for (const std::uint32_t node : switches) result.switches.push_back({"node" + std::to_string(node), 0});
  std::vector<LinkEnd> ends(nodes);
  for (std::uint32_t i = 0; i < hosts.size(); ++i) ends[hosts[i]] = {true, i};
  for (std::uint32_t i = 0; i < switches.size(); ++i) ends[switches[i]] = {false, i};
  for (const Link& link : links) {
    const LinkSpec spec{.kind = kind, .rate = link.rate, .delay = link.delay, .overhead = overhead};
    result.links.push_back({ends[link.a], ends[link.b], spec, spec, link.place});
  }
  return result;
}

Ns3Topology parse_ns3_topology(std::string_view text, const std::string& path) {
  TextReader reader(text, path);
  const auto number = [&](const std::string& what, std::int64_t minimum, std::int64_t maximum) {
    return reader.integer(reader.next(what), what, {minimum, maximum});
  };
  Ns3Topology topology;
  topology.nodes = static_cast<std::uint32_t>(number("the number of nodes", 1, kMaxHostPorts));
  const std::int64_t switches = number("the number of switches", 0, topology.nodes);
  const std::int64_t links = number("the number of links", 0, 1 << 24);
  std::vector<bool> is_switch(topology.nodes);
  for (std::int64_t i = 0; i < switches; ++i) {
    const Word word = reader.next("a switch");
    const auto node = static_cast<std::uint32_t>(reader.integer(word, "a switch", {0, topology.nodes - 1}));
    if (is_switch[node]) reader.fail(word, "switch " + std::to_string(node) + " is listed twice");
    is_switch[node] = true;
    topology.switches.push_back(node);
  }
  for (std::uint32_t node = 0; node < topology.nodes; ++node) {
    if (!is_switch[node]) topology.hosts.push_back(node);
  }
  for (std::int64_t i = 0; i < links; ++i) {
    Ns3Topology::Link link;
    const Word first = reader.next("link " + std::to_string(i));
    link.place = reader.place(first);
    link.a = static_cast<std::uint32_t>(reader.integer(first, "a node", {0, topology.nodes - 1}));
    link.b = static_cast<std::uint32_t>(number("a node", 0, topology.nodes - 1));
    link.rate = reader.rate(reader.next("a rate"), "the rate", kLinkRates);
    link.delay = reader.time(reader.next("a delay"), "the delay", kFabricDelays);
    link.error_rate = reader.real(reader.next("an error rate"), "the error rate", {0, 1});
    topology.links.push_back(std::move(link));
  }
  std::size_t wrong = 0;
  const std::string problem = topology.list(LinkKind::ethernet, 0).problem(wrong);
  if (!problem.empty()) {
    throw InputError(wrong < topology.links.size() ? topology.links[wrong].place : Place{path, 0, 0, ""},
                     problem);
  }
  return topology;
}

namespace {

struct Ns3Parameters : FileFabricParameters, ChannelParameters {
  bool ignore_error_rates = false;
};

const Parameters<Ns3Parameters>& ns3_parameters() {
  using P = Ns3Parameters;
  static const auto p =
      with_channels(with_file_fabric(Parameters<P>(), "the topology.txt"))
          .flag("ignore_error_rates", &P::ignore_error_rates,
                "accept a file with error rates without applying them (state them in `network.faults`)");
  return p;
}

class Ns3Fabric final : public Topology {
 public:
  Ns3Fabric(const Ns3Parameters& p, const Ns3Topology& topology)
      : list_(topology.list(p.link_kind, p.overhead)), channels_(p) {}
  std::uint32_t host_ports() const override { return list_.host_ports; }
  std::vector<std::uint32_t> host_numbers() const override { return list_.numbers(); }
  std::unique_ptr<Routes> build(Graph& graph, std::span<const HostPort> nics) const override {
    return list_.build(graph, nics, channels_);
  }

 private:
  LinkList list_;
  ChannelParameters channels_;
};

bool is_rate_word(std::string_view word) {
  return !word.empty() && word.front() >= '0' && word.front() <= '9' &&
         (word.ends_with("bps") || word.ends_with("b/s"));
}

// Recognises the format: three counts, and links of five words, the third of which is a rate. SimAI's format
// has six words in its first line.
bool is_ns3_topology(const Excerpt& file) {
  const auto counts = file.words(0);
  if (counts.size() != 3 || !std::all_of(counts.begin(), counts.end(), is_integer_word)) return false;
  for (std::size_t i = 1; i < file.lines(); ++i) {
    const auto words = file.words(i);
    if (words.size() == 5 && is_rate_word(words[2])) return true;
  }
  return false;
}

const FormatRegistration kNs3Format{{.name = "ns3_topology",
                                     .what = "a topology.txt of the HPCC family of ns-3 simulators",
                                     .use = Format::Use::topology,
                                     .matches = is_ns3_topology,
                                     .component = "ns3",
                                     .advice = {},
                                     .endings = {".txt"}}};

const Registration<Topology> kNs3{
    "ns3", "the fabric of a topology.txt of the HPCC family of ns-3 simulators", ns3_parameters(),
    [](const Ns3Parameters& p, const ConfigNode& where) {
      const InputText input = read_named_file(where, "ns3_topology", kMaxInputFile);
      const Ns3Topology topology = parse_ns3_topology(input.text, input.path);
      for (const Ns3Topology::Link& link : topology.links) {
        if (link.error_rate == 0 || p.ignore_error_rates) continue;
        throw InputError(link.place,
                         "the link has an error rate: write it as a loss in `network.faults` and set "
                         "`ignore_error_rates: true` beside `kind: ns3` at " +
                             where.place().to_string());
      }
      check_channels(p, topology.switches.size(), where);
      return std::make_unique<Ns3Fabric>(p, topology);
    }};

}  // namespace

}  // namespace netsim
