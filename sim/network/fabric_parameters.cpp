#include "sim/network/fabric_parameters.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "sim/network/aggregation/aggregator_table.h"
#include "sim/network/policies.h"
#include "sim/topology/fabric_sections.h"

namespace netsim {

namespace {

const Parameters<CircuitParameters>& circuits() {
  using P = CircuitParameters;
  static const auto p =
      Parameters<P>()
          .time("reconfiguration", &P::reconfiguration, {0, 1000 * kSecond},
                "time from the last packet of the old circuits until the mirrors are set; milliseconds for "
                "mirrors (the default), microseconds for rotors")
          .time("guard", &P::guard, {0, 1000 * kSecond},
                "further time until the ends of new circuits may send: for clock recovery, and for the error "
                "of their own clocks")
          .choice("law", &P::law, {{"drain", CircuitChangeMode::drain}, {"lose", CircuitChangeMode::lose}},
                  "circuits that are removed: drain, their ends stop in time and all packets in flight "
                  "arrive; lose, their ends are not told and packets in flight are lost")
          .time("rotation", &P::rotation, {0, 1000 * kSecond},
                "interval at which each optical switch moves to its next configuration, in turn; 0: it does "
                "not")
          .flag("stagger", &P::stagger,
                "rotation: the switches take turns within the interval, so that most circuits are up at any "
                "time")
          .list("schedule", &P::schedule,
                "changes of circuits: {at: TIME, configuration: NAME}, with `switch: NAME` for one optical "
                "switch, else for all that have the configuration; with `every: TIME` repeatedly")
          .time("request_latency", &P::request_latency, {1 * kNanosecond, 1 * kSecond},
                "time from a job's request until the optical switches receive it");
  return p;
}

// Reads the key `tier` of an entry of `tiers`. It must be a tier of the switches among the nodes from `first`
// to `end` - 1.
int read_tier(const ConfigNode& entry, const Graph& graph, NodeId first, NodeId end) {
  const ConfigNode* node = entry.find("tier");
  if (node == nullptr) entry.fail("'tier' is missing: 0 is next to the hosts");
  const std::int64_t tier = read_integer(*node);
  int highest = -1;
  for (NodeId id = first; id < end; ++id) {
    if (is_switch(graph, id)) highest = std::max(highest, graph.node(id).tier);
  }
  if (tier < 0 || tier > highest) out_of_range(*node, "0", std::to_string(highest));
  return static_cast<int>(tier);
}

// Returns the parameters with those of switches that add up.
Parameters<SwitchParameters> with_aggregation(Parameters<SwitchParameters>&& parameters) {
  using S = SwitchParameters;
  return std::move(parameters)
      .flag("aggregation", &S::aggregation,
            "the switches add up the hosts' data and multicast the sum (InfiniBand's SHARP), as the "
            "algorithm sharp needs")
      .list("aggregation_switches", &S::aggregation_switches,
            "names of the switches that add up, such as one programmable top-of-rack switch; left out: all")
      .list("aggregation_formats", &S::aggregation_formats,
            "number formats that the switches add, such as [int32] of a programmable switch without floating "
            "point. Collectives of other formats (collectives.format) run by the default algorithm of their "
            "kind, which hosts add up; left out: all formats")
      .time("aggregation_latency", &S::aggregation_latency, {0, 1 * kSecond},
            "latency of adding up at each switch of a tree, besides `latency`")
      .bytes("aggregation_payload", &S::aggregation_payload, {0, 65536},
             "largest payload of a packet of a tree (SHARP on Switch-IB 2: 256 B; its streaming "
             "aggregation on Quantum: whole packets); 0: transport.mtu")
      .integer("aggregation_outstanding", &S::aggregation_outstanding, {0, 1 << 20},
               "packets that a host may have in flight in a tree, until their sums are back; a switch holds "
               "as many sums open (SHARP's outstanding operations); 0: as many as keep the tree busy")
      .rate("aggregation_rate", &S::aggregation_rate, {0, 1'000'000 * kGbps},
            "rate at which a switch adds up packets, those of all its trees together; 0: as they arrive")
      .list(
          "aggregation_rates", &S::aggregation_rates,
          "rates of adding by number format, for switches that add some more slowly: {fp16: 50 Gbps, fp32: "
          "25 Gbps}. The format is collectives.format, and int32 where hosts convert to it (switchml, atp). "
          "Others have aggregation_rate")
      .bytes("aggregation_memory", &S::aggregation_memory, {0, 1000 * kGigabyte},
             "memory of a switch for the sums of all its trees, their payload: a tree takes that of its "
             "open sums, and SwitchML's pool two copies of each slot. Others "
             "wait for a tree to end, and one that never fits is an error; 0: no limit")
      .integer("aggregation_groups", &S::aggregation_groups, {0, 1 << 20},
               "trees that a switch can hold at once (Quantum runs one streaming tree at a time: "
               "NVIDIA's SHARP release notes); 0: no limit")
      .integer("aggregation_pairs", &S::aggregation_pairs, {0, 1 << 28},
               "not given, so each tree has the tables that the algorithm gives it",
               "key-value pairs of the front table of a switch, which all trees of switchagg share, those of "
               "all jobs. What has no place leaves the switch unfinished. All hosts and switches are one "
               "logical process where it is given")
      .integer("aggregation_back_pairs", &S::aggregation_back_pairs, {0, 1 << 28},
               "pairs of the back table of a switch with aggregation_pairs; 0: there is none")
      .integer(
          "aggregators", &S::aggregators, {0, AggregatorTable::kMostAggregators},
          "not given, so algorithm atp is refused",
          "aggregators of a switch, which all jobs with best-effort aggregation share (algorithm atp); a "
          "packet needs one until its result has passed (20,000 in ATP's program: 40,000 registers, two "
          "for each packet); 0: none, so all packets go to the parameter server. All hosts and switches "
          "are one logical process where it is given");
}

const Parameters<SwitchParameters>& switch_parameters() {
  using S = SwitchParameters;
  // Alpha, reserve and resume offset are those of HPCC's ns-3 switch (Li et al., SIGCOMM 2019;
  // switch-mmu.cc). The dynamic threshold is free/8, the reserve 4 KB, and resume comes 3 KB below.
  static const auto switches = with_aggregation(
      Parameters<S>()
          .bytes("buffer", &S::buffer, {0, 1000 * kGigabyte},
                 "shared packet buffer of a switch; 0: as in switch chips, by the bandwidth of all ports: 32 "
                 "MB up to 3.2 Tb/s, 42 up to 6.4, 64 up to 12.8, 113 up to 25.6, 165 up to 51.2, beyond in "
                 "proportion; and more where the headroom of long links would leave less than half of it to "
                 "share")
          .real("alpha", &S::alpha, {1.0 / 65536, 1024},
                "dynamic threshold: a link (lossless) or egress queue (lossy) may use alpha x the free "
                "shared buffer")
          .bytes("reserve", &S::reserve, {0, 1000 * kGigabyte},
                 "buffer set aside for each link into a switch and lossless class, not shared")
          .bytes("resume_offset", &S::resume_offset, {0, 1000 * kGigabyte},
                 "a paused link is resumed when it uses this much less than the threshold")
          .choice(
              "flow_control", &S::flow_control,
              {{"pfc", FlowControl::pfc}, {"credits", FlowControl::credits}, {"none", FlowControl::none}},
              "pause frames for lossless classes (Ethernet), credits for each link and class (InfiniBand), "
              "or dropping above the threshold")
          .bytes(
              "headroom", &S::headroom, {0, 1000 * kGigabyte},
              "pfc: buffer set aside for each link to hold what arrives after a pause was sent; 0: computed "
              "from the link's speed and delay")
          .time("pfc_response", &S::pfc_response, {0, 1 * kSecond},
                "time a paused sender needs to stop, for the computed headroom")
          .bytes("pfc_frame", &S::pfc_frame, {1, 1 * kMegabyte}, "size of a PFC frame (64 B: IEEE 802.1Qbb)")
          .bytes("credit_buffer", &S::credit_buffer, {0, 1 * kGigabyte},
                 "credits: buffer of each link and class; 0: computed, as much as keeps the link busy")
          .integer("classes", &S::classes, {1, kMaxClasses},
                   "data classes (priorities, virtual lanes): flows choose theirs")
          .list("lossless", &S::lossless, "pfc: which classes are lossless: all (default), none, or a list")
          .component("scheduler", &S::scheduler, "queue_discipline", "strict",
                     "what a port sends next: a class, or with a discipline that has own_queues a queue")
          .component("marker", &S::marker, "marker", "red", "ECN marking at each switch port")
          .component("routing", &S::routing, "routing_policy", "ecmp", "choice among equal-cost next hops")
          .choice(
              "forwarding", &S::forwarding,
              {{"store_and_forward", Switching::store_and_forward}, {"cut_through", Switching::cut_through}},
              "when a switch forwards a packet: when it is complete, or after its header where no link of "
              "the switch is faster than the one it comes from")
          .bytes("header", &S::header, {1, 65536},
                 "cut_through: first bytes of a packet (without preamble and gap) that must have arrived, or "
                 "all of a shorter one; 64 B: headers up to those of the transport, a minimum Ethernet frame")
          .time("latency", &S::latency, {0, 1 * kSecond},
                "time of a packet through a switch, besides queueing and transmission")
          .integer("queue_limit", &S::queue_limit, {0, UINT32_MAX - 1},
                   "packets that may wait in an egress queue, further ones are dropped; 0: no limit"));
  return switches;
}

ParameterTable without(ParameterTable table, std::initializer_list<std::string_view> names) {
  std::erase_if(table.edit(), [&](const ParameterInfo& info) {
    return std::find(names.begin(), names.end(), info.name) != names.end();
  });
  return table;
}

// Returns the parameters that a fabric may set for itself. Queue pairs, workloads and paths of the whole run
// depend on the others.
const ParameterTable& switch_table_of_fabric() {
  static const ParameterTable table =
      without(switch_parameters().table(), {"classes", "scheduler", "routing"});
  return table;
}

constexpr const char* kTiersDoc =
    "values that differ at the switches of a tier (0: next to the hosts): {tier: 1, and any of buffer, "
    "alpha, reserve, resume_offset, headroom, marker, forwarding, latency}";

const ParameterTable& table_of_fabric() {
  static const ParameterTable table = [] {
    ParameterInfo tiers;
    tiers.name = "tiers";
    tiers.type = "list";
    tiers.doc = kTiersDoc;
    return ParameterTable{section_info("switch", switch_table_of_fabric(),
                                       "buffers, flow control, ECN marking and latency of its switches"),
                          tiers};
  }();
  return table;
}

// Returns the parameters by tier: `switches` with the changes of the list.
std::map<int, SwitchParameters> read_tiers(const ConfigNode& list, const SwitchParameters& switches,
                                           const Graph& graph, NodeId first, NodeId end) {
  std::map<int, SwitchParameters> tiers;
  if (list.is_null()) return tiers;
  if (!list.is_sequence()) list.fail("expected a list of {tier: 0, ...}");
  for (const ConfigNode& entry : list.items()) {
    entry.allow_keys({"tier", "buffer", "alpha", "reserve", "resume_offset", "headroom", "marker",
                      "forwarding", "latency"});
    const int tier = read_tier(entry, graph, first, end);
    if (!tiers.emplace(tier, switch_parameters().parse_over(switches, entry.without("tier"))).second)
      entry.fail("tier " + std::to_string(tier) + " a second time");
  }
  return tiers;
}

void check_queue_limit(const SwitchRules& rules) {
  if (rules.switches.queue_limit != 0 && rules.credits()) {
    rules.where.fail(
        "queue_limit drops packets, flow_control: credits never does: only one of them is allowed");
  }
}

}  // namespace

const Parameters<FabricParameters>& fabric_parameters() {
  static const auto parameters =
      Parameters<FabricParameters>()
          .section("switch", &FabricParameters::switches, switch_parameters(),
                   "buffers, flow control, ECN marking, scheduling and routing of the switches")
          .list("tiers", &FabricParameters::tiers, kTiersDoc)
          .sections("fabrics", &FabricParameters::fabrics, table_of_fabric(),
                    "values that differ in one of several packet fabrics, by its name: {rack: {switch: "
                    "{...}, tiers: [...]}}; other values are as for all fabrics. Classes, scheduler, routing "
                    "and the other keys of `network` are common to all")
          .section("circuits", &FabricParameters::circuits, circuits(),
                   "times at which optical switches change their circuits, and how long a change takes")
          .list("faults", &FabricParameters::faults,
                "faults of links: {link: a-b or a->b, loss: 1e-3, down: 1 ms, up: 2 ms, rate: 25 Gbps, at: 1 "
                "ms}, or, with switch: NAME, to all links of a switch; outages of one link add up; classes "
                "with flow control need both directions")
          .time("detection_delay", &FabricParameters::detection_delay, {0, 1000 * kSecond},
                "time from a change of a link, down or up, until routes follow")
          .choice(
              "deadlock_check", &FabricParameters::deadlock_check,
              {{"error", DeadlockCheck::error}, {"note", DeadlockCheck::note}, {"off", DeadlockCheck::off}},
              "lossless networks: whether routes that can deadlock (a cycle in the channel dependency graph; "
              "a sample of large networks) are refused, reported in a note, or not searched for")
          .time("transmission_resolution", &FabricParameters::transmission_resolution, {0, 1 * kMicrosecond},
                "serialisation and pacing times are rounded to multiples of it, as a simulator with a clock "
                "of 1 ns "
                "(ns-3) does; 0: exact, to the picosecond");
  return parameters;
}

SwitchRules common_rules(const FabricParameters& parameters, const ConfigNode& where, const Graph& graph) {
  SwitchRules rules;
  rules.switches = parameters.switches;
  rules.where = where;
  rules.tiers =
      read_tiers(parameters.tiers, rules.switches, graph, 0, static_cast<NodeId>(graph.node_count()));
  check_queue_limit(rules);
  return rules;
}

SwitchRules fabric_rules(const FabricParameters& parameters, const SwitchRules& common,
                         const FabricScope& scope, const Graph& graph) {
  SwitchRules rules = common;
  rules.largest_packet = scope.largest_packet;
  rules.telemetry = scope.telemetry;
  if (scope.section == nullptr) return rules;
  const ConfigNode& section = *scope.section;
  check_fabric_keys(section, fabric_parameters().table(), table_of_fabric(), "network");
  rules.where = section;
  if (const ConfigNode* own = section.find("switch"); own != nullptr && !own->is_null()) {
    check_fabric_keys(*own, switch_parameters().table(), switch_table_of_fabric(), "network.switch");
    rules.switches = switch_parameters().parse_over(common.switches, *own);
    rules.where = *own;
    // Values of the common section that apply only to its own flow control are dropped.
    const bool pfc = rules.switches.flow_control == FlowControl::pfc;
    if (!pfc && own->find("lossless") == nullptr) rules.switches.lossless = ConfigNode();
    if (rules.credits() && own->find("queue_limit") == nullptr) rules.switches.queue_limit = 0;
  }
  const auto all = static_cast<NodeId>(graph.node_count());
  const ConfigNode* tiers = section.find("tiers");
  rules.tiers = tiers != nullptr
                    ? read_tiers(*tiers, rules.switches, graph, scope.first_switch, scope.end_switch)
                    : read_tiers(parameters.tiers, rules.switches, graph, 0, all);
  check_queue_limit(rules);
  return rules;
}

}  // namespace netsim
