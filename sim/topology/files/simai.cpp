// simai: the fabric of a topology of SimAI (simai.h): switches, and the links to them. NVSwitches belong to
// the hosts.
#include "sim/topology/files/simai.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/topology/files/file_parameters.h"

namespace netsim {
namespace {

class SimaiReader {
 public:
  SimaiReader(std::string_view text, const std::string& path, bool ignore_error_rates)
      : reader_(text, path), ignore_error_rates_(ignore_error_rates) {
    cluster_.file = path;
    read_header();
    read_switches();
    for (std::int64_t i = 0; i < links_; ++i) read_link(i);
    order_by_unit();
  }
  DescribedCluster take() { return std::move(cluster_); }

 private:
  enum class Role : std::uint8_t { gpu, nvswitch, network_switch };

  std::int64_t number(const std::string& what, std::int64_t minimum, std::int64_t maximum) {
    return reader_.integer(reader_.next(what), what, {minimum, maximum});
  }

  void read_header() {
    nodes_ = static_cast<std::uint32_t>(number("the number of nodes", 1, kMaxHostPorts));
    const Word size = reader_.next("the number of GPUs in a server");
    per_server_ =
        static_cast<std::uint32_t>(reader_.integer(size, "the number of GPUs in a server", {1, nodes_}));
    nvswitches_ = number("the number of NVSwitches", 0, nodes_ - 1);
    switches_ = number("the number of switches", 0, nodes_ - 1 - nvswitches_);
    links_ = number("the number of links", 0, 1 << 24);
    read_type(reader_.next("the GPUs' type"));
    const std::int64_t gpus = nodes_ - nvswitches_ - switches_;
    if (gpus % per_server_ != 0) {
      reader_.fail(size, std::to_string(gpus) +
                             " GPUs (nodes without switches) are not a multiple of a server's " +
                             std::to_string(per_server_));
    }
  }

  // Reads the GPUs' type. The tool writes NONE for a type that it does not know.
  void read_type(const Word& word) {
    constexpr std::array<std::pair<std::string_view, std::int64_t>, 12> kTypes{{{"NONE", 0},
                                                                                {"V100", 70},
                                                                                {"A100", 80},
                                                                                {"A800", 80},
                                                                                {"H100", 90},
                                                                                {"H200", 90},
                                                                                {"H800", 90},
                                                                                {"H20", 90},
                                                                                {"B200", 100},
                                                                                {"GB200", 100},
                                                                                {"B300", 103},
                                                                                {"GB300", 103}}};
    std::string allowed;
    for (const auto& [type, capability] : kTypes) {
      if (word.text == type) {
        compute_capability_ = capability;
        return;
      }
      append_item(allowed, type);
    }
    reader_.fail(word,
                 "the GPUs' type is '" + std::string(word.text.substr(0, 40)) + "'; allowed: " + allowed);
  }

  void read_switches() {
    role_.assign(nodes_, Role::gpu);
    for (std::int64_t i = 0; i < nvswitches_ + switches_; ++i) {
      const Word word = reader_.next("a switch");
      const auto node = static_cast<std::uint32_t>(reader_.integer(word, "a switch", {0, nodes_ - 1}));
      if (role_[node] != Role::gpu) reader_.fail(word, "switch " + std::to_string(node) + " is listed twice");
      role_[node] = i < nvswitches_ ? Role::nvswitch : Role::network_switch;
    }
    unit_.assign(nodes_, kNoId);
    std::uint32_t gpus = 0;
    for (std::uint32_t node = 0; node < nodes_; ++node) {
      if (role_[node] == Role::gpu) unit_[node] = gpus++ / per_server_;
    }
    for (std::uint32_t server = 0; server < gpus / per_server_; ++server)
      cluster_.units.push_back({"server" + std::to_string(server), "server", 0, 0});
    for (std::uint32_t node = 0; node < nodes_; ++node) {
      if (role_[node] != Role::network_switch) continue;
      unit_[node] = static_cast<std::uint32_t>(cluster_.units.size());
      cluster_.units.push_back({"node" + std::to_string(node), "switch", 0, 0});
    }
  }

  void read_link(std::int64_t i) {
    DescribedCluster::Link link;
    const Word first = reader_.next("link " + std::to_string(i));
    link.place = reader_.place(first);
    link.a = static_cast<std::uint32_t>(reader_.integer(first, "a node", {0, nodes_ - 1}));
    link.b = static_cast<std::uint32_t>(number("a node", 0, nodes_ - 1));
    link.rate = reader_.rate(reader_.next("a rate"), "the rate", kLinkRates);
    link.delay = reader_.time(reader_.next("a delay"), "the delay", kFabricDelays);
    const Word loss = reader_.next("an error rate");
    const double error_rate = reader_.real(loss, "the error rate", {0, 1});
    if (link.a == link.b) reader_.fail(first, "node " + std::to_string(link.a) + " is joined to itself");
    if (error_rate != 0 && !ignore_error_rates_) {
      reader_.fail(loss,
                   "the link has an error rate: write it as a loss in `network.faults` and set "
                   "`ignore_error_rates: true` beside `kind: simai` in the configuration");
    }
    for (const auto& [at, other] : {std::pair{link.a, link.b}, std::pair{link.b, link.a}}) {
      if (role_[at] == Role::nvswitch) join_nvswitch(first, at, other);
    }
    link.scale_up = role_[link.a] != Role::network_switch && role_[link.b] != Role::network_switch &&
                    unit_[link.a] == unit_[link.b];
    cluster_.links.push_back(std::move(link));
  }

