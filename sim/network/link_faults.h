// Links that lose packets, go down, come back or change their rate. A port whose link is down goes on
// transmitting into nothing until that is known: that is what a switch does before it knows. What is held
// back stays so; when the link is known to be down, routes avoid it and what waits for it is lost.
//
// One direction may be down alone. Classes without flow control go by their direction; the others need both,
// because pauses and credits come back over the other one, so while one is down they are lost on either. So
// do real links as a whole: an Ethernet port that receives nothing stops sending and tells the far end, which
// stops too (link fault signalling, IEEE 802.3 clause 46.3.4); an InfiniBand link is trained in both
// directions or down (InfiniBand Architecture Specification, volume 2, link initialisation).
//
// When a link is whole again both ends say anew what they hold of each other: what was said before may be
// lost. Until a port has heard that, it holds back its lossless classes.
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

// Carries the fault plan out, between events.
class LinkFaults {
 public:
  // `parts`: by set, of the fabric; they may be made after this.
  LinkFaults(Engine& engine, FabricState& state, const std::vector<std::unique_ptr<FabricShard>>& parts,
             FaultPlan plan, std::uint64_t seed);
  LinkFaults(const LinkFaults&) = delete;
  LinkFaults& operator=(const LinkFaults&) = delete;

  // Called when a link went down or came back `detection_delay` ago.
  void on_routes_changed(std::function<void()> call) { routes_changed_ = std::move(call); }
  // By port: known to carry no traffic, because its link, or where classes have flow control one direction of
  // it, is down.
  const std::vector<bool>& known_down() const { return known_down_; }
  // By port: what the plan takes down at some time.
  std::vector<bool> failing() const;
  // Whether something happens to a link after `now`.
  bool any_after(Time now) const;

 private:
  // Fills FabricState::best_rates.
  void note_best_rates();
  void change(const LinkChange& change);
  void change_rate(PortId port, BitRate rate);
  void update_link(PortId port);
  void learn_of_link(PortId port);
  Time next_down(PortId port, Time after) const;
  FabricShard& part_of(PortId port) { return *parts_[state_.far_set[port ^ 1U]]; }

  FabricState& state_;
  const std::vector<std::unique_ptr<FabricShard>>& parts_;
  FaultPlan plan_;
  std::vector<bool> known_down_;
  std::function<void()> routes_changed_;
};

}  // namespace netsim
