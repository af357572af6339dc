// list_program: makes a program of any workload, task by task, with other ranks or works if wanted.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/ids.h"
#include "sim/workload/task_source.h"

namespace netsim {

// ProgramChanges: how a program differs from its workload. A function that is empty changes nothing.
struct ProgramChanges {
  std::uint32_t ranks = 0;  // ranks of the program; 0: those of the workload
  // Returns the rank of the workload whose tasks a rank of the program has.
  std::function<RankId(RankId rank)> original;
  // Returns the ranks of the program for a peer or a group of the workload, as `rank` of the program has it.
  std::function<RankId(RankId peer, RankId rank)> peer;
  std::function<std::vector<RankId>(const std::vector<RankId>& group, RankId rank)> group;
  std::function<Work(TaskKind kind, const Work& work)> work;
  std::vector<std::string> notes;  // beside those of the workload
};

// Lists the tasks of all iterations as one program of one iteration. Throws InputError for a task that a
// program cannot have.
std::unique_ptr<TaskSource> list_program(const TaskSource& source, const ProgramChanges& changes);

// Throws InputError because a notation cannot hold a task. `what` is what it lacks.
[[noreturn]] void refuse_conversion(const TaskSource& source, RankId rank, const Task& task,
                                    const std::string& what);

}  // namespace netsim