  // Adds an NVSwitch to the server whose GPUs it joins.
  void join_nvswitch(const Word& word, std::uint32_t nvswitch, std::uint32_t other) {
    const std::string name = "NVSwitch " + std::to_string(nvswitch);
    if (role_[other] != Role::gpu)
      reader_.fail(word, name + " is joined to node " + std::to_string(other) +
                             ", which is no GPU: NVSwitches join the GPUs of a server");
    if (unit_[nvswitch] == kNoId) unit_[nvswitch] = unit_[other];
    if (unit_[nvswitch] != unit_[other])
      reader_.fail(word, name + " joins GPUs of servers " + std::to_string(unit_[nvswitch]) + " and " +
                             std::to_string(unit_[other]) + ": all are of one server");
  }

  // Orders the nodes by unit. NVSwitches without links are left out.
  void order_by_unit() {
    std::vector<std::uint32_t> nodes, place(nodes_, 0);
    for (std::uint32_t node = 0; node < nodes_; ++node) {
      if (unit_[node] != kNoId) nodes.push_back(node);
    }
    std::stable_sort(nodes.begin(), nodes.end(),
                     [this](std::uint32_t a, std::uint32_t b) { return unit_[a] < unit_[b]; });
    for (const std::uint32_t node : nodes) {
      place[node] = static_cast<std::uint32_t>(cluster_.nodes.size());
      DescribedCluster::Unit& unit = cluster_.units[unit_[node]];
      if (unit.nodes++ == 0) unit.first = place[node];
      const bool gpu = role_[node] == Role::gpu;
      const std::string name = (gpu                             ? "gpu"
                                : role_[node] == Role::nvswitch ? "nvswitch"
                                                                : "node") +
                               std::to_string(node);
      cluster_.nodes.push_back(
          {.kind = gpu ? DescribedCluster::Kind::xpu : DescribedCluster::Kind::network_switch,
           .name = name,
           .unit = unit_[node],
           .compute_capability = gpu ? compute_capability_ : 0});
    }
    for (DescribedCluster::Link& link : cluster_.links) {
      link.a = place[link.a];
      link.b = place[link.b];
    }
  }

  TextReader reader_;
  bool ignore_error_rates_;
  std::uint32_t nodes_ = 0, per_server_ = 0;
  std::int64_t nvswitches_ = 0, switches_ = 0, links_ = 0, compute_capability_ = 0;
  std::vector<Role> role_;           // by node
  std::vector<std::uint32_t> unit_;  // by node; kNoId: an NVSwitch without links
  DescribedCluster cluster_;
};

}  // namespace

DescribedCluster parse_simai_topology(std::string_view text, const std::string& path,
                                      bool ignore_error_rates) {
  return SimaiReader(text, path, ignore_error_rates).take();
}

namespace {

struct SimaiParameters : FileFabricParameters, ChannelParameters {
  bool ignore_error_rates = false;
};

Parameters<SimaiParameters> simai_parameters() {
  using P = SimaiParameters;
  Parameters<P> p = with_file_fabric(Parameters<P>(), "SimAI's topology");
  p.flag("ignore_error_rates", &P::ignore_error_rates,
         "accept a file with error rates without applying them (state them in `network.faults`)");
  return with_channels(std::move(p));
}

// Recognises the first line: nodes, GPUs of a server, NVSwitches, switches, links, and the GPUs' type.
bool is_simai_topology(const Excerpt& file) {
  const auto first = file.words(0), second = file.words(1);
  return first.size() == 6 && std::all_of(first.begin(), first.begin() + 5, is_integer_word) &&
         !is_number_word(first[5]) && std::all_of(second.begin(), second.end(), is_integer_word);
}

const FormatRegistration kSimaiFormat{{.name = "simai_topology",
                                       .what = "a topology of SimAI",
                                       .use = Format::Use::topology,
                                       .matches = is_simai_topology,
                                       .component = "simai",
                                       .advice = {},
                                       .endings = {}}};

const Registration<Topology> kSimai{
    "simai", "the switches and links of a topology of SimAI; for its servers, the host simai",
    simai_parameters(), [](const SimaiParameters& p, const ConfigNode& where) {
      const InputText input = read_named_file(where, "simai_topology", kMaxInputFile);
      const LinkSpec link{.kind = p.link_kind, .overhead = p.overhead};
      return described_fabric(parse_simai_topology(input.text, input.path, p.ignore_error_rates), link, p,
                              where);
    }};

}  // namespace

}  // namespace netsim
