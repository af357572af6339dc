#include "sim/network/circuit_switching.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/core/registry.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

constexpr Range<Time> kCircuitTimes{0, 1'000'000 * kSecond};

// Returns the circuits of `some` that are not in `others`. Both are ascending.
std::vector<PortId> ports_without(const std::vector<PortId>& some, const std::vector<PortId>& others) {
  std::vector<PortId> result;
  std::set_difference(some.begin(), some.end(), others.begin(), others.end(), std::back_inserter(result));
  return result;
}

// Returns the index of a configuration among those of the switch, or their number if there is none of that
// name.
std::size_t place_of(const OpticalSwitch& one, const std::string& name) {
  const auto& all = one.configurations;
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& c) { return c.name == name; });
  return static_cast<std::size_t>(found - all.begin());
}

}  // namespace

bool CircuitSwitching::moves_packets(const Graph& graph) {
  const auto& all = graph.optical_switches();
  return std::any_of(all.begin(), all.end(),
                     [](const OpticalSwitch& one) { return !one.waits && one.configurations.size() > 1; });
}

CircuitSwitching::CircuitSwitching(Engine& engine, FabricState& state,
                                   const std::vector<std::unique_ptr<FabricShard>>& shards,
                                   const CircuitParameters& parameters, const ConfigNode& node)
    : engine_(engine),
      state_(state),
      shards_(shards),
      parameters_(parameters),
      avoided_(state.graph.avoided()) {
  for (const OpticalSwitch& one : state.graph.optical_switches()) {
    switches_.emplace_back().spec = &one;
    for (const OpticalSwitch::Configuration& configuration : one.configurations) {
      if (std::find(names_.begin(), names_.end(), configuration.name) == names_.end())
        names_.push_back(configuration.name);
      if (parameters_.law == CircuitChangeMode::lose)
        each_end(configuration.circuits, [&](PortId port) { state_.ports[port].flags |= fabric::kFaulty; });
    }
  }
  const std::vector<bool> down = state.graph.circuits_down();
  for (PortId port = 0; port < down.size(); ++port) {
    if (!down[port]) continue;
    state_.pauses_of(port).circuit_down = true;
    state_.ports[port].paused = 0xff;
  }
  const ConfigNode* section = node.find("circuits");
  const ConfigNode& where = section != nullptr ? *section : node;
  if (switches_.empty() && (parameters_.rotation != 0 || !parameters_.schedule.is_null()))
    where.fail(
        "the topology has no optical switches, so no circuits change; topologies with optical switches: "
        "optical_circuits, rotor");
  if (!parameters_.schedule.is_null()) read_schedule(parameters_.schedule);
  if (parameters_.rotation == 0) return;
  const Time dead = parameters_.reconfiguration + parameters_.guard;
  if (parameters_.rotation <= dead)
    where.fail(fmt::format("a rotation of {} leaves no time for packets: reconfiguration and guard take {}",
                           format_time(parameters_.rotation), format_time(dead)));
  after(parameters_.rotation / (parameters_.stagger ? static_cast<Time>(switches_.size()) : 1),
        [this] { rotate(); });
}

// ---- When configurations change

void CircuitSwitching::after(Time delay, std::function<void()> call) {
  ++own_calls_;
  engine_.call_at(engine_.now() + delay, [this, call = std::move(call)] {
    --own_calls_;
    call();
  });
}

// Returns whether events other than own calls are pending or packets wait for a circuit. The rotation ends
// when neither is so.
bool CircuitSwitching::anything_to_come() const {
  if (engine_.pending() > own_calls_) return true;
  for (const Switch& one : switches_) {
    for (const OpticalSwitch::Configuration& configuration : one.spec->configurations) {
      for (const PortId port : configuration.circuits) {
        if (state_.queued(port) + state_.queued(port ^ 1U) > 0) return true;
      }
    }
  }
  return false;
}

