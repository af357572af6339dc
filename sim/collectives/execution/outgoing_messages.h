// OutgoingMessages: from a step to the endpoint. A message is made, waits for its hop latency and is handed
// over; those that wait lie in an arena of their set.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/execution/executor_events.h"
#include "sim/collectives/execution/latency_model.h"
#include "sim/collectives/execution/operation.h"
#include "sim/transport/endpoint.h"

namespace netsim {

class OutgoingMessages {
 public:
  // `gpus`: by GPU, of all sets.
  OutgoingMessages(Endpoint& endpoint, const LatencyModel& latency, ExecutorEvents& events,
                   std::vector<ExecutorGpu>& gpus)
      : endpoint_(endpoint), latency_(latency), events_(events), gpus_(gpus) {}
  // Thread block `block` of the operation sends `bytes` to where its step says; in flight from now on.
  void post(Operation& operation, std::uint32_t block, Bytes bytes);
  // Thread block `block` takes `bytes` that came out of their slots (KernelModel::copy_out_rate).
  void copy_out(Operation& operation, std::uint32_t block, Bytes bytes);
  // A copy between the GPU and its host's memory (is_copy()), as a whole.
  void post_copy(Operation& operation);
  // It tells whom its step receives from that a slot is free again, a fan's head all members and its members
  // together the head; as soon as it has copied what was there, and before all other messages that go there.
  void post_credit(Operation& operation, std::uint32_t block);
  // A message or credit has come to the GPU that passes it on (PassedOn): as a proxy of the library does,
  // after the latency of a step between hosts, a credit at once.
  void pass_on(const SendRequest& message);
  void begin_anew(std::uint32_t gpu, std::uint32_t job) { endpoint_.begin_anew(gpu, job); }
  // A message of an operation whose sends are serial has left.
  void left(Operation& operation, const SendRequest& message);
  // ExecutorEvent::send with this slot.
  void hand_over(std::uint32_t slot);

 private:
  LatencyModel::Hop own_hop(const Operation& operation, std::uint32_t block, const Partner& to,
                            Bytes bytes) const;
  Time posted_after(const Operation& operation, std::uint32_t destination, Time latency);
  Time copy_in(Operation& operation, std::uint32_t block) const;
  void send_next(Operation& operation, SerialSends& sends);
  void hand_over_after(Time delay, std::uint32_t gpu, std::uint32_t slot);
  std::uint32_t make(Operation& operation, std::uint32_t block, const Partner& to);
  static void address(SendRequest& message, const Operation& operation, std::uint32_t block,
                      const Partner& to);
  std::uint32_t free_slot();

  Endpoint& endpoint_;
  const LatencyModel& latency_;
  ExecutorEvents& events_;
  std::vector<ExecutorGpu>& gpus_;
  std::vector<SendRequest> messages_;  // every field of a slot is written anew when it is taken
  std::vector<std::uint32_t> free_;    // slots of messages_
};

}  // namespace netsim
