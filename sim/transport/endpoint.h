// Endpoint: the interface by which messages are sent from one GPU to another. Executors know nothing of
// packets, so the packet network and the ideal network are two Endpoints.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/core/units.h"
#include "sim/transport/message_delays.h"
#include "sim/transport/transfer_traits.h"

namespace netsim {

// The links that join two GPUs, from near to far. They decide which latencies, channels and queue pairs a
// collective uses between these GPUs.
enum class Reach : std::uint8_t {
  self,
  scale_up,   // NVLink, within a host or beyond it
  pcie,       // PCIe of their host
  scale_out,  // through NICs and the fabric
  ideal       // `network: ideal`: no cost anywhere
};

// The place of a GPU, for a library that assigns its channels to hosts and NICs.
struct GpuSite {
  std::uint32_t host = 0;
  // The nearest NICs, by numbers that are the same for all GPUs. Empty if the GPU has none of its own.
  std::vector<std::uint32_t> nics;
  // Rate of the GPU's NVLinks together, or without any of its PCIe link, and rate of each of those NICs to
  // the fabric. 0 means unknown.
  BitRate local_rate = 0, nic_rate = 0;
  std::string gpu_model;           // as Host::gpu_model(); "" if unknown
  bool beside_cpu = false;         // whether a link joins it with its CPU without a PCIe switch between
  std::uint32_t links_to_nic = 0;  // number of links from the GPU to each of `nics`
  // CUDA's compute capability as NCCL writes it (`sm`: 90 for 9.0); 0 means unknown.
  std::int64_t compute_capability = 0;
};

// A multicast or aggregation group: GPUs joined through switches that copy and sum. The head may be one of
// the members. The group uses either one NVLink switch or an all-reduce tree of a fabric's switches.
//
// With `allreduce` the data is summed on the way to the tree's root, and the sum is sent down to all of the
// `others`.
struct SwitchAggregation {
  std::uint32_t head = 0;                  // GPU; unused with `allreduce`
  std::span<const std::uint32_t> members;  // GPUs, each once
  bool allreduce = false;
  // The index of the aggregation group that carries the result back down; used with `allreduce` only. The
  // caller numbers its groups. Equally good trees and NICs are taken in turn, by this number.
  std::uint32_t number = 0;
  // The GPUs that receive the sum, each once; used with `allreduce` only. They are the members in any order,
  // or one of them. A single member that sends to all may also have others that are not members.
  std::span<const std::uint32_t> others = {};
  // The fraction of the switch ports' efficiency for such traffic (InNetworkCapability::efficiency) that this
  // group's messages get. It has no meaning with `allreduce`.
  double share = 1;
};

// The way a message uses the switches of an aggregation group.
enum class AggregationUse : std::uint8_t {
  none,
  multicast,  // from the head to all members; the destination is ignored
  reduction,  // from a member to the head, summed with a message of each other member
  allreduce   // all-reduce: summed as in a reduction, then multicast to the `others`
};

struct SendRequest {
  std::uint32_t source = 0;       // GPU
  std::uint32_t destination = 0;  // GPU; the source itself: a copy to or from its host's memory
  Bytes bytes = 0;                // > 0
  TransferTraits traits;
  std::uint32_t name = 0;  // name of the communication in the workload, for tables
  // A credit: it tells that a receiver has a free slot. It carries no data of the workload and is in no
  // table.
  bool credit = false;
  AggregationUse aggregation_use = AggregationUse::none;
  bool tell_left = false;           // the listener's message_left() is called; never with aggregation groups
  bool truncated = false;           // set by the endpoint: cancel() took the rest, `bytes` were carried
  std::uint64_t communication = 0;  // the collective or point-to-point operation it belongs to (for tables)
  std::uint64_t tag = 0;            // for the receiver's use
  std::uint64_t number = 0;         // for the sender's use
  Time started = 0;                 // start of the communication at the sender (carried to the receiver)
  Time launch = 0;  // time that the sender spent on it before send() (carried to the receiver)
  // The aggregation group that the message goes through, if any. It must outlive all its messages. Messages
  // of a reduction or all-reduce are matched by aggregation group, job, communication and tag, in each
  // member's order of send(). They have equal sizes.
  const SwitchAggregation* aggregation = nullptr;
  // Set by the endpoint in message_delivered() after tell_delays(). It is valid during that call.
  DelayTeller* delays = nullptr;
};

// Identifies a message that was handed to an endpoint, as plain data. It may be kept without limit: after the
// message is over it identifies none, and no other message ever has the same handle.
struct MessageHandle {
  std::uint32_t source = 0;      // GPU
  std::uint32_t slot = 0;        // slot in the endpoint
  std::uint64_t generation = 0;  // tells apart the messages that had this slot; 0: no message

