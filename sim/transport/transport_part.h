// TransportPart: the NICs and queue pairs of one set of atoms. The sender's half of a queue pair belongs to
// its source's set, the receiver's to its destination's; they know of each other by packets and notices only.
// Private to the packet network; its parts are sender.cpp, selective.cpp and receiver.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/core/arena.h"
#include "sim/core/atom_set.h"
#include "sim/core/reserved_array.h"
#include "sim/network/fabric_part.h"
#include "sim/transport/packet_network.h"
#include "sim/transport/queue_pair.h"
#include "sim/transport/reliability/reliability.h"
#include "sim/transport/send_queues.h"
#include "sim/transport/timer_line.h"

namespace netsim {

// What the parts share: values that do not change, and arrays each element of which belongs to one atom.
struct TransportState {
  // `node`: the section `transport`.
  TransportState(const Cluster& cluster_in, const ConfigNode& node);

  const Cluster& cluster;
  TransportParameters parameters;
  Framing framing;
  ReliabilityPlan reliability;
  std::unique_ptr<CongestionControl> congestion_control;
  CongestionNeeds needs;
  std::uint32_t acknowledge_every;
  bool echo_in_acks = false, stamps = false;
  MessageListener* listener = nullptr;
  bool observed = false;  // flows are written into the journal
  std::uint32_t delivered_reader = 0, acknowledged_reader = 0, vanished_reader = 0;
  std::vector<std::uint32_t> set_of_gpu;
  // By queue pair.
  ReservedArray<Sender> senders;
  ReservedArray<Receiver> receivers;
  ReservedArray<QueuePairRecord> records;
  ReservedArray<Outstanding> outstanding;  // for those that are counted
  ReservedArray<Selective> selective;      // for selective repeat only
  std::size_t state_stride;
  ReservedArray<std::byte> congestion;  // state_stride bytes each
  PathConstants& path_constants(std::size_t id) {
    return reinterpret_cast<PathConstants&>(congestion[id * state_stride]);
  }
  const PathConstants& path_constants(std::size_t id) const {
    return reinterpret_cast<const PathConstants&>(congestion[id * state_stride]);
  }
  // What congestion control keeps of a queue pair, behind the constants.
  std::byte* congestion_state(std::size_t id) {
    return &congestion[id * state_stride] + sizeof(PathConstants);
  }
  // By port; numbers are the part's.
  std::vector<std::uint32_t> injector_of_port, gate_of_port;
  // Per source GPU, sorted: destination << 40 | class << 32 | number, job << 32 | queue pair.
  std::vector<std::vector<std::pair<std::uint64_t, std::uint64_t>>> connections;
};

// The two ends of a flow, as they are written down.
struct FlowDelivered {
  std::uint32_t queue_pair;
  SendRequest request;
  std::uint32_t number;
  Time start, delivered, ideal;
};
struct FlowAcknowledged {
  std::uint32_t queue_pair;
  Time acknowledged;
};

// A message of this queue pair was cancelled before any of it left.
struct FlowVanished {
  std::uint32_t queue_pair;
};

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

class PacketNetworkImpl;

class TransportPart final : private PacketSource {
 public:
  TransportPart(AtomSet& set, FabricPart& fabric, TransportState& state, PacketNetworkImpl& network);
  TransportPart(const TransportPart&) = delete;
  TransportPart& operator=(const TransportPart&) = delete;

  // See Endpoint. Of messages that begin in this part.
  MessageHandle send(const SendRequest& request);
  bool hold(const MessageHandle& handle);
  bool release(const MessageHandle& handle);
  bool set_priority(const MessageHandle& handle, std::uint8_t priority);
  Bytes cancel(const MessageHandle& handle);
  // The NIC's (or GPU's) injector at `first`, made at its first use; `gate`: the wire's port behind PCIe, or
  // `first` itself.
  std::uint32_t injector(PortId first, PortId gate);
  void start_congestion_control(std::uint32_t id);
  void set_window(std::uint32_t id, Bytes window);
  // Once the queue pair has its path, whose round trip in an idle network is this.
  void check_path(std::uint32_t id, Time round_trip);
  // Of this part's queue pairs, the worst.
  const PathObjection& objection() const { return objection_; }
  // Numbers of this part's queue pairs that are over: only between events, or by this part.
  void give_back(std::uint32_t id);
  std::uint32_t take_free_pair() {
    if (free_pairs_.empty()) return kNone;
    const std::uint32_t id = free_pairs_.back();
    free_pairs_.pop_back();
    return id;
  }

  // Of a queue pair of this part's, since it began.
  Bytes acknowledged_payload(std::uint32_t id) const;
  // Packets that were made or wait to be, without those of messages that are held.
  std::uint64_t packets_known(std::uint32_t id) const {
    return senders_[id].sent_end + queues_.unmade_packets(senders_[id]);
  }

  // Of this part only.
  const NetworkCounters& counts() const { return counts_; }
  std::uint64_t packets_fingerprint() const { return packets_fingerprint_; }
  // What timers have added to the digests of queue pairs that were given back before.
  std::uint64_t late_digest() const { return late_digest_; }

 private:
  void port_free(PortId port) override;
  void departed(PortId port, Bytes bytes) override;

