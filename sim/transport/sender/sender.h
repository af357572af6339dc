// Sender: the sending halves of the queue pairs of one logical process, with messages, arbitration, windows,
// pacing, acknowledgements, congestion control and retransmission. It uses the network only by packets and
// replies. It tells the receiver about a message before its last packet arrives.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "sim/core/logical_process.h"
#include "sim/network/fabric_shard.h"
#include "sim/transport/connections/delay_division.h"
#include "sim/transport/flow_ends.h"
#include "sim/transport/packet_network.h"
#include "sim/transport/receiver/receiver.h"
#include "sim/transport/sender/best_effort_window.h"
#include "sim/transport/sender/injectors.h"
#include "sim/transport/sender/send_queues.h"
#include "sim/transport/sender/slot_window.h"
#include "sim/transport/sender/timer_queue.h"
#include "sim/transport/transport_state.h"

namespace netsim {

// The reason why congestion control cannot work with the path of a queue pair. An empty text means that it
// can.
struct PathObjection {
  Time round_trip = 0;
  GpuId source, destination;
  std::string text;
  // Returns whether this objection is worse: it has the longer round trip, or, of equal ones, the smaller GPU
  // numbers.
  bool before(const PathObjection& other) const {
    return std::tuple(-round_trip, source, destination) <
           std::tuple(-other.round_trip, other.source, other.destination);
  }
};

class Sender final : public PacketSource {
 public:
  // `receiver`, `delays` and `counts` belong to the same logical process.
  Sender(LogicalProcess& set, FabricShard& fabric, TransportState& state, Receiver& receiver,
         DelayDivision& delays, NetworkCounters& counts);
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // Sends a message on queue pair `id`, which begins here. `way` is its HintedPath or kNone. The other
  // functions implement Endpoint.
  MessageHandle send(std::uint32_t id, const SendRequest& request, std::uint32_t way = kNone);
  bool hold(const MessageHandle& handle);
  bool release(const MessageHandle& handle);
  bool set_priority(const MessageHandle& handle, std::uint8_t priority);
  Bytes cancel(const MessageHandle& handle);
  bool set_rate(const MessageHandle& handle, BitRate rate);
  bool set_path(const MessageHandle& handle, std::uint32_t path_hint, std::uint32_t way);
  Bytes left(const MessageHandle& handle) const;
  // Returns the queue pair of a message with packets that have not left; kNone if there is none.
  std::uint32_t queue_pair_of(const MessageHandle& handle) const {
    const std::uint32_t message = queues_.find(handle);
    return message == kNone ? kNone : queues_.message(message).queue_pair;
  }
  // The paths of messages with path hints, for Connections. set_own_path() must be called when they or the
  // path of the other messages have changed.
  Arena<HintedPath>& hinted_paths() { return queues_.hinted_paths(); }
  void set_own_path(std::uint32_t id, std::uint32_t own) {
    if (senders_[id].limited) queues_.set_own_path(senders_[id], id, own);
  }

  // Returns the index of the injector at `first` (see Injectors::at), for a queue pair that is being created.
  std::uint32_t injector(PortId first, PortId gate, Bytes room = 0) {
    return injectors_.at(first, gate, room);
  }
  // Starts the window and rate of a queue pair that has got its path. `round_trip` is the path's round trip
  // in an idle network.
  void begin(std::uint32_t id, Time round_trip);
  // Implements Endpoint::begin_anew(). Timers that congestion control requested before still expire.
  void begin_anew(std::uint32_t id);
  // Called when nothing of the queue pair is left but a timer in the TimerQueue.
  void end(std::uint32_t id);

  // Called when the last packet of a message over scale-up links, `packet`, has arrived and was released just
  // now.
  void delivered_over_scale_up(std::uint32_t id, std::uint32_t packet);

