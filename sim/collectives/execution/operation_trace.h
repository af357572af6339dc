// OperationTrace: tells a TransferTrace of the messages of operations, if anybody listens.
#pragma once

#include <cstdint>
#include <span>

#include "sim/collectives/execution/operation.h"
#include "sim/collectives/execution/transfer_record.h"
#include "sim/core/event_loop.h"
#include "sim/transport/endpoint.h"

namespace netsim {

class OperationTrace {
 public:
  // Both outlive this; the trace may be set later.
  OperationTrace(const TransferTrace& trace, const EventLoop& loop) : trace_(trace), loop_(loop) {}
  bool on() const { return static_cast<bool>(trace_); }

  // Only where on(). Before what they cause is done. `number`: as TransferRecord::message.
  void posted(const Operation& operation, std::uint32_t block, std::uint32_t destination,
              std::uint64_t number, Time launch) const;
  // A message, counted as arrived, or a credit, whose slot is counted as free. `operation`: the receiver's;
  // null if it is over.
  void delivered(const Operation* operation, const SendRequest& message) const;
  // It is not counted as in flight any more; only of senders that wait for that.
  void acknowledged(const Operation& operation, const SendRequest& message) const;
  // `block` goes on because the thread block `other` of its channel did.
  void followed(const Operation& operation, std::uint32_t block, std::uint32_t other) const;

 private:
  TransferRecord record(const Operation& operation, TransferRecord::Kind kind, std::uint32_t block) const;
  TransferRecord record(const SendRequest& message, TransferRecord::Kind kind) const;
  void tell_waits(const TransferRecord& delivered, std::span<const PortDelay> ports) const;

  const TransferTrace& trace_;
  const EventLoop& loop_;
};

}  // namespace netsim
