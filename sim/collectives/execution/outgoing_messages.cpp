#include "sim/collectives/execution/outgoing_messages.h"

#include <limits>

namespace netsim {

void OutgoingMessages::post(Operation& operation, std::uint32_t block, Bytes bytes) {
  const Partner& to = operation.thread_blocks[block].step.to;
  if (operation.chunking.slots != 0) operation.filled.add({to.rank, block});
  const LatencyModel::Hop hop = latency_.hop(operation.request, operation.chunking, operation.family,
                                             operation.gpu, operation.gpu_of(to.rank, block), bytes);
  const std::uint32_t slot = make(operation, block, to);
  messages_[slot].bytes = bytes;
  messages_[slot].credit = false;
  messages_[slot].traits.gap = hop.gap;
  if (hop.latency == 0) {
    hand_over(slot);
  } else {
    events_.schedule(events_.now() + hop.latency, operation.gpu, ExecutorEvent::send, slot);
  }
}

void OutgoingMessages::post_credit(Operation& operation, std::uint32_t block) {
  const std::uint32_t slot = make(operation, block, operation.thread_blocks[block].step.from);
  messages_[slot].bytes = kCreditBytes;
  messages_[slot].credit = true;
  messages_[slot].traits.priority = std::numeric_limits<std::uint8_t>::max();
  hand_over(slot);
}

// A message to another thread block of the channel, but for its bytes.
std::uint32_t OutgoingMessages::make(Operation& operation, std::uint32_t block, const Partner& to) {
  ++operation.in_flight;
  const CommunicationRequest& request = operation.request;
  const std::uint32_t channel = block / operation.blocks_per_channel;
  const std::uint32_t rank = operation.thread_blocks[block].rank;
  const std::uint32_t slot = free_slot();
  SendRequest& message = messages_[slot];
  message.source = operation.gpu;
  message.destination = operation.gpu_of(to.rank, block);
  message.traits = request.traits;
  message.traits.own_queue_pair = request.raw;
  if (!request.raw)
    message.traits.channel = operation.orders.number(channel) * operation.plan->channels() +
                             operation.plan->channel(rank, block % operation.blocks_per_channel);
  message.name = request.name;
  message.communication = request.communication;
  message.tag = PeerAndThreadBlock{rank, channel * operation.plan->blocks(to.rank) + to.block}.packed();
  message.started = operation.started;
  message.number = operation.thread_blocks[block].release;
  return slot;
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
