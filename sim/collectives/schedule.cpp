#include "sim/collectives/schedule.h"

namespace netsim {

const char* to_string(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "all_reduce";
    case CollectiveKind::all_gather:
      return "all_gather";
    case CollectiveKind::reduce_scatter:
      return "reduce_scatter";
    case CollectiveKind::all_to_all:
      return "all_to_all";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::point_to_point:
      return "point_to_point";
  }
  return "unknown";
}

Bytes bytes_sent(const Schedule& schedule, std::uint32_t rank, Bytes bytes) {
  Bytes sum = 0;
  for (std::uint32_t thread = 0; thread < schedule.threads(); ++thread) {
    const std::uint32_t count = schedule.instructions(rank, thread);
    for (std::uint32_t index = 0; index < count; ++index) {
      const Instruction instruction = schedule.instruction(rank, thread, index);
      if (instruction.op != Instruction::Op::send) continue;
      sum += share(bytes, schedule.divisions(), instruction.chunk % schedule.divisions());
    }
  }
  return sum;
}

}  // namespace netsim
