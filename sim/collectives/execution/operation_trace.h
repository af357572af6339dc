// OperationTrace: tells a TransferTrace of the releases of operations, if anybody listens.
#pragma once

#include <cstdint>

#include "sim/collectives/execution/operation.h"
#include "sim/collectives/execution/transfer_record.h"
#include "sim/core/event_loop.h"
#include "sim/transport/endpoint.h"

namespace netsim {

class OperationTrace {
 public:
  // All outlive this; the trace may be set later.
  OperationTrace(const TransferTrace& trace, const EventLoop& loop) : trace_(trace), loop_(loop) {}
  bool on() const { return static_cast<bool>(trace_); }

  // Only where on(). Before what they cause is done.
  // The thread block goes on: because of `message`, a message or credit that is being delivered, or (null)
  // because its operation begins or the thread block that its step comes after went on.
  void goes_on(Operation& operation, std::uint32_t block, const SendRequest* message) const;
  // A copy between the GPU and its host's memory, which `message` ends.
  void copied(Operation& operation, const SendRequest& message) const;
  // The operation ends, because its last message is acknowledged.
  void acknowledged(Operation& operation, const SendRequest& message) const;

 private:
  TransferRecord record(const Operation& operation, const SendRequest& message) const;
  void delivered(const Operation& operation, const SendRequest& message) const;

  const TransferTrace& trace_;
  const EventLoop& loop_;
};

}  // namespace netsim
