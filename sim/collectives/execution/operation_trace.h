// OperationTrace: tells a TransferTrace of the messages of operations, if anybody listens.
#pragma once

#include <cstdint>

#include "sim/collectives/execution/operation.h"
#include "sim/collectives/execution/transfer_record.h"
#include "sim/core/event_loop.h"

namespace netsim {

class OperationTrace {
 public:
  // Both outlive this; the trace may be set later.
  OperationTrace(const TransferTrace& trace, const EventLoop& loop) : trace_(trace), loop_(loop) {}
  bool on() const { return static_cast<bool>(trace_); }

  // Only where on(). Before what they cause is done.
  void posted(const Operation& operation, std::uint32_t block, std::uint32_t destination, Time launch) const;
  // From `place` in the group, which is GPU `source`. It is counted as arrived.
  void delivered(const Operation& operation, std::uint32_t place, std::uint32_t block,
                 std::uint32_t source) const;
  // It is not counted as in flight any more.
  void acknowledged(const Operation& operation, std::uint32_t block, std::uint32_t destination) const;
  // `block` goes on because the thread block `other` of its channel did.
  void followed(const Operation& operation, std::uint32_t block, std::uint32_t other) const;

 private:
  TransferRecord record(const Operation& operation, TransferRecord::Kind kind, std::uint32_t block) const;

  const TransferTrace& trace_;
  const EventLoop& loop_;
};

}  // namespace netsim
