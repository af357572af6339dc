// RoleProgramSource: the TaskSource over a Program.
//
// Each role is unrolled once into flat arrays shared by its ranks. A rank stores only the counters of tasks
// between its oldest unfinished task and the furthest one that a finished task released. These are a few
// hundred numbers, however long the program is.
//
// Rules, beyond those of task.h:
// - Tasks of one (stream, queue) run in program order. An unordered task waits for its dependencies only.
//   Sends and receives of generated pipelines use this: transfers of different directions never hold each
//   other up.
// - A task that depends on nothing in its iteration starts after all of the rank's previous iteration, unless
//   it has dependencies on that iteration. In a program with such dependencies the order of a stream goes on
//   across iterations, and only the first tasks of streams and unordered tasks wait so. connect_iterations()
//   (iteration_edges.h) gives these an edge, too.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/workload/program/program.h"
#include "sim/workload/task_source.h"

namespace netsim {

// Returns a source of a program's tasks. It checks everything that parse_program() cannot. Every rank has to
// have one role, peers and roots have to be in range, and dependencies in the program. Ranks have to be
// members of the groups that they call. All members of a group have to call the same collectives, every send
// needs its receive, and ProgramLimits must hold. Throws InputError with `file` and path.
//
// `circuits` says where the user wrote the name of a circuit configuration; a name that is not in it is in
// the file. `notes` are those of TaskSource::notes().
std::unique_ptr<TaskSource> make_role_program_source(Program program, const std::string& file,
                                                     const std::map<std::string, Place>& circuits = {},
                                                     std::vector<std::string> notes = {});

}  // namespace netsim
