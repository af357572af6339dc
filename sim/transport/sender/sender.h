// Sender: the sending halves of the queue pairs of one set of atoms: messages, arbitration, windows, pacing,
// acknowledgements, congestion control, retransmission. It knows the network by the packets that it makes and
// the replies that come; the receiver only by what it has to be told of a message before its last packet is
// there.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "sim/core/logical_process.h"
#include "sim/network/fabric_shard.h"
#include "sim/transport/connections/delay_division.h"
#include "sim/transport/flow_ends.h"
#include "sim/transport/packet_network.h"
#include "sim/transport/receiver/receiver.h"
#include "sim/transport/sender/injectors.h"
#include "sim/transport/sender/send_queues.h"
#include "sim/transport/sender/timer_line.h"
#include "sim/transport/transport_state.h"

namespace netsim {

// Why congestion control cannot work with the path of a queue pair. An empty text: it can.
struct PathObjection {
  Time round_trip = 0;
  std::uint32_t source = kNone, destination = kNone;  // GPUs
  std::string text;
  // The longer round trip is the worse one; of equal ones the smaller numbers are taken.
  bool before(const PathObjection& other) const {
    return std::tuple(-round_trip, source, destination) <
           std::tuple(-other.round_trip, other.source, other.destination);
  }
};

class Sender final : public PacketSource {
 public:
  // `receiver`, `delays`, `counts`: of the same set.
  Sender(LogicalProcess& set, FabricShard& fabric, TransportState& state, Receiver& receiver,
         DelayDivision& delays, NetworkCounters& counts);
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // A message for the queue pair `id`, which begins here. The others: see Endpoint.
  MessageHandle send(std::uint32_t id, const SendRequest& request);
  bool hold(const MessageHandle& handle);
  bool release(const MessageHandle& handle);
  bool set_priority(const MessageHandle& handle, std::uint8_t priority);
  Bytes cancel(const MessageHandle& handle);

  // For a queue pair that comes into being: the number of the injector at `first` (see Injectors::at).
  std::uint32_t injector(PortId first, PortId gate, Bytes room = 0) {
    return injectors_.at(first, gate, room);
  }
  // The queue pair has its path, whose round trip in an idle network is this: its window and rate begin.
  void begin(std::uint32_t id, Time round_trip);
  // See Endpoint. Timers that congestion control asked for before still come.
  void begin_anew(std::uint32_t id);
  // Nothing of the queue pair is left but a timer that stands in line.
  void end(std::uint32_t id);

  // The last packet of a message over scale-up links, `packet`, has arrived and was released just now.
  void delivered_over_scale_up(std::uint32_t id, std::uint32_t packet);

  // Of a queue pair into an aggregation tree: the sum of a packet of it has come. True: of the last one of
  // its first message, which end_oldest() is to end now.
  bool sum_arrived(std::uint32_t id);

  // The first of the queue pair's messages is over at all its receivers; it is forgotten.
  struct Ended {
    SendRequest request;
    Time start = 0;
    std::uint32_t number = 0;  // as of Message
  };
  Ended end_oldest(std::uint32_t id);

  // Events of the loop. A reply is here; a pace, a timer has ended.
  void on_control(const Event& event);
  void on_pace(const Event& event);
  void on_congestion_timer(const Event& event);
  void on_retransmission_timer(const Event& event);

  // Of a queue pair of this set's, since it began.
  Bytes acknowledged_payload(std::uint32_t id) const;
  // Packets that were made or wait to be, without those of messages that are held.
  std::uint64_t packets_known(std::uint32_t id) const {
    return senders_[id].sent_end + queues_.unmade_packets(senders_[id], id);
  }
  // Of this set's queue pairs of each transport (TransportState::transports), the worst.
  const std::vector<PathObjection>& objections() const { return objections_; }
  // What timers have added to the digests of queue pairs that had ended before.
  std::uint64_t late_digest() const { return late_digest_; }

 private:
  // The packets of a segment as far as making one of them has to know: psns up to end - 1; `base`: what that
  // of the message's first packet would be if its packets came in a row.
  struct Extent {
    std::uint32_t segment, base, end;
  };

  // What became of a chance to send.
  enum class Made : std::uint8_t {
    none,  // no packet: nothing may be sent
    held,  // no packet: the port holds back the classes that have any
    last,  // one, after which nothing may be sent
    more   // one, and there are more
  };
  Made make_one(Injectors::Injector& in);
  void port_free(PortId port) override;
  void departed(PortId port, Bytes bytes) override { injectors_.departed(port, bytes); }

