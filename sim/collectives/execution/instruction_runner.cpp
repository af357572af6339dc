#include "sim/collectives/execution/instruction_runner.h"

namespace netsim {
namespace {

void open_next_round(Operation& operation, ThreadBlock& block) {
  block.instruction = 0;
  ++block.round;
  if (block.done()) {
    --operation.open_thread_blocks;
  } else {
    block.round_bytes = share(block.channel_bytes, block.rounds, block.round);
  }
}

// Whether the thread block that `wait` names has done what block `number` waits for.
bool has_passed(const Operation& operation, std::uint32_t number, const Instruction& wait) {
  const ThreadBlock& block = operation.thread_blocks[number];
  const ThreadBlock& other =
      operation.thread_blocks[number - number % operation.thread_blocks_per_channel + wait.peer];
  return other.round > block.round || (other.round == block.round && other.instruction >= wait.chunk);
}

Bytes chunk_bytes(const Operation& operation, const ThreadBlock& block, std::uint32_t chunk) {
  const std::uint32_t divisions = operation.schedule->divisions();
  return divisions == 1 ? block.round_bytes : share(block.round_bytes, divisions, chunk % divisions);
}

}  // namespace

void InstructionRunner::reset(Operation& operation) {
  const CommunicationRequest& request = operation.request;
  for (std::uint32_t channel = 0; channel < operation.chunking.channels; ++channel) {
    ThreadBlock block;
    block.channel_bytes = share(request.bytes, operation.chunking.channels, channel);
    block.rounds = rounds_of(*operation.schedule, operation.chunking, block.channel_bytes);
    for (std::uint32_t number = 0; number < operation.thread_blocks_per_channel; ++number) {
      block.instructions = operation.schedule->instructions(request.index, number);
      block.round = block.instructions == 0 ? block.rounds : 0;
      block.round_bytes = share(block.channel_bytes, block.rounds, 0);
      operation.thread_blocks.push_back(block);
      if (!block.done()) ++operation.open_thread_blocks;
    }
  }
}

void InstructionRunner::run(Operation& operation) {
  for (std::uint32_t channel = 0; channel < operation.chunking.channels; ++channel)
    run_channel(operation, channel);
}

void InstructionRunner::run(Operation& operation, std::uint32_t block) {
  if (operation.thread_blocks_per_channel == 1) {
    advance(operation, block);
  } else if (advance(operation, block)) {
    run_channel(operation, block / operation.thread_blocks_per_channel);
  }
}

// Until no thread block of the channel can go on: they may wait for each other.
void InstructionRunner::run_channel(Operation& operation, std::uint32_t channel) {
  bool progress = true;
  while (progress) {
    progress = false;
    for (std::uint32_t number = 0; number < operation.thread_blocks_per_channel; ++number) {
      if (advance(operation, channel * operation.thread_blocks_per_channel + number)) progress = true;
    }
  }
}

// Executes what can be executed of one thread block; true if anything was.
bool InstructionRunner::advance(Operation& operation, std::uint32_t number) {
  ThreadBlock& block = operation.thread_blocks[number];
  bool progress = false;
  while (!block.done() && execute(operation, number, progress)) {
    progress = true;
    if (++block.instruction == block.instructions) open_next_round(operation, block);
  }
  return progress;
}

// False if the thread block's next instruction has to wait. `going`: it has not just waited.
bool InstructionRunner::execute(Operation& operation, std::uint32_t number, bool going) {
  using Op = Instruction::Op;
  const ThreadBlock& block = operation.thread_blocks[number];
  const Instruction instruction = operation.schedule->instruction(
      operation.request.index, number % operation.thread_blocks_per_channel, block.instruction);
  if (instruction.op == Op::wait) {
    if (!has_passed(operation, number, instruction)) return false;
    if (trace_.on() && !going) trace_.followed(operation, number, instruction.peer);
    return true;
  }
  const Bytes bytes = chunk_bytes(operation, block, instruction.chunk);
  if (bytes == 0) return true;
  if (instruction.op != Op::send) return operation.arrived.take({instruction.peer, number});
  return send(operation, number, instruction.peer, bytes);
}

bool InstructionRunner::send(Operation& operation, std::uint32_t block, std::uint32_t peer, Bytes bytes) {
  const std::uint32_t destination = (*operation.request.members)[peer];
  const std::uint32_t window = operation.chunking.send_window;
  if (window != 0 && operation.in_flight.get({destination, block}) >= window) return false;
  outgoing_.post(operation, block, destination, bytes);
  return true;
}

}  // namespace netsim
