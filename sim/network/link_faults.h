// LinkFaults: links that lose packets, go down, come back or change their rate. A port whose link is down
// continues to transmit, and loses, until the outage is detected, as a real switch does. What flow control
// holds back stays so.
//
// When the link is known to be down, routes avoid it, and the packets that wait for it are lost.
//
// One direction may be down alone. Classes without flow control depend on their direction only. Classes with
// flow control need both, because pauses and credits return over the other direction; with one down they are
// lost on either.
//
// Real links behave so as a whole. An Ethernet port that receives nothing stops sending and signals that to
// the far end, which stops too (link fault signalling, IEEE 802.3 clause 46.3.4). An InfiniBand link is
// trained in both directions or down (InfiniBand Architecture Specification, volume 2, link initialisation).
//
// When both directions are up again, both ends repeat their pause state and credits, because earlier frames
// may be lost. Until a port has received that state, it holds back its lossless classes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sim/core/engine.h"
#include "sim/network/fabric_shard.h"
#include "sim/network/fabric_state.h"
#include "sim/network/faults.h"

namespace netsim {

// Carries out the fault schedule, between events.
class LinkFaults {
 public:
  // `shards` holds the fabric's shards by logical process. They may be created after this object.
  LinkFaults(Engine& engine, FabricState& state, const std::vector<std::unique_ptr<FabricShard>>& shards,
             FaultSchedule plan, std::uint64_t seed);
  LinkFaults(const LinkFaults&) = delete;
  LinkFaults& operator=(const LinkFaults&) = delete;

  // Registers the function that is called `detection_delay` after a link went down or came back.
  void on_routes_changed(std::function<void()> call) { routes_changed_ = std::move(call); }
  // Returns, by port, whether its link is known to be down. For links with flow control one direction is
  // enough.
  const std::vector<bool>& known_down() const { return known_down_; }
  // Returns, by port, whether the schedule takes it down at any time.
  std::vector<bool> failing() const;
  const FaultSchedule& schedule() const { return plan_; }
  // Returns whether the schedule changes any link after `now`.
  bool any_after(Time now) const;

 private:
  // Fills FabricState::best_rates.
  void note_best_rates();
  void change(const LinkChange& change);
  void change_rate(PortId port, BitRate rate);
  void update_link(PortId port);
  void learn_of_link(PortId port);
  Time next_down(PortId port, Time after) const;
  FabricShard& shard_of(PortId port) { return *shards_[state_.far_set[port ^ 1U]]; }

  FabricState& state_;
  const std::vector<std::unique_ptr<FabricShard>>& shards_;
  FaultSchedule plan_;
  std::vector<bool> known_down_;
  std::function<void()> routes_changed_;
};

}  // namespace netsim
