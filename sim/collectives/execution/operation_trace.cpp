#include "sim/collectives/execution/operation_trace.h"

namespace netsim {

void OperationTrace::goes_on(Operation& operation, std::uint32_t number, const Delivery* delivery) const {
  ThreadBlock& block = operation.thread_blocks[number];
  if (delivery != nullptr) {
    block.release = ++operation.releases;
    delivered(operation, *delivery);
  } else if (block.step.after_block != kNoIndex) {
    const std::uint32_t first = number - number % operation.blocks_per_channel;
    block.release = operation.thread_blocks[first + block.step.after_block].release;
  }
}

// The library's latency is the same for all members. A credit's slot is free at once.
TransferRecord OperationTrace::record(const Operation& operation, const Message& message) const {
  TransferRecord record;
  record.job = message.traits.job;
  record.communication = message.communication;
  record.sent_by = message.note.release;
  record.time = loop_.now();
  if (record.sent_by == 0) record.launch = operation.costs.base;
  record.launch += message.note.launch;
  return record;
}

void OperationTrace::delivered(const Operation& operation, const Delivery& delivery) const {
  const Message& message = delivery.message;
  TransferRecord delivered = record(operation, message);
  delivered.gpu = message.destination;
  const bool passed_on = operation.forwarding_gpu != kNoIndex;
  delivered.peer = message.source;
  if (passed_on) delivered.peer = (*operation.request.members)[1 - operation.request.index];
  if (delivery.delays == nullptr) return trace_(delivered, {});
  const MessageDelays delays = delivery.delays->tell();
  delivered.propagation = delays.propagation;
  trace_(delivered, delays.ports);
}

void OperationTrace::copied(Operation& operation, const Delivery& delivery) const {
  ++operation.releases;
  delivered(operation, delivery);
}

void OperationTrace::acknowledged(Operation& operation, const Message& message) const {
  ++operation.releases;
  TransferRecord acknowledged = record(operation, message);
  acknowledged.kind = TransferRecord::Kind::acknowledged;
  acknowledged.gpu = message.source;
  acknowledged.peer = message.destination;
  trace_(acknowledged, {});
}

}  // namespace netsim
