#include "sim/workload/program/program_memory.h"

#include <algorithm>
#include <map>
#include <utility>

namespace netsim {

bool ProgramMemory::change(RankId rank, const Task& task, bool begins, MemoryUse& use) const {
  const UnrolledRole& role = roles_[role_of_[rank]];
  const ProgramOp& op = operations_[role.operation(task.id % role.size())];
  if (op.memory_plus_one == 0) return false;
  const TaskMemory& memory = program_.memory[op.memory_plus_one - 1];
  const std::vector<MemoryChange>& changes = begins ? memory.begin : memory.end;
  for (const MemoryChange& change : changes) {
    use[change.kind] += change.bytes;
    if (change.table_plus_one == 0) continue;
    use[change.kind] += change.each * table_value(program_.tables[change.table_plus_one - 1], role_of_.size(),
                                                  rank, task.iteration);
  }
  return !changes.empty();
}

std::vector<MemoryPeak> ProgramMemory::planned() const {
  std::vector<MemoryPeak> peaks(roles_.size());
  std::vector<bool> known(roles_.size(), false);
  for (RankId rank = 0; rank < role_of_.size(); ++rank) {
    const std::uint32_t role = role_of_[rank];
    if (known[role]) continue;
    known[role] = true;
    peaks[role] = {rank, planned_peak(role)};
  }
  return peaks;
}

// Adds changes as they are for the rank with the most rows.
void ProgramMemory::add_largest(const std::vector<MemoryChange>& changes, MemoryUse& use) const {
  for (const MemoryChange& change : changes) {
    use[change.kind] += change.bytes;
    if (change.table_plus_one == 0) continue;
    const std::vector<std::int64_t>& rows = program_.tables[change.table_plus_one - 1];
    use[change.kind] += change.each * *std::max_element(rows.begin(), rows.end());
  }
}

MemoryUse ProgramMemory::planned_peak(std::uint32_t number) const {
  const UnrolledRole& role = roles_[number];
  MemoryUse now = program_.roles[number].resident, peak = now;
  // By stream queue: the memory of its last communication, which is released when it ends.
  std::map<std::pair<Stream, std::uint32_t>, const TaskMemory*> under_way;
  for (std::uint32_t i = 0; i < role.size(); ++i) {
    const ProgramOp& op = operations_[role.operation(i)];
    const TaskMemory* memory = op.memory_plus_one != 0 ? &program_.memory[op.memory_plus_one - 1] : nullptr;
    if (is_communication(op.kind)) {
      const TaskMemory*& before = under_way[{op.stream, op.queue}];
      if (before != nullptr) add_largest(before->end, now);
      before = memory;
    }
    if (memory == nullptr) continue;
    add_largest(memory->begin, now);
    if (now.total() > peak.total()) peak = now;
    if (!is_communication(op.kind)) add_largest(memory->end, now);
  }
  return peak;
}

}  // namespace netsim
