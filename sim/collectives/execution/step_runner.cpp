#include "sim/collectives/execution/step_runner.h"

#include <algorithm>

namespace netsim {
namespace {

// Returns this channel's share, in bytes, of a block with its own size (all-to-all-v).
CountedShare counted_share(const Operation& operation, std::uint32_t number, const Step& step) {
  return share_of_counted(*operation.plan, operation.chunking, *operation.request.counts,
                          operation.thread_blocks[number].rank, step, number / operation.blocks_per_channel);
}

// Returns the rounds of a thread block whose messages have individual sizes: as many as the largest one
// needs.
std::uint64_t rounds_of_peer(const Operation& operation, std::uint32_t number) {
  const ThreadBlock& block = operation.thread_blocks[number];
  std::uint64_t rounds = 0;
  for (std::uint32_t index = 0; index < block.steps; ++index) {
    const Step step = operation.plan->step(block.rank, number % operation.blocks_per_channel, index);
    if (!sends(step.kind) && !receives(step.kind)) continue;
    rounds = std::max(rounds, counted_share(operation, number, step).rounds);
  }
  return rounds;
}

}  // namespace

// Loads the current step of a thread block. Returns false for a step without a message, because its block is
// finished.
bool StepRunner::load_step(Operation& operation, std::uint32_t number) const {
  ThreadBlock& block = operation.thread_blocks[number];
  block.step = operation.plan->step(block.rank, number % operation.blocks_per_channel, block.index);
  block.slice = 0;
  block.slices = 1;
  block.local_slots = 0;
  if (!sends(block.step.kind) && !receives(block.step.kind)) return true;
  if (operation.request.counts != nullptr) {
    block.step_bytes = counted_in_round(operation.chunking, counted_share(operation, number, block.step),
                                        operation.request.counts->tokens().token, block.round);
    block.slices = slices_of_counted(operation.chunking, block.step_bytes);
    block.local_slots = outgoing_.local_slots(operation, number);
    return block.slices > 0;
  }
  block.slices = slices_of(*operation.plan, operation.chunking, block.round_bytes, block.step.count);
  if (sends(block.step.kind))
    block.step_bytes = bytes_sent(*operation.plan, block.rank, block.step, block.round_bytes);
  else if (operation.copy_out_rate(0) > 0)
    block.step_bytes =
        bytes_of(*operation.plan, block.rank, block.step.destination, block.step.count, block.round_bytes);
  return true;
}

// Advances to the next step that has something to do.
void StepRunner::open_next_step(Operation& operation, std::uint32_t number) const {
  ThreadBlock& block = operation.thread_blocks[number];
  do {
    if (++block.index < block.steps) continue;
    block.index = 0;
    ++block.round;
    if (block.done()) {
      --operation.open_thread_blocks;
      return;
    }
    block.round_bytes = share(block.channel_bytes, block.rounds, block.round);
  } while (!load_step(operation, number));
}

// Sets a thread block to its first step that has something to do.
void StepRunner::open(Operation& operation, std::uint32_t number) const {
  ThreadBlock& block = operation.thread_blocks[number];
  if (operation.request.counts != nullptr) block.rounds = rounds_of_peer(operation, number);
  block.round = block.steps == 0 ? block.rounds : 0;
  if (block.done()) return;
  ++operation.open_thread_blocks;
  if (!load_step(operation, number)) open_next_step(operation, number);
}

void StepRunner::reset(Operation& operation) const {
  const CommunicationRequest& request = operation.request;
  for (std::uint32_t channel = 0; channel < operation.chunking.channels; ++channel) {
    ThreadBlock block;
    block.rank = rank_at(operation.orders.of(channel), operation.request.index);
    block.channel_bytes = share(request.bytes, operation.chunking.channels, channel);
    block.rounds = rounds_of(*operation.plan, operation.chunking, block.channel_bytes);
    if (block.rounds > 0) block.round_bytes = share(block.channel_bytes, block.rounds, 0);
    for (std::uint32_t number = 0; number < operation.blocks_per_channel; ++number) {
      const bool ours = !operation.plan->in_switch(block.rank, number);
      block.steps = ours ? operation.plan->steps(block.rank, number) : 0;
      operation.thread_blocks.push_back(block);
      open(operation, channel * operation.blocks_per_channel + number);
    }
  }
}

void StepRunner::run(Operation& operation) {
  for (std::uint32_t channel = 0; channel < operation.chunking.channels; ++channel)
    run_channel(operation, channel);
}

void StepRunner::run(Operation& operation, std::uint32_t block, const Delivery& delivery) {
  if (advance(operation, block, &delivery) && operation.blocks_wait)
    run_channel(operation, block / operation.blocks_per_channel);
}

// Executes steps until no thread block of the channel can continue, because they may wait for each other.
void StepRunner::run_channel(Operation& operation, std::uint32_t channel) {
  bool progress = true;
  while (progress) {
    progress = false;
    for (std::uint32_t number = 0; number < operation.blocks_per_channel; ++number) {
      if (advance(operation, channel * operation.blocks_per_channel + number, nullptr)) progress = true;
    }
  }
}

// Executes all steps of one thread block that can be executed. Returns whether any was. `delivery` is
// that of a message or credit for this thread block; it may be null.
bool StepRunner::advance(Operation& operation, std::uint32_t number, const Delivery* delivery) {
  bool progress = false;
  while (can_continue(operation, number)) {
    if (trace_.on() && !progress) trace_.goes_on(operation, number, delivery);
    execute(operation, number);
    progress = true;
  }
  return progress;
}

// Frees a slot of the connection that the step receives from. The returned sum of an in-network all-reduce
// frees one slot of this rank's upstream connection. A rank that broadcasts alone frees a slot when the
// credits of all receivers have arrived.
void StepRunner::free_slot(Operation& operation, std::uint32_t number) {
  const Partner& from = operation.thread_blocks[number].step.from;
  if (from.aggregation == kNoIndex || !operation.is_allreduce(from.aggregation))
    return outgoing_.post_credit(operation, number);
  const SwitchAggregation& down = operation.aggregations[from.aggregation];
  if (down.others.size() < down.members.size()) return outgoing_.post_credit(operation, number);
  operation.filled.take(operation.upstream_connection(from.aggregation, number));
}

// Executes one message of the current step, in and out.
void StepRunner::execute(Operation& operation, std::uint32_t number) {
  ThreadBlock& block = operation.thread_blocks[number];
  const Step& step = block.step;
  if (receives(step.kind)) operation.arrived.take({peer_of(step.from), number});
  const bool last = block.slice + 1 == block.slices;
  if (sends(step.kind)) {
    outgoing_.post(operation, number,
                   slice_bytes(operation.chunking.protocol, block.step_bytes, block.slices, block.slice));
  } else if (receives(step.kind) && operation.kernels) {
    if (last) outgoing_.copy_out(operation, number, block.step_bytes);
  } else if (receives(step.kind)) {
    outgoing_.copy_out(operation, number,
                       slice_bytes(operation.chunking.protocol, block.step_bytes, block.slices, block.slice));
  }
  if (receives(step.kind) && operation.chunking.slots != 0 && (last || !operation.chunking.slots_of_chunks))
    free_slot(operation, number);
  if (++block.slice == block.slices) open_next_step(operation, number);
}

}  // namespace netsim
