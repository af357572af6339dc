// Links that lose packets, go down, come back or change their rate. A port whose link is down goes on
// transmitting into nothing until routes avoid it: that is what a switch does before it knows.
#include "sim/network/fabric.h"

namespace netsim {

void Fabric::build_faults(std::uint64_t seed) {
  for (const FaultPlan::Loss& loss : faults_.losses) {
    state_.rare[loss.port].loss = loss.probability;
    state_.rare[loss.port].loss_random = RandomStream(seed, "loss", loss.port);
    state_.ports[loss.port].flags |= fabric::kFaulty;
  }
  for (std::size_t i = 0; i < faults_.changes.size(); ++i) {
    const LinkChange& change = faults_.changes[i];
    state_.ports[change.port].flags |= fabric::kFaulty;
    engine_.call_at(change.at, [this, i] { change_link(faults_.changes[i]); });
  }
  for (const LinkChange& change : faults_.changes)
    state_.rare[change.port].next_down = next_down(change.port, -1);
}

// A packet is lost that would still be on the link when it goes down; so its loss is decided at its start.
Time Fabric::next_down(PortId port, Time after) const {
  Time next = kNever;
  for (const LinkChange& change : faults_.changes) {
    if (change.port == port && change.kind == LinkChange::Kind::down && change.at > after)
      next = std::min(next, change.at);
  }
  return next;
}

void Fabric::change_link(const LinkChange& change) {
  switch (change.kind) {
    case LinkChange::Kind::down:
      part_of(change.port).take_down(change.port);
      return;
    case LinkChange::Kind::up:
      part_of(change.port).bring_up(change.port, next_down(change.port, change.at));
      return;
    case LinkChange::Kind::rate:
      set_rate(change.port, change.rate);
      set_forwarding(change.port);  // and that of the links into its node, which it may now outrun
      for (const PortId next : graph_.ports_of(graph_.port(change.port).node)) set_forwarding(next ^ 1U);
      return;
    case LinkChange::Kind::detected:
      if (known_down_[change.port] == state_.rare[change.port].down) return;
      known_down_[change.port] = state_.rare[change.port].down;
      if (routes_changed_) routes_changed_();
      return;
  }
}

// Nobody can resume this port now, so what waits there is sent, and lost, whatever it was held back by.
void FabricPart::take_down(PortId port) {
  rare_[port].down = true;
  for (std::uint32_t priority = kDataPriority; priority < kDataPriority + state_.classes; ++priority) {
    set_running(port, priority);
  }
}

// What the far end wants of this port, and what this end has for the far one, is said again.
void FabricPart::bring_up(PortId port, Time next_down) {
  rare_[port].down = false;
  rare_[port].next_down = next_down;
  const PortId back = port ^ 1U;
  for (std::uint32_t priority = kDataPriority; priority < kDataPriority + state_.classes; ++priority) {
    Ingress& in = ingress_[class_index(back, priority)];  // what this end holds of the far end's packets
    if (lossless(priority) &&
        (ports_[port].flags & fabric::kBuffered) != 0) {  // a frame of before may be lost
      const LinkControl state = in.pausing ? LinkControl::pause : LinkControl::resume;
      send_control(back, make_link_control(state, priority), 0, state_.parameters.pfc_frame);
    }
    if ((ports_[port].flags & fabric::kCredits) != 0) {
      const Credits& own = state_.credits[class_index(port, priority)];
      if (own.left < own.largest) set_paused(port, priority);
    }
    if ((ports_[back].flags & fabric::kCredits) != 0 && in.headroom_used > 0) {
      const Credits& credits = state_.credits[class_index(back, priority)];
      const auto given = static_cast<std::uint32_t>(in.headroom_used);
      in.headroom_used = 0;
      send_control(back, make_link_control(LinkControl::credit, priority), given,
                   std::max<Bytes>(credits.frame, 1));
    }
  }
}

}  // namespace netsim
