#include "sim/transport/receiver/receiver.h"

#include "sim/core/errors.h"
#include "sim/core/random.h"

namespace netsim {

Receiver::Receiver(LogicalProcess& set, FabricShard& fabric, TransportState& state, IdealTimes& ideal_times,
                   DelayDivision& delays, NetworkCounters& counts)
    : set_(set),
      loop_(set.loop()),
      fabric_(fabric),
      state_(state),
      ideal_times_(ideal_times),
      delays_(delays),
      counts_(counts),
      transports_(state.transports.data()),
      receivers_(state.receivers.data()),
      outstanding_(state.outstanding.data()),
      kept_(state.selective_receivers.data()) {}

void Receiver::on_receive(const Event& event) {
  const std::uint32_t id = event.target;
  const auto packet = static_cast<std::uint32_t>(event.argument);
  ReceiverState& r = receivers_[id];
  r.digest = FabricShard::digest(r.digest, event);
  if (r.counted) ++outstanding_[id].received;
  if (r.reacts_to_marks && fabric_.packets()[packet].marked) on_ecn_mark(id, packet);
  if (r.selective) {
    of(r).reliability.own ? accept_own(id, packet) : accept_any(id, packet);
  } else {
    accept(id, packet);
  }
}

// Counts the mark for the next ACK, or sends a CNP unless it has sent one within cnp_interval.
void Receiver::on_ecn_mark(std::uint32_t id, std::uint32_t packet) {
  ReceiverState& r = receivers_[id];
  if (r.echo_in_acks) {
    ++r.marked;
    return;
  }
  if (r.cnp_sent && loop_.now() - r.last_cnp < of(r).needs.cnp_interval) return;
  r.cnp_sent = true;
  r.last_cnp = loop_.now();
  fabric_.count_cnp(r.back_port);
  const Time delay = of(r).parameters.cnp_delay;
  if (delay == 0) return reply(id, PacketKind::cnp, packet, 0);
  const std::uint32_t cnp = make_reply(id, PacketKind::cnp, packet, 0);
  loop_.schedule(loop_.now() + delay, fabric_.origin(r.back_port), EventKind::arrival, r.back_port, cnp);
}

void Receiver::accept(std::uint32_t id, std::uint32_t packet) {
  ReceiverState& r = receivers_[id];
  const Packet k = fabric_.packets()[packet];
  if (k.psn != r.expected) [[unlikely]] {
    out_of_order(id, k.psn, packet);
    fabric_.packets().release(packet);
    return;
  }
  ++r.expected;
  r.nack_sent = false;
  count_arrival(id, k.psn);
  if (k.ack_request) reply(id, PacketKind::ack, packet, 0);
  if (r.pcie) {
    fabric_.enqueue(r.gpu_port, packet);
  } else {
    fabric_.packets().release(packet);
    if (k.last) deliver(id, 1, packet);
  }
}

// Accepts a packet with selective repeat, which keeps packets that arrive out of order.
void Receiver::accept_any(std::uint32_t id, std::uint32_t packet) {
  ReceiverState& r = receivers_[id];
  SelectiveReceiver& kept = kept_[id];
  const Packet k = fabric_.packets()[packet];
  const bool late = static_cast<std::int32_t>(k.psn - r.expected) < 0;
  if (late || (k.psn != r.expected && kept.has(r.expected, k.psn))) return came_twice(id, k.psn, packet);
  count_arrival(id, k.psn);
  std::uint32_t complete = 0;
  if (k.psn == r.expected) {
    const SelectiveReceiver::Advance advance = kept.advance(r.expected, k.last, k.ack_request);
    r.expected = advance.expected;
    complete = advance.messages;
    if (advance.asked) reply(id, PacketKind::ack, packet, 0);
  } else {
    kept.keep(r.expected, k.psn, k.last, k.ack_request);
    reply(id, PacketKind::nack, packet, k.psn);
  }
  pass_on(id, complete, packet);
}

// Passes a packet on to the GPU with the number of messages that are complete with it.
void Receiver::pass_on(std::uint32_t id, std::uint32_t messages, std::uint32_t packet) {
  const ReceiverState& r = receivers_[id];
  if (r.pcie) {
    Packet& onward = fabric_.packets()[packet];
    onward.last = messages > 0;
    onward.message = messages;
    fabric_.enqueue(r.gpu_port, packet);
    return;
  }
  fabric_.packets().release(packet);
  deliver(id, messages, packet);
}

void Receiver::came_twice(std::uint32_t id, std::uint32_t psn, std::uint32_t packet) {
  if (static_cast<std::int32_t>(psn - receivers_[id].expected) < 0) {
    reply(id, PacketKind::ack, packet, 0);
  } else {
    reply(id, PacketKind::nack, packet, psn);
  }
  fabric_.packets().release(packet);
}

// ---- A reliability with ReliabilityPlan::own

ReceiverContext Receiver::reliability_context(std::uint32_t id) {
  return {.now = loop_.now(),
          .expected = receivers_[id].expected,
          .packets = kept_[id],
          .state = state_.receiver_reliability(id)};
}

void Receiver::accept_own(std::uint32_t id, std::uint32_t packet) {
  ReceiverState& r = receivers_[id];
  SelectiveReceiver& kept = kept_[id];
  const Reliability& rules = *of(r).reliability_rules;
  const Packet k = fabric_.packets()[packet];
  if (of(r).stamps) state_.arrival_stamps[id] = fabric_.packets().telemetry(packet);
  Arrival arrival{.psn = k.psn, .expected = r.expected, .ack_requested = k.ack_request};
  const bool late = static_cast<std::int32_t>(k.psn - r.expected) < 0, in_order = k.psn == r.expected;
  arrival.duplicate = late || (!in_order && kept.has(r.expected, k.psn));
  ReceiverContext context = reliability_context(id);
  arrival.kept = arrival.duplicate || in_order || rules.keeps(context, arrival);
  const bool fresh = arrival.kept && !arrival.duplicate;
  if (fresh) count_arrival(id, k.psn);
  if (fresh && in_order) {
    const SelectiveReceiver::Advance advance = kept.advance(r.expected, k.last, k.ack_request);
    context.expected = r.expected = advance.expected;
    arrival.messages = advance.messages;
    arrival.ack_requested = advance.asked;
  } else if (fresh) {
    kept.keep(r.expected, k.psn, k.last, k.ack_request);
  }
  const Reply reply = rules.on_arrival(context, arrival);
  answer(id, context, reply, packet);
  if (!fresh) return fabric_.packets().release(packet);
  pass_on(id, arrival.messages, packet);
}

void Receiver::on_reply_timer(const Event& event) {
  const std::uint32_t id = event.target;
  ReceiverState& r = receivers_[id];
  r.digest = FabricShard::digest(r.digest, event);
  if (r.counted) --outstanding_[id].reply_timers;
  ReceiverContext context = reliability_context(id);
  const Reply reply = of(r).reliability_rules->on_reply_timer(context);
  answer(id, context, reply, kNone);
}

// Sends the reply, if there is one, and starts the timer that the reliability asked for. `cause` is the
// packet that is answered; kNone for a timer.
void Receiver::answer(std::uint32_t id, const ReceiverContext& context, const Reply& answer,
                      std::uint32_t cause) {
  const ReceiverState& r = receivers_[id];
  if (context.timer != kNever) {
    NETSIM_CHECK(context.timer > loop_.now(), "a reliability set a timer that is not in the future");
    if (r.counted) ++outstanding_[id].reply_timers;
    loop_.schedule(context.timer, fabric_.origin(r.back_port), EventKind::reply_timer, id);
  }
  if (answer.kind == Reply::Kind::none) return;
  const bool nack = answer.kind == Reply::Kind::nack;
  reply(id, nack ? PacketKind::nack : PacketKind::ack, cause, nack ? answer.word : 0);
}

// Sends one NACK for each gap. A psn that does not rise shows that the sender has restarted and lost the
// expected packet again. With repeat_nack this counts as a gap of its own.
void Receiver::out_of_order(std::uint32_t id, std::uint32_t psn, std::uint32_t packet) {
  ReceiverState& r = receivers_[id];
  if (static_cast<std::int32_t>(psn - r.expected) < 0) {
    reply(id, PacketKind::ack, packet, 0);  // a duplicate: the ACK may have been late
    return;
  }
  const bool again = of(r).reliability.repeat_nack && static_cast<std::int32_t>(psn - r.latest) <= 0;
  if (!r.nack_sent || again) reply(id, PacketKind::nack, packet, psn);
  r.nack_sent = true;
  r.latest = psn;
}

void Receiver::count_arrival(std::uint32_t id, std::uint32_t psn) {
  ++counts_.packets;
  packets_fingerprint_ +=
      hash_combine(hash_combine(receivers_[id].key, psn), static_cast<std::uint64_t>(loop_.now()));
}

// Makes a reply to the packet `cause`; kNone stands for the last packet that arrived. A NACK carries `word`,
// the packet that arrived out of order unless the reliability has its own rules. The reply carries telemetry
// and marks.
std::uint32_t Receiver::make_reply(std::uint32_t id, PacketKind kind, std::uint32_t cause,
                                   std::uint32_t word) {
  ReceiverState& r = receivers_[id];
  const FabricTransport& transport = of(r);
  if (r.counted) ++outstanding_[id].replied;
  const std::uint32_t index = fabric_.packets().allocate();
  Packet& k = fabric_.packets()[index];
  k.psn = r.expected;
  k.path = r.back_path;
  k.kind = kind;
  k.marked = k.last = k.traced = false;
  if (state_.tagged) [[unlikely]]
    fabric_.packets().tag(index) = {.flow = r.key};
  if (kind == PacketKind::cnp) {
    k.bytes = transport.framing.cnp;
    k.set_priority(fabric_.cnp_priority(r.back_port));
  } else {
    k.bytes = transport.framing.ack;
    k.set_priority(static_cast<std::uint8_t>(kDataPriority + r.traffic_class));
    k.message = kind == PacketKind::nack ? word : r.marked;
    k.marked = r.marked != 0;
    if (r.marked != 0 && transport.parameters.ecn_echo == EcnEcho::ack) fabric_.count_cnp(r.back_port);
    r.marked = 0;
    if (transport.stamps) {
      fabric_.packets().telemetry(index) =
          cause != kNone ? fabric_.packets().telemetry(cause) : state_.arrival_stamps[id];
    }
  }
  return index;
}

// ---- Messages

// Called before the message's last packet can arrive.
void Receiver::expect(std::uint32_t id, const Incoming& incoming) {
  const std::uint32_t index = incoming_.add(incoming);
  ReceiverState& r = receivers_[id];
  if (r.oldest == kNone) {
    r.oldest = index;
  } else {
    incoming_[r.newest].next = index;
  }
  r.newest = index;
}

bool Receiver::on_deliver(const Event& event) {
  const std::uint32_t id = event.target;
  const auto packet = static_cast<std::uint32_t>(event.argument);
  ReceiverState& r = receivers_[id];
  r.digest = FabricShard::digest(r.digest, event);
  const Packet k = fabric_.packets()[packet];
  fabric_.packets().release(packet);
  if (r.back_port == kNoId) return k.last;
  if (k.last) deliver(id, r.selective ? k.message : 1, packet);
  return false;
}

// Delivers the next `messages` of the queue pair, which are complete with `packet`; it was released just now.
// If `packet` is the last of a message, that is the first one: the messages behind it had arrived before.
void Receiver::deliver(std::uint32_t id, std::uint32_t messages, std::uint32_t packet) {
  const PacketTrace* trace = fabric_.packets().trace_of(packet);
  for (; messages > 0; --messages, trace = nullptr) {
    ReceiverState& r = receivers_[id];
    const std::uint32_t index = r.oldest;
    const Incoming done = incoming_[index];
    r.oldest = done.next;
    incoming_.release(index);
    counts_.bytes_delivered += done.bytes;
    if (!done.message.credit) {
      ++counts_.flows_done;
      if (state_.observed) {
        const Time ideal = ideal_times_.of_message(id, done.bytes, done.start);
        set_.write(state_.delivered_reader,
                   FlowDelivered{id, done.message, done.bytes, done.number, done.start, loop_.now(), ideal});
      }
    }
    DelayTeller* const told =
        state_.traced ? delays_.of(id, done.bytes, loop_.now() - done.start, trace) : nullptr;
    state_.listener->message_delivered({done.message, done.bytes, told});
  }
}

}  // namespace netsim
