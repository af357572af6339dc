// SplitEndpoint: the Endpoint of a run whose messages may be split over several NICs of their host. It stands
// above the flow scheduler, which sees each share as a flow, and exists only where the configuration names a
// FlowSplitter.
//
// A share takes up to three legs. They lead over NVLink to a relay in the source's host, over the fabric, and
// over NVLink from a relay in the destination's host. A share with a relay goes in chunks. Each chunk is a
// message of each leg, and a relay sends a chunk on when it has all of it. At most SplitSettings::buffers
// chunks of a share have left the source and are not acknowledged by the far NIC.
//
// The listener gets one report of each kind for the whole message. It has left when the last byte of all
// shares has left the source, and is sent when all shares are acknowledged. It is delivered when all bytes
// are at the destination. Messages of one queue pair that are split alike keep their order. One that is
// smaller than SplitSettings::least may overtake a split one.
//
// A flow scheduler below decides about each share, because the shares are messages of their own. Shares over
// PCIe belong to the flow of the own share. The handle of a split message acts on all its shares, as far as
// no NIC of the source's host has sent them. Between them a rate is divided by these bytes. A path hint is
// for the share that takes the NIC of the whole message. A split message cannot be cancelled.
//
// The source's set alone changes the record of a message, and the destination's set that of its arrival. A
// receiver reads the message as it was sent from the source's record. That part does not change until the
// source has all acknowledgements, and so after every message of the receiver that reads it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/core/arena.h"
#include "sim/core/engine.h"
#include "sim/core/reserved_array.h"
#include "sim/scheduling/flow/flow_splitter.h"
#include "sim/scheduling/flow/flow_summary.h"
#include "sim/scheduling/flow/host_ways.h"
#include "sim/topology/topology.h"
#include "sim/transport/forwarding_endpoint.h"

namespace netsim {

class SplitEndpoint final : public ForwardingEndpoint, private MessageListener {
 public:
  struct Setup {
    std::string name;                        // kind of the splitter
    std::vector<std::uint32_t> queue_pairs;  // by fabric: queue pairs between two GPUs
    std::vector<std::uint32_t> set_of_gpu;
  };
  // All references must outlive this.
  SplitEndpoint(std::unique_ptr<Endpoint> network, std::unique_ptr<FlowSplitter> splitter, Engine& engine,
                const Cluster& cluster, Setup setup);

  void set_listener(MessageListener* listener) override;
  MessageHandle send(const SendRequest& request) override;
  bool hold(const MessageHandle& message) override;
  bool release(const MessageHandle& message) override;
  bool set_priority(const MessageHandle& message, std::uint8_t priority) override;
  Bytes cancel(const MessageHandle& message) override;
  bool set_rate(const MessageHandle& message, BitRate rate) override;
  bool set_path(const MessageHandle& message, std::uint32_t path_hint) override;
  Bytes left(const MessageHandle& message) const override;
  // Called between events.
  SplitSummary summary() const;

