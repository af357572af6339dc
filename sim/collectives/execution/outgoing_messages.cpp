#include "sim/collectives/execution/outgoing_messages.h"

#include <algorithm>
#include <limits>

namespace netsim {

namespace {

// Returns the first GPU that a message to another thread block goes to.
GpuId next_gpu(const Operation& operation, std::uint32_t block, const Partner& to) {
  if (operation.forwarding_gpu != kNoIndex) return operation.forwarding_gpu;
  return operation.gpu_of(to.rank, block);
}

// Returns whether a step sends data that it also stores in its own buffer.
bool keeps(Step::Kind kind) {
  return kind == Step::Kind::receive_copy_send || kind == Step::Kind::receive_reduce_copy_send;
}

// Percentage by which a sum takes longer than a copy. From 8 to 64 MiB reduce-scatters of two H100 grow by
// 13.5 us more than gathers, and those of two B200 by 6.3 us. That is 0.3 of a copy.
constexpr Time kSumBeyondCopy = 30;

// Keeps a thread block busy with copying its step's data for `time`, after its present copies and not before
// `earliest`.
void keep_busy(Operation& operation, ThreadBlock& block, Time earliest, Time time) {
  if (operation.kernels && block.busy_until > 0 && block.index == 0)
    block.busy_until += operation.kernels->copy_pause;
  block.busy_until = std::max(block.busy_until, earliest) + time;
  operation.busy_until = std::max(operation.busy_until, block.busy_until);
}

}  // namespace

void OutgoingMessages::post(Operation& operation, std::uint32_t block, Bytes bytes) {
  const ThreadBlock& from = operation.thread_blocks[block];
  const Partner& to = from.step.to;
  const bool fills = from.slice == 0 || !operation.chunking.slots_of_chunks;
  if (operation.chunking.slots != 0 && fills) operation.filled.add({peer_of(to), block});
  LatencyModel::Hop hop;
  if (operation.kernels) {
    hop = own_hop(operation, block, to, bytes);
    const bool member = to.aggregation != kNoIndex && !operation.is_head(to.aggregation, block);
    if (member) hop.latency += copy_in(operation, block);
    if (operation.kernels->proxied && to.aggregation == kNoIndex)
      hop.latency = posted_after(operation, next_gpu(operation, block, to), hop.latency);
  } else if (to.aggregation == kNoIndex) {  // here aggregation groups are those of an ideal network
    const GpuId next = next_gpu(operation, block, to);
    const bool own_block = operation.chunking.stores_own_block && from.step.kind == Step::Kind::send;
    const LatencyModel::Leg leg{.source = operation.gpu,
                                .destination = next,
                                .kept = own_block || keeps(from.step.kind),
                                .own_block = own_block,
                                .passed_on = receives(from.step.kind),
                                .first_round = from.round == 0};
    hop = latency_.hop(operation.costs, operation.chunking, leg, bytes);
    hop.latency += occupy(operation, block, leg, bytes);
    hop.latency = posted_after(operation, next, hop.latency);
  }
  const std::uint32_t slot = make(operation, block, to);
  SendRequest& request = requests_[slot];
  request.message.bytes = bytes;
  request.message.credit = false;
  request.message.note.launch = hop.latency;
  const bool proxy = operation.plan->is_proxy(from.rank, block % operation.blocks_per_channel);
  request.message.traits.gap = proxy ? 0 : hop.gap;
  if (operation.serial.empty()) return hand_over_after(hop.latency, operation.gpu, slot);
  const std::uint32_t channel = block / operation.blocks_per_channel;
  SerialSends& sends = operation.serial[channel];
  request.tell_left = true;
  request.note.channel = channel;
  sends.waiting.push_back({slot, events_.now() + hop.latency});
  send_next(operation, sends);
}

std::uint32_t OutgoingMessages::local_slots(const Operation& operation, std::uint32_t block) const {
  if (!operation.kernels || operation.kernels->local_buffer == 0) return 0;
  const ThreadBlock& own = operation.thread_blocks[block];
  const Partner& to = own.step.to;
  if (!sends(own.step.kind) || to.aggregation != kNoIndex) return 0;
  if (endpoint_.reach(operation.gpu, operation.gpu_of(to.rank, block)) == Reach::scale_out) return 0;
  const Bytes messages = operation.kernels->local_buffer / std::max<Bytes>(1, own.step_bytes);
  return static_cast<std::uint32_t>(std::max<Bytes>(kSlots, messages));
}

void OutgoingMessages::left(Operation& operation, const SenderNote& note) {
  SerialSends& sends = operation.serial[note.channel];
  --sends.leaving;
  send_next(operation, sends);
}

// Hands over the waiting messages that may leave now, all to one destination.
void OutgoingMessages::send_next(Operation& operation, SerialSends& sends) {
  while (!sends.waiting.empty()) {
    const auto [slot, ready] = sends.waiting.front();
    const GpuId destination = requests_[slot].message.destination;
    if (sends.leaving > 0 && sends.destination != destination) return;
    sends.waiting.pop_front();
    sends.destination = destination;
    ++sends.leaving;
    hand_over_after(std::max<Time>(0, ready - events_.now()), operation.gpu, slot);
  }
}

void OutgoingMessages::hand_over_after(Time delay, GpuId gpu, std::uint32_t slot) {
  if (delay == 0) return hand_over(slot);
  events_.schedule(events_.now() + delay, gpu, ExecutorEvent::send, slot);
}

// Keeps a thread block that also copies busy with sending `bytes`. Returns how long it is still busy before
// that. In the first round all channels are in step, so nothing hides the fence after a message, or the
// block's own time for it.
Time OutgoingMessages::occupy(Operation& operation, std::uint32_t block, const LatencyModel::Leg& leg,
                              Bytes bytes) const {
  const Chunking& chunking = operation.chunking;
  if (chunking.first_copy_rate == 0) return 0;
  ThreadBlock& own = operation.thread_blocks[block];
  const Time begin = std::max(events_.now(), own.busy_until);
  const StepCosts& costs = operation.costs;
  const Time fence = leg.first_round && costs.fences && costs.slice == 0 ? costs.hop_nvlink : 0;
  const Time moved = std::max(LatencyModel::pass_time(chunking, leg, bytes),
                              transmission_time(bytes, chunking.local_rate) + fence);
  const Time stored = chunking.store_rate == 0 ? 0 : transmission_time(bytes, chunking.store_rate);
  own.busy_until = begin + std::max(moved + LatencyModel::own_time(costs, leg), stored) +
                   LatencyModel::own_block_time(chunking, leg, bytes);
  return begin - events_.now();
}

// Returns how long the thread block still takes to copy all data of its step. It begins before the heads read
// the data, as soon as slots are free. It has as many slots as the chunks that a head sends have.
Time OutgoingMessages::copy_in(Operation& operation, std::uint32_t block) const {
  const BitRate rate = operation.kernels->copy_in_rate;
  if (rate == 0) return 0;
  ThreadBlock& own = operation.thread_blocks[block];
  const Time now = events_.now();
  // The step's first message has waited for the copy.
  if (own.slice > 0) return std::max<Time>(0, own.busy_until - now);
  const Time time = transmission_time(own.step_bytes, rate);
  const Time ahead = own.busy_until == 0 ? 0 : time * operation.chunking.slots;
  keep_busy(operation, own, now - ahead, time);
  return std::max<Time>(0, own.busy_until - now);
}

void OutgoingMessages::copy_out(Operation& operation, std::uint32_t block, Bytes bytes) {
  ThreadBlock& own = operation.thread_blocks[block];
  const BitRate rate = operation.copy_out_rate(own.round);
  if (rate == 0) return;
  Time time = transmission_time(bytes, rate);
  if (operation.chunking.sums_take_longer && reduces(own.step.kind)) time += time * kSumBeyondCopy / 100;
  // The time of a slice passes in a ring's last step, too.
  if (own.round == 0 && !operation.costs.slice_each_round) time += operation.costs.slice;
  keep_busy(operation, own, events_.now(), time);
}

// Returns `latency`, or more where the GPU's proxy thread is still posting other messages when it is over.
Time OutgoingMessages::posted_after(const Operation& operation, GpuId destination, Time latency) {
  const Time posting = operation.costs.posting;
  if (posting == 0 || endpoint_.reach(operation.gpu, destination) != Reach::scale_out) return latency;
  Time& free = gpus_[operation.gpu].proxy_free;
  free = std::max(events_.now() + latency, free + posting);
  return free - events_.now();
}

// Keeps a thread block busy with preparing a message to another host. Returns how long that takes from now,
// with the messages before it. The NIC sends earlier messages meanwhile.
Time OutgoingMessages::prepare(Operation& operation, std::uint32_t block, Bytes bytes) const {
  const BitRate rate = operation.kernels->net_rate;
  if (rate == 0) return 0;
  ThreadBlock& own = operation.thread_blocks[block];
  own.busy_until = std::max(events_.now(), own.busy_until) + transmission_time(bytes, rate);
  return own.busy_until - events_.now();
}

// Returns how long a message within a host takes until the thread blocks have stored it, beyond the time of
// its bytes on the links.
Time OutgoingMessages::store(Operation& operation, Bytes bytes) const {
  const BitRate rate = operation.kernels->store_rate;
  if (rate == 0) return 0;
  operation.stored_until = std::max(events_.now(), operation.stored_until) + transmission_time(bytes, rate);
  const BitRate links = operation.chunking.local_rate;
  const Time on_links = links == 0 ? 0 : transmission_time(bytes, links);
  return std::max<Time>(0, operation.stored_until - events_.now() - on_links);
}

LatencyModel::Hop OutgoingMessages::own_hop(Operation& operation, std::uint32_t block, const Partner& to,
                                            Bytes bytes) const {
  const KernelModel& kernels = *operation.kernels;
  const bool net = to.aggregation != kNoIndex
                       ? operation.is_allreduce(to.aggregation)
                       : endpoint_.reach(operation.gpu, operation.gpu_of(to.rank, block)) == Reach::scale_out;
  const auto time_at = [&](BitRate rate) { return rate == 0 ? 0 : transmission_time(bytes, rate); };
  if (net) return {kernels.hop_latency_net + prepare(operation, block, bytes), 0};
  // Time that the threads take beyond that of the links.
  const Time late = std::max<Time>(0, time_at(kernels.block_rate) - time_at(operation.chunking.local_rate));
  return {kernels.hop_latency + late + store(operation, bytes), late};
}

void OutgoingMessages::post_credit(Operation& operation, std::uint32_t block) {
  const ThreadBlock& own = operation.thread_blocks[block];
  const Time busy = std::max<Time>(0, own.busy_until - events_.now());
  const std::uint32_t slot = make(operation, block, own.step.from);
  Message& message = requests_[slot].message;
  message.bytes = kCreditBytes;
  message.credit = true;
  message.note.launch = busy;
  message.traits.priority = std::numeric_limits<std::uint8_t>::max();
  hand_over_after(busy, operation.gpu, slot);
}

void OutgoingMessages::post_copy(Operation& operation) {
  ++operation.in_flight;
  const CommunicationRequest& request = operation.request;
  const std::uint32_t slot = free_slot();
  requests_[slot] = {};
  Message& message = requests_[slot].message;
  message.source = message.destination = operation.gpu;
  message.bytes = request.bytes;
  message.traits = request.traits;
  message.name = request.name;
  message.communication = request.communication;
  message.part = request.part;
  message.whole = request.whole;
  message.note.started = operation.started;
  hand_over(slot);
}

// Makes a message to another thread block of the channel, without its bytes.
std::uint32_t OutgoingMessages::make(Operation& operation, std::uint32_t block, const Partner& to) {
  ++operation.in_flight;
  const CommunicationRequest& request = operation.request;
  const std::uint32_t channel = block / operation.blocks_per_channel;
  const std::uint32_t rank = operation.thread_blocks[block].rank;
  const std::uint32_t slot = free_slot();
  requests_[slot].tell_left = false;
  requests_[slot].note = {};
  Message& message = requests_[slot].message;
  message.source = operation.gpu;
  message.traits = request.traits;
  message.traits.own_queue_pair = request.raw;
  if (!request.raw)
    message.traits.channel = operation.orders.number(channel) * operation.plan->channels() +
                             operation.plan->channel(rank, block % operation.blocks_per_channel);
  message.name = request.name;
  message.communication = request.communication;
  message.part = request.part;
  message.whole = request.whole;
  address(message, operation, block, to);
  message.note.started = operation.started;
  message.note.release = operation.thread_blocks[block].release;
  return slot;
}

// Sets the destination of a message and its tag, which names the thread block there. The head of a
// AggregationGroup receives from all members, so the tag names the AggregationGroup. In an in-network
// all-reduce it names the AggregationGroup that copies the sum. Credits for the sum go in the opposite
// direction and name the AggregationGroup that adds up.
void OutgoingMessages::address(Message& message, const Operation& operation, std::uint32_t block,
                               const Partner& to) {
  const std::uint32_t channel = block / operation.blocks_per_channel;
  const Plan& plan = *operation.plan;
  if (to.aggregation == kNoIndex) {
    const std::uint32_t there = channel * plan.blocks(to.rank) + to.block;
    message.destination = next_gpu(operation, block, to);
    message.aggregation = AggregationId::none();
    message.aggregation_use = AggregationUse::none;
    message.tag =
        operation.forwarding_gpu == kNoIndex
            ? PeerAndThreadBlock{operation.thread_blocks[block].rank, there}.packed()
            : ForwardTag{operation.gpu_of(to.rank, block), operation.chunking.protocol, there}.packed();
    return;
  }
  const AggregationGroup aggregation = plan.aggregation(to.aggregation);
  message.aggregation = operation.aggregation_ids[to.aggregation];
  if (operation.is_allreduce(to.aggregation)) {
    const std::uint32_t other = operation.aggregations[to.aggregation].number;
    message.aggregation_use = AggregationUse::allreduce;
    message.destination = operation.gpu;
    const std::uint32_t there = channel * operation.blocks_per_channel + plan.aggregation(other).block;
    message.tag = PeerAndThreadBlock{peer_of(Partner::of_aggregation(other)), there}.packed();
    return;
  }
  const bool head = operation.is_head(to.aggregation, block);
  message.aggregation_use = head ? AggregationUse::multicast : AggregationUse::reduction;
  message.destination = operation.aggregations[to.aggregation].head;
  const std::uint32_t there = head ? channel * plan.blocks(aggregation.first) + aggregation.block
                                   : channel * plan.blocks(aggregation.head) + aggregation.head_block;
  message.tag = PeerAndThreadBlock{peer_of(to), there}.packed();
}

// In a lone send and receive, rank 0 sends messages and rank 1 credits.
void OutgoingMessages::pass_on(const Message& message) {
  const ForwardTag to = ForwardTag::unpack(message.tag);
  const std::uint32_t slot = free_slot();
  requests_[slot] = {message};
  Message& copy = requests_[slot].message;
  copy.source = message.destination;
  copy.destination = to.gpu;
  copy.tag = PeerAndThreadBlock{message.credit ? 1U : 0U, to.block}.packed();
  const Time proxy = message.credit ? 0 : latency_.proxy(to.protocol, copy.source, copy.destination);
  copy.note.launch += proxy;
  copy.traits.gap = 0;
  hand_over_after(proxy, copy.source, slot);
}

std::uint32_t OutgoingMessages::free_slot() {
  if (free_.empty()) {
    requests_.emplace_back();
    return static_cast<std::uint32_t>(requests_.size() - 1);
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void OutgoingMessages::hand_over(std::uint32_t slot) {
  free_.push_back(slot);
  endpoint_.send(requests_[slot]);
}

}  // namespace netsim
