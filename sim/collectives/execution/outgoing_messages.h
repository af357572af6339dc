// OutgoingMessages: makes a step's messages and hands them to the endpoint after their hop latency. Waiting
// messages lie in an arena of the logical process.
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
  // `gpus` holds the GPUs of all logical processes.
  OutgoingMessages(Endpoint& endpoint, const LatencyModel& latency, ExecutorEvents& events,
                   std::vector<ExecutorGpu>& gpus)
      : endpoint_(endpoint), latency_(latency), events_(events), gpus_(gpus) {}
  // Sends `bytes` from thread block `block` of the operation to the partner of its step. The message is in
  // flight from now on.
  void post(Operation& operation, std::uint32_t block, Bytes bytes);
  // Returns the number of messages of the present size for which the receiver of the thread block's step has
  // room. Returns 0 if it is in another host, or the kernels have no KernelModel::local_buffer.
  std::uint32_t local_slots(const Operation& operation, std::uint32_t block) const;
  // Keeps thread block `block` busy with copying `bytes` out of their slots (Operation::copy_out_rate()).
  void copy_out(Operation& operation, std::uint32_t block, Bytes bytes);
  // Sends a copy between the GPU and its host's memory (is_copy()) as one message.
  void post_copy(Operation& operation);
  // Sends a credit to the sender of the step's message, because a slot is free again. The head of an
  // aggregation group sends it to all members; the members' credits reach the head as one. It leaves as soon
  // as the thread block has copied the data, before all other messages to that GPU.
  void post_credit(Operation& operation, std::uint32_t block);
  // Forwards a message or credit that has reached the forwarding GPU (ForwardTag). A message is delayed by
  // the latency of the library's proxy, that of a step between hosts; a credit is not delayed.
  void pass_on(const Message& message);
  void begin_anew(GpuId gpu, JobId job) { endpoint_.begin_anew(gpu, job); }
  // Reports that the message with this note, of an operation with serial sends, has left.
  void left(Operation& operation, const SenderNote& note);
  // Handles ExecutorEvent::send for this slot.
  void hand_over(std::uint32_t slot);

 private:
  Time prepare(Operation& operation, std::uint32_t block, Bytes bytes) const;
  Time store(Operation& operation, Bytes bytes) const;
  LatencyModel::Hop own_hop(Operation& operation, std::uint32_t block, const Partner& to, Bytes bytes) const;
  Time posted_after(const Operation& operation, GpuId destination, Time latency);
  Time occupy(Operation& operation, std::uint32_t block, const LatencyModel::Leg& leg, Bytes bytes) const;
  Time copy_in(Operation& operation, std::uint32_t block) const;
  void send_next(Operation& operation, SerialSends& sends);
  void hand_over_after(Time delay, GpuId gpu, std::uint32_t slot);
  std::uint32_t make(Operation& operation, std::uint32_t block, const Partner& to);
  static void address(Message& message, const Operation& operation, std::uint32_t block, const Partner& to);
  std::uint32_t free_slot();

  Endpoint& endpoint_;
  const LatencyModel& latency_;
  ExecutorEvents& events_;
  std::vector<ExecutorGpu>& gpus_;
  std::vector<SendRequest> requests_;  // every field of a slot is set again when the slot is taken
  std::vector<std::uint32_t> free_;    // free slots of requests_
};

}  // namespace netsim
