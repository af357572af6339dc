// The packet network's own declaration: NICs and queue pairs on a Fabric. Private to the room; its parts are
// packet_network.cpp (building, reports), connections.cpp, sender.cpp, selective.cpp and receiver.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/network/fabric.h"
#include "sim/transport/packet_network.h"
#include "sim/transport/queue_pair.h"
#include "sim/transport/reliability.h"

namespace netsim {

class PacketNetworkImpl final : public PacketNetwork, private PacketSource {
 public:
  PacketNetworkImpl(EventLoop& loop, const Cluster& cluster, const ConfigNode& network,
                    const ConfigNode& transport_node, std::uint64_t seed, FlowObserver observer);

  void set_listener(MessageListener* listener) override { listener_ = listener; }
  void send(const SendRequest& request) override;
  Reach reach(std::uint32_t source, std::uint32_t destination) const override {
    if (source == destination) return Reach::self;
    return cluster_.same_host(source, destination) ? Reach::scale_up : Reach::scale_out;
  }
  std::uint32_t gpu_count() const override { return static_cast<std::uint32_t>(cluster_.gpus.size()); }
  NetworkCounters counters() const override;
  PortCounters port_counters(PortId port) const override { return fabric_.counters(port); }
  Bytes queued(PortId port) const override { return fabric_.queued(port); }
  std::uint32_t queue_pairs() const override { return static_cast<std::uint32_t>(senders_.size()); }
  QueuePairView queue_pair_view(std::uint32_t id) const override;
  std::uint64_t packets_fingerprint() const override { return packets_fingerprint_; }
  std::uint64_t events_fingerprint() const override;
  bool deadlocked() const override { return !fabric_.deadlock().empty(); }
  std::vector<std::string> waiting(std::size_t limit) const override;
  std::vector<std::string> notes() const override;

 private:
  void port_free(PortId port) override;
  void departed(PortId port, Bytes bytes) override;
  void routes_changed() override;

  // connections.cpp
  std::uint32_t queue_pair(const SendRequest& request);
  void connect_scale_up(std::uint32_t id);
  void connect_scale_out(std::uint32_t id, std::uint8_t traffic_class);
  bool route(std::uint32_t id, const Routes& routes);
  std::vector<PortId> data_ports(std::uint32_t id, const Routes& routes) const;
  std::vector<PortId> ack_ports(std::uint32_t id, const Routes& routes) const;
  std::uint32_t injector(PortId first, PortId gate);
  void start_congestion_control(std::uint32_t id);
  Time idle_round_trip(std::uint32_t id) const;
  Time ideal_time(std::uint32_t id, Bytes bytes) const;
  Bytes largest_packet() const;

  // sender.cpp
  void add_message(std::uint32_t id, const SendRequest& request);
  void join_ring(std::uint32_t id);
  bool has_work(std::uint32_t id);
  void make_ready(std::uint32_t id);
  std::uint32_t next_class(Injector& in);
  std::uint32_t take_from_ring(Injector& in, std::uint32_t traffic_class);
  std::uint32_t next_packet(std::uint32_t id);
  Bytes packet_bytes(const Sender& s, const Message& m, std::uint32_t psn) const;
  Bytes next_packet_bytes(std::uint32_t id);
  std::uint32_t make_packet(std::uint32_t id, std::uint32_t message, std::uint32_t psn);
  void pace(std::uint32_t id, Bytes wire_bytes);
  void move_pace(std::uint32_t id, BitRate before);
  void arm_timer(std::uint32_t id);
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
  void go_back(std::uint32_t id);
  std::uint32_t message_of(std::uint32_t id, std::uint32_t psn) const;
  void on_pace(const Event& event);
  void on_congestion_timer(const Event& event);
  void on_retransmission(const Event& event);
  CongestionContext congestion_context(std::uint32_t id);
  template <class Call>
  void control(std::uint32_t id, Call call);
  void set_window(std::uint32_t id, Bytes window);

  // selective.cpp
  bool has_gap(std::uint32_t id);
  std::uint32_t take_gap(std::uint32_t id);
  void note_arrival(std::uint32_t id, std::uint32_t psn);
  void forget_arrivals(std::uint32_t id, std::uint32_t before);
  void repeat_overdue(std::uint32_t id);
  std::uint32_t in_flight(std::uint32_t id) const;
  void accept_any(std::uint32_t id, std::uint32_t packet);
  void advance(std::uint32_t id, const Packet& first, std::vector<std::uint32_t>& complete);

  // receiver.cpp
  void on_receive(const Event& event);
  void accept(std::uint32_t id, std::uint32_t packet);
  void out_of_order(std::uint32_t id, std::uint32_t psn, std::uint32_t packet);
  void reply(std::uint32_t id, PacketKind kind, std::uint32_t cause, std::uint32_t arrived);
  void count_arrival(std::uint32_t id, std::uint32_t psn);
  void on_deliver(const Event& event);
  void delivered(std::uint32_t id, std::uint32_t message);
  void release(std::uint32_t id, std::uint32_t message);

  EventLoop& loop_;
  const Cluster& cluster_;
  TransportParameters parameters_;
  Framing framing_;
  ReliabilityPlan reliability_;
  std::unique_ptr<CongestionControl> congestion_control_;
  CongestionNeeds needs_;
  bool echo_in_acks_ = false, stamps_ = false;
  Fabric fabric_;
  FlowObserver observer_;
  MessageListener* listener_ = nullptr;
  const Routes* routes_ = nullptr;
  std::unique_ptr<Routes> live_routes_;  // while links are down
  std::vector<std::byte> congestion_;    // state_stride_ bytes a queue pair
  std::size_t state_stride_ = 0;
  std::vector<Sender> senders_;
  std::vector<Receiver> receivers_;
  std::vector<Selective> selective_;     // like senders_, for selective repeat only
  std::vector<std::uint32_t> complete_;  // scratch
  const void* senders_base_ = nullptr;
  const void* receivers_base_ = nullptr;
  std::vector<Names> names_;
  std::vector<Injector> injectors_;
  std::vector<std::uint32_t> injector_of_port_;
  std::vector<Gate> gates_;
  std::vector<std::uint32_t> gate_of_port_;
  // Per source GPU: (destination << 40 | class << 32 | number) to queue pair, sorted.
  std::vector<std::vector<std::pair<std::uint64_t, std::uint32_t>>> connections_;
  std::vector<Message> messages_;
  std::uint32_t free_message_ = kNone;
  NetworkCounters counts_;
  std::uint64_t packets_fingerprint_ = 0;
};

}  // namespace netsim