void CircuitSwitching::rotate() {
  if (!anything_to_come()) return;
  const auto count = static_cast<std::uint32_t>(switches_.size());
  const auto next = [&](std::uint32_t id) {
    const Switch& one = switches_[id];
    const std::uint32_t last = one.steps.empty() ? one.present : one.steps.back().configuration;
    enqueue(id, (last + 1) % static_cast<std::uint32_t>(one.spec->configurations.size()), nullptr);
  };
  if (parameters_.stagger) {
    next(turn_++ % count);
  } else {
    for (std::uint32_t id = 0; id < count; ++id) next(id);
  }
  after(parameters_.rotation / (parameters_.stagger ? count : 1), [this] { rotate(); });
}

void CircuitSwitching::read_schedule(const ConfigNode& schedule) {
  if (!schedule.is_sequence()) schedule.fail("expected a list of {at: TIME, configuration: NAME}");
  for (const ConfigNode& entry : schedule.items()) {
    entry.allow_keys({"at", "configuration", "switch", "every"});
    const ConfigNode *at = entry.find("at"), *name = entry.find("configuration"),
                     *every = entry.find("every");
    if (at == nullptr || name == nullptr) entry.fail("'at' and 'configuration' are required");
    const auto time = [](const ConfigNode& node, Time least) {
      const Time value = read_time(node);
      if (value < least || value > kCircuitTimes.maximum)
        node.fail("'" + node.text() + "' is out of range: up to 10^6 s" + (least > 0 ? ", above 0" : ""));
      return value;
    };
    const Time first = time(*at, 0), again = every != nullptr ? time(*every, 1) : 0;
    const std::vector<std::uint32_t> ids = switches_of(entry);
    const std::string configuration = names_[configuration_of(*name, ids)];
    ++own_calls_;
    engine_.call_at(first, [this, ids, configuration, again] {
      --own_calls_;
      repeat(ids, configuration, again);
    });
  }
}

void CircuitSwitching::repeat(const std::vector<std::uint32_t>& ids, const std::string& configuration,
                              Time again) {
  ask(ids, configuration, [] {});
  if (again == 0 || !anything_to_come()) return;
  after(again, [this, ids, configuration, again] { repeat(ids, configuration, again); });
}

std::vector<std::uint32_t> CircuitSwitching::switches_of(const ConfigNode& entry) const {
  std::vector<std::uint32_t> ids;
  const ConfigNode* given = entry.find("switch");
  std::vector<std::string> names;
  for (std::uint32_t id = 0; id < switches_.size(); ++id) {
    names.push_back(switches_[id].spec->name);
    if (given == nullptr || names.back() == read_text(*given)) ids.push_back(id);
  }
  if (!ids.empty()) return ids;
  given->fail("no optical switch '" + read_text(*given) + "'" + did_you_mean(read_text(*given), names));
}

std::uint32_t CircuitSwitching::configuration_of(const ConfigNode& node,
                                                 const std::vector<std::uint32_t>& switches) const {
  const std::string name = read_text(node);
  const bool known = std::any_of(switches.begin(), switches.end(), [&](std::uint32_t id) {
    return place_of(*switches_[id].spec, name) < switches_[id].spec->configurations.size();
  });
  if (!known) {
    std::vector<std::string> names;
    for (const std::uint32_t id : switches) {
      for (const auto& configuration : switches_[id].spec->configurations)
        names.push_back(configuration.name);
    }
    node.fail("no configuration '" + name + "'" + did_you_mean(name, names));
  }
  return static_cast<std::uint32_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
}

// ---- Requests

void CircuitSwitching::configure(std::uint32_t configuration, std::function<void()> when_up) {
  std::vector<std::uint32_t> all(switches_.size());
  for (std::uint32_t id = 0; id < all.size(); ++id) all[id] = id;
  ask(all, names_[configuration], std::move(when_up));
}

