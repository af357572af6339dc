// Messages between GPUs: what a sender asks an endpoint to carry, and what the endpoint tells about it.
//
// A Message and its ReceiverNote travel from the sender's logical process to the receiver's. They are plain
// data without pointers. Everything else here stays at one of the two ends.
#pragma once

#include <cstdint>
#include <type_traits>

#include "sim/core/ids.h"
#include "sim/core/index.h"
#include "sim/core/units.h"
#include "sim/transport/message_delays.h"
#include "sim/transport/transfer_traits.h"

namespace netsim {

// The number of an aggregation group that an endpoint knows (Endpoint::add_aggregation()). The numbers have
// no order: with several threads they depend on timing.
using AggregationId = Id<struct AggregationOfEndpoint>;

// The way a message uses the switches of an aggregation group.
enum class AggregationUse : std::uint8_t {
  none,
  multicast,  // from the head to all members; the destination is ignored
  reduction,  // from a member to the head, summed with a message of each other member
  allreduce   // all-reduce: summed as in a reduction, then multicast to the `others`
};

// ReceiverNote: the sender tells the receiver these facts about a message. The endpoint carries them and does
// not read them.
struct ReceiverNote {
  Time started = 0;           // start of the communication at the sender
  Time launch = 0;            // time that the sender spent on the message before send()
  std::uint32_t release = 0;  // release at the sender that led to the message (TransferRecord::sent_by)
};

// Message: a transfer from one GPU to another, or through an aggregation group, as its sender asks for it.
struct Message {
  GpuId source;
  GpuId destination;  // the source itself: a copy to or from its host's memory
  Bytes bytes = 0;    // > 0
  TransferTraits traits;
  // Id of the operation that it belongs to: a collective, a point-to-point transfer, or a part of one.
  std::uint64_t communication = 0;
  // Tells the messages of a communication apart. The receiver's side decides on its meaning.
  std::uint64_t tag = 0;
  std::uint32_t name = 0;  // name of the communication in the workload, for tables
  // The aggregation group that the message goes through, if any. Messages of a reduction or all-reduce are
  // matched by aggregation group, job, communication and tag, in each member's order of send(). They have
  // equal sizes.
  AggregationId aggregation;
  AggregationUse aggregation_use = AggregationUse::none;
  // A credit: it tells that a receiver has a free slot. It carries no data of the workload and is in no
  // table.
  bool credit = false;
  // It carries a part of a message that is split over several ways (SplitEndpoint), and the tag tells which.
  bool share = false;
  // For tables, where the operation is a part of the communication `whole`: the number of the part, from 0.
  // kNoIndex: the operation is a communication of its own.
  std::uint32_t part = kNoIndex;
  std::uint64_t whole = 0;
  ReceiverNote note;

  // Returns the id of the communication as a whole.
  std::uint64_t whole_communication() const { return part == kNoIndex ? communication : whole; }
};
static_assert(std::is_trivially_copyable_v<Message>);

// SenderNote: the sender keeps these facts about a message for itself. They stay at the source; the listener
// gets them back when the message has left or was sent.
struct SenderNote {
  std::uint32_t channel = 0;  // channel whose next message may leave after this one (Plan::serial_sends())
};

// SendRequest: a message and everything that only the source needs to know about it.
struct SendRequest {
  Message message;
  bool tell_left = false;  // the listener's message_left() is called; never with aggregation groups
  SenderNote note = {};
};

// Delivery: the endpoint tells the receiver that a message has arrived. It is valid during the call.
struct Delivery {
  const Message& message;
  Bytes bytes;                    // bytes carried: those of the message, or fewer after cancel()
  DelayTeller* delays = nullptr;  // tells the message's delays; null unless tell_delays() was called
  bool is_truncated() const { return bytes < message.bytes; }
};

// SendCompletion: the endpoint tells the sender that it may reuse its buffer. It is valid during the call.
struct SendCompletion {
  const SendRequest& request;
  Bytes bytes;  // bytes carried, as in Delivery
  // With AggregationUse::allreduce, after tell_delays(): tells the delays until the sum, or the packet that
  // confirms it, was back. Null otherwise.
  DelayTeller* delays = nullptr;
  bool is_truncated() const { return bytes < request.message.bytes; }
};

// Identifies a message that was handed to an endpoint, as plain data. It may be kept without limit: after the
// message is over it identifies none, and no other message ever has the same handle.
struct MessageHandle {
  GpuId source;
  std::uint32_t slot = 0;        // slot in the endpoint
  std::uint64_t generation = 0;  // tells apart the messages that had this slot; 0: no message

  bool is_none() const { return generation == 0; }
  bool operator==(const MessageHandle&) const = default;
};

}  // namespace netsim
