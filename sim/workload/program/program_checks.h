// Checks across ranks: what would otherwise only show as a job that stalls.
#pragma once

#include <string>
#include <vector>

#include "sim/workload/program/program.h"
#include "sim/workload/program/rank_grid.h"
#include "sim/workload/program/unrolled_role.h"

namespace netsim {

// What the checks look at; all of it belongs to the caller.
struct CheckedProgram {
  const Program& program;
  const RankGrid& grid;
  const GroupTable& groups;
  const OperationList& operations;
  const std::vector<UnrolledRole>& roles;
  const std::vector<std::vector<std::uint32_t>>& ranks_of_role;
  const std::string& file;
};

// Peers, roots, group membership and table values are right for every rank that uses them. InputError.
void check_operations(const CheckedProgram& checked);
// All members of a group call the same collectives (kinds, roots, bytes) and ask for the same circuits, in
// the same order on each. InputError.
void check_collectives(const CheckedProgram& checked);
// Per (sender, receiver, tag): as many messages and bytes sent as received, raw at both ends or at none.
// InputError.
void check_messages(const CheckedProgram& checked);

}  // namespace netsim
