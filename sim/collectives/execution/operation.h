// Operation: one GPU's part of a communication, as plain data, and the arena that holds the operations of a
// logical process.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "sim/collectives/execution/chunk_sizes.h"
#include "sim/collectives/execution/communication.h"
#include "sim/collectives/execution/executor_gpu.h"
#include "sim/collectives/execution/message_counts.h"
#include "sim/collectives/library/channel_orders.h"
#include "sim/collectives/library/kernel_model.h"
#include "sim/collectives/library/step_costs.h"
#include "sim/collectives/plan.h"

namespace netsim {

// ThreadBlock: the progress of one thread block of one channel. Thread block t of the plan, on channel c, has
// index c * Operation::blocks_per_channel + t in the operation.
struct ThreadBlock {
  Step step;                // current step, unless done()
  std::uint32_t rank = 0;   // rank of the plan that this GPU has on the channel
  std::uint32_t index = 0;  // index of the current step
  std::uint32_t steps = 0;  // number of steps per round
  std::uint32_t slice = 0;  // messages of the step that are finished
  std::uint32_t slices = 1;
  // Messages of the present size for which the step's receiver has room. It is 0 if the receiver is in
  // another host, or the kernels have no KernelModel::local_buffer.
  std::uint32_t local_slots = 0;
  // The release that last let it continue (transfer_record.h); 0: the start of its operation.
  std::uint32_t release = 0;
  std::uint64_t round = 0;
  std::uint64_t rounds = 1;
  Bytes channel_bytes = 0;
  Bytes round_bytes = 0;
  Bytes step_bytes = 0;  // bytes of data of a step that sends, or that takes time to receive
  Time busy_until = 0;   // time until which it copies (KernelModel::copy_in_rate, Operation::copy_out_rate())
  bool done() const { return round == rounds; }
};

// SerialSends: the messages of a channel that leave one after the other (Plan::serial_sends()).
struct SerialSends {
  struct Waiting {
    std::uint32_t slot = 0;  // index in OutgoingMessages::requests_
    Time ready = 0;          // earliest time at which it may leave
  };
  std::deque<Waiting> waiting;
  GpuId destination;          // GPU to which messages are leaving now
  std::uint32_t leaving = 0;  // number of messages that are leaving
};

struct Operation {
  enum class Phase : std::uint8_t {
    announced,  // messages arrived before the GPU entered; only gpu, number, communication and job are set
    entered,    // the base latency passes
    running,    // steps are executed
    // All steps are executed. An event marks the end of copying, or of an operation without steps, and calls
    // the listener.
    finishing,
    finished,  // the listener was called; sends are not yet acknowledged
    recycled   // the slot is free
  };
  Phase phase = Phase::announced;
  GpuId gpu;
  std::uint64_t number = 0;  // position among the GPU's operations, in the order in which they were opened
  CommunicationRequest request;
  const Plan* plan = nullptr;  // null: a group of one rank, which has no steps
  Chunking chunking;
  ChannelOrders orders;
  std::uint32_t forwarding_gpu = kNoIndex;  // CollectiveConfig::forwarding_gpu
  // By number of the AggregationGroup in the plan: the groups of GPUs, and their numbers at the endpoint.
  std::span<const SwitchAggregation> aggregations;
  std::span<const AggregationId> aggregation_ids;
  // Kernels that do not run by the parameters of their protocol; nullopt: the parameters apply.
  std::optional<KernelModel> kernels;
  StepCosts costs;
  std::uint32_t blocks_per_channel = 1;
  bool blocks_wait = false;              // whether thread blocks of a channel may wait for each other
  std::uint32_t open_thread_blocks = 0;  // number of thread blocks that are not done
  std::uint64_t in_flight = 0;           // messages and credits posted and not yet reported as sent
  std::uint32_t releases = 0;            // number of releases so far, where they are traced
  Time started = 0;
  Time sender_started = 0;  // start time, at its sender, of the last message that arrived
  Time busy_until = 0;      // latest `busy_until` of its thread blocks
  Time stored_until = 0;    // time until which its thread blocks store messages (KernelModel::store_rate)
  std::vector<ThreadBlock> thread_blocks;
  std::vector<SerialSends> serial;  // by channel; empty: messages to several ranks share the wire
  // Message counts by the other end (its rank in the plan, or its AggregationGroup) and this rank's thread
  // block.
  MessageCounts arrived;  // delivered, and not yet taken by a step
  MessageCounts filled;   // sent, and the receiver has not yet freed the slot

