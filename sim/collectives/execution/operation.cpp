#include "sim/collectives/execution/operation.h"

namespace netsim {

std::uint32_t OperationArena::open(std::uint32_t gpu, std::uint32_t job, std::uint64_t communication) {
  const std::uint32_t slot = free_slot();
  Operation& operation = operations_[slot];
  operation.phase = Operation::Phase::announced;
  operation.gpu = gpu;
  operation.request.communication = communication;
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