  // Makes a new queue pair into an all-reduce tree use the pool of slots of its aggregation group. `key` is
  // as in SlotWindow.
  void use_pool(std::uint32_t id, const AggregationPool& pool, std::uint32_t key, std::uint64_t worker = 0);
  // Makes a new queue pair the parameter server of a best-effort group. `workers` has a bit for each worker.
  void serve_pool(std::uint32_t id, const AggregationPool& pool, std::uint32_t key, std::uint64_t workers);
  // Called when a packet of workers has arrived at the server with queue pair `id`.
  ServerWindow::Arrival add_contribution(std::uint32_t id, std::uint32_t psn, const Contribution& packet);
  // Called when all workers have the results of the server's packets before `end`.
  void acknowledge_results(std::uint32_t id, std::uint32_t end);
  // Returns what the server has of a packet that it added just now.
  const Contribution& server_sum(std::uint32_t id, std::uint32_t psn) { return server_window(id).sum(psn); }
  // Called when the sum of packet `psn` comes back on a queue pair into an all-reduce tree, `marked` with an
  // ECN mark. Without a pool it is the first of `packets` sums that are there in order. Returns true if the
  // first message has all its sums. The caller must then call end_oldest() for each complete message.
  bool sum_arrived(std::uint32_t id, std::uint32_t psn, std::uint32_t packets, bool marked);
  // Returns whether the queue pair's first message has all its sums.
  bool is_oldest_complete(std::uint32_t id);

  // Ends the first of the queue pair's messages, which is over at all its receivers, and returns its data.
  struct Ended {
    SendRequest request;
    Bytes bytes = 0;  // as in QueuedMessage
    Time start = 0;
    std::uint32_t number = 0;  // as in QueuedMessage
  };
  Ended end_oldest(std::uint32_t id);

  // Handlers of the loop's events: a reply arrived, or a pacing wait or timer ended.
  void on_control(const Event& event);
  void on_pace(const Event& event);
  void on_congestion_timer(const Event& event);
  void on_retransmission_timer(const Event& event);

  // Returns the payload bytes acknowledged since the queue pair began. It must belong to this logical
  // process.
  Bytes acknowledged_payload(std::uint32_t id) const;
  // Returns the number of sums that have arrived, and of packets that parameter servers have added.
  std::uint64_t fresh_sums() const { return fresh_sums_; }
  // Returns how often a member of an aggregation group has sent its packets again since its last sum
  // (PoolWindow). 0 without a pool.
  std::uint64_t fruitless_rounds(std::uint32_t id) const;
  // Returns the number of packets made or waiting to be made, without those of held messages.
  std::uint64_t packets_known(std::uint32_t id) const {
    return senders_[id].sent_end + queues_.unmade_packets(senders_[id], id);
  }
  // Returns, by transport (TransportState::transports), the worst objection of this logical process's queue
  // pairs.
  const std::vector<PathObjection>& objections() const { return objections_; }
  // Moves the events of a queue pair into a tree from its digest to one of all queue pairs. So it does not
  // matter which of a GPU's queue pairs had them.
  void fold_digest(std::uint32_t id);
  // Returns the change of the digest by timers of queue pairs that had ended before.
  std::uint64_t late_digest() const { return late_digest_; }

 private:
  // The data of a segment that making a packet needs. `end` is one past its last psn. `base` is the psn that
  // the message's first packet would have if its packets were consecutive.
  struct Extent {
    std::uint32_t segment, base, end;
  };

  // Result of an opportunity to send.
  enum class Made : std::uint8_t {
    none,  // no packet, because nothing may be sent
    held,  // no packet, because the port holds back all classes that have any
    last,  // one packet, after which nothing may be sent
    more   // one packet, and there are more
  };
  Made make_one(Injectors::Injector& in);
  void port_free(PortId port) override;
  void departed(PortId port, Bytes bytes) override { injectors_.departed(port, bytes); }