  // Returns the GPU that has this rank of the plan for thread block `block`.
  GpuId gpu_of(std::uint32_t rank, std::uint32_t block) const {
    return (*request.members)[place_of(orders.of(block / blocks_per_channel), rank)];
  }
  // Returns whether the sum of what is sent to this AggregationGroup goes to its members without passing a
  // GPU (in-network all-reduce).
  bool is_allreduce(std::uint32_t aggregation) const { return aggregations[aggregation].allreduce; }
  // Returns the connection on which the same channel of this GPU sent its addend up. The sum returns through
  // AggregationGroup `down` to thread block `block` (in-network all-reduce).
  PeerAndThreadBlock upstream_connection(std::uint32_t down, std::uint32_t block) const {
    const std::uint32_t up = aggregations[down].number;
    return {peer_of(Partner::of_aggregation(up)),
            block - block % blocks_per_channel + plan->aggregation(up).block};
  }
  // Returns whether the acknowledgement of a message or credit of this rank frees its slot. That holds for
  // data whose sum goes to other GPUs only (in-network all-reduce).
  bool is_freed_when_sent(const Message& message) const;
  // Returns the rate at which a thread block copies data out of its slots in a round; 0: copies take no time.
  BitRate copy_out_rate(std::uint64_t round) const {
    if (kernels) return kernels->copy_out_rate;
    return round == 0 ? chunking.first_copy_rate : chunking.copy_rate;
  }
  // Returns whether the thread block is the head of an AggregationGroup, and not a member.
  bool is_head(std::uint32_t aggregation, std::uint32_t block) const {
    return plan->aggregation(aggregation).is_head(thread_blocks[block].rank, block % blocks_per_channel);
  }
  // Returns whether the operation ends only when its data is acknowledged. That holds for a point-to-point
  // sender; all others only hand their last messages over.
  bool waits_for_acknowledgements() const { return !is_collective(request.kind) && request.index == 0; }
  bool is_finished() const {
    return open_thread_blocks == 0 && (!waits_for_acknowledgements() || in_flight == 0);
  }
};

// Returns whether the thread block of a running operation can execute the next message of its step. The step
// that it waits for must be finished, its message must have arrived, and a slot must be free.
bool can_continue(const Operation& operation, std::uint32_t block);

// OperationArena: the operations of the GPUs of one logical process. A slot keeps its operation until it is
// recycled. References are valid until the next operation is opened.
class OperationArena {
 public:
  // `gpus` holds the GPUs of all logical processes.
  explicit OperationArena(std::vector<ExecutorGpu>& gpus) : gpus_(gpus) {}
  // Returns the slot of an operation; kNoIndex if there is none.
  std::uint32_t find(GpuId gpu, JobId job, std::uint64_t communication) const {
    return gpus_[gpu].operations.find(job, communication);
  }
  // Returns the slot of an operation. If there is none, it is opened in phase `announced`.
  std::uint32_t find_or_open(GpuId gpu, JobId job, std::uint64_t communication) {
    const std::uint32_t known = find(gpu, job, communication);
    return known != kNoIndex ? known : open(gpu, job, communication);
  }
  void recycle(std::uint32_t slot);

  Operation& operator[](std::uint32_t slot) { return operations_[slot]; }
  // Returns all slots, recycled ones too.
  const std::vector<Operation>& all() const { return operations_; }

 private:
  std::uint32_t open(GpuId gpu, JobId job, std::uint64_t communication);
  std::uint32_t free_slot();
  std::vector<ExecutorGpu>& gpus_;
  std::vector<Operation> operations_;
  std::vector<std::uint32_t> free_;
};

}  // namespace netsim
