// Conversion of workloads: any workload that netsim reads, as netsim's own .pb, as Chakra execution traces,
// or in GOAL.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/collectives/execution/message_steps.h"
#include "sim/core/units.h"
#include "sim/workload/task_source.h"
#include "sim/workload/trace/goal_schedule.h"

namespace netsim {

struct ConversionRules {
  // GOAL has no collectives: algorithms by kind, "ring" or "{kind: multi_ring, rings: 4}". Kinds that are
  // missing take the default of CollectiveKindInfo.
  std::map<std::string, std::string> algorithms;
  // Returns the messages of one member of a communication, as a run has them. It then replaces `algorithms`.
  std::function<std::vector<MessageStep>(const CommunicationRequest&)> steps;
  // GOAL has no kernels: returns the time of a work of a rank, or nothing where it has none.
  std::function<std::optional<Time>(RankId, const Work&)> duration;
};

struct Conversion {
  std::vector<std::string> files;  // that were written
  std::vector<std::string> notes;  // what the notation does not hold
};

// Writes the workload. The ending of `target` names the notation: X.pb, X.goal, X.bin (GOAL, binary), or
// X.et. The latter are the files X.R.et of each rank R, and X.json with the communicators where there are
// any. Throws ConfigError for another ending. Throws InputError for a workload that the notation cannot hold,
// and IoError.
Conversion convert_workload(const TaskSource& source, const std::string& target,
                            const ConversionRules& rules);

// Returns the bytes of a .pb. A workload without a program is written task by task.
std::string program_bytes(const TaskSource& source);

// Returns the schedule in GOAL. Appends notes.
GoalSchedule goal_schedule(const TaskSource& source, const ConversionRules& rules,
                           std::vector<std::string>& notes);

}  // namespace netsim
