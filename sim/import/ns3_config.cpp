#include "sim/import/ns3_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "sim/core/input_file.h"
#include "sim/core/output.h"
#include "sim/core/recognise.h"
#include "sim/core/text.h"
#include "sim/import/ns3_paths.h"
#include "sim/import/ns3_settings.h"
#include "sim/topology/files/ns3_topology.h"
#include "sim/workload/readers/ns3_flows.h"

namespace netsim {
namespace {

// Constants in the source of HPCC's simulator (switch-mmu.cc, qbb-header, rdma-hw.cc).
constexpr Bytes kReserve = 4096, kResumeOffset = 3072, kPfcFrame = 31, kTimestamp = 8;
// Bytes of INT for five hops (8 B each) and its length field. An ACK adds only the bytes beyond the 14 B that
// its 48 B have for INT.
constexpr Bytes kIntOfData = 42, kIntOfAck = 28;
constexpr const char* kAlpha = "1/8";
constexpr std::int64_t kHeadroomFactor = 3;
// Simulated time from which LINK_DOWN counts.
constexpr Time kLinkDownOrigin = 2 * kSecond;

// Mode: the values of CC_MODE.
enum class Mode : std::int64_t {
  none = 0,
  dcqcn = 1,
  hpcc = 3,
  timely = 7,
  dctcp = 8,
  hpcc_pint = 10,
  off = 12
};

// Translation: one translation of a configuration. Sections of the result are written one after the other.
class Translation {
 public:
  Translation(std::string_view text, const std::string& path, const RunOverrides& overrides)
      : path_(path),
        settings_(text, path),
        payload_(settings_.integer("PACKET_PAYLOAD_SIZE", 1000, {64, 65536})),
        workload_(overrides.workload) {
    if (!settings_.has("TOPOLOGY_FILE")) settings_.fail("TOPOLOGY_FILE", "'TOPOLOGY_FILE' is missing");
    const std::string file = topology_file(overrides);
    const std::string links = read_file(file);
    require_format(links, file, "ns3_topology");
    topology_ = parse_ns3_topology(links, file);
    mode_ = static_cast<Mode>(settings_.integer("CC_MODE", 1, {0, 1000}));
    refuse_unknown_modes();
  }

  ConfiguredRun translate() {
    run_.config = ConfigNode::map(Place{path_, 0, 0, ""});
    set("TOPOLOGY_FILE", {"topology", "kind"}, "ns3");
    set("TOPOLOGY_FILE", {"topology", "file"}, settings_.text("TOPOLOGY_FILE"));
    set("TOPOLOGY_FILE", {"host"}, "single_nic");
    if (other_fabric_) {
      note(
          "the fabric is not TOPOLOGY_FILE's: base_rtt, window and headroom are still those of the file; set "
          "them too");
    }
    translate_flows();
    translate_switch();
    translate_marking();
    translate_faults();
    translate_transport();
    translate_congestion_control();
    translate_end();
    return std::move(run_);
  }

 private:
  using Path = std::vector<const char*>;

  // Returns the topology file of the overrides, if they name one. All values computed from the topology must
  // use the one that is simulated.
  std::string topology_file(const RunOverrides& overrides) {
    ConfigNode asked = ConfigNode::map(Place{"--set", 0, 0, ""});
    for (const std::string& assignment : overrides.assignments) {
      if (assignment.starts_with("topology")) overlay_config(asked, assignment);
    }
    if (const ConfigNode* topology = asked.find("topology"); topology != nullptr) {
      const ConfigNode* kind = topology->is_map() ? topology->find("kind") : topology;
      other_fabric_ = kind != nullptr && kind->is_scalar() && kind->text() != "ns3";
      const ConfigNode* file = topology->find("file");
      if (file != nullptr && !other_fabric_) return find_input_file(read_text(*file), file->place());
    }
    return find_input_file(settings_.text("TOPOLOGY_FILE"), Place{path_, 0, 0, ""});
  }

  // Sets a value of the configuration, at the place of the key that it comes from.
  void set(const std::string& key, const Path& path, const std::string& value) {
    ConfigNode* node = &run_.config;
    std::string dotted;
    for (const char* name : path) {
      node = &node->at_or_add(name);
      append_item(dotted, name, ".");
    }
    Place place = settings_.place(key);
    place.path = dotted;
    *node = ConfigNode::scalar(value, place);
  }
  void set_flag(const std::string& key, const Path& path, bool value) {
    set(key, path, value ? "true" : "false");
  }
  void note(const std::string& text) { run_.notes.push_back(path_ + ": " + text); }

