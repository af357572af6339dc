// Endpoint: the interface by which messages are sent from one GPU to another. Executors know nothing of
// packets, so the packet network and the ideal network are two Endpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/core/ids.h"
#include "sim/core/units.h"
#include "sim/network/aggregation/aggregation_pool.h"
#include "sim/network/aggregation/number_format.h"
#include "sim/topology/graph.h"
#include "sim/transport/message.h"
#include "sim/transport/port_passage.h"

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
  HostId host;
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
  GpuId head;                      // unused with `allreduce`
  std::span<const GpuId> members;  // each once
  bool allreduce = false;
  // The index of the aggregation group that carries the result back down; used with `allreduce` only. The
  // caller numbers its groups. Equally good trees and NICs are taken in turn, by this number.
  std::uint32_t number = 0;
  // The GPUs that receive the sum, each once; used with `allreduce` only. They are the members in any order,
  // or one of them. A single member that sends to all may also have others that are not members.
  std::span<const GpuId> others = {};
  // The fraction of the switch ports' efficiency for such traffic (InNetworkCapability::efficiency) that this
  // group's messages get. It has no meaning with `allreduce`.
  double share = 1;
  // The pool of slots of the tree's switches; used with `allreduce` only, where all GPUs are both members and
  // others. Without a pool links send again what they lose.
  AggregationPool pool = {};
  // The number format in which switches add; nullopt: not known. Used with `allreduce` only.
  std::optional<NumberFormat> format = {};
};

// MulticastSwitch: the NVSwitch that joins GPUs, and the multicast groups that it holds at once. 0: any
// number.
struct MulticastSwitch {
  NodeId node = kNoId;
  std::int64_t groups = 0;
};

// MessageListener: receives the notifications about messages. All calls come from events of the atom of the
// GPU concerned, at loop.now().
//
// A message cancelled after part of it had left is reported like any other, at both ends, with the bytes that
// were carried. One cancelled before is not reported at all.
class MessageListener {
 public:
  virtual ~MessageListener() = default;
  // Called when the last byte is at the destination. A multicast is reported at each member, with that member
  // as the destination. A reduction is reported once for all its messages, with the message that arrived
  // last.
  //
  // With AggregationUse::allreduce the sum is at the destination, one of the others. The message is that
  // GPU's own, or, if it sent none, the one that was sent to all.
  virtual void message_delivered(const Delivery& delivery) = 0;
  // Called when the sender may reuse its buffer. Scale-out: the last acknowledgement is back. Within a host,
  // through switches, or ideal: the message was delivered, a multicast to all members.
  virtual void message_sent(const SendCompletion& completion) = 0;
  // Called, before message_sent(), when the source's port has taken the last packet of a message with
  // `tell_left`. In the ideal network it is called at delivery.
  virtual void message_left(const SendRequest& /*request*/) {}
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
  // Messages through an aggregation group leave each member in order of send(), whatever their priority. The
  // switches match the packets of all members by their order.
  virtual MessageHandle send(const SendRequest& request) = 0;
  // Returns whether the switches of a fabric sum, so that asking for aggregation groups with `allreduce`
  // is useful.
  virtual bool aggregates() const { return false; }
  // Returns the name of a switch that adds up, but not numbers of this format; empty: there is none.
  virtual std::string lacks_format(NumberFormat /*format*/) const { return ""; }
  // Returns why the network cannot carry messages of the aggregation group, in words; empty if it can.
  virtual std::string objection(const SwitchAggregation& /*aggregation*/) const {
    return "this network has no switches that copy and add up";
  }
  // Returns the NVSwitch that joins the GPUs of an aggregation group in a host or NVLink domain.
  virtual MulticastSwitch multicast_switch(const SwitchAggregation& /*aggregation*/) const { return {}; }
  // Returns whether any NVSwitch holds a limited number of multicast groups.
  virtual bool limits_multicast() const { return false; }
  // Returns a new number of the aggregation group, by which messages name it. objection() to it must be
  // empty. The caller owns the group and the lists that it refers to, and keeps them unchanged as long as it
  // sends messages through the group. Any thread may call this at any time.
  virtual AggregationId add_aggregation(const SwitchAggregation& /*aggregation*/) { return {}; }

  // Resets the congestion control of the queue pairs that the GPU has for this job. They must have nothing in
  // flight. Called from events of the GPU's logical process.
  virtual void begin_anew(GpuId /*source*/, JobId /*job*/) {}