// Asks those of the switches that have the configuration.
void CircuitSwitching::ask(const std::vector<std::uint32_t>& ids, const std::string& configuration,
                           std::function<void()> when_up) {
  auto request = std::make_shared<Request>();
  request->when_up = std::move(when_up);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> steps;
  for (const std::uint32_t id : ids) {
    const std::size_t place = place_of(*switches_[id].spec, configuration);
    if (place < switches_[id].spec->configurations.size())
      steps.emplace_back(id, static_cast<std::uint32_t>(place));
  }
  request->left = static_cast<std::uint32_t>(steps.size());
  for (const auto& [id, place] : steps) enqueue(id, place, request);
}

void CircuitSwitching::enqueue(std::uint32_t id, std::uint32_t configuration,
                               std::shared_ptr<Request> request) {
  switches_[id].steps.push_back({configuration, std::move(request)});
  if (switches_[id].steps.size() == 1) begin(id);
}

// ---- A change of configuration

void CircuitSwitching::begin(std::uint32_t id) {
  Switch& one = switches_[id];
  const auto& all = one.spec->configurations;
  const std::uint32_t next = one.steps.front().configuration;
  one.going = ports_without(all[one.present].circuits, all[next].circuits);
  one.coming = ports_without(all[next].circuits, all[one.present].circuits);
  one.present = next;
  one.since = engine_.now();
  if (one.going.empty() && one.coming.empty()) return bring_up(id);
  const Time drain = drain_time(one.going);
  if (parameters_.law == CircuitChangeMode::drain) {
    take_down(id);
    after(drain + parameters_.reconfiguration + parameters_.guard, [this, id] { bring_up(id); });
    return;
  }
  each_end(one.going, [&](PortId port) { state_.links[port].circuit_down_at = engine_.now() + drain; });
  after(drain, [this, id] {
    take_down(id);
    after(parameters_.reconfiguration + parameters_.guard, [this, id] { bring_up(id); });
  });
}

// Returns the longest time until a packet sent last on one of the circuits reaches the far end.
Time CircuitSwitching::drain_time(const std::vector<PortId>& circuits) const {
  Time longest = 0;
  for (const PortId circuit : circuits) {
    for (const PortId port : {circuit, circuit ^ 1U}) {
      const Bytes wire = state_.rules_at(port).largest_packet + state_.ports[port].overhead;
      longest =
          std::max(longest, state_.serialisation(wire, state_.links[port].rate) + state_.links[port].delay);
    }
  }
  return longest;
}

void CircuitSwitching::take_down(std::uint32_t id) {
  each_end(switches_[id].going, [&](PortId port) { shard_of(port).take_circuit_down(port); });
  if (!switches_[id].spec->waits) route_over_coming(id);
}

void CircuitSwitching::route_over_coming(std::uint32_t id) {
  const Switch& one = switches_[id];
  each_end(one.going, [&](PortId port) { avoided_[port] = true; });
  each_end(one.coming, [&](PortId port) { avoided_[port] = false; });
  if (routes_changed_) routes_changed_();
  each_end(one.going, [&](PortId port) { shard_of(port).reroute(port); });
}

void CircuitSwitching::bring_up(std::uint32_t id) {
  Switch& one = switches_[id];
  each_end(one.coming, [&](PortId port) {
    state_.links[port].circuit_down_at = kNever;
    shard_of(port).bring_circuit_up(port);
  });
  if (parameters_.law == CircuitChangeMode::lose)
    each_end(one.coming, [&](PortId port) { shard_of(port).come_up(port); });
  if (!one.going.empty() || !one.coming.empty()) {
    ++counters_.changes;
    counters_.changing += engine_.now() - one.since;
  }
  const std::shared_ptr<Request> request = one.steps.front().request;
  one.steps.pop_front();
  if (!one.steps.empty()) begin(id);
  if (request != nullptr && --request->left == 0) request->when_up();
}

template <class F>
void CircuitSwitching::each_end(const std::vector<PortId>& circuits, F f) {
  for (const PortId circuit : circuits) {
    f(circuit);
    f(circuit ^ 1U);
  }
}

}  // namespace netsim
