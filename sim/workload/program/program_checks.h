// Checks across ranks. They find errors that would otherwise only show as a stalled job.
#pragma once

#include <string>
#include <vector>

#include "sim/workload/program/program.h"
#include "sim/workload/program/rank_grid.h"
#include "sim/workload/program/unrolled_role.h"

namespace netsim {

// CheckedProgram: the data that the checks read, which belongs to the caller.
struct CheckedProgram {
  const Program& program;
  const RankGrid& grid;
  const GroupTable& groups;
  const OperationList& operations;
  const std::vector<UnrolledRole>& roles;
  const std::vector<std::vector<RankId>>& ranks_of_role;
  const std::string& file;
};

// Checks that peers, roots, group membership and table values are right for every rank that uses them. Throws
// InputError.
void check_operations(const CheckedProgram& checked);
// Checks that a network of `classes` data classes has the class of every operation. Throws InputError.
void check_classes(const Program& program, std::int64_t classes, const std::string& file);
// Checks that all members of a group call the same collectives (kinds, roots, bytes, classes) and ask for the
// same circuits, in the same order. Throws InputError.
void check_collectives(const CheckedProgram& checked);
// Checks for each (sender, receiver, tag) that as many messages and bytes are sent as received, raw at both
// ends or at none. Throws InputError.
void check_messages(const CheckedProgram& checked);

}  // namespace netsim