  void refuse_unknown_modes() const {
    static constexpr std::array kModes = {Mode::none,   Mode::dcqcn, Mode::hpcc,
                                          Mode::timely, Mode::dctcp, Mode::off};
    if (mode_ == Mode::hpcc_pint) settings_.fail("CC_MODE", "CC_MODE 10 (HPCC-PINT) is not there in netsim");
    if (!contains_mode(kModes)) {
      settings_.fail("CC_MODE",
                     "no such CC_MODE (allowed: 0 none, 1 DCQCN, 3 HPCC, 7 TIMELY, 8 DCTCP, 12 none)");
    }
    const auto only = [&](const char* key, bool absent, bool allowed, const char* what) {
      if (settings_.flag(key, absent) != allowed)
        settings_.fail(key, std::string(what) + " is not implemented in netsim");
    };
    only("L2_BACK_TO_ZERO", false, false, "go-back-to-zero");
    only("CLAMP_TARGET_RATE", false, false, "CLAMP_TARGET_RATE 1");
    only("SAMPLE_FEEDBACK", false, false, "SAMPLE_FEEDBACK 1");
    only("RATE_BOUND", true, true, "RATE_BOUND 0 (windows without pacing)");
    if (settings_.integer("NIC_TOTAL_PAUSE_TIME", 0, {0, INT64_MAX}) != 0) {
      settings_.fail("NIC_TOTAL_PAUSE_TIME", "NIC_TOTAL_PAUSE_TIME above 0 is not there in netsim");
    }
  }
  template <class Modes>
  bool contains_mode(const Modes& modes) const {
    return std::find(modes.begin(), modes.end(), mode_) != modes.end();
  }

  // Translates the flows. Priority groups become data classes, in their order.
  void translate_flows() {
    run_.workload = workload_;
    if (workload_.empty() && !settings_.has("FLOW_FILE")) return;
    if (workload_.empty())
      run_.workload = find_input_file(settings_.text("FLOW_FILE"), Place{path_, 0, 0, ""});
    const InputSet flows(run_.workload);
    const InputSet::File& file = flows.files().front();
    const Format* format = recognise(file);
    if (!workload_.empty() && (format == nullptr || format->component != "ns3_flows")) return;
    const std::size_t groups = summarise_ns3_flows(file).groups.size();
    flows.log();
    if (groups > 1) set("FLOW_FILE", {"network", "switch", "classes"}, std::to_string(groups));
  }

  void translate_switch() {
    const std::int64_t buffer = settings_.integer("BUFFER_SIZE", 16, {1, 1 << 20});
    set("BUFFER_SIZE", {"network", "switch", "buffer"}, std::to_string(buffer) + " MiB");
    set("", {"network", "transmission_resolution"}, "1 ns");  // the simulator's clock
    set("", {"network", "switch", "flow_control"}, "pfc");
    set("", {"network", "switch", "alpha"}, kAlpha);
    set("", {"network", "switch", "reserve"}, format_bytes(kReserve));
    set("", {"network", "switch", "resume_offset"}, format_bytes(kResumeOffset));
    set("", {"network", "switch", "pfc_frame"}, format_bytes(kPfcFrame));
    std::set<Bytes> headrooms;
    BitRate fastest = 0;
    for (const Ns3Topology::Link& link : topology_.links) {
      const Int128 bits = static_cast<Int128>(link.rate) * (link.delay / kNanosecond) / 8 / 1'000'000'000;
      headrooms.insert(static_cast<Bytes>(bits) * kHeadroomFactor);
      fastest = std::max(fastest, link.rate);
    }
    if (headrooms.size() == 1) {
      set("TOPOLOGY_FILE", {"network", "switch", "headroom"}, format_bytes(*headrooms.begin()));
    } else {
      note("links differ in rate x delay: their headroom is computed by netsim's own formula");
    }
    if (fastest > host_rate()) {
      note("links faster than the hosts' have the same alpha as theirs; the tool doubles it with the speed");
    }
  }

  // Returns the link rate of the first host, which the tool assumes for all hosts.
  BitRate host_rate() const {
    for (const Ns3Topology::Link& link : topology_.links) {
      if (link.a == topology_.hosts.front() || link.b == topology_.hosts.front()) return link.rate;
    }
    return 0;
  }