  // sender.cpp
  void announce(std::uint32_t id, const Message& m);
  void join_ring(std::uint32_t id);
  // Whether the NIC has room for more ahead of its wire.
  bool gate_open(const Injector& in) const { return in.gate == kNone || gates_[in.gate].credit > 0; }
  bool has_work(std::uint32_t id);
  bool window_open(std::uint32_t id, const Sender& s) const;
  bool asks(std::uint32_t id, Sender& s, bool last) const;
  void make_ready(std::uint32_t id);
  std::uint32_t next_class(Injector& in);
  std::uint32_t take_from_ring(Injector& in, std::uint32_t traffic_class);
  std::uint32_t next_packet(std::uint32_t id);
  // The packets of a segment as far as making one of them has to know: psns up to end - 1; `base`: what that
  // of the message's first packet would be if its packets came in a row.
  struct Extent {
    std::uint32_t segment, base, end;
  };
  Extent extent(std::uint32_t segment) const;
  bool end_segment(std::uint32_t id, bool fresh);
  Bytes packet_bytes(const Sender& s, const Extent& segment, std::uint32_t psn) const;
  Bytes next_packet_bytes(std::uint32_t id);
  std::uint32_t make_packet(std::uint32_t id, const Extent& segment, std::uint32_t psn, bool last, bool ask);
  void pace(std::uint32_t id, Bytes wire_bytes, std::uint32_t psn);
  void pace_limited(std::uint32_t id, Bytes wire_bytes, std::uint32_t psn);
  void wait_for_pace(std::uint32_t id, Bytes wire_bytes, BitRate rate);
  void move_pace(std::uint32_t id, BitRate before);
  void arm_timer(std::uint32_t id);
  void schedule_timer(std::uint32_t id, Time time, EventKind kind, std::uint64_t argument = 0);
  bool stand_in_line(std::uint32_t id, Time time);
  void make_event(const TimerLine::Timer& timer, std::uint32_t place);
  void on_retransmission_timer(const Event& event);
  void timer_ended(std::uint32_t id) {
    if (senders_[id].counted) --outstanding_[id].timers;
  }
  void on_control(const Event& event);
  void on_ack(std::uint32_t id, const Packet& ack, std::uint32_t packet);
  void tell_congestion_control(std::uint32_t id, std::uint32_t fresh, const Packet& ack,
                               std::uint32_t packet);
  // Marks that an ACK or NACK echoes.
  static std::uint32_t marks_of(const Packet& ack) {
    if (ack.kind == PacketKind::nack) return ack.marked ? 1 : 0;
    return ack.message;
  }
  void finish_messages(std::uint32_t id);
  void go_back(Sender& s);
  void on_pace(const Event& event);
  void on_congestion_timer(const Event& event);
  void on_retransmission(const Event& event);
  bool one_timeout_too_many(std::uint32_t id);
  CongestionContext congestion_context(std::uint32_t id);
  template <class Call>
  void control(std::uint32_t id, Call call);

  // selective.cpp
  bool has_gap(std::uint32_t id);
  std::uint32_t take_gap(std::uint32_t id);
  void note_arrival(std::uint32_t id, std::uint32_t psn);
  void forget_arrivals(std::uint32_t id, std::uint32_t before);
  void repeat_overdue(std::uint32_t id);
  std::uint32_t in_flight(std::uint32_t id) const;
  void accept_any(std::uint32_t id, std::uint32_t packet);
  std::uint32_t advance(std::uint32_t id, bool last, bool& asked);

  // receiver.cpp
  void on_receive(const Event& event);
  void accept(std::uint32_t id, std::uint32_t packet);
  void out_of_order(std::uint32_t id, std::uint32_t psn, std::uint32_t packet);
  void reply(std::uint32_t id, PacketKind kind, std::uint32_t cause, std::uint32_t arrived);
  void count_arrival(std::uint32_t id, std::uint32_t psn);
  void expect(std::uint32_t id, const Incoming& incoming);
  void on_deliver(const Event& event);
  void deliver(std::uint32_t id, std::uint32_t messages);
  void delivered_scale_up(std::uint32_t id);

  static constexpr std::size_t kCacheLine = 64;

  AtomSet& set_;
  EventLoop& loop_;
  FabricPart& fabric_;
  TransportState& state_;
  PacketNetworkImpl& network_;
  // Of the state.
  const TransportParameters& parameters_;
  const Framing& framing_;
  const ReliabilityPlan& reliability_;
  CongestionControl* congestion_control_;
  const CongestionNeeds needs_;
  const std::uint32_t acknowledge_every_;
  const bool echo_in_acks_, stamps_;
  Sender* senders_;
  Receiver* receivers_;
  Outstanding* outstanding_;
  Selective* selective_;
  const void* senders_base_;
  const void* second_lines_base_;  // of the senders
  const void* receivers_base_;
  std::vector<Injector> injectors_;
  std::vector<Gate> gates_;
  SendQueues queues_;
  Arena<Incoming> incoming_;
  std::vector<std::uint32_t> free_pairs_;
  TimerLine line_;
  std::uint64_t late_digest_ = 0;
  NetworkCounters counts_;
  std::uint64_t packets_fingerprint_ = 0;
  PathObjection objection_;
};

}  // namespace netsim
