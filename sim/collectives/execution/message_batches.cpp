#include "sim/collectives/execution/message_batches.h"

namespace netsim {

// Opens the sizes of the communication and calls visit(step) for the steps of the rank that send or receive.
template <class Visit>
void MessageBatches::for_each_step(const CommunicationRequest& request, Visit visit) {
  if (request.members->size() == 1) return;
  const auto ranks = static_cast<std::uint32_t>(request.members->size());
  const Plan& plan = library_.plans.get(request.kind, ranks, request.root);
  sizes_.open(plan, library_.chunking(request), request.bytes);
  for (std::uint32_t block = 0; block < plan.blocks(request.index); ++block) {
    const std::uint32_t count = plan.steps(request.index, block);
    for (std::uint32_t index = 0; index < count; ++index) {
      const Step step = plan.step(request.index, block, index);
      if (sends(step.kind) || receives(step.kind)) visit(step);
    }
  }
}

Bytes MessageBatches::scale_out_bytes(std::uint32_t gpu, const CommunicationRequest& request) {
  Bytes sum = 0;
  for_each(gpu, request, [&](const MessageBatch& batch) {
    if (batch.reach == Reach::scale_out) sum += batch.bytes * static_cast<Bytes>(batch.count);
  });
  return sum;
}

void MessageBatches::for_each(std::uint32_t gpu, const CommunicationRequest& request,
                              const Executor::BatchVisitor& visit) {
  const Chunking chunking = request.members->size() == 1 ? Chunking{} : library_.chunking(request);
  const auto batch_to = [&](const Partner& to) {
    MessageBatch batch;
    batch.destination = (*request.members)[to.rank];
    batch.reach = library_.endpoint.reach(gpu, batch.destination);
    batch.channels = chunking.channels;
    return batch;
  };
  for_each_step(request, [&](const Step& step) {
    if (sends(step.kind)) {
      MessageBatch batch = batch_to(step.to);
      for (const ChunkSizes::Size& size : sizes_.of(request.index, step)) {
        batch.bytes = size.bytes;
        batch.count = size.count;
        visit(batch);
      }
    }
    if (receives(step.kind) && chunking.slots != 0) {
      MessageBatch batch = batch_to(step.from);
      batch.credit = true;
      batch.bytes = kCreditBytes;
      batch.count = sizes_.messages(step.count);
      visit(batch);
    }
  });
}

}  // namespace netsim
