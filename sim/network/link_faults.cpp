#include "sim/network/link_faults.h"

#include <algorithm>
#include <utility>

#include "sim/network/link_state.h"

namespace netsim {

LinkFaults::LinkFaults(Engine& engine, FabricState& state,
                       const std::vector<std::unique_ptr<FabricShard>>& shards, FaultSchedule plan,
                       std::uint64_t seed)
    : state_(state), shards_(shards), plan_(std::move(plan)), known_down_(state.ports.size(), false) {
  for (const FaultSchedule::Loss& loss : plan_.losses) {
    state_.links[loss.port].loss = loss.probability;
    state_.links[loss.port].loss_random = RandomStream(seed, "loss", state_.graph.port_number(loss.port));
    state_.ports[loss.port].flags |= fabric::kFaulty;
  }
  for (std::size_t i = 0; i < plan_.changes.size(); ++i) {
    const LinkChange& planned = plan_.changes[i];
    state_.ports[planned.port].flags |= fabric::kFaulty;
    state_.ports[planned.port ^ 1U].flags |= fabric::kFaulty;
    engine.call_at(planned.at, [this, i] { change(plan_.changes[i]); });
  }
  note_best_rates();
  for (const LinkChange& planned : plan_.changes) {
    state_.links[planned.port].next_down = next_down(planned.port, -1);
    update_link(planned.port);
  }
}

void LinkFaults::note_best_rates() {
  for (const LinkChange& planned : plan_.changes) {
    if (planned.kind != LinkChange::Kind::rate) continue;
    if (state_.best_rates.empty()) {
      for (PortId port = 0; port < state_.graph.port_count(); ++port)
        state_.best_rates.push_back(state_.graph.port(port).link.rate);
    }
    BitRate& best = state_.best_rates[planned.port];
    best = std::max(best, planned.rate);
  }
}

std::vector<bool> LinkFaults::failing() const {
  std::vector<bool> failing(known_down_.size(), false);
  for (const LinkChange& planned : plan_.changes) {
    if (planned.kind == LinkChange::Kind::down) failing[planned.port] = true;
  }
  return failing;
}

bool LinkFaults::any_after(Time now) const {
  return std::any_of(plan_.changes.begin(), plan_.changes.end(),
                     [now](const LinkChange& planned) { return planned.at > now; });
}

Time LinkFaults::next_down(PortId port, Time after) const {
  Time next = kNever;
  for (const LinkChange& planned : plan_.changes) {
    if (planned.port == port && planned.kind == LinkChange::Kind::down && planned.at > after)
      next = std::min(next, planned.at);
  }
  return next;
}

void LinkFaults::change(const LinkChange& planned) {
  fabric::Link& link = state_.links[planned.port];
  switch (planned.kind) {
    case LinkChange::Kind::down:
      link.down = true;
      update_link(planned.port);
      return;
    case LinkChange::Kind::up:
      link.down = false;
      link.next_down = next_down(planned.port, planned.at);
      update_link(planned.port);
      return;
    case LinkChange::Kind::rate:
      change_rate(planned.port, planned.rate);
      return;
    case LinkChange::Kind::detected:
      learn_of_link(planned.port);
      return;
  }
}

// Also updates the links into the port's node. They may cut through only if no port of the node is faster.
void LinkFaults::change_rate(PortId port, BitRate rate) {
  set_rate(state_, port, rate);
  set_passage(state_, port);
  for (const PortId next : state_.graph.ports_of(state_.graph.port(port).node))
    set_passage(state_, next ^ 1U);
}

// Updates both directions of a link after one of them has changed.
void LinkFaults::update_link(PortId port) {
  fabric::Link& one = state_.links[port];
  fabric::Link& other = state_.links[port ^ 1U];
  const bool was_down = one.link_down;
  one.link_down = other.link_down = one.down || other.down;
  one.link_next_down = other.link_next_down = std::min(one.next_down, other.next_down);
  if (!was_down || one.link_down) return;
  shard_of(port).come_up(port);
  shard_of(port ^ 1U).come_up(port ^ 1U);
}

// Makes routes follow the link's present state.
void LinkFaults::learn_of_link(PortId port) {
  bool news = false;
  for (const PortId id : {port, port ^ 1U}) {
    const fabric::Link& link = state_.links[id];
    const bool controlled =
        state_.rules_at(id).lossless != 0 || (state_.ports[id].flags & fabric::kCredits) != 0;
    const bool down = controlled ? link.link_down : link.down;
    if (known_down_[id] == down) continue;
    known_down_[id] = down;
    news = true;
    if (down) shard_of(id).abandon(id);
  }
  if (news && routes_changed_) routes_changed_();
}

}  // namespace netsim
