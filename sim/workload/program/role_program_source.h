// RoleProgramSource: the TaskSource over a Program.
//
// Each role is unrolled once into flat arrays shared by its ranks. A rank holds only the counters of the
// tasks between its oldest unfinished task and the furthest one that a finished task released: a few hundred
// numbers, however long the program is.
//
// Rules, beyond those of task.h:
// - tasks of one (stream, queue) run in program order; an unordered task waits for its dependencies only.
//   Sends and receives of generated pipelines use this: transfers of different directions never hold each
//   other up.
// - a task that depends on nothing in its iteration starts after all of the rank's previous iteration, unless
//   it has dependencies on the previous iteration. In a program with such dependencies the order of a stream
//   goes on across iterations.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/workload/program/program.h"
#include "sim/workload/task.h"

namespace netsim {

// Checks all that parse_program() cannot see: every rank plays one role, peers and roots are in range, ranks
// are members of the groups that they call, dependencies reach into the program, all members of a group call
// the same collectives, every send has its receive, and the ProgramLimits. InputError with `file` and path.
// `circuits`: where the user wrote the name of a configuration; one that is not there is the file's. `notes`:
// TaskSource::notes().
std::unique_ptr<TaskSource> make_role_program_source(Program program, const std::string& file,
                                                     const std::map<std::string, Place>& circuits = {},
                                                     std::vector<std::string> notes = {});

}  // namespace netsim
