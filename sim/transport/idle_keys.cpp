#include "sim/transport/idle_keys.h"

#include <fmt/format.h>

#include <initializer_list>
#include <utility>

namespace netsim {
namespace {

class IdleKeys {
 public:
  IdleKeys(const ConfigNode& section, std::string path) : section_(section), path_(std::move(path)) {}

  // Adds a note on those of the keys that the user gave.
  void note(std::initializer_list<const char*> keys, const std::string& why) {
    std::string given;
    std::size_t count = 0;
    for (const char* key : keys) {
      const ConfigNode* const value = section_.find(key);
      if (value == nullptr || value->is_null() || !by_user(*value)) continue;
      given += (count++ == 0 ? "" : ", ") + path_ + "." + key;
    }
    if (count > 0)
      notes_.push_back(fmt::format("{} {} no effect: {}", given, count == 1 ? "has" : "have", why));
  }
  std::vector<std::string> take() { return std::move(notes_); }

 private:
  // Returns whether the user wrote the value. Translations of other simulators' files give values without
  // keys of their own.
  static bool by_user(const ConfigNode& value) {
    const Place& at = value.place();
    const Place key = value.key_place();
    return at.file == "--set" || at.line != key.line || at.column != key.column;
  }

  const ConfigNode& section_;
  std::string path_;
  std::vector<std::string> notes_;
};

bool any_pcie(const Graph& graph) {
  for (PortId port = 0; port < graph.port_count(); ++port) {
    if (graph.port(port).link.kind == LinkKind::pcie) return true;
  }
  return false;
}

bool says_none(const ConfigNode& lossless) { return lossless.is_scalar() && lossless.text() == "none"; }

void note_flow_control(IdleKeys& keys, const SwitchParameters& s) {
  switch (s.flow_control) {
    case FlowControl::pfc:
      keys.note({"credit_buffer"}, "flow_control is pfc, and switches have one shared buffer");
      if (says_none(s.lossless)) {
        keys.note({"headroom", "pfc_response", "pfc_frame", "reserve", "resume_offset"},
                  "no class is lossless, so nothing is paused");
      } else if (s.headroom != 0) {
        keys.note({"pfc_response"}, "it is for the computed headroom, and `headroom` is given");
      }
      break;
    case FlowControl::credits:
      keys.note({"buffer", "alpha", "headroom", "pfc_response", "pfc_frame", "reserve", "resume_offset"},
                "flow_control is credits, and each link has a buffer of its own (credit_buffer)");
      break;
    case FlowControl::none:
      keys.note({"headroom", "pfc_response", "pfc_frame", "reserve", "resume_offset", "credit_buffer"},
                "flow_control is none, so nothing is held back");
      break;
  }
}

}  // namespace

std::vector<std::string> idle_network_keys(const ConfigNode& network, const FabricParameters& parameters,
                                           const Cluster& cluster) {
  std::vector<std::string> notes;
  if (const ConfigNode* section = network.find("switch"); section != nullptr && !section->is_null()) {
    const SwitchParameters& s = parameters.switches;
    IdleKeys keys(*section, "network.switch");
    note_flow_control(keys, s);
    const bool strict = s.scheduler.is_scalar() && s.scheduler.text() == "strict";
    if (s.classes == 1 && !strict) keys.note({"scheduler"}, "there is one data class (classes: 1)");
    if (s.forwarding == Switching::store_and_forward)
      keys.note({"header"}, "switches forward whole packets (forwarding: store_and_forward)");
    if (!s.aggregation) {
      keys.note({"aggregation_latency", "aggregation_payload", "aggregation_outstanding", "aggregation_rate",
                 "aggregation_rates", "aggregation_memory", "aggregation_groups", "aggregation_switches",
                 "aggregators", "aggregation_pairs", "aggregation_back_pairs"},
                "the switches add up nothing (aggregation: false)");
    } else if (s.aggregation_memory == 0) {
      keys.note({"aggregation_memory"}, "0 stands for memory without a limit");
    }
    notes = keys.take();
  }
  IdleKeys keys(network, "network");
  const bool optical = !cluster.graph.optical_switches().empty();
  if (!optical) keys.note({"circuits"}, "the cluster has no optical switches");
  if (!optical && parameters.faults.is_null()) keys.note({"detection_delay"}, "no link fails (faults)");
  for (std::string& note : keys.take()) notes.push_back(std::move(note));
  return notes;
}

std::vector<std::string> idle_transport_keys(const ConfigNode& section, const std::string& path,
                                             const FabricTransport& transport, const Cluster& cluster) {
  const TransportParameters& p = transport.parameters;
  const CongestionNeeds& needs = transport.needs;
  IdleKeys keys(section, path);
  const bool hears_cnps = needs.cnp_interval != kNever;
  if (needs.ack_echo) {
    keys.note({"ecn_echo", "cnp_delay"}, "the congestion control needs marks in ACKs");
  } else if (!hears_cnps) {
    keys.note({"ecn_echo", "cnp_delay"}, "the congestion control does not react to marks");
  } else if (p.ecn_echo == EcnEcho::ack) {
    keys.note({"cnp_delay"}, "marks come back in ACKs (ecn_echo: ack)");
  }
  if (!needs.base_rtt && !transport.reliability.selective)
    keys.note({"base_rtt"}, "neither congestion control nor reliability uses the round trip");
  if (p.window == 0) keys.note({"window_scales"}, "there is no window (window: 0)");
  if (transport.reliability.timeout != p.retransmission_timeout) {
    keys.note(
        {"retransmission_timeout"},
        "the timeouts are those of `reliability`; it only sets, with `retries`, when a queue pair gives up");
  }
  if (!any_pcie(cluster.graph)) keys.note({"nic_buffer"}, "no NIC of the cluster is behind PCIe");
  std::vector<std::string> notes = keys.take();
  const ConfigNode* const control = section.find("congestion_control");
  if (control == nullptr || !control->is_map()) return notes;
  IdleKeys own(*control, path + ".congestion_control");
  if (p.ecn_echo == EcnEcho::ack) own.note({"cnp_interval"}, "marks come back in ACKs (ecn_echo: ack)");
  for (const IdleKey& key : transport.congestion_control->idle_keys()) own.note({key.key}, key.why);
  for (std::string& note : own.take()) notes.push_back(std::move(note));
  return notes;
}

}  // namespace netsim
