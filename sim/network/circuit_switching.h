// CircuitSwitching: optical switches while the simulation runs. The topology says which circuits they can
// make (OpticalSwitch in graph.h). This class changes them from one configuration to another.
//
// A change takes three steps. First the old circuits are drained: their ends stop sending until all packets
// in flight have arrived. That takes as long as the longest circuit and the largest packet need.
//
// Then the mirrors move (`reconfiguration`) and the ends synchronise (`guard`). After that the new circuits
// carry packets. Circuits that are part of both configurations carry packets all the time.
//
// With `law: lose` the ends are not warned. Packets in flight when the mirrors move are lost, as on a link
// that fails.
//
// Packets that do not wait for a circuit that is down (OpticalSwitch::waits is false) follow the next
// configuration from the moment it was requested. Each switch chooses their next hop when they arrive.
// Packets that wait for a circuit of the old configuration are rerouted.
//
// Configurations change in turn every `rotation` (RotorNet: Mellette et al., SIGCOMM 2017). With `stagger`
// one switch changes after the other (Opera: Mellette et al., NSDI 2020). They also change by a schedule, or
// when a job asks for it (transport/circuit_control.h).
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

// Counts over all optical switches.
struct CircuitCounters {
  std::uint64_t changes = 0;  // completed changes of a switch's configuration
  Time changing = 0;          // total time that switches spent on changes, drains included
};

class CircuitSwitching {
 public:
  // `node` is the section `network`, used in messages. Throws ConfigError for unknown configurations and for
  // a rotation so fast that no circuit is ever up.
  CircuitSwitching(Engine& engine, FabricState& state,
                   const std::vector<std::unique_ptr<FabricShard>>& shards,
                   const CircuitParameters& parameters, const ConfigNode& node);
  CircuitSwitching(const CircuitSwitching&) = delete;
  CircuitSwitching& operator=(const CircuitSwitching&) = delete;

  // Returns whether packets are routed by the circuits that are up, and these may change.
  static bool moves_packets(const Graph& graph);
  // Registers the function that is called when the set of circuits to avoid changes.
  void on_routes_changed(std::function<void()> call) { routes_changed_ = std::move(call); }
  // Returns, by port, the circuits that are down and that packets do not wait for. Empty without optical
  // switches.
  const std::vector<bool>& avoided() const { return avoided_; }
  const CircuitCounters& counters() const { return counters_; }

  // These implement CircuitControl (transport/circuit_control.h).
  const std::vector<std::string>& configurations() const { return names_; }
  Time request_latency() const { return parameters_.request_latency; }
  void configure(std::uint32_t configuration, std::function<void()> when_up);

 private:
  // A request for a configuration. It is done when every switch that has the configuration has reached it.
  struct Request {
    std::uint32_t left = 0;
    std::function<void()> when_up;
  };
  struct Step {
    std::uint32_t configuration = 0;
    std::shared_ptr<Request> request;
  };
  struct Switch {
    const OpticalSwitch* spec = nullptr;
    std::uint32_t present = 0;  // index of the present configuration, or of the next one during a change
    std::vector<PortId> going, coming;
    std::deque<Step> steps;  // the first one is in progress
    Time since = 0;
  };

  void read_schedule(const ConfigNode& schedule);
  void rotate();
  void repeat(const std::vector<std::uint32_t>& ids, const std::string& configuration, Time again);
  bool anything_to_come() const;
  std::vector<std::uint32_t> switches_of(const ConfigNode& entry) const;
  std::uint32_t configuration_of(const ConfigNode& name, const std::vector<std::uint32_t>& switches) const;
  void ask(const std::vector<std::uint32_t>& switches, const std::string& configuration,
           std::function<void()> when_up);
  void enqueue(std::uint32_t id, std::uint32_t configuration, std::shared_ptr<Request> request);
  void begin(std::uint32_t id);
  Time drain_time(const std::vector<PortId>& circuits) const;
  void take_down(std::uint32_t id);
  void route_over_coming(std::uint32_t id);
  void bring_up(std::uint32_t id);
  void after(Time delay, std::function<void()> call);
  template <class F>
  void each_end(const std::vector<PortId>& circuits, F f);
  FabricShard& shard_of(PortId port) { return *shards_[state_.far_set[port ^ 1U]]; }

  Engine& engine_;
  FabricState& state_;
  const std::vector<std::unique_ptr<FabricShard>>& shards_;
  CircuitParameters parameters_;
  std::vector<Switch> switches_;
  std::vector<std::string> names_;  // names of all configurations, each once
  std::vector<bool> avoided_;
  std::function<void()> routes_changed_;
  std::uint32_t turn_ = 0;     // number of changes made by a staggered rotation
  std::size_t own_calls_ = 0;  // number of pending engine calls made by this class
  CircuitCounters counters_;
};

}  // namespace netsim
