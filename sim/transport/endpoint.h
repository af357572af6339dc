// Endpoint: how messages go from one GPU to another. Executors know nothing of packets, so the packet network
// and the ideal one are two Endpoints.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/core/units.h"
#include "sim/transport/message_delays.h"
#include "sim/transport/transfer_traits.h"

namespace netsim {

// What joins two GPUs, from near to far: decides which latencies, channels and queue pairs a collective uses
// there.
enum class Reach : std::uint8_t {
  self,
  scale_up,   // NVLink, within a host or beyond it
  pcie,       // PCIe of their host
  scale_out,  // through NICs and the fabric
  ideal       // `network: ideal`: no cost anywhere
};

// Where a GPU is, for a library that lays its channels on hosts and NICs.
struct GpuSite {
  std::uint32_t host = 0;
  // The NICs that are nearest to it, by any numbers that are the same for all GPUs. Empty: none of its own.
  std::vector<std::uint32_t> nics;
  // Of its NVLinks, or without any of its PCIe link; and of each of those NICs to the fabric. 0: not known.
  BitRate local_rate = 0, nic_rate = 0;
  std::string gpu_model;           // as of Host::gpu_model(); "": not known
  bool beside_cpu = false;         // a link joins it with its CPU, without a PCIe switch between
  std::uint32_t links_to_nic = 0;  // from the GPU to each of `nics`
  // CUDA's compute capability, as NCCL writes it (`sm`: 90 for 9.0); 0: not known.
  std::int64_t compute_capability = 0;
};

// GPUs that are joined through switches which copy and add up; the head may be one of the members. Either one
// switch of NVLinks, or those of a fabric, in a tree at whose root the sum of what the members send turns and
// goes to all of the `others` (`turned`).
struct SwitchFan {
  std::uint32_t head = 0;                  // GPU; of one that is turned it says nothing
  std::span<const std::uint32_t> members;  // GPUs, each once
  bool turned = false;
  // Of one that is turned: the other half of it, as the caller counts fans. Trees and NICs that are equally
  // good are taken in turns, by this number.
  std::uint32_t number = 0;
  // Of one that is turned: GPUs that get the sum, each once. They are the members, in any order; or a single
  // one of them; or all of them and more, where there is a single member, which sends to all.
  std::span<const std::uint32_t> others = {};
  // Of one that is not turned: part of what its switch's ports carry of such traffic (Combining::efficiency)
  // that this fan's messages get.
  double share = 1;
};

// How a message goes through the switches of a fan.
enum class FanUse : std::uint8_t {
  none,
  multicast,  // from the head to all members; the destination says nothing
  reduction,  // from a member to the head, added to a message of each other member
  turned      // the same, and the sum goes to each of the others, as if it had come from there
};

struct SendRequest {
  std::uint32_t source = 0;       // GPU
  std::uint32_t destination = 0;  // GPU; the source itself: a copy to its host's memory, or from there
  Bytes bytes = 0;                // > 0
  TransferTraits traits;
  std::uint32_t name = 0;  // what the workload calls the communication (for tables)
  // It says that a receiver has room again; it carries no data of the workload, and no table lists it.
  bool credit = false;
  FanUse fan_use = FanUse::none;
  bool tell_left = false;           // the listener is told when the message has left; never through fans
  bool truncated = false;           // the endpoint's: cancel() took the rest, `bytes` is what was carried
  std::uint64_t communication = 0;  // the collective or point-to-point operation it belongs to (for tables)
  std::uint64_t tag = 0;            // the receiver's business
  std::uint64_t number = 0;         // the sender's business
  Time started = 0;                 // the sender's start of the communication (carried to the receiver)
  Time launch = 0;                  // what the sender did with it before send() (carried to the receiver)
  // Where it goes through one. It outlives all its messages. Messages of a reduction, turned or not, meet by
  // fan, job, communication and tag, in each member's order of send(), and are equally large.
  const SwitchFan* fan = nullptr;
  // The endpoint's, in message_delivered() where tell_delays() asked for it, and as long as that call lasts.
  DelayTeller* delays = nullptr;
};

// Names a message that has been handed to an endpoint, as plain data. It may be kept as long as one likes:
// once the message is over it names none, and no other message ever has the same handle.
struct MessageHandle {
  std::uint32_t source = 0;      // GPU
  std::uint32_t slot = 0;        // the endpoint's
  std::uint64_t generation = 0;  // which of the messages that had this slot; 0: no message

