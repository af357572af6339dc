// Operation: what one GPU does of one communication, as plain data, and the arena where the operations of a
// set live.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/execution/chunking.h"
#include "sim/collectives/execution/communication.h"
#include "sim/collectives/execution/communicator_layout.h"
#include "sim/collectives/execution/executor_gpu.h"
#include "sim/collectives/execution/message_counts.h"
#include "sim/collectives/plan.h"

namespace netsim {

// How far one thread block of one channel is. The thread block of the plan numbered t, of channel c, is
// number c * Operation::blocks_per_channel + t of the operation.
struct ThreadBlock {
  Step step;                // the one that it is at, unless done()
  std::uint32_t rank = 0;   // of the plan that this GPU is on the channel
  std::uint32_t index = 0;  // of that step
  std::uint32_t steps = 0;  // per round
  std::uint32_t slice = 0;  // messages of the step that are through
  std::uint32_t slices = 1;
  std::uint32_t release = 0;  // by which it last went on (transfer_record.h); 0: as its operation began
  std::uint64_t round = 0;
  std::uint64_t rounds = 1;
  Bytes channel_bytes = 0;
  Bytes round_bytes = 0;
  Bytes step_bytes = 0;  // of data, of a step that sends or takes time to receive
  Time busy_until = 0;   // with what it copies (KernelModel::copy_in_rate)
  bool done() const { return round == rounds; }
};

// Messages of a channel that leave one after the other (Plan::serial_sends()).
struct SerialSends {
  struct Waiting {
    std::uint32_t slot = 0;  // OutgoingMessages::messages_
    Time ready = 0;          // not before that
  };
  std::deque<Waiting> waiting;
  std::uint32_t destination = 0;  // GPU that messages are leaving to
  std::uint32_t leaving = 0;      // so many
};

struct Operation {
  enum class Phase : std::uint8_t {
    announced,  // messages came before the GPU entered the communication: gpu, number, communication, job
    entered,    // its base latency passes
    running,    // its steps are executed
    finishing,  // all executed, and copying or all at once; the listener is told by an event
    finished,   // the listener knows; sends are still to be acknowledged
    recycled    // the slot is free
  };
  Phase phase = Phase::announced;
  std::uint32_t gpu = 0;
  std::uint64_t number = 0;  // of the GPU's operations, in the order in which they were opened
  CommunicationRequest request;
  const Plan* plan = nullptr;  // null: a group of one rank, nothing to do
  Chunking chunking;
  ChannelOrders orders;
  std::uint32_t passed_by = kNoIndex;  // CollectiveConfig::passed_by
  std::span<const SwitchFan> fans;     // of the plan, by number
  // Of kernels that do not run by the parameters of their protocol; nothing: these do.
  std::optional<KernelModel> kernels;
  CostFamily family = CostFamily::ring;
  std::uint32_t blocks_per_channel = 1;
  bool blocks_wait = false;              // thread blocks of a channel may wait for each other
  std::uint32_t open_thread_blocks = 0;  // thread blocks that are not done
  std::uint64_t in_flight = 0;           // messages and credits sent, and not yet reported as such
  std::uint32_t releases = 0;            // so far, where they are traced
  Time started = 0;
  Time base_latency = 0;    // from `started` to its first step
  Time sender_started = 0;  // of the last message that arrived, at its sender
  Time busy_until = 0;      // the last of its thread blocks
  std::vector<ThreadBlock> thread_blocks;
  std::vector<SerialSends> serial;  // by channel; empty: messages to several ranks share the wire
  // By the other end, its rank in the plan or its fan, and this rank's block.
  MessageCounts arrived;  // delivered, and no step has taken it yet
  MessageCounts filled;   // sent, and the receiver has not said yet that it has taken it out of its slot

  // The GPU that is a rank of the plan for thread block `block`.
  std::uint32_t gpu_of(std::uint32_t rank, std::uint32_t block) const {
    return (*request.members)[place_of(orders.of(block / blocks_per_channel), rank)];
  }
  // Of the plan's fan: the sum of what is sent to it goes to its members by itself.
  bool is_turned(std::uint32_t fan) const { return fans[fan].turned; }
  // Of a sum that goes through fan `down` to thread block `block`, by itself: the connection up on which the
  // same channel of this GPU has sent its own addend.
  PeerAndThreadBlock sender_of_turned(std::uint32_t down, std::uint32_t block) const {
    const std::uint32_t up = fans[down].number;
    return {peer_of(Partner::of_fan(up)), block - block % blocks_per_channel + plan->fan(up).block};
  }
  // Whether the thread block is the head of a fan, and not a member.
  bool is_head(std::uint32_t fan, std::uint32_t block) const {
    return plan->fan(fan).is_head(thread_blocks[block].rank, block % blocks_per_channel);
  }
  // A point-to-point sender is busy until its data is acknowledged; all others only hand their last messages
  // over.
  bool waits_for_acknowledgements() const { return !is_collective(request.kind) && request.index == 0; }
  bool is_finished() const {
    return open_thread_blocks == 0 && (!waits_for_acknowledgements() || in_flight == 0);
  }
};

// Whether the thread block, of a running operation, can execute the next message of its step: what the step
// comes after is through, its message is there, and a slot is free.
bool can_go_on(const Operation& operation, std::uint32_t block);

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