  bool operator==(const MessageHandle&) const = default;
};

// MessageListener: receives the notifications about messages. All calls come from events of the atom of the
// GPU concerned, at loop.now().
//
// A message cancelled after part of it had left is reported like any other, at both ends, with `truncated`
// set and `bytes` as carried. One cancelled before is not reported at all.
class MessageListener {
 public:
  virtual ~MessageListener() = default;
  // Called when the last byte is at the destination. A multicast is reported at each member, with that member
  // as the destination. A reduction is reported once for all its messages, with the message that arrived
  // last.
  //
  // With AggregationUse::allreduce the sum is at the destination, one of the others. The message is that
  // GPU's own, or, if it sent none, the one that was sent to all.
  virtual void message_delivered(const SendRequest& message) = 0;
  // Called when the sender may reuse its buffer. Scale-out: the last acknowledgement is back. Within a host,
  // through switches, or ideal: the message was delivered, a multicast to all members.
  virtual void message_sent(const SendRequest& message) = 0;
  // Called, before message_sent(), when the source's port has taken the last packet of a message with
  // `tell_left`. In the ideal network it is called at delivery.
  virtual void message_left(const SendRequest& /*message*/) {}
};

// Calls that concern a message must come from events of the source's logical process, or between events.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  virtual void set_listener(MessageListener* listener) = 0;
  // Sends a message. Messages of one queue pair leave one after the other. Messages of a higher priority go
  // first, even between the packets of another; equal ones go in order of send().
  //
  // TransferTraits::channel determines which messages share a queue pair, over the fabric and within a host.
  // A message through an aggregation group cannot be identified later: its handle is that of no message.
  virtual MessageHandle send(const SendRequest& request) = 0;
  // Returns whether the switches of a fabric sum, so that asking for aggregation groups with `allreduce`
  // is useful.
  virtual bool aggregates() const { return false; }
  // Returns why the network cannot carry messages of the aggregation group, in words; empty if it can.
  virtual std::string objection(const SwitchAggregation& /*aggregation*/) const {
    return "this network has no switches that copy and add up";
  }

  // Resets the congestion control of the queue pairs that the GPU has for this job. They must have nothing in
  // flight. Called from events of the GPU's logical process.
  virtual void begin_anew(std::uint32_t /*source*/, std::uint32_t /*job*/) {}

  // hold, release, set_priority and cancel act on the part of a message that has not left yet. Packets that
  // have left are carried to their end, and retransmitted if lost. If nothing is left to send, they do
  // nothing and return false or 0.
  //
  // Nothing is left when all of the message has left, or it is over or was cancelled. In the ideal network a
  // message leaves as a whole, when it is delivered.

  // Makes the queue pair skip the message until it is released.
  virtual bool hold(const MessageHandle& message) = 0;
  // Puts the message back to its place by priority and order of send(). In the ideal network its delay begins
  // anew.
  virtual bool release(const MessageHandle& message) = 0;
  // Changes the message's priority. It has no effect in the ideal network.
  virtual bool set_priority(const MessageHandle& message, std::uint8_t priority) = 0;
  // Cancels the part that has not left, held or not, and returns its bytes; 0 if there is none. If some has
  // left, one packet of headers only closes the message, before all others of its queue pair. If none has,
  // the message vanishes.
  virtual Bytes cancel(const MessageHandle& message) = 0;

  // Makes message_delivered() get SendRequest::delays from now on. Must be called before the first message.
  virtual void tell_delays() = 0;
  // Returns whether messages between two GPUs may use different links depending on their channel. That is so
  // where NICs are equally near to a GPU, or where routing sends flows over different numbers of links.
  virtual bool ways_differ() const { return false; }
  virtual Reach reach(std::uint32_t source, std::uint32_t destination) const = 0;
  // Returns the delay of a bit over the links between two different GPUs whose reach is scale_up or pcie.
  virtual Time delay_inside(std::uint32_t /*source*/, std::uint32_t /*destination*/) const { return 0; }
  // Returns the rate of the NVLinks that join two different GPUs of a host without a switch or GPU between; 0
  // if there are none.
  virtual BitRate direct_rate(std::uint32_t /*source*/, std::uint32_t /*destination*/) const { return 0; }
  // Returns the place of a GPU. An endpoint without hosts returns a separate host for each GPU.
  virtual GpuSite site(std::uint32_t gpu) const { return {gpu, {}, 0, 0, {}}; }
  virtual std::uint32_t gpu_count() const = 0;
};

}  // namespace netsim
