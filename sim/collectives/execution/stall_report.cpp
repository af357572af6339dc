#include "sim/collectives/execution/stall_report.h"

#include <fmt/format.h>

namespace netsim {
namespace {

// "all_reduce 0x2a", of other jobs than the first "all_reduce 0x2a of job 1".
std::string communication_name(const char* kind, const CommunicationRequest& request) {
  const std::string name = fmt::format("{} {:#x}", kind, request.communication);
  return request.traits.job == 0 ? name : fmt::format("{} of job {}", name, request.traits.job);
}

std::string next_instruction(const Operation& operation, std::uint32_t number) {
  using Op = Instruction::Op;
  const Instruction instruction =
      operation.schedule->instruction(operation.request.index, number % operation.thread_blocks_per_channel,
                                      operation.thread_blocks[number].instruction);
  if (instruction.op == Op::wait) return fmt::format("waits for thread block {}", instruction.peer);
  const std::uint32_t peer = (*operation.request.members)[instruction.peer];
  if (instruction.op == Op::send) {
    return fmt::format("waits to send chunk {} to gpu {} ({} sends in flight)", instruction.chunk, peer,
                       operation.in_flight.get({peer, number}));
  }
  return fmt::format("waits to {} chunk {} from gpu {}", instruction.op == Op::reduce ? "reduce" : "receive",
                     instruction.chunk, peer);
}

std::string describe_block(const Operation& operation, std::uint32_t number) {
  const ThreadBlock& block = operation.thread_blocks[number];
  return fmt::format("round {} of {}: channel {} thread block {} {}", block.round + 1, block.rounds,
                     number / operation.thread_blocks_per_channel,
                     number % operation.thread_blocks_per_channel, next_instruction(operation, number));
}

}  // namespace

std::string describe(const Operation& operation) {
  if (operation.phase == Operation::Phase::announced) {
    return fmt::format("gpu {}: {} messages of {} arrived, which the GPU has not started", operation.gpu,
                       operation.arrived.total(), communication_name("communication", operation.request));
  }
  const std::string name = fmt::format(
      "gpu {}: {}", operation.gpu, communication_name(to_string(operation.request.kind), operation.request));
  if (operation.phase == Operation::Phase::entered) return name + " is in its base latency";
  for (std::uint32_t number = 0; number < operation.thread_blocks.size(); ++number) {
    if (!operation.thread_blocks[number].done()) return name + " " + describe_block(operation, number);
  }
  return fmt::format("{} waits for the acknowledgement of {} sends", name, operation.in_flight.total());
}

}  // namespace netsim