  using ByRate = std::map<BitRate, double>;
  // Returns whether the ECN thresholds of all links grow with the links' speed, from those of `reference`.
  bool thresholds_scale(const ByRate& kmin, const ByRate& kmax, const ByRate& pmax, BitRate reference) const {
    bool linear = true;
    for (const Ns3Topology::Link& link : topology_.links) {
      for (const auto& [key, map] :
           {std::pair{"KMIN_MAP", &kmin}, {"KMAX_MAP", &kmax}, {"PMAX_MAP", &pmax}}) {
        if (map->count(link.rate) == 0) {
          settings_.fail(key, fmt::format("no value for links of {}", format_rate(link.rate)));
        }
      }
      const auto scales = [&](const ByRate& map) {
        return map.at(link.rate) * static_cast<double>(reference) ==
               map.at(reference) * static_cast<double>(link.rate);
      };
      linear = linear && scales(kmin) && scales(kmax) && pmax.at(link.rate) == pmax.at(reference);
    }
    return linear;
  }
  void translate_marking() {
    const Path marker{"network", "switch", "marker"};
    if (!settings_.flag("ENABLE_QCN", true)) return set("ENABLE_QCN", marker, "none");
    const auto kmin = settings_.by_rate("KMIN_MAP"), kmax = settings_.by_rate("KMAX_MAP"),
               pmax = settings_.by_rate("PMAX_MAP");
    const BitRate reference = host_rate();
    const bool linear = thresholds_scale(kmin, kmax, pmax, reference);
    if (!linear) {
      note(
          "the ECN thresholds do not grow with the links' speed: those of the hosts' links are taken, and "
          "scaled for the others");
    }
    const double lowest = kmin.at(reference), highest = kmax.at(reference);
    if (lowest > highest) settings_.fail("KMIN_MAP", "KMIN_MAP is above KMAX_MAP");
    if (pmax.at(reference) > 1) settings_.fail("PMAX_MAP", "a probability is at most 1");
    if (lowest == highest) return translate_step(highest, reference);
    set("KMIN_MAP", {"network", "switch", "marker", "kind"}, "red");
    set("KMIN_MAP", {"network", "switch", "marker", "kmin"}, kilobytes(lowest));
    set("KMAX_MAP", {"network", "switch", "marker", "kmax"}, kilobytes(highest));
    set("PMAX_MAP", {"network", "switch", "marker", "pmax"}, format_real(pmax.at(reference)));
    set("TOPOLOGY_FILE", {"network", "switch", "marker", "reference_rate"}, format_rate(reference));
    set("", {"network", "switch", "marker", "at"}, "dequeue");
  }
  // Translates marking with one threshold. Without a range between KMIN and KMAX nothing is random, whatever
  // PMAX_MAP is.
  void translate_step(double threshold, BitRate reference) {
    set("KMAX_MAP", {"network", "switch", "marker", "kind"}, "step");
    set("KMAX_MAP", {"network", "switch", "marker", "threshold"}, kilobytes(threshold));
    set("TOPOLOGY_FILE", {"network", "switch", "marker", "reference_rate"}, format_rate(reference));
    set("", {"network", "switch", "marker", "at"}, "dequeue");
  }
  static std::string kilobytes(double value) { return format_bytes(static_cast<Bytes>(value * 1000 + 0.5)); }

  // Cables: by pair of nodes, how many links join them.
  using Cables = std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>;