  bool operator==(const MessageHandle&) const = default;
};

// Who is told. All calls come from events of the atom of the GPU in question, at loop.now().
//
// A message that was cancelled when some of it had left is told of as any other, at both ends, with
// `truncated` set and `bytes` what was carried; one that was cancelled before is told of nowhere.
class MessageListener {
 public:
  virtual ~MessageListener() = default;
  // The last byte is at the destination: of a multicast at each member, told with that as the destination; of
  // a reduction of all messages together, told once, with the one that came last on the way; of one that is
  // turned the sum is at the destination, one of the others: its own message, or if it sent none the one that
  // was sent to all.
  virtual void message_delivered(const SendRequest& message) = 0;
  // The sender may reuse its buffer: the last acknowledgement came back (scale-out), or the message was
  // delivered (within a host, through switches, ideal), of a multicast to all members.
  virtual void message_sent(const SendRequest& message) = 0;
  // The source's port has taken the message's last packet (the ideal network: the message is delivered). Told
  // of messages with `tell_left`, before message_sent().
  virtual void message_left(const SendRequest& /*message*/) {}
};

// Calls that concern a message come from events of the source's set, or between events.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  virtual void set_listener(MessageListener* listener) = 0;
  // Messages of one queue pair leave one after the other: those of a higher priority first, even between the
  // packets of another, and equal ones in order of send(). TransferTraits::channel says which messages share
  // one, over the fabric and within a host.
  // Those of fans cannot be named: the handle of one is that of no message.
  virtual MessageHandle send(const SendRequest& request) = 0;
  // Whether switches of a fabric add up, so that it is worth asking for fans that are turned.
  virtual bool aggregates() const { return false; }
  // Why it cannot carry messages of the fan, in words; empty: it can.
  virtual std::string objection(const SwitchFan& /*fan*/) const {
    return "this network has no switches that copy and add up";
  }

  // Resets the congestion control of the queue pairs that the GPU has for this job, which must have nothing
  // in flight. Called from events of the GPU's set.
  virtual void begin_anew(std::uint32_t /*source*/, std::uint32_t /*job*/) {}

  // hold, release, set_priority and cancel act on the part of a message that has not left yet. What has left
  // is carried to its end, and sent again where it is lost. Where nothing is left to be sent (all of it has
  // left, the message is over or was cancelled) they do nothing and return false, or 0. The ideal network
  // carries a message as a whole: it has left when it is delivered.

  // The message is passed over until it is released.
  virtual bool hold(const MessageHandle& message) = 0;
  // It takes its place by priority and order of send() again. In the ideal network its delay begins anew.
  virtual bool release(const MessageHandle& message) = 0;
  // Without meaning in the ideal network.
  virtual bool set_priority(const MessageHandle& message, std::uint8_t priority) = 0;
  // What has not left never will, held or not. Returns its bytes; 0 where there are none. If some has left,
  // one more packet without payload, of headers only, closes the message, before all others of its queue
  // pair; if none has, the message vanishes.
  virtual Bytes cancel(const MessageHandle& message) = 0;

  // From now on message_delivered() is told SendRequest::delays. Before the first message.
  virtual void tell_delays() = 0;
  // Returns whether messages between two GPUs may cross different links by their channel. That is so where
  // NICs are equally near to a GPU, or where routing leads flows over different numbers of links.
  virtual bool ways_differ() const { return false; }
  virtual Reach reach(std::uint32_t source, std::uint32_t destination) const = 0;
  // How long a bit takes over the links between two different GPUs whose reach is scale_up or pcie.
  virtual Time delay_inside(std::uint32_t /*source*/, std::uint32_t /*destination*/) const { return 0; }
  // Of the NVLinks that join two different GPUs of a host directly, without a switch or another GPU between;
  // 0: there are none.
  virtual BitRate direct_rate(std::uint32_t /*source*/, std::uint32_t /*destination*/) const { return 0; }
  // A host of its own where the endpoint knows none.
  virtual GpuSite site(std::uint32_t gpu) const { return {gpu, {}, 0, 0, {}}; }
  virtual std::uint32_t gpu_count() const = 0;
};

}  // namespace netsim
