// ExecutorShard: the executor of the GPUs of one logical process. It holds their operations and takes each
// through its phases: announced or entered, running, finished, recycled. Everything here happens in the event
// loop of the logical process.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/execution/aggregation_cache.h"
#include "sim/collectives/execution/communication.h"
#include "sim/collectives/execution/executor_events.h"
#include "sim/collectives/execution/operation.h"
#include "sim/collectives/execution/operation_trace.h"
#include "sim/collectives/execution/outgoing_messages.h"
#include "sim/collectives/execution/step_runner.h"
#include "sim/collectives/library/library_context.h"
#include "sim/core/ids.h"

namespace netsim {

class alignas(64) ExecutorShard {
 public:
  // `gpus` holds the GPUs of all logical processes; a shard uses only its own. `listener` and `trace` may be
  // set later. The shard handles EventKind::executor of `loop`.
  ExecutorShard(EventLoop& loop, Endpoint& endpoint, LibraryState& library, AggregationCache& aggregations,
                std::vector<ExecutorGpu>& gpus, CommunicationListener* const& listener,
                const TransferTrace& trace);
  ExecutorShard(const ExecutorShard&) = delete;
  ExecutorShard& operator=(const ExecutorShard&) = delete;

  // Implement the functions of the same name of Executor and MessageListener.
  std::uint32_t start(GpuId gpu, const CommunicationRequest& request);
  void message_delivered(const Delivery& delivery);
  void message_sent(const SendCompletion& completion);
  void message_left(const SendRequest& request);

  // Returns all slots, recycled ones too.
  const std::vector<Operation>& operations() const { return operations_.all(); }

 private:
  void handle(const Event& event);
  std::uint32_t enter(Operation& operation, const CommunicationRequest& request);
  // Returns whether the network that joins a group has no costs.
  bool is_ideal(const std::vector<GpuId>& members) const;
  void launch(std::uint32_t slot);
  void begin(Operation& operation);
  void run(std::uint32_t slot, const Delivery& delivery);
  void credit_delivered(const Delivery& delivery);
  void finish_if_through(std::uint32_t slot);
  void copy_delivered(const Delivery& delivery);
  void finish(std::uint32_t slot);

  Endpoint& endpoint_;
  std::uint64_t forwarded_ = 0;  // forwarded messages (ForwardTag) that are not yet reported as sent
  LibraryContext library_;
  const LatencyModel latency_;
  AggregationLookup aggregations_;
  CommunicationListener* const& listener_;
  ExecutorEvents events_;
  OperationTrace trace_;
  OperationArena operations_;
  OutgoingMessages outgoing_;
  StepRunner runner_;
};

}  // namespace netsim
