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
#include <algorithm>

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
    state_.ports[change.port ^ 1U].flags |= fabric::kFaulty;
    engine_.call_at(change.at, [this, i] { change_link(faults_.changes[i]); });
  }
  for (const LinkChange& change : faults_.changes) {
    state_.rare[change.port].next_down = next_down(change.port, -1);
    update_link(change.port);
  }
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
      state_.rare[change.port].down = true;
      update_link(change.port);
      return;
    case LinkChange::Kind::up:
      state_.rare[change.port].down = false;
      state_.rare[change.port].next_down = next_down(change.port, change.at);
      update_link(change.port);
      return;
    case LinkChange::Kind::rate:
      set_rate(change.port, change.rate);
      set_forwarding(change.port);  // and that of the links into its node, which it may now outrun
      for (const PortId next : graph_.ports_of(graph_.port(change.port).node)) set_forwarding(next ^ 1U);
      return;
    case LinkChange::Kind::detected:
      learn_of_link(change.port);
      return;
  }
}

// One of the link's directions has changed.
void Fabric::update_link(PortId port) {
  fabric::Rare& one = state_.rare[port];
  fabric::Rare& other = state_.rare[port ^ 1U];
  const bool was_down = one.link_down;
  one.link_down = other.link_down = one.down || other.down;
  one.link_next_down = other.link_next_down = std::min(one.next_down, other.next_down);
  if (!was_down || one.link_down) return;
  part_of(port).come_up(port);
  part_of(port ^ 1U).come_up(port ^ 1U);
}

// Routes follow a link as it is now.
void Fabric::learn_of_link(PortId port) {
  bool news = false;
  for (const PortId id : {port, port ^ 1U}) {
    const fabric::Rare& rare = state_.rare[id];
    const bool controlled = state_.lossless != 0 || (state_.ports[id].flags & fabric::kCredits) != 0;
    const bool down = controlled ? rare.link_down : rare.down;
    if (known_down_[id] == down) continue;
    known_down_[id] = down;
    news = true;
    if (down) part_of(id).abandon(id);
  }
  if (news && routes_changed_) routes_changed_();
}

// Nobody will say that this port may go on, so what waits there is sent, and lost.
void FabricPart::abandon(PortId port) {
  rare_[port].abandoned = true;
  for (std::uint32_t priority = kDataPriority; priority < kDataPriority + state_.classes; ++priority) {
    set_running(port, priority);
  }
}

void FabricPart::come_up(PortId port) {
  rare_[port].abandoned = false;
  const PortId back = port ^ 1U;
  for (std::uint32_t priority = kDataPriority; priority < kDataPriority + state_.classes; ++priority) {
    Ingress& in = ingress_[class_index(back, priority)];  // what this end holds of the far end's packets
    if (lossless(priority)) {
      if ((ports_[port].paused >> priority & 1) == 0) {
        set_paused(port, priority);
        rare_[port].unheard = static_cast<std::uint8_t>(rare_[port].unheard | 1U << priority);
      }
      send_pfc(back, priority, in.pausing);
    }
    if ((ports_[port].flags & fabric::kCredits) != 0) {
      const Credits& own = state_.credits[class_index(port, priority)];
      if (own.left < own.largest && (ports_[port].paused >> priority & 1) == 0) set_paused(port, priority);
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
