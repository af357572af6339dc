#include "sim/collectives/execution/outgoing_messages.h"

namespace netsim {

void OutgoingMessages::post(Operation& operation, std::uint32_t block, std::uint32_t destination,
                            Bytes bytes) {
  operation.in_flight.add({destination, block});
  const Time latency = latency_.hop(operation.request, operation.family, operation.gpu, destination);
  const std::uint32_t slot = free_slot();
  SendRequest& message = messages_[slot];
  if (trace_.on()) {
    message.number = gpus_[operation.gpu].posted++;
    trace_.posted(operation, block, destination, message.number, latency);
  }
  message.source = operation.gpu;
  message.destination = destination;
  message.bytes = bytes;
  message.traits = operation.request.traits;
  message.traits.own_queue_pair = operation.request.raw;
  if (!operation.request.raw) message.traits.channel = block / operation.thread_blocks_per_channel;
  message.name = operation.request.name;
  message.communication = operation.request.communication;
  message.tag = PeerAndThreadBlock{operation.request.index, block}.packed();
  message.started = operation.started;
  if (latency == 0) {
    hand_over(slot);
  } else {
    events_.schedule(events_.now() + latency, operation.gpu, ExecutorEvent::send, slot);
  }
}

std::uint32_t OutgoingMessages::free_slot() {
  if (free_.empty()) {
    messages_.emplace_back();
    return static_cast<std::uint32_t>(messages_.size() - 1);
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void OutgoingMessages::hand_over(std::uint32_t slot) {
  free_.push_back(slot);
  endpoint_.send(messages_[slot]);
}

}  // namespace netsim