 private:
  // The ways of messages between two GPUs on one lane, and what their shares attained.
  struct Ways {
    std::vector<HostWay> ways;
    std::vector<BitRate> measured;  // SplitWay::measured
  };
  struct Share {
    std::uint32_t way = 0;  // index in Ways
    Bytes bytes = 0;
    Bytes begun = 0;              // handed to the first leg
    Bytes sent = 0;               // acknowledged by the NIC at the far end of the fabric
    std::uint32_t under_way = 0;  // chunks begun and not acknowledged
    Bytes to_relay = 0;           // begun, and not yet at the relay
    BitRate limit = 0;            // its part of the message's rate limit; 0: none
  };
  // Chunk: a message of a share on the fabric. Nothing is left of one that is over.
  struct Chunk {
    std::uint32_t share = 0;
    MessageHandle handle;
  };
  // Record: a split message at its source.
  struct Record {
    SendRequest request;    // as it was sent
    std::uint32_t use = 0;  // tells apart the messages that had this record
    Time begun = 0;
    Ways* ways = nullptr;
    std::vector<Share> shares;
    std::vector<Chunk> chunks;
    bool held = false;
    std::uint8_t priority = 0;  // these two as they are now
    std::uint32_t path_hint = kNoPathHint;
    std::uint32_t unsent = 0, unleft = 0;  // shares that are not acknowledged, or have not left
  };
  // Arrival: a split message at its destination.
  struct Arrival {
    Message message;  // as it was sent
    std::uint64_t key = 0;
    Bytes arrived = 0;
  };
  enum class Leg : std::uint8_t { to_relay, fabric, to_destination };
  // ShareTag: the tag of a message of a share.
  struct ShareTag {
    Leg leg;
    std::uint32_t share;   // index in Record::shares; 0 on the last leg
    std::uint32_t number;  // index of the record, on the last leg of the arrival
    std::uint64_t packed() const {
      return static_cast<std::uint64_t>(leg) << 62 | static_cast<std::uint64_t>(share) << 32 | number;
    }
    static ShareTag unpack(std::uint64_t tag) {
      return {static_cast<Leg>(tag >> 62), static_cast<std::uint32_t>(tag >> 32 & 0x3fffffff),
              static_cast<std::uint32_t>(tag)};
    }
  };
  struct WaysKey {
    GpuId source, destination;
    std::uint32_t lane;
    bool operator==(const WaysKey&) const = default;
  };
  struct WaysHash {
    std::size_t operator()(const WaysKey& key) const;
  };
  // SetState: the part that one set uses. The maps are looked up only, never iterated.
  struct alignas(64) SetState {
    std::unordered_map<WaysKey, std::unique_ptr<Ways>, WaysHash> ways;
    std::vector<std::uint32_t> free_records;
    Arena<Arrival> arrivals;
    std::unordered_map<std::uint64_t, std::uint32_t> arrival_of;  // by record and its use
    std::vector<SplitWay> views;                                  // of the present call of split()
    std::vector<Bytes> bytes;
    SplitSummary counts;
  };

  void message_delivered(const Delivery& delivery) override;
  void message_sent(const SendCompletion& completion) override;
  void message_left(const SendRequest& request) override;

  SetState& set_of(GpuId gpu) { return *sets_[setup_.set_of_gpu[gpu]]; }
  Time now_of(GpuId gpu) { return engine_.loop(setup_.set_of_gpu[gpu]).now(); }
  Ways& ways_of(const Message& message);
  bool divide(const Message& message, Ways& ways);
  std::uint32_t take_record(const SendRequest& request, Ways& ways);
  void advance(std::uint32_t record, std::uint32_t share);
  void send_chunk(std::uint32_t record, std::uint32_t share);
  SendRequest leg_request(std::uint32_t record, const ShareTag& tag, Bytes bytes) const;
  void send_over_fabric(const SendRequest& request, const ShareTag& tag);
  std::uint32_t record_of(const MessageHandle& message) const;
  template <class Change>
  bool change(const MessageHandle& message, const Change& change);
  Bytes left_of(const Record& record, std::uint32_t share) const;
  Bytes left_of(const Record& record) const;
  static bool takes_own_path(const Record& record, std::uint32_t share);
  void divide_rate(Record& record, BitRate rate);
  void share_sent(const ShareTag& tag, Bytes bytes);
  void finish(std::uint32_t record);
  void arrive(const Delivery& delivery, const ShareTag& tag);
  void take(GpuId destination, std::uint32_t arrival, Bytes bytes, DelayTeller* delays);

  std::unique_ptr<FlowSplitter> splitter_;
  SplitSettings settings_;
  Engine& engine_;
  Setup setup_;
  HostWays host_ways_;
  MessageListener* listener_ = nullptr;
  std::vector<std::unique_ptr<SetState>> sets_;
  std::vector<std::uint32_t> busy_;  // by GPU: its own messages under way over the fabric
  ReservedArray<Record> records_;
};

}  // namespace netsim
