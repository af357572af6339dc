#include "sim/collectives/execution/operation_trace.h"

namespace netsim {
namespace {

// What a thread block that is not done waits for.
Instruction next_instruction(const Operation& operation, std::uint32_t block) {
  return operation.schedule->instruction(operation.request.index, block % operation.thread_blocks_per_channel,
                                         operation.thread_blocks[block].instruction);
}

bool runs(const Operation& operation, std::uint32_t block) {
  return operation.phase == Operation::Phase::running && operation.schedule != nullptr &&
         block < operation.thread_blocks.size() && !operation.thread_blocks[block].done();
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
  trace_(posted);
}

void OperationTrace::delivered(const Operation& operation, const SendRequest& message) const {
  const auto [place, block] = PeerAndThreadBlock::unpack(message.tag);
  TransferRecord delivered = record(operation, TransferRecord::Kind::delivered, block);
  delivered.peer = message.source;
  delivered.message = message.number;
  if (runs(operation, block)) {
    const Instruction next = next_instruction(operation, block);
    delivered.went_on =
        (next.op == Instruction::Op::receive || next.op == Instruction::Op::reduce) && next.peer == place;
  }
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

// A point-to-point sender's operation goes on, to its end, with the last of them.
void OperationTrace::acknowledged(const Operation& operation, const SendRequest& message) const {
  const std::uint32_t block = PeerAndThreadBlock::unpack(message.tag).block;
  TransferRecord acknowledged = record(operation, TransferRecord::Kind::acknowledged, block);
  acknowledged.peer = message.destination;
  acknowledged.message = message.number;
  if (runs(operation, block)) {
    const Instruction next = next_instruction(operation, block);
    acknowledged.went_on =
        next.op == Instruction::Op::send && (*operation.request.members)[next.peer] == message.destination;
  } else {
    acknowledged.went_on = operation.phase == Operation::Phase::running && operation.is_finished();
  }
  trace_(acknowledged);
}

void OperationTrace::followed(const Operation& operation, std::uint32_t block, std::uint32_t other) const {
  TransferRecord followed = record(operation, TransferRecord::Kind::followed, block);
  followed.peer = block - block % operation.thread_blocks_per_channel + other;
  followed.went_on = true;
  trace_(followed);
}

}  // namespace netsim
