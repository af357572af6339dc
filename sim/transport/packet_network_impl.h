// The packet network's own declaration: NICs and queue pairs on a Fabric. Private to the room; its parts are
// packet_network.cpp (building, connections, reports), sender.cpp and receiver.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/network/fabric.h"
#include "sim/transport/packet_network.h"
#include "sim/transport/queue_pair.h"

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
  PortCounters port_counters(PortId port) const override;
  Bytes queued(PortId port) const override { return fabric_.queued(port); }
  std::uint32_t queue_pairs() const override { return static_cast<std::uint32_t>(senders_.size()); }
  QueuePairView queue_pair_view(std::uint32_t id) const override;
  std::uint64_t packets_fingerprint() const override { return packets_fingerprint_; }
  std::uint64_t events_fingerprint() const override;
  std::vector<std::string> waiting(std::size_t limit) const override;
  std::vector<std::string> notes() const override { return fabric_.notes(); }

 private:
  void port_free(PortId port) override;
  void departed(PortId port, Bytes bytes) override;

  std::uint32_t queue_pair(const SendRequest& request);
  void connect_scale_up(std::uint32_t id, const Names& names);
  void connect_scale_out(std::uint32_t id, const Names& names);
  std::uint32_t injector(PortId first, PortId gate);
  std::uint32_t add_message(std::uint32_t id, const SendRequest& request);
  void join_ring(std::uint32_t id);
  void make_ready(std::uint32_t id);
  std::uint32_t make_packet(std::uint32_t id);
  void pace(std::uint32_t id, Bytes wire_bytes);
  void arm_timer(std::uint32_t id);

  void on_receive(const Event& event);
  void accept(std::uint32_t id, std::uint32_t packet);
  void reply(std::uint32_t id, PacketKind kind, std::uint32_t bytes, std::uint8_t priority);
  void on_deliver(const Event& event);
  void on_control(const Event& event);
  void on_ack(std::uint32_t id, std::uint32_t next_expected);
  void go_back(std::uint32_t id);
  void on_pace(const Event& event);
  void on_congestion_timer(const Event& event);
  void on_retransmission(const Event& event);
  void delivered(std::uint32_t id, std::uint32_t message);
  void release(std::uint32_t message);
  CongestionContext congestion_context(std::uint32_t id);
  template <class Call>
  void control(std::uint32_t id, Call call);

  EventLoop& loop_;
  const Cluster& cluster_;
  TransportParameters parameters_;
  Fabric fabric_;
  FlowObserver observer_;
  MessageListener* listener_ = nullptr;
  std::unique_ptr<CongestionControl> congestion_control_;
  CongestionNeeds needs_;
  std::vector<std::byte> congestion_;  // state_stride_ bytes a queue pair
  std::size_t state_stride_ = 0;
  std::vector<Sender> senders_;
  std::vector<Receiver> receivers_;
  const void* senders_base_ = nullptr;
  const void* receivers_base_ = nullptr;
  std::vector<Names> names_;
  std::vector<Injector> injectors_;
  std::vector<std::uint32_t> injector_of_port_;
  std::vector<Gate> gates_;
  std::vector<std::uint32_t> gate_of_port_;
  // Per source GPU: (destination << 8 | number) to queue pair, sorted.
  std::vector<std::vector<std::pair<std::uint64_t, std::uint32_t>>> connections_;
  std::vector<Message> messages_;
  std::uint32_t free_message_ = kNone;
  NetworkCounters counts_;
  std::uint64_t packets_fingerprint_ = 0;
};

}  // namespace netsim
