#include "sim/transport/transport_part.h"

#include <cstring>

#include "sim/core/random.h"

namespace netsim {

TransportPart::TransportPart(AtomSet& set, FabricPart& fabric, TransportState& state,
                             PacketNetworkImpl& network)
    : set_(set),
      loop_(set.loop()),
      fabric_(fabric),
      state_(state),
      network_(network),
      parameters_(state.parameters),
      framing_(state.framing),
      reliability_(state.reliability),
      congestion_control_(state.congestion_control.get()),
      needs_(state.needs),
      acknowledge_every_(state.acknowledge_every),
      echo_in_acks_(state.echo_in_acks),
      stamps_(state.stamps),
      senders_(state.senders.data()),
      receivers_(state.receivers.data()),
      outstanding_(state.outstanding.data()),
      selective_(state.selective.data()),
      senders_base_(senders_),
      second_lines_base_(reinterpret_cast<const char*>(senders_) + kCacheLine),
      receivers_base_(receivers_) {
  fabric_.set_source(this);
  loop_.set_handler<&TransportPart::on_receive>(EventKind::receive, *this);
  loop_.set_handler<&TransportPart::on_deliver>(EventKind::deliver, *this);
  loop_.set_handler<&TransportPart::on_control>(EventKind::control, *this);
  loop_.set_handler<&TransportPart::on_pace>(EventKind::pace, *this);
  loop_.set_handler<&TransportPart::on_congestion_timer>(EventKind::congestion_timer, *this);
  loop_.set_handler<&TransportPart::on_retransmission_timer>(EventKind::retransmission, *this);
  set_.set_mail_handler(
      EventKind::notice,
      [](void* self, const Mail& mail, const std::byte* attached) {
        Incoming incoming;
        std::memcpy(&incoming, attached + mail.event.argument, sizeof(Incoming));
        static_cast<TransportPart*>(self)->expect(mail.event.target, incoming);
      },
      this);
  const void* const* packets = fabric_.packets().base();
  loop_.set_prefetch(EventKind::receive, &receivers_base_, sizeof(Receiver), packets, sizeof(Packet));
  loop_.set_prefetch(EventKind::control, &senders_base_, sizeof(Sender), packets, sizeof(Packet));
  loop_.set_prefetch(EventKind::pace, &senders_base_, sizeof(Sender), nullptr, 0);
  loop_.set_prefetch(EventKind::congestion_timer, &senders_base_, sizeof(Sender), nullptr, 0);
  for (const EventKind kind : {EventKind::control, EventKind::pace, EventKind::congestion_timer})
    loop_.prefetch_also(kind, &second_lines_base_, 2 * sizeof(Sender), sizeof(Sender));
}

std::uint32_t TransportPart::injector(PortId first, PortId gate) {
  std::uint32_t& index = state_.injector_of_port[first];
  if (index != kNone) return index;
  index = static_cast<std::uint32_t>(injectors_.size());
  Injector made;
  made.port = first;
  if (gate != first) {
    std::uint32_t& gate_index = state_.gate_of_port[gate];
    if (gate_index == kNone) {
      gate_index = static_cast<std::uint32_t>(gates_.size());
      gates_.push_back({parameters_.nic_buffer, {}});
      fabric_.set_departure_hook(gate);
    }
    gates_[gate_index].injectors.push_back(index);
    made.gate = gate_index;
  }
  injectors_.push_back(made);
  return index;
}

// ---- Retransmission timers: in line, or events of their own (argument 0) where they end before others.

bool TransportPart::stand_in_line(std::uint32_t id, Time time) {
  if (!line_.takes(time)) return false;
  const Sender& s = senders_[id];
  const std::uint64_t key = fabric_.origin(injectors_[s.injector].port).next_key();
  const std::uint32_t place = line_.add(
      time, key, id, [this](const TimerLine::Timer& timer, std::uint32_t at) { make_event(timer, at); });
  if (s.counted) outstanding_[id].line = place;
  return true;
}

void TransportPart::make_event(const TimerLine::Timer& timer, std::uint32_t place) {
  loop_.insert({static_cast<Time>(timer.time), timer.key, 0, EventKind::retransmission, place + 1ULL});
}

void TransportPart::on_retransmission_timer(const Event& event) {
  if (event.argument == 0) return on_retransmission(event);
  const TimerLine::Timer timer =
      line_.end(static_cast<std::uint32_t>(event.argument - 1),
                [this](const TimerLine::Timer& next, std::uint32_t at) { make_event(next, at); });
  if (timer.over != 0) {
    late_digest_ += timer.value;
    return;
  }
  Event own = event;
  own.target = static_cast<std::uint32_t>(timer.value);
  if (senders_[own.target].counted) outstanding_[own.target].line = kNone;
  on_retransmission(own);
}

// A timer that is pending keeps what its end would have changed in the digest.
void TransportPart::give_back(std::uint32_t id) {
  if (const std::uint32_t place = outstanding_[id].line; place != kNone) {
    TimerLine::Timer& timer = line_[place];
    const Event end{static_cast<Time>(timer.time), timer.key, id, EventKind::retransmission, 0};
    const std::uint64_t key = receivers_[id].key, before = senders_[id].digest;
    timer.value = hash_combine(key, FabricPart::digest(before, end)) - hash_combine(key, before);
    timer.over = 1;
  }
  free_pairs_.push_back(id);
}

}  // namespace netsim
