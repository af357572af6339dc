#include "sim/collectives/schedule.h"

namespace netsim {

Bytes bytes_sent(const Schedule& schedule, std::uint32_t rank, Bytes bytes) {
  Bytes sum = 0;
  for (std::uint32_t thread_block = 0; thread_block < schedule.thread_blocks(); ++thread_block) {
    const std::uint32_t count = schedule.instructions(rank, thread_block);
    for (std::uint32_t index = 0; index < count; ++index) {
      const Instruction instruction = schedule.instruction(rank, thread_block, index);
      if (instruction.op != Instruction::Op::send) continue;
      sum += share(bytes, schedule.divisions(), instruction.chunk % schedule.divisions());
    }
  }
  return sum;
}

}  // namespace netsim