  void announce(std::uint32_t id, const QueuedMessage& m);
  void start_congestion_control(std::uint32_t id);
  void make_aggregation_packet(std::uint32_t id, std::uint32_t index);
  const FabricTransport& of(const SenderState& s) const { return transports_[s.transport]; }
  bool has_gap(std::uint32_t id, const SenderState& s) const {
    return s.selective && repeated_[id].has_gap(s.acknowledged);
  }
  std::uint32_t take_gap(std::uint32_t id);
  // These serve queue pairs into pools of slots, whose next packet is a gap (offer_slot). They are not
  // inlined into what other packets use.
  PoolWindow& window(std::uint32_t id) { return *windows_[state_.records[id].slots]; }
  ServerWindow& server_window(std::uint32_t id) { return static_cast<ServerWindow&>(window(id)); }
  void offer_slot(std::uint32_t id);
  [[gnu::cold, gnu::noinline]] void make_slot_packet(std::uint32_t id, std::uint32_t index);
  bool uses_pool(const SenderState& s) const { return s.selective && s.aggregation; }
  [[gnu::cold, gnu::noinline]] void fill_slots(std::uint32_t id);
  [[gnu::cold, gnu::noinline]] std::uint32_t take_slot(std::uint32_t id);
  void await_slot_timeout(std::uint32_t id);
  [[gnu::cold, gnu::noinline]] void on_slot_timeout(std::uint32_t id);
  [[gnu::cold, gnu::noinline]] bool take_slot_sum(std::uint32_t id, std::uint32_t psn, bool marked);
  std::uint32_t in_flight(std::uint32_t id) const;
  bool window_open(std::uint32_t id, const SenderState& s) const;
  bool has_work(std::uint32_t id) const;
  void make_ready(std::uint32_t id);
  void join(std::uint32_t id) {
    if (injectors_.has_levels()) [[unlikely]]
      return injectors_.join_at(id, level_of(id));
    injectors_.join(id);
  }
  void join_if_work(std::uint32_t id) {
    if (has_work(id)) join(id);
  }
  std::uint32_t level_of(std::uint32_t id) const;
  // Called when another message of the queue pair may be served, or its priority has changed.
  void update_level(std::uint32_t id) {
    if (senders_[id].ready && injectors_.has_levels()) injectors_.set_level(id, level_of(id));
  }

  bool asks(std::uint32_t id, SenderState& s, bool last);
  std::uint32_t next_packet(std::uint32_t id);
  std::uint32_t repeat_gap(std::uint32_t id);
  bool end_segment(std::uint32_t id, bool fresh);
  Extent extent(std::uint32_t segment) const;
  Bytes packet_bytes(const SenderState& s, const Extent& segment, std::uint32_t psn) const;
  Bytes next_packet_bytes(std::uint32_t id) const;
  std::uint32_t make_packet(std::uint32_t id, const Extent& segment, std::uint32_t psn, bool last, bool ask);
  void set_tag(std::uint32_t id, const Extent& segment, std::uint32_t packet);
  Time wire_held(const SenderState& s) const;
  void begin_trace(const SenderState& s, const Extent& segment, std::uint32_t packet);

  // Values of a pace event's argument other than 0: rests of connections are over, or message number
  // `argument - kMessageLeft` has left.
  static constexpr std::uint64_t kRestOver = 1, kMessageLeft = 2;
  void renew_limits(std::uint32_t id);
  void pace(std::uint32_t id, Bytes wire_bytes);
  Time catch_up(PaceLimits& limits, Time packet, bool message_goes_on) const;
  void pace_limited(std::uint32_t id, Bytes wire_bytes);
  void begin_rest(std::uint32_t id, std::uint32_t message, Time time);
  void await_rests(std::uint32_t id);
  std::uint32_t paced_bytes(const SenderState& s, Bytes wire_bytes) const;
  void wait_for_pace(std::uint32_t id, std::uint32_t paced, Time wait);
  void move_pace(std::uint32_t id, BitRate before);
  void rescale_pace(std::uint32_t id, BitRate limit);

  CongestionContext congestion_context(std::uint32_t id);
  void check_path(std::uint32_t id, Time round_trip);
  void set_window(std::uint32_t id, Bytes window);
  void tell_sent(std::uint32_t id, Bytes wire_bytes);
  template <class Call>
  void control(std::uint32_t id, Call call);

  void on_ack(std::uint32_t id, const Packet& ack, std::uint32_t packet);
  SenderContext reliability_context(std::uint32_t id);
  void tell_reliability(std::uint32_t id, const Packet& ack, std::uint32_t fresh);
  void tell_congestion_control(std::uint32_t id, std::uint32_t fresh, const Packet& ack,
                               std::uint32_t packet);
  // Returns the number of marks that an ACK or NACK echoes.
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
  void make_event(const TimerQueue::Timer& timer, std::uint32_t place);
  // Returns whether a packet in flight has requested an acknowledgement.
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
  // Copies of addresses in the state.
  const FabricTransport* transports_;
  SenderState* senders_;
  Outstanding* outstanding_;
  SelectiveSender* repeated_;
  PaceLimits* limits_;
  Injectors injectors_;
  SendQueues queues_;
  TimerQueue line_;
  std::vector<std::unique_ptr<PoolWindow>> windows_;
  std::uint64_t fresh_sums_ = 0;
  std::uint64_t late_digest_ = 0;
  std::vector<PathObjection> objections_;
};

}  // namespace netsim