  // Translates the error rates of links and LINK_DOWN.
  void translate_faults() {
    Cables cables;
    for (const Ns3Topology::Link& link : topology_.links) ++cables[std::minmax(link.a, link.b)];
    names_ = topology_.list(LinkKind::ethernet, 0);
    faults_ = ConfigNode::sequence(Place{path_, 0, 0, "network.faults"});
    translate_losses(cables);
    if (settings_.has("LINK_DOWN")) translate_link_down(cables);
    if (!faults_.items().empty()) run_.config.at_or_add("network").at_or_add("faults") = std::move(faults_);
  }
  void translate_losses(const Cables& cables) {
    const double everywhere = settings_.real("ERROR_RATE_PER_LINK", 0, {0, 1});
    bool in_file = false;
    Cables seen;
    for (const Ns3Topology::Link& link : topology_.links) {
      const auto pair = std::minmax(link.a, link.b);
      const std::uint32_t number = ++seen[pair];
      in_file = in_file || link.error_rate > 0;
      const double loss = link.error_rate > 0 ? link.error_rate : everywhere;
      if (loss <= 0) continue;
      add_fault(link.a, link.b, cables.at(pair) > 1 ? number : 0, "loss", format_real(loss), link.place);
    }
    if (in_file) set("TOPOLOGY_FILE", {"topology", "ignore_error_rates"}, "true");
  }
  void translate_link_down(const Cables& cables) {
    const std::vector<Word> words = settings_.values("LINK_DOWN", 3);
    as_config([&] {
      const TextReader& reader = settings_.reader();
      const Range<std::int64_t> nodes{0, topology_.nodes - 1};
      const Time time = reader.time_in(words[0], "the time", kMicrosecond, {0, 1'000'000 * kSecond});
      const auto a = static_cast<std::uint32_t>(reader.integer(words[1], "a node", nodes));
      const auto b = static_cast<std::uint32_t>(reader.integer(words[2], "a node", nodes));
      if (time == 0) return;  // none
      // The tool keeps one interface for each neighbour, that of the last link (nbr2if and TakeDownLink in
      // scratch/third.cc of the HPCC simulator).
      const auto found = cables.find(std::minmax(a, b));
      const std::uint32_t all = found == cables.end() ? 0 : found->second;
      add_fault(a, b, all > 1 ? all : 0, "down", format_time(kLinkDownOrigin + time),
                settings_.place("LINK_DOWN"));
      set("LINK_DOWN", {"network", "detection_delay"}, "0 s");
    });
  }
  // Adds a fault of link number `cable` between two nodes, counted from 1; 0: it is the only one. `what` is
  // the fault's key.
  void add_fault(std::uint32_t a, std::uint32_t b, std::uint32_t cable, const char* what,
                 const std::string& value, Place place) {
    place.path = "network.faults." + std::to_string(faults_.items().size());
    ConfigNode item = ConfigNode::map(place);
    const std::string link = names_.name(topology_.end(a)) + "-" + names_.name(topology_.end(b)) +
                             (cable == 0 ? "" : "#" + std::to_string(cable));
    item.at_or_add("link") = ConfigNode::scalar(link, place);
    item.at_or_add(what) = ConfigNode::scalar(value, place);
    faults_.push_back(std::move(item));
  }

  void translate_transport() {
    set("PACKET_PAYLOAD_SIZE", {"transport", "mtu"}, format_bytes(payload_));
    set("", {"transport", "framing"}, "ns3");
    set("", {"transport", "ecn_echo"}, "ack");
    // In the tool's code the interval is bytes, although its documentation differs.
    const std::int64_t interval = settings_.integer("L2_ACK_INTERVAL", 1, {0, 1 << 30});
    const std::int64_t packets = std::clamp<std::int64_t>((interval + payload_ - 1) / payload_, 1, 65536);
    const auto every = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(packets)));
    set("L2_ACK_INTERVAL", {"transport", "acknowledge", "every"}, std::to_string(every));
    if (every != packets) {
      note(fmt::format("L2_ACK_INTERVAL: an ACK for {} packets instead of {}, a power of two", every,
                       packets));
    }
    const PathFigures figures = path_figures(topology_, payload_);
    const bool one_for_all = settings_.flag("GLOBAL_T", true);
    if (settings_.flag("HAS_WIN", true)) {
      set("HAS_WIN", {"transport", "window"}, format_bytes(figures.max_bdp));
      set_flag("VAR_WIN", {"transport", "window_scales"}, settings_.flag("VAR_WIN", false));
      if (!one_for_all && figures.min_bdp != figures.max_bdp) {
        note("GLOBAL_T 0: every flow has the window of the longest path, not of its own");
      }
    }
    if (one_for_all) {
      set("GLOBAL_T", {"transport", "base_rtt"}, format_time(figures.max_rtt_ns * kNanosecond));
    }
    if (settings_.flag("ACK_HIGH_PRIO", false)) {
      note(
          "ACK_HIGH_PRIO 1: acknowledgements go before a NIC's data as they do without it, but a pause of "
          "their "
          "class holds them too");
    }
  }

