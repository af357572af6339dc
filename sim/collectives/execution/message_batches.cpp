#include "sim/collectives/execution/message_batches.h"

#include <optional>
#include <span>

namespace netsim {
namespace {

// Calls visit(step, thread block) for the steps of a rank of the plan that send or receive.
template <class Visit>
void for_each_step(const Plan& plan, std::uint32_t rank, Visit visit) {
  for (std::uint32_t block = 0; block < plan.blocks(rank); ++block) {
    if (plan.in_switch(rank, block)) continue;
    const std::uint32_t count = plan.steps(rank, block);
    for (std::uint32_t index = 0; index < count; ++index) {
      const Step step = plan.step(rank, block, index);
      if (sends(step.kind) || receives(step.kind)) visit(step, block);
    }
  }
}

// Turn: the two AggregationGroups of an in-network all-reduce. turn_of() returns nullopt for other partners.
struct Turn {
  AggregationGroup up, down;
};
std::optional<Turn> turn_of(const Plan& plan, const Partner& partner) {
  if (partner.aggregation == kNoIndex) return std::nullopt;
  const AggregationGroup aggregation = plan.aggregation(partner.aggregation);
  if (!plan.in_switch(aggregation.head, aggregation.head_block)) return std::nullopt;
  const Step step = plan.step(aggregation.head, aggregation.head_block, 0);
  return Turn{plan.aggregation(step.from.aggregation), plan.aggregation(step.to.aggregation)};
}

// Returns whether the receiver sends credits for a step's messages. In an in-network all-reduce that holds
// only where one rank sends to all; the other ranks have sent addends themselves.
bool is_credited(const Plan& plan, const Partner& from) {
  const std::optional<Turn> turn = turn_of(plan, from);
  return !turn || turn->up.members < turn->down.members;
}

// Returns the rank that a message goes to. For an AggregationGroup it is any other rank, because the message
// through its switch costs the sender the same.
std::uint32_t rank_of(const Plan& plan, std::uint32_t rank, const Partner& to) {
  if (to.aggregation == kNoIndex) return to.rank;
  AggregationGroup aggregation = plan.aggregation(to.aggregation);
  if (const std::optional<Turn> turn = turn_of(plan, to)) {
    aggregation = turn->up.members < turn->down.members ? turn->down : turn->up;
  } else if (aggregation.head != rank) {
    return aggregation.head;
  }
  return aggregation.member(0) != rank ? aggregation.member(0) : aggregation.member(1);
}

}  // namespace

Bytes MessageBatches::scale_out_bytes(GpuId gpu, const CommunicationRequest& request) {
  Bytes sum = 0;
  for_each(gpu, request, [&](const MessageBatch& batch) {
    if (batch.reach == Reach::scale_out) sum += batch.bytes * static_cast<Bytes>(batch.count);
  });
  return sum;
}

void MessageBatches::for_each(GpuId gpu, const CommunicationRequest& request,
                              const Executor::BatchVisitor& visit) {
  if (request.members->size() == 1) return;
  const CollectiveConfig& config = library_.configure(request);
  const bool apart = endpoint_.ways_differ();
  for (const ChannelOrders::Channels& channels : config.orders.sets(config.chunking.channels)) {
    if (!apart) {
      for_each_on(gpu, request, config, channels, visit);
      continue;
    }
    for (std::uint32_t i = 0; i < channels.count; ++i)
      for_each_on(gpu, request, config,
                  {channels.first + i * channels.step, channels.step, 1, channels.order}, visit);
  }
}

void MessageBatches::for_each_on(GpuId gpu, const CommunicationRequest& request,
                                 const CollectiveConfig& config, const ChannelOrders::Channels& channels,
                                 const Executor::BatchVisitor& visit) {
  const Plan& plan = *config.plan;
  std::span<const SwitchAggregation> aggregations;
  if (plan.aggregations() > 0)
    aggregations = aggregations_.get(plan, *request.members, config.aggregation_share).aggregations;
  sizes_.open(plan, config.chunking, request, channels);
  const std::uint32_t rank = rank_at(channels.order, request.index);
  const auto batch_to = [&](const Partner& to, std::uint32_t block) {
    MessageBatch batch;
    batch.destination = (*request.members)[place_of(channels.order, rank_of(plan, rank, to))];
    batch.reach = endpoint_.reach(gpu, batch.destination);
    if (to.aggregation != kNoIndex) {
      batch.aggregation = &aggregations[to.aggregation];
      batch.aggregation_use = batch.aggregation->allreduce ? AggregationUse::allreduce
                              : plan.aggregation(to.aggregation).is_head(rank, block)
                                  ? AggregationUse::multicast
                                  : AggregationUse::reduction;
    }
    batch.channels = channels.count;
    batch.first_channel = config.orders.number(channels.first) * plan.channels() + plan.channel(rank, block);
    batch.channel_step = config.orders.number_step() * plan.channels();
    return batch;
  };
  // A forwarded message counts as the sender's on both hops.
  const auto visit_ways = [&](MessageBatch batch) {
    if (config.forwarding_gpu != kNoIndex) {
      MessageBatch first = batch;
      first.destination = config.forwarding_gpu;
      first.reach = endpoint_.reach(gpu, first.destination);
      visit(first);
      batch.reach = endpoint_.reach(config.forwarding_gpu, batch.destination);
    }
    visit(batch);
  };
  for_each_step(plan, rank, [&](const Step& step, std::uint32_t block) {
    if (sends(step.kind)) {
      MessageBatch batch = batch_to(step.to, block);
      for (const ChunkSizes::Size& size : sizes_.of(rank, step)) {
        batch.bytes = size.bytes;
        batch.count = size.count;
        visit_ways(batch);
      }
    }
    if (receives(step.kind) && config.chunking.slots != 0 && is_credited(plan, step.from)) {
      MessageBatch batch = batch_to(step.from, block);
      batch.credit = true;
      batch.bytes = kCreditBytes;
      batch.count = sizes_.freed(rank, step);
      if (batch.count > 0) visit_ways(batch);
    }
  });
}

}  // namespace netsim
