// CircuitSwitching: optical switches while the simulation runs. Which circuits they can make is the
// topology's business (OpticalSwitch in graph.h); here they change from one configuration to another.
//
// A change takes three steps. The circuits that go are drained: their ends stop sending, until what is under
// way has arrived, which takes as long as the longest of them and the largest packet. Then the mirrors move
// (`reconfiguration`), the ends find each other again (`guard`), and what is new carries packets. Circuits
// that both configurations have carry them all the while. Under the law `lose` nobody tells the ends: what is
// under way when the mirrors move is lost, as on a link that fails.
//
// Packets that do not wait for dark circuits (OpticalSwitch::waits) go by the configuration that is coming,
// from the moment it was asked for: each switch finds their next hop when they are there, and what waits for
// a circuit that goes is led on by another way.
//
// Configurations come in turn, every `rotation` (RotorNet: Mellette et al., SIGCOMM 2017; `stagger`: one
// switch after the other, as Opera: Mellette et al., NSDI 2020); by a schedule; or because a job asks
// (transport/circuit_control.h).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/engine.h"
#include "sim/network/fabric_parameters.h"
#include "sim/network/fabric_shard.h"
#include "sim/network/fabric_state.h"

namespace netsim {

// What has happened, of all optical switches together.
struct CircuitCounters {
  std::uint64_t changes = 0;  // of a switch's configuration, completed
  Time changing = 0;          // that switches have spent on them, drains included
};

class CircuitSwitching {
 public:
  // `node`: the section `network`, for messages. ConfigError for configurations that there are not, and for
  // a rotation too fast for circuits to be lit.
  CircuitSwitching(Engine& engine, FabricState& state, const std::vector<std::unique_ptr<FabricShard>>& parts,
                   const CircuitParameters& parameters, const ConfigNode& node);
  CircuitSwitching(const CircuitSwitching&) = delete;
  CircuitSwitching& operator=(const CircuitSwitching&) = delete;

  // Whether packets find their ways by what is lit, and that may change.
  static bool moves_packets(const Graph& graph);
  // Called when other circuits than before are to be avoided.
  void on_routes_changed(std::function<void()> call) { routes_changed_ = std::move(call); }
  // By port: dark circuits that packets do not wait for; empty where there are no optical switches.
  const std::vector<bool>& avoided() const { return avoided_; }
  const CircuitCounters& counters() const { return counters_; }

  // As of CircuitControl.
  const std::vector<std::string>& configurations() const { return names_; }
  Time request_latency() const { return parameters_.request_latency; }
  void configure(std::uint32_t configuration, std::function<void()> lit);

 private:
  // A request; over when every switch that takes part has come to it.
  struct Request {
    std::uint32_t left = 0;
    std::function<void()> lit;
  };
  struct Step {
    std::uint32_t configuration = 0;
    std::shared_ptr<Request> request;
  };
  struct Switch {
    const OpticalSwitch* spec = nullptr;
    std::uint32_t present = 0;  // or coming
    std::vector<PortId> going, coming;
    std::deque<Step> steps;  // the first one is being carried out
    Time since = 0;
  };

  void read_schedule(const ConfigNode& schedule);
  void rotate();
  void repeat(const std::vector<std::uint32_t>& ids, const std::string& configuration, Time again);
  bool anything_to_come() const;
  std::vector<std::uint32_t> switches_of(const ConfigNode& entry) const;
  std::uint32_t configuration_of(const ConfigNode& name, const std::vector<std::uint32_t>& switches) const;
  void ask(const std::vector<std::uint32_t>& switches, const std::string& configuration,
           std::function<void()> lit);
  void enqueue(std::uint32_t id, std::uint32_t configuration, std::shared_ptr<Request> request);
  void begin(std::uint32_t id);
  Time drain_time(const std::vector<PortId>& circuits) const;
  void go_dark(std::uint32_t id);
  void go_by_what_comes(std::uint32_t id);
  void become_lit(std::uint32_t id);
  void after(Time delay, std::function<void()> call);
  template <class F>
  void each_end(const std::vector<PortId>& circuits, F f);
  FabricShard& part_of(PortId port) { return *parts_[state_.far_set[port ^ 1U]]; }

  Engine& engine_;
  FabricState& state_;
  const std::vector<std::unique_ptr<FabricShard>>& parts_;
  CircuitParameters parameters_;
  std::vector<Switch> switches_;
  std::vector<std::string> names_;  // of all configurations, each once
  std::vector<bool> avoided_;
  std::function<void()> routes_changed_;
  std::uint32_t turn_ = 0;     // of the rotation
  std::size_t own_calls_ = 0;  // to come
  CircuitCounters counters_;
};

}  // namespace netsim
