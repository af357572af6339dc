// The packet network's own declaration: a TransportPart for each set of atoms on a Fabric, and what concerns
// the whole: queue pairs that come into being, routes that change, reports. Private to the room; its parts
// are packet_network.cpp (building, reports) and connections.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/arena.h"
#include "sim/core/engine.h"
#include "sim/network/fabric.h"
#include "sim/transport/packet_network.h"
#include "sim/transport/transport_part.h"

namespace netsim {

class PacketNetworkImpl final : public PacketNetwork {
 public:
  PacketNetworkImpl(Engine& engine, const Cluster& cluster, const Partition& partition,
                    const ConfigNode& network, const ConfigNode& transport_node, std::uint64_t seed,
                    FlowObserver observer);

  void set_listener(MessageListener* listener) override { state_.listener = listener; }
  void send(const SendRequest& request) override { parts_[state_.set_of_gpu[request.source]]->send(request); }
  Reach reach(std::uint32_t source, std::uint32_t destination) const override {
    if (source == destination) return Reach::self;
    return cluster_.same_host(source, destination) ? Reach::scale_up : Reach::scale_out;
  }
  std::uint32_t gpu_count() const override { return static_cast<std::uint32_t>(cluster_.gpus.size()); }
  NetworkCounters counters() const override;
  PortCounters port_counters(PortId port) const override { return fabric_.counters(port); }
  Bytes queued(PortId port) const override { return fabric_.queued(port); }
  std::vector<std::uint32_t> queue_pairs() const override;
  QueuePairView queue_pair_view(std::uint32_t id) const override;
  std::uint64_t packets_fingerprint() const override;
  std::uint64_t events_fingerprint() const override;
  bool deadlocked() const override { return !fabric_.deadlock().empty(); }
  std::vector<std::string> waiting(std::size_t limit) const override;
  std::vector<std::string> notes() const override;

  // For the parts.
  std::uint32_t queue_pair(const SendRequest& request);
  Time ideal_time(std::uint32_t id, Bytes bytes) const;

 private:
  // A flow of which one end is known to be done, in a list of its queue pair's: all of one sort, oldest
  // first.
  struct HalfFlow {
    FlowDelivered delivered;
    Time acknowledged = 0;
    std::uint32_t next = kNone;
  };
  struct HalfFlows {
    std::uint32_t oldest = kNone, newest = kNone;
    bool delivered = false;  // which end is known
  };

  // connections.cpp
  void connect_scale_up(std::uint32_t id, TransportPart& part);
  void connect_scale_out(std::uint32_t id, std::uint8_t traffic_class, TransportPart& part);
  bool route(std::uint32_t id, const Routes& routes);
  std::vector<PortId> data_ports(std::uint32_t id, const Routes& routes) const;
  std::vector<PortId> ack_ports(std::uint32_t id, const Routes& routes) const;
  Time idle_round_trip(std::uint32_t id) const;
  Bytes largest_packet() const;
  void routes_changed();

  void flow_delivered(const FlowDelivered& flow);
  void flow_acknowledged(const FlowAcknowledged& flow);
  void wait_for_other_end(std::uint32_t queue_pair, bool delivered, const HalfFlow& half);
  bool take_half(std::uint32_t queue_pair, bool delivered, HalfFlow& half);
  void observe(const FlowDelivered& flow, Time acknowledged) const;

  Engine& engine_;
  const Cluster& cluster_;
  TransportState state_;
  Fabric fabric_;
  FlowObserver observer_;
  JournalOf<FlowDelivered, PacketNetworkImpl> delivered_{*this, &PacketNetworkImpl::flow_delivered};
  JournalOf<FlowAcknowledged, PacketNetworkImpl> acknowledged_{*this, &PacketNetworkImpl::flow_acknowledged};
  std::vector<std::unique_ptr<TransportPart>> parts_;
  const Routes* routes_ = nullptr;
  std::unique_ptr<Routes> live_routes_;  // while links are down
  Arena<HalfFlow> half_flows_;
  std::vector<HalfFlows> half_flows_of_;  // by queue pair
};

}  // namespace netsim
