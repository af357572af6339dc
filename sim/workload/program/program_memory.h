// ProgramMemory: the MemoryPlan of a program that declares the memory of its operations.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/ids.h"
#include "sim/workload/memory_plan.h"
#include "sim/workload/program/program.h"
#include "sim/workload/program/unrolled_role.h"

namespace netsim {

class ProgramMemory final : public MemoryPlan {
 public:
  // All arguments must outlive this. `role_of` is by rank.
  ProgramMemory(const Program& program, const OperationList& operations,
                const std::vector<UnrolledRole>& roles, const std::vector<std::uint32_t>& role_of)
      : program_(program), operations_(operations), roles_(roles), role_of_(role_of) {}

  const MemoryUse& resident(RankId rank) const override { return program_.roles[role_of_[rank]].resident; }
  bool change(RankId rank, const Task& task, bool begins, MemoryUse& use) const override;
  std::uint32_t role(RankId rank) const override { return role_of_[rank]; }
  std::vector<MemoryPeak> planned() const override;

 private:
  MemoryUse planned_peak(std::uint32_t role) const;
  void add_largest(const std::vector<MemoryChange>& changes, MemoryUse& use) const;

  const Program& program_;
  const OperationList& operations_;
  const std::vector<UnrolledRole>& roles_;
  const std::vector<std::uint32_t>& role_of_;
};

}  // namespace netsim
