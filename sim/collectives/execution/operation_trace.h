// OperationTrace: reports the releases of operations to a TransferTrace, if one is set.
#pragma once

#include <cstdint>

#include "sim/collectives/execution/operation.h"
#include "sim/collectives/execution/transfer_record.h"
#include "sim/core/event_loop.h"
#include "sim/transport/endpoint.h"

namespace netsim {

class OperationTrace {
 public:
  // Both must outlive this; the trace may be set later.
  OperationTrace(const TransferTrace& trace, const EventLoop& loop) : trace_(trace), loop_(loop) {}
  bool on() const { return static_cast<bool>(trace_); }

  // The functions below may be called only where on(), and before the effects of the release. goes_on(): the
  // thread block continues because of the delivery of a message or credit. Null: its operation begins, or
  // the thread block that its step waits for continued.
  void goes_on(Operation& operation, std::uint32_t block, const Delivery* delivery) const;
  // A copy between the GPU and its host's memory has ended.
  void copied(Operation& operation, const Delivery& delivery) const;
  // The operation ends, because its last message is acknowledged.
  void acknowledged(Operation& operation, const Message& message) const;

 private:
  TransferRecord record(const Operation& operation, const Message& message) const;
  void delivered(const Operation& operation, const Delivery& delivery) const;

  const TransferTrace& trace_;
  const EventLoop& loop_;
};

}  // namespace netsim
