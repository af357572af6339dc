#include "sim/collectives/execution/step_runner.h"

namespace netsim {
namespace {

void load_step(Operation& operation, std::uint32_t number) {
  ThreadBlock& block = operation.thread_blocks[number];
  block.step = operation.plan->step(block.rank, number % operation.blocks_per_channel, block.index);
  block.slice = 0;
  const bool moves = sends(block.step.kind) || receives(block.step.kind);
  block.slices =
      moves ? slices_of(*operation.plan, operation.chunking, block.round_bytes, block.step.count) : 1;
}

void open_next_step(Operation& operation, std::uint32_t number) {
  ThreadBlock& block = operation.thread_blocks[number];
  if (++block.index == block.steps) {
    block.index = 0;
    ++block.round;
    if (block.done()) {
      --operation.open_thread_blocks;
      return;
    }
    block.round_bytes = share(block.channel_bytes, block.rounds, block.round);
  }
  load_step(operation, number);
}

}  // namespace

void StepRunner::reset(Operation& operation) {
  const CommunicationRequest& request = operation.request;
  for (std::uint32_t channel = 0; channel < operation.chunking.channels; ++channel) {
    ThreadBlock block;
    block.rank = rank_at(operation.orders.of(channel), operation.request.index);
    block.channel_bytes = share(request.bytes, operation.chunking.channels, channel);
    block.rounds = rounds_of(*operation.plan, operation.chunking, block.channel_bytes);
    if (block.rounds > 0) block.round_bytes = share(block.channel_bytes, block.rounds, 0);
    for (std::uint32_t number = 0; number < operation.blocks_per_channel; ++number) {
      block.steps = operation.plan->steps(block.rank, number);
      block.round = block.steps == 0 ? block.rounds : 0;
      operation.thread_blocks.push_back(block);
      if (block.done()) continue;
      ++operation.open_thread_blocks;
      load_step(operation, channel * operation.blocks_per_channel + number);
    }
  }
}

void StepRunner::run(Operation& operation) {
  for (std::uint32_t channel = 0; channel < operation.chunking.channels; ++channel)
    run_channel(operation, channel);
}

void StepRunner::run(Operation& operation, std::uint32_t block, const SendRequest& message) {
  if (advance(operation, block, &message) && operation.blocks_per_channel > 1)
    run_channel(operation, block / operation.blocks_per_channel);
}

// Until no thread block of the channel can go on: they may wait for each other.
void StepRunner::run_channel(Operation& operation, std::uint32_t channel) {
  bool progress = true;
  while (progress) {
    progress = false;
    for (std::uint32_t number = 0; number < operation.blocks_per_channel; ++number) {
      if (advance(operation, channel * operation.blocks_per_channel + number, nullptr)) progress = true;
    }
  }
}

// Executes what can be executed of one thread block; true if anything was. `message`: what came, a
// message or a free slot; null: nothing for this thread block.
bool StepRunner::advance(Operation& operation, std::uint32_t number, const SendRequest* message) {
  bool progress = false;
  while (can_go_on(operation, number)) {
    if (trace_.on() && !progress) trace_.goes_on(operation, number, message);
    execute(operation, number);
    progress = true;
  }
  return progress;
}

// One message of the step that the thread block is at, in and out.
void StepRunner::execute(Operation& operation, std::uint32_t number) {
  ThreadBlock& block = operation.thread_blocks[number];
  const Step& step = block.step;
  if (receives(step.kind)) operation.arrived.take({step.from.rank, number});
  if (sends(step.kind)) {
    const Bytes bytes = bytes_sent(*operation.plan, block.rank, step, block.round_bytes);
    outgoing_.post(operation, number,
                   slice_bytes(operation.chunking.protocol, bytes, block.slices, block.slice));
  }
  if (receives(step.kind) && operation.chunking.slots != 0) outgoing_.post_credit(operation, number);
  if (++block.slice == block.slices) open_next_step(operation, number);
}

}  // namespace netsim
