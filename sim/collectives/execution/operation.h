// Operation: what one GPU does of one communication, as plain data, and the arena where the operations of a
// set live.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/execution/chunking.h"
#include "sim/collectives/execution/communication.h"
#include "sim/collectives/execution/executor_gpu.h"
#include "sim/collectives/execution/message_counts.h"
#include "sim/collectives/schedule.h"

namespace netsim {

// How far one thread block of one channel is. The thread block of the schedule numbered t, of channel c, is
// number c * Operation::thread_blocks_per_channel + t of the operation.
struct ThreadBlock {
  std::uint32_t instruction = 0;   // the next one
  std::uint32_t instructions = 0;  // per round
  std::uint64_t round = 0;
  std::uint64_t rounds = 1;
  Bytes channel_bytes = 0;
  Bytes round_bytes = 0;
  bool done() const { return round == rounds; }
};

struct Operation {
  enum class Phase : std::uint8_t {
    announced,  // messages came before the GPU entered the communication: gpu, number, communication, job
    entered,    // its base latency passes
    running,    // its instructions are executed
    finishing,  // all executed at once; the listener is still to be told, by an event
    finished,   // the listener knows; sends are still to be acknowledged
    recycled    // the slot is free
  };
  Phase phase = Phase::announced;
  std::uint32_t gpu = 0;
  std::uint64_t number = 0;  // of the GPU's operations, in the order in which they were opened
  CommunicationRequest request;
  const Schedule* schedule = nullptr;  // null: a group of one rank, nothing to do
  Chunking chunking;
  CostFamily family = CostFamily::ring;
  std::uint32_t thread_blocks_per_channel = 1;
  std::uint32_t open_thread_blocks = 0;  // thread blocks that are not done
  Time started = 0;
  Time sender_started = 0;  // of the last message that arrived, at its sender
  std::vector<ThreadBlock> thread_blocks;
  MessageCounts arrived;    // by sender's place and block: delivered, and no instruction has taken it yet
  MessageCounts in_flight;  // by destination GPU and block: sent, and not yet reported as such

  // A point-to-point sender is busy until its data is acknowledged; a collective only hands its last sends
  // over.
  bool is_finished() const {
    return open_thread_blocks == 0 && (is_collective(request.kind) || in_flight.total() == 0);
  }
};

// The operations of the GPUs of one set. Slots stay what they are until they are recycled; references last
// until the next open().
class OperationArena {
 public:
  // `gpus`: by GPU, of all sets.
  explicit OperationArena(std::vector<ExecutorGpu>& gpus) : gpus_(gpus) {}
  // The slot; kNoIndex if there is no such operation.
  std::uint32_t find(std::uint32_t gpu, std::uint32_t job, std::uint64_t communication) const {
    return gpus_[gpu].operations.find(job, communication);
  }
  // The same, of an operation that is announced now if there is none.
  std::uint32_t find_or_open(std::uint32_t gpu, std::uint32_t job, std::uint64_t communication) {
    const std::uint32_t known = find(gpu, job, communication);
    return known != kNoIndex ? known : open(gpu, job, communication);
  }
  void recycle(std::uint32_t slot);

  Operation& operator[](std::uint32_t slot) { return operations_[slot]; }
  // All slots, recycled ones too.
  const std::vector<Operation>& all() const { return operations_; }

 private:
  std::uint32_t open(std::uint32_t gpu, std::uint32_t job, std::uint64_t communication);
  std::uint32_t free_slot();
  std::vector<ExecutorGpu>& gpus_;
  std::vector<Operation> operations_;
  std::vector<std::uint32_t> free_;
};

}  // namespace netsim
