#include "sim/collectives/execution/executor_shard.h"

#include <algorithm>
#include <string>

#include "sim/collectives/execution/stall_report.h"
#include "sim/core/errors.h"

namespace netsim {
namespace {

using Phase = Operation::Phase;

// Members disagree about this collective: unexpected messages have arrived. The code that builds the requests
// reports that with the members' arguments. It may not have seen all of them yet, so the run ends here.
[[noreturn]] void disagree(const Operation& operation) {
  throw InputError(describe(operation) + ": its members disagree on bytes or group");
}

// Checks the preconditions of a request that the caller guarantees for any user input.
void check(GpuId gpu, const CommunicationRequest& request) {
  NETSIM_CHECK(request.members != nullptr && request.index < request.members->size() &&
                   (*request.members)[request.index] == gpu && request.bytes > 0,
               "communication request of gpu " + std::to_string(gpu));
  NETSIM_CHECK(!has_counts(request.kind) ||
                   (request.counts != nullptr && request.counts->members() == request.members->size() &&
                    request.counts->busiest() == request.bytes),
               "counts of gpu " + std::to_string(gpu));
  NETSIM_CHECK(!request.raw || !is_collective(request.kind), "only point-to-point may be raw");
  NETSIM_CHECK(
      request.members->size() == 1 || ((!has_root(request.kind) || request.root < request.members->size()) &&
                                       (is_collective(request.kind) || request.members->size() == 2)),
      std::string("group of a ") + to_string(request.kind));
}

}  // namespace

ExecutorShard::ExecutorShard(EventLoop& loop, Endpoint& endpoint, LibraryState& library,
                             AggregationCache& aggregations, std::vector<ExecutorGpu>& gpus,
                             CommunicationListener* const& listener, const TransferTrace& trace)
    : endpoint_(endpoint),
      library_(library, true),
      latency_(*library.library, endpoint),
      aggregations_(aggregations),
      listener_(listener),
      events_(loop, gpus),
      trace_(trace, loop),
      operations_(gpus),
      outgoing_(endpoint, latency_, events_, gpus),
      runner_(outgoing_, trace_) {
  loop.set_handler<&ExecutorShard::handle>(EventKind::executor, *this);
}

void ExecutorShard::handle(const Event& event) {
  const std::uint32_t slot = ExecutorEvents::slot(event);
  switch (ExecutorEvents::what(event)) {
    case ExecutorEvent::begin:
      begin(operations_[slot]);
      finish_if_through(slot);
      break;
    case ExecutorEvent::finish:
      finish(slot);
      break;
    case ExecutorEvent::send:
      outgoing_.hand_over(slot);
      break;
  }
}

std::uint32_t ExecutorShard::start(GpuId gpu, const CommunicationRequest& request) {
  check(gpu, request);
  const std::uint32_t slot = operations_.find_or_open(gpu, request.traits.job, request.communication);
  Operation& operation = operations_[slot];
  NETSIM_CHECK(operation.phase == Phase::announced, describe(operation) + " is started twice");
  if (request.paused_before) outgoing_.begin_anew(gpu, request.traits.job);
  const std::uint32_t channels = enter(operation, request);
  launch(slot);
  return channels;
}

// Starts the operation that the GPU has just entered.
void ExecutorShard::launch(std::uint32_t slot) {
  Operation& operation = operations_[slot];
  if (is_copy(operation.request)) {
    operation.phase = Phase::running;
    outgoing_.post_copy(operation);
    return;
  }
  if (operation.costs.base > 0) {
    events_.schedule(events_.now() + operation.costs.base, operation.gpu, ExecutorEvent::begin, slot);
    return;
  }
  begin(operation);
  if (!operation.is_finished()) return;
  operation.phase = Phase::finishing;
  events_.schedule(std::max(events_.now(), operation.busy_until), operation.gpu, ExecutorEvent::finish, slot);
}

bool ExecutorShard::is_ideal(const std::vector<GpuId>& members) const {
  return endpoint_.reach(members[0], members[1]) == Reach::ideal;
}

// Returns the number of channels of its kernel.
std::uint32_t ExecutorShard::enter(Operation& operation, const CommunicationRequest& request) {
  operation.phase = Phase::entered;
  operation.request = request;
  operation.started = events_.now();
  operation.open_thread_blocks = 0;
  operation.releases = 0;
  operation.costs = {};
  operation.busy_until = 0;
  operation.stored_until = 0;
  operation.plan = nullptr;
  operation.forwarding_gpu = kNoIndex;
  operation.thread_blocks.clear();
  operation.filled.clear();
  operation.serial.clear();
  if (request.members->size() == 1) return 0;
  const CollectiveConfig& config = library_.configure(request);
  operation.plan = config.plan;
  operation.chunking = config.chunking;
  operation.orders = config.orders;
  operation.costs = config.costs;
  operation.kernels = config.kernels;
  operation.forwarding_gpu = config.forwarding_gpu;
  operation.blocks_per_channel = operation.plan->blocks(request.index);
  operation.blocks_wait = operation.blocks_per_channel > 1 && operation.plan->waits_between_blocks();
  operation.aggregations = {};
  operation.aggregation_ids = {};
  if (operation.plan->aggregations() > 0) {
    const AggregationCache::AggregationGroups& groups =
        aggregations_.get(*operation.plan, *request.members, config.aggregation_share);
    operation.aggregations = groups.aggregations;
    operation.aggregation_ids = groups.ids;
  }
  if (operation.plan->serial_sends() && !is_ideal(*request.members))
    operation.serial.resize(operation.chunking.channels);
  runner_.reset(operation);
  return config.channels;
}

void ExecutorShard::begin(Operation& operation) {
  operation.phase = Phase::running;
  if (operation.plan != nullptr) runner_.run(operation);
}

void ExecutorShard::run(std::uint32_t slot, const Delivery& delivery) {
  Operation& operation = operations_[slot];
  if (operation.phase != Phase::running) return;
  const std::uint32_t block = PeerAndThreadBlock::unpack(delivery.message.tag).block;
  if (block >= operation.thread_blocks.size()) disagree(operation);
  runner_.run(operation, block, delivery);
  finish_if_through(slot);
}

// Finishes an operation when all steps are executed and its thread blocks have copied all data.
void ExecutorShard::finish_if_through(std::uint32_t slot) {
  Operation& operation = operations_[slot];
  if (!operation.is_finished()) return;
  if (operation.busy_until <= events_.now()) return finish(slot);
  operation.phase = Phase::finishing;
  events_.schedule(operation.busy_until, operation.gpu, ExecutorEvent::finish, slot);
}

void ExecutorShard::finish(std::uint32_t slot) {
  Operation& operation = operations_[slot];
  if (operation.arrived.total() > 0) disagree(operation);
  const CommunicationRequest request = operation.request;
  const bool receiver = !is_collective(request.kind) && request.index == 1;
  const GpuId gpu = operation.gpu;
  const Time started = receiver ? operation.sender_started : operation.started;
  operation.phase = Phase::finished;
  if (operation.in_flight == 0) operations_.recycle(slot);  // otherwise the last acknowledgement recycles it
  // The listener may start operations, so no reference to this one is used afterwards.
  listener_->communication_done(gpu, request, started);
}

void ExecutorShard::message_delivered(const Delivery& delivery) {
  const Message& message = delivery.message;
  if (ForwardTag::is(message.tag)) {
    ++forwarded_;
    return outgoing_.pass_on(message);
  }
  if (message.source == message.destination && message.aggregation.is_none()) return copy_delivered(delivery);
  if (message.credit) return credit_delivered(delivery);
  const std::uint32_t slot =
      operations_.find_or_open(message.destination, message.traits.job, message.communication);
  Operation& operation = operations_[slot];
  operation.arrived.add(PeerAndThreadBlock::unpack(message.tag));
  operation.sender_started = message.note.started;
  run(slot, delivery);
}

// Only traces a copy: the report at the same time that the message was sent ends its operation.
void ExecutorShard::copy_delivered(const Delivery& delivery) {
  if (!trace_.on()) return;
  const Message& message = delivery.message;
  const std::uint32_t slot = operations_.find(message.source, message.traits.job, message.communication);
  trace_.copied(operations_[slot], delivery);
}

// The operation may have ended; then no thread block waits for the slot.
void ExecutorShard::credit_delivered(const Delivery& delivery) {
  const Message& message = delivery.message;
  const std::uint32_t slot = operations_.find(message.destination, message.traits.job, message.communication);
  if (slot == kNoIndex) return;
  operations_[slot].filled.take(PeerAndThreadBlock::unpack(message.tag));
  run(slot, delivery);
}

void ExecutorShard::message_left(const SendRequest& request) {
  const Message& message = request.message;
  const std::uint32_t slot = operations_.find(message.source, message.traits.job, message.communication);
  NETSIM_CHECK(slot != kNoIndex, "a message of gpu " + std::to_string(message.source) + " left too late");
  outgoing_.left(operations_[slot], request.note);
}

void ExecutorShard::message_sent(const SendCompletion& completion) {
  const Message& message = completion.request.message;
  const std::uint32_t slot = operations_.find(message.source, message.traits.job, message.communication);
  // The message was forwarded for another GPU, whose operation does not wait for it.
  if (slot == kNoIndex && forwarded_ > 0) {
    --forwarded_;
    return;
  }
  NETSIM_CHECK(slot != kNoIndex && operations_[slot].in_flight > 0,
               "a message of gpu " + std::to_string(message.source) + " was sent that it had not posted");
  Operation& operation = operations_[slot];
  --operation.in_flight;
  if (operation.phase == Phase::running && operation.is_freed_when_sent(message)) {
    const PeerAndThreadBlock there = PeerAndThreadBlock::unpack(message.tag);
    const PeerAndThreadBlock from = operation.upstream_connection(aggregation_of(there.peer), there.block);
    operation.filled.take(from);
    Message room = message;
    room.tag = from.packed();
    return run(slot, {room, completion.bytes, completion.delays});
  }
  if (operation.phase == Phase::running) {
    if (!operation.is_finished()) return;
    if (trace_.on() && !is_copy(operation.request)) trace_.acknowledged(operation, message);
    finish(slot);
  } else if (operation.phase == Phase::finished && operation.in_flight == 0) {
    operations_.recycle(slot);
  }
}

}  // namespace netsim
