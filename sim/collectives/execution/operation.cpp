#include "sim/collectives/execution/operation.h"

#include <algorithm>

namespace netsim {
namespace {

// Returns whether the thread block that the step of thread block `number` waits for has finished that step.
bool has_passed(const Operation& operation, std::uint32_t number) {
  const ThreadBlock& block = operation.thread_blocks[number];
  const ThreadBlock& other =
      operation.thread_blocks[number - number % operation.blocks_per_channel + block.step.after_block];
  return other.done() || other.round > block.round ||
         (other.round == block.round && other.index > block.step.after_step);
}

// Returns the number of slots of the connection that the step sends on.
std::uint32_t slots_of(const Operation& operation, std::uint32_t number) {
  const ThreadBlock& block = operation.thread_blocks[number];
  if (block.local_slots != 0) return block.local_slots;
  const Partner& to = block.step.to;
  if (to.aggregation == kNoIndex || operation.is_head(to.aggregation, number))
    return operation.chunking.slots;
  if (operation.is_allreduce(to.aggregation)) return operation.chunking.slots + kReductionSlots;
  return kReductionSlots;
}

}  // namespace

bool Operation::is_freed_when_sent(const Message& message) const {
  if (message.aggregation_use != AggregationUse::allreduce || message.credit) return false;
  const std::uint32_t down = aggregation_of(PeerAndThreadBlock::unpack(message.tag).peer);
  const SwitchAggregation& up = aggregations[aggregations[down].number];
  return up.others.size() < up.members.size() &&
         std::find(up.others.begin(), up.others.end(), gpu) == up.others.end();
}

bool can_continue(const Operation& operation, std::uint32_t number) {
  const ThreadBlock& block = operation.thread_blocks[number];
  if (block.done()) return false;
  const Step& step = block.step;
  if (step.after_block != kNoIndex && !has_passed(operation, number)) return false;
  if (receives(step.kind) && operation.arrived.get({peer_of(step.from), number}) == 0) return false;
  const Chunking& chunking = operation.chunking;
  return !sends(step.kind) || chunking.slots == 0 || (chunking.slots_of_chunks && block.slice > 0) ||
         operation.filled.get({peer_of(step.to), number}) < slots_of(operation, number);
}

std::uint32_t OperationArena::open(GpuId gpu, JobId job, std::uint64_t communication) {
  const std::uint32_t slot = free_slot();
  Operation& operation = operations_[slot];
  operation.phase = Operation::Phase::announced;
  operation.gpu = gpu;
  operation.request.communication = communication;
  operation.request.part = kNoIndex;
  operation.request.traits.job = job;
  operation.number = gpus_[gpu].opened++;
  gpus_[gpu].operations.insert(job, communication, slot);
  return slot;
}

std::uint32_t OperationArena::free_slot() {
  if (free_.empty()) {
    operations_.emplace_back();
    return static_cast<std::uint32_t>(operations_.size() - 1);
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void OperationArena::recycle(std::uint32_t slot) {
  Operation& operation = operations_[slot];
  gpus_[operation.gpu].operations.erase(operation.request.traits.job, operation.request.communication);
  operation.phase = Operation::Phase::recycled;
  free_.push_back(slot);
}

}  // namespace netsim