  // The functions on handles act on the part of a message that has not left yet. Packets that have left are
  // carried to their end, and retransmitted if lost. If nothing is left to send, they do nothing and return
  // false or 0.
  //
  // Nothing is left when all of the message has left, or it is over or was cancelled. In the ideal network a
  // message leaves as a whole, when it is delivered.
  //
  // They also act on messages through aggregation groups, except cancel(). Such a message is the part of one
  // member, on a queue pair of its own for each communication and tag. The packets of other members wait in
  // switches for its packets. In the ideal network such messages have the handle of no message.

  // Makes the queue pair skip the message until it is released. A held message through an aggregation group
  // also holds those behind it, between two packets if it has begun.
  virtual bool hold(const MessageHandle& message) = 0;
  // Puts the message back to its place by priority and order of send(). In the ideal network its delay begins
  // anew.
  virtual bool release(const MessageHandle& message) = 0;
  // Changes the message's priority. It has no effect in the ideal network. With an aggregation group only the
  // levels of `transport.nic_priorities` follow it.
  virtual bool set_priority(const MessageHandle& message, std::uint8_t priority) = 0;
  // Cancels the part that has not left, held or not, and returns its bytes; 0 if there is none. If some has
  // left, one packet of headers only closes the message, before all others of its queue pair. If none has,
  // the message vanishes. A message through an aggregation group cannot be cancelled, as other members may
  // have sent their parts.
  virtual Bytes cancel(const MessageHandle& message) = 0;
  // Changes the message's rate limit as TransferTraits::rate_limit; 0 means no limit. It acts from the next
  // packet on. If the queue pair waits after a packet of this message, the rest of the wait changes in
  // proportion to the rate. It has no effect in the ideal network.
  virtual bool set_rate(const MessageHandle& message, BitRate rate) = 0;
  // Changes the message's path hint (TransferTraits::path_hint). Packets that leave from now on carry it and
  // take its path; packets on the former path may arrive later than they do. It has no effect within a host,
  // in the ideal network and with aggregation groups.
  virtual bool set_path(const MessageHandle& message, std::uint32_t path_hint) = 0;
  // Returns the bytes of the message that have not left its source; 0 if there are none.
  virtual Bytes left(const MessageHandle& message) const = 0;

  // path_count(), path_of() and passages() tell a scheduler which paths the network has for a message. They
  // read its source, destination, aggregation group, class, channel and own_queue_pair. They may be called
  // from any event and between events, for any source.

  // Returns the number of path hints to choose from: hints 0 to path_count() - 1 give all paths that hints
  // can give. Where the branches of a fabric differ in size, several of them may give the same path. Returns
  // 1 where hints have no effect.
  virtual std::uint32_t path_count(const Message& /*message*/) const { return 1; }
  // Returns the ports of the message's path from its source GPU to its destination. The path is that of the
  // message's path hint, or without a hint the one that routing chooses. It is empty if the network has no
  // ports, there is no way, or switches choose for each packet. With an all-reduce tree it is all ports of
  // the tree that data passes, once for each stream of data; other aggregation groups have none.
  virtual std::vector<PortId> path_of(const Message& /*message*/) const { return {}; }
  // Returns how a packet of the message with `payload` bytes, at most transport.mtu, passes each port of
  // path_of(); none for messages of aggregation groups.
  virtual std::vector<PortPassage> passages(const Message& /*message*/, Bytes /*payload*/) const {
    return {};
  }

  // Makes the listener get Delivery::delays from now on. Must be called before the first message.
  virtual void tell_delays() = 0;
  // Returns whether messages between two GPUs may use different links depending on their channel. That is so
  // where NICs are equally near to a GPU, or where routing sends flows over different numbers of links.
  virtual bool ways_differ() const { return false; }
  virtual Reach reach(GpuId source, GpuId destination) const = 0;
  // Returns the delay of a bit over the links between two different GPUs whose reach is scale_up or pcie.
  virtual Time delay_inside(GpuId /*source*/, GpuId /*destination*/) const { return 0; }
  // Returns the rate of the NVLinks that join two different GPUs of a host without a switch or GPU between; 0
  // if there are none.
  virtual BitRate direct_rate(GpuId /*source*/, GpuId /*destination*/) const { return 0; }
  // Returns the place of a GPU. An endpoint without hosts returns a separate host for each GPU.
  virtual GpuSite site(GpuId gpu) const { return {std::uint32_t{gpu}, {}, 0, 0, {}}; }
  virtual std::uint32_t gpu_count() const = 0;
};

}  // namespace netsim
