// Links that lose packets, go down, come back or change their rate. A port whose link is down goes on
// transmitting into nothing until routes avoid it: that is what a switch does before it knows.
#include "sim/network/fabric.h"

namespace netsim {

void Fabric::build_faults(std::uint64_t seed) {
  for (const FaultPlan::Loss& loss : faults_.losses) {
    rare_[loss.port].loss = loss.probability;
    rare_[loss.port].loss_random = RandomStream(seed, "loss", loss.port);
    ports_[loss.port].flags |= kFaulty;
  }
  for (std::size_t i = 0; i < faults_.changes.size(); ++i) {
    const LinkChange& change = faults_.changes[i];
    ports_[change.port].flags |= kFaulty;
    loop_.schedule(change.at, ports_[change.port].origin, EventKind::link_state, change.port, i);
  }
  for (const LinkChange& change : faults_.changes) rare_[change.port].next_down = next_down(change.port, -1);
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

void Fabric::on_link_state(const Event& event) {
  const LinkChange& change = faults_.changes[event.argument];
  ports_[change.port].digest = digest(ports_[change.port].digest, event);
  switch (change.kind) {
    case LinkChange::Kind::down:
      take_down(change.port);
      return;
    case LinkChange::Kind::up:
      bring_up(change.port);
      return;
    case LinkChange::Kind::rate:
      set_rate(change.port, change.rate);
      set_forwarding(change.port);  // and that of the links into its node, which it may now outrun
      for (const PortId next : graph_.ports_of(graph_.port(change.port).node)) set_forwarding(next ^ 1U);
      return;
    case LinkChange::Kind::detected:
      if (known_down_[change.port] == rare_[change.port].down) return;
      known_down_[change.port] = rare_[change.port].down;
      source_->routes_changed();
      return;
  }
}

// Nobody can resume this port now, so what waits there is sent, and lost, whatever it was held back by.
void Fabric::take_down(PortId port) {
  rare_[port].down = true;
  for (std::uint32_t priority = kDataPriority; priority < kDataPriority + classes_; ++priority) {
    set_running(port, priority);
  }
}

// What the far end wants of this port, and what this end has for the far one, is said again.
void Fabric::bring_up(PortId port) {
  rare_[port].down = false;
  rare_[port].next_down = next_down(port, loop_.now());
  const PortId back = port ^ 1U;
  for (std::uint32_t priority = kDataPriority; priority < kDataPriority + classes_; ++priority) {
    Ingress& in = ingress_[class_index(back, priority)];  // what this end holds of the far end's packets
    if (lossless(priority) && (ports_[port].flags & kBuffered) != 0) {  // a frame of before may be lost
      const LinkControl state = in.pausing ? LinkControl::pause : LinkControl::resume;
      send_control(back, make_link_control(state, priority), 0, parameters_.pfc_frame);
    }
    if ((ports_[port].flags & kCredits) != 0) {
      const Credits& own = credits_[class_index(port, priority)];
      if (own.left < own.largest) set_paused(port, priority);
    }
    if ((ports_[back].flags & kCredits) != 0 && in.headroom_used > 0) {
      const Credits& credits = credits_[class_index(back, priority)];
      const auto given = static_cast<std::uint32_t>(in.headroom_used);
      in.headroom_used = 0;
      send_control(back, make_link_control(LinkControl::credit, priority), given,
                   std::max<Bytes>(credits.frame, 1));
    }
  }
}

}  // namespace netsim