  void announce(std::uint32_t id, const Message& m);
  void start_congestion_control(std::uint32_t id);
  void make_fan_packet(std::uint32_t id, Packet& packet);
  const FabricTransport& of(const SenderState& s) const { return transports_[s.transport]; }
  bool has_gap(std::uint32_t id, const SenderState& s) const {
    return s.selective && repeated_[id].has_gap(s.acknowledged);
  }
  std::uint32_t in_flight(std::uint32_t id) const;
  bool window_open(std::uint32_t id, const SenderState& s) const;
  bool has_work(std::uint32_t id) const;
  void make_ready(std::uint32_t id);
  void join_if_work(std::uint32_t id) {
    if (has_work(id)) injectors_.join(id);
  }

  bool asks(std::uint32_t id, SenderState& s, bool last);
  std::uint32_t next_packet(std::uint32_t id);
  std::uint32_t repeat_gap(std::uint32_t id);
  bool end_segment(std::uint32_t id, bool fresh);
  Extent extent(std::uint32_t segment) const;
  Bytes packet_bytes(const SenderState& s, const Extent& segment, std::uint32_t psn) const;
  Bytes next_packet_bytes(std::uint32_t id) const;
  std::uint32_t make_packet(std::uint32_t id, const Extent& segment, std::uint32_t psn, bool last, bool ask);
  Time wire_held(const SenderState& s) const;
  void begin_trace(const SenderState& s, const Extent& segment, std::uint32_t packet);

  // Arguments of EventKind::pace other than 0: connections of the queue pair have rested long enough, or the
  // message of number `argument - kMessageLeft` has left.
  static constexpr std::uint64_t kRestOver = 1, kMessageLeft = 2;
  BitRate next_rate_limit(std::uint32_t id) const;
  void pace(std::uint32_t id, Bytes wire_bytes, BitRate rate_limit);
  void pace_limited(std::uint32_t id, Bytes wire_bytes, BitRate rate_limit);
  void begin_rest(std::uint32_t id, std::uint32_t message, Time packet);
  void await_rests(std::uint32_t id);
  std::uint32_t paced_bytes(const SenderState& s, Bytes wire_bytes) const;
  void wait_for_pace(std::uint32_t id, Bytes wire_bytes, BitRate rate);
  void move_pace(std::uint32_t id, BitRate before);

  CongestionContext congestion_context(std::uint32_t id);
  void check_path(std::uint32_t id, Time round_trip);
  void set_window(std::uint32_t id, Bytes window);
  template <class Call>
  void control(std::uint32_t id, Call call);

  void on_ack(std::uint32_t id, const Packet& ack, std::uint32_t packet);
  void tell_congestion_control(std::uint32_t id, std::uint32_t fresh, const Packet& ack,
                               std::uint32_t packet);
  // Marks that an ACK or NACK echoes.
  static std::uint32_t marks_of(const Packet& ack) {
    if (ack.kind == PacketKind::nack) return ack.marked ? 1 : 0;
    return ack.message;
  }
  void finish_messages(std::uint32_t id);
  void go_back(SenderState& s);

  void schedule_timer(std::uint32_t id, Time time, EventKind kind, std::uint64_t argument = 0);
  void timer_ended(std::uint32_t id) {
    if (senders_[id].counted) --outstanding_[id].timers;
  }
  bool stand_in_line(std::uint32_t id, Time time);
  void make_event(const TimerLine::Timer& timer, std::uint32_t place);
  // Returns whether something in flight has asked for an acknowledgement.
  static bool answer_due(const SenderState& s) { return s.next_psn - s.acknowledged > s.unrequested; }
  Time timeout(std::uint32_t id) const;
  void begin_timer(std::uint32_t id);
  void restart_timer(std::uint32_t id, bool fresh);
  void await_timeout(std::uint32_t id);
  void repeat_overdue(std::uint32_t id);
  bool one_timeout_too_many(std::uint32_t id);
  void on_retransmission(const Event& event);

  LogicalProcess& set_;
  EventLoop& loop_;
  FabricShard& fabric_;
  TransportState& state_;
  Receiver& receiver_;
  DelayDivision& delays_;
  NetworkCounters& counts_;
  // Of the state.
  const FabricTransport* transports_;
  SenderState* senders_;
  Outstanding* outstanding_;
  SelectiveSender* repeated_;
  PaceLimits* limits_;
  Injectors injectors_;
  SendQueues queues_;
  TimerLine line_;
  std::uint64_t late_digest_ = 0;
  std::vector<PathObjection> objections_;
};

}  // namespace netsim
