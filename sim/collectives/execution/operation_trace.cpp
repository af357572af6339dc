#include "sim/collectives/execution/operation_trace.h"

namespace netsim {
namespace {

// Whether what has just been counted lets the thread block go on.
bool goes_on(const Operation& operation, std::uint32_t block) {
  return operation.phase == Operation::Phase::running && operation.plan != nullptr &&
         block < operation.thread_blocks.size() && can_go_on(operation, block);
}

}  // namespace

TransferRecord OperationTrace::record(const Operation& operation, TransferRecord::Kind kind,
                                      std::uint32_t block) const {
  TransferRecord record;
  record.kind = kind;
  record.job = operation.request.traits.job;
  record.communication = operation.request.communication;
  record.gpu = operation.gpu;
  record.block = block;
  record.time = loop_.now();
  return record;
}

void OperationTrace::posted(const Operation& operation, std::uint32_t block, std::uint32_t destination,
                            std::uint64_t number, Time launch) const {
  TransferRecord posted = record(operation, TransferRecord::Kind::posted, block);
  posted.peer = destination;
  posted.message = number;
  posted.launch = launch;
  posted.awaits_acknowledgement = operation.waits_for_acknowledgements();
  trace_(posted);
}

// Of the thread block that the message is for.
TransferRecord OperationTrace::record(const SendRequest& message, TransferRecord::Kind kind) const {
  TransferRecord record;
  record.kind = kind;
  record.job = message.traits.job;
  record.communication = message.communication;
  record.block = PeerAndThreadBlock::unpack(message.tag).block;
  record.message = message.number;
  record.time = loop_.now();
  return record;
}

void OperationTrace::delivered(const Operation* operation, const SendRequest& message) const {
  TransferRecord delivered = record(message, TransferRecord::Kind::delivered);
  delivered.gpu = message.destination;
  delivered.peer = message.source;
  delivered.went_on = operation != nullptr && goes_on(*operation, delivered.block);
  if (delivered.went_on && message.delays != nullptr) {
    const MessageDelays delays = message.delays->tell();
    delivered.propagation = delays.propagation;
    if (!delays.ports.empty()) {
      delivered.delay = delays.ports.front();
      tell_waits(delivered, delays.ports.subspan(1));
    }
  }
  trace_(delivered);
}

void OperationTrace::tell_waits(const TransferRecord& delivered, std::span<const PortDelay> ports) const {
  TransferRecord waited = delivered;
  waited.kind = TransferRecord::Kind::waited;
  for (const PortDelay& delay : ports) {
    waited.delay = delay;
    trace_(waited);
  }
}

// The operation goes on, to its end, with the last of them.
void OperationTrace::acknowledged(const Operation& operation, const SendRequest& message) const {
  TransferRecord acknowledged = record(message, TransferRecord::Kind::acknowledged);
  acknowledged.gpu = message.source;
  acknowledged.peer = message.destination;
  acknowledged.went_on = operation.phase == Operation::Phase::running && operation.is_finished();
  trace_(acknowledged);
}

void OperationTrace::followed(const Operation& operation, std::uint32_t block, std::uint32_t other) const {
  TransferRecord followed = record(operation, TransferRecord::Kind::followed, block);
  followed.peer = block - block % operation.blocks_per_channel + other;
  followed.went_on = true;
  trace_(followed);
}

}  // namespace netsim