  void translate_congestion_control() {
    switch (mode_) {
      case Mode::dcqcn:
        return translate_dcqcn();
      case Mode::hpcc:
        return translate_hpcc();
      case Mode::timely:
        set_control("CC_MODE", "kind", "timely");
        set_rate("RATE_AI", "rate_ai");
        set_rate("RATE_HAI", "rate_hai");
        set_minimum_rate();
        return set_control("CC_MODE", "header", std::to_string(kTimestamp));
      case Mode::dctcp:
        set_control("CC_MODE", "kind", "dctcp");
        set_control("CC_MODE", "form", "rate");
        set_gain();
        set_control("DCTCP_RATE_AI", "rate_ai",
                    settings_.has("DCTCP_RATE_AI") ? format_rate(settings_.rate("DCTCP_RATE_AI")) : "1 Gbps");
        return set_minimum_rate();
      case Mode::none:
      case Mode::hpcc_pint:
      case Mode::off:
        return set("CC_MODE", {"transport", "congestion_control"}, "none");
    }
  }
  void set_control(const std::string& key, const char* name, const std::string& value) {
    set(key, {"transport", "congestion_control", name}, value);
  }
  void set_rate(const std::string& key, const char* name) {
    set_control(key, name, format_rate(settings_.rate(key)));
  }
  void set_minimum_rate() {
    const bool given = settings_.has("MIN_RATE");
    set_control("MIN_RATE", "minimum_rate", given ? format_rate(settings_.rate("MIN_RATE")) : "100 Mbps");
  }
  void set_gain() {
    if (!settings_.has("EWMA_GAIN")) settings_.fail("EWMA_GAIN", "'EWMA_GAIN' is missing");
    set_control("EWMA_GAIN", "g", format_real(settings_.real("EWMA_GAIN", 0, {1e-6, 1})));
  }
  void set_microseconds(const std::string& key, const char* name, const char* absent) {
    const Range<Time> range{kNanosecond, kSecond};
    if (settings_.has(key) || absent == nullptr) {
      set_control(key, name, format_time(settings_.time(key, kMicrosecond, range)));
    } else {
      set_control(key, name, absent);
    }
  }

  void translate_dcqcn() {
    set_control("CC_MODE", "kind", "dcqcn");
    set_control("CC_MODE", "profile", "vendor");
    set_gain();
    set_microseconds("ALPHA_RESUME_INTERVAL", "alpha_timer", "55 us");
    set_microseconds("RATE_DECREASE_INTERVAL", "decrease_interval", "4 us");
    set_microseconds("RP_TIMER", "increase_timer", nullptr);
    set_control("FAST_RECOVERY_TIMES", "fast_recovery_steps",
                std::to_string(settings_.integer("FAST_RECOVERY_TIMES", 5, {1, 1000})));
    set_rate("RATE_AI", "rate_ai");
    set_rate("RATE_HAI", "rate_hai");
    set_minimum_rate();
    set_control("CC_MODE", "cnp_interval", "0 s");  // every ACK of a marked packet carries the mark
  }

  void translate_hpcc() {
    set_control("CC_MODE", "kind", "hpcc");
    set_control("U_TARGET", "eta", format_real(settings_.real("U_TARGET", 0.95, {0.01, 1})));
    set_control("MI_THRESH", "max_stage", std::to_string(settings_.integer("MI_THRESH", 5, {0, 1'000'000})));
    set_rate("RATE_AI", "rate_ai");
    set_minimum_rate();
    set_control("FAST_REACT", "fast_reaction", settings_.flag("FAST_REACT", true) ? "true" : "false");
    set_control("MULTI_RATE", "rates", settings_.flag("MULTI_RATE", true) ? "per_hop" : "single");
    set_control("CC_MODE", "data_header", std::to_string(kIntOfData));
    set_control("CC_MODE", "ack_header", std::to_string(kIntOfAck));
    set_control("INT_MULTI", "quantise", "true");
    set_control("INT_MULTI", "unit_multiplier",
                std::to_string(settings_.integer("INT_MULTI", 1, {1, 1'000'000})));
  }

  void translate_end() {
    if (!settings_.has("SIMULATOR_STOP_TIME")) return;
    // A time that is too large for Time means no limit.
    const double seconds = settings_.real("SIMULATOR_STOP_TIME", 0, {0, 1e300});
    if (seconds > 9e6) return;
    run_.until = settings_.time("SIMULATOR_STOP_TIME", kSecond, {1, kNever - 1});
  }

  std::string path_;
  Ns3Settings settings_;
  Bytes payload_;
  InputPaths workload_;        // of the overrides
  bool other_fabric_ = false;  // the overrides have a topology of another kind
  Ns3Topology topology_;
  LinkList names_;  // of the topology, for the names of links
  ConfigNode faults_;
  Mode mode_ = Mode::none;
  ConfiguredRun run_;
};

}  // namespace

ConfiguredRun translate_ns3_config(std::string_view text, const std::string& path,
                                   const RunOverrides& overrides) {
  return Translation(text, path, overrides).translate();
}

namespace {

const FormatRegistration kNs3Config{
    {.name = "ns3_config",
     .what = "a configuration of the HPCC family of ns-3 simulators",
     .use = Format::Use::configuration,
     .matches = [](const Excerpt& file) { return file.is_text() && is_ns3_config(file.bytes()); },
     .component = {},
     .advice = {},
     .endings = {"config.txt", ".conf"}}};

}  // namespace

}  // namespace netsim
