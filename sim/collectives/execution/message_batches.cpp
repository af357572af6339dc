#include "sim/collectives/execution/message_batches.h"

namespace netsim {

// Calls visit(destination, reach, chunk) for the rank's send instructions.
template <class Visit>
void MessageBatches::for_each_chunk(std::uint32_t gpu, const CommunicationRequest& request, Visit visit) {
  const auto& members = *request.members;
  if (members.size() == 1) return;
  const Schedule& schedule =
      library_.schedules.get(request.kind, static_cast<std::uint32_t>(members.size()), request.root);
  sizes_.open(schedule, library_.chunking(request), request.bytes);
  for (std::uint32_t block = 0; block < schedule.thread_blocks(); ++block) {
    const std::uint32_t count = schedule.instructions(request.index, block);
    for (std::uint32_t index = 0; index < count; ++index) {
      const Instruction instruction = schedule.instruction(request.index, block, index);
      if (instruction.op != Instruction::Op::send) continue;
      const std::uint32_t destination = members[instruction.peer];
      visit(destination, library_.endpoint.reach(gpu, destination), instruction.chunk);
    }
  }
}

Bytes MessageBatches::scale_out_bytes(std::uint32_t gpu, const CommunicationRequest& request) {
  Bytes sum = 0;
  for_each_chunk(gpu, request, [&](std::uint32_t, Reach reach, std::uint32_t chunk) {
    if (reach == Reach::scale_out) sum += sizes_.total(chunk);
  });
  return sum;
}

void MessageBatches::for_each(std::uint32_t gpu, const CommunicationRequest& request,
                              const Executor::BatchVisitor& visit) {
  const std::uint32_t channels = request.members->size() == 1 ? 1 : library_.chunking(request).channels;
  for_each_chunk(gpu, request, [&](std::uint32_t destination, Reach reach, std::uint32_t chunk) {
    for (const ChunkSizes::Size& size : sizes_.of(chunk)) {
      visit({destination, reach, channels, size.bytes, size.count});
    }
  });
}

}  // namespace netsim
