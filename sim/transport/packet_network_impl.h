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
  MessageHandle send(const SendRequest& request) override { return part_of(request.source).send(request); }
  bool hold(const MessageHandle& message) override { return part_of(message.source).hold(message); }
  bool release(const MessageHandle& message) override { return part_of(message.source).release(message); }
  bool set_priority(const MessageHandle& message, std::uint8_t priority) override {
    return part_of(message.source).set_priority(message, priority);
  }
  Bytes cancel(const MessageHandle& message) override { return part_of(message.source).cancel(message); }
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
  void keep_ended() override { keeps_ended_ = true; }
  void forget_ended() override { forgotten_ = ended_.size(); }
  void report_unacknowledged() override;
  std::uint64_t packets_fingerprint() const override;
  std::uint64_t events_fingerprint() const override;
  bool deadlocked() const override { return !fabric_.deadlock().empty(); }
  std::size_t path_steps() const override { return fabric_.path_steps(); }
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

  // Paths that a queue pair had before routes changed: packets may be on them still.
  struct FormerPaths {
    struct Path {
      PathPlace place;
      bool free = false;  // none are: the queue pair is another one since
    };
    std::vector<Path> data, back;
    void set_free() {
      for (std::vector<Path>* paths : {&data, &back}) {
        for (Path& path : *paths) path.free = true;
      }
    }
  };

  TransportPart& part_of(std::uint32_t gpu) { return *parts_[state_.set_of_gpu[gpu]]; }

  // connections.cpp
  void connect_scale_up(std::uint32_t id, TransportPart& part);
  void connect_scale_out(std::uint32_t id, std::uint8_t traffic_class, TransportPart& part);
  std::uint32_t new_pair(const SendRequest& request, std::uint32_t number, std::uint64_t lane);
  bool route(std::uint32_t id, const Routes& routes, bool in_use);
  void route_data(std::uint32_t id, std::vector<PortId> ports, bool in_use);
  FormerPaths& former_paths(std::uint32_t id);
  bool begins_with(const PathPlace& place, const std::vector<std::uint32_t>& steps) const;
  bool keep_path(PathPlace& place, const std::vector<std::uint32_t>& steps,
                 std::vector<FormerPaths::Path>* former) const;
  void put_path(PathPlace& place, const std::vector<std::uint32_t>& steps,
                std::vector<FormerPaths::Path>* former);
  std::vector<PortId> data_ports(std::uint32_t id, const Routes& routes) const;
  std::vector<PortId> ack_ports(std::uint32_t id, const Routes& routes) const;
  Time idle_round_trip(std::uint32_t id) const;
  Bytes largest_packet() const;
  void routes_changed();
  PathObjection worst_path() const;

  void flow_delivered(const FlowDelivered& flow);
  void flow_acknowledged(const FlowAcknowledged& flow);
  void flow_vanished(const FlowVanished& flow);
  void wait_for_other_end(std::uint32_t queue_pair, bool delivered, const HalfFlow& half);
  bool take_half(std::uint32_t queue_pair, bool delivered, HalfFlow& half);
  void end_flow(const FlowDelivered& flow, Time acknowledged);
  FlowRecord record_of(const FlowDelivered& flow, Time acknowledged) const;
  void queue_pair_ended(std::uint32_t id);
  bool busy(std::uint32_t id) const;
  std::string dead_link(std::uint32_t id) const;
  std::uint64_t digest(std::uint32_t id) const;

  const Cluster& cluster_;
  TransportState state_;
  Fabric fabric_;
  FlowObserver observer_;
  JournalOf<FlowDelivered, PacketNetworkImpl> delivered_{*this, &PacketNetworkImpl::flow_delivered};
  JournalOf<FlowAcknowledged, PacketNetworkImpl> acknowledged_{*this, &PacketNetworkImpl::flow_acknowledged};
  JournalOf<FlowVanished, PacketNetworkImpl> vanished_{*this, &PacketNetworkImpl::flow_vanished};
  std::vector<std::unique_ptr<TransportPart>> parts_;
  const Routes* routes_ = nullptr;
  std::unique_ptr<Routes> live_routes_;    // while links are down
  std::vector<FormerPaths> former_paths_;  // by queue pair; grows only when routes change
  Arena<HalfFlow> half_flows_;
  std::vector<HalfFlows> half_flows_of_;  // by queue pair
  // Queue pairs that are over but for what may still be on its way: from ended_first_ on, oldest first.
  std::vector<std::uint32_t> ended_;
  std::size_t ended_first_ = 0;
  bool keeps_ended_ = false;  // those from forgotten_ on are not used again yet
  std::size_t forgotten_ = 0;
  std::uint64_t ended_digest_ = 0;  // of those whose numbers may be used again
};

}  // namespace netsim
