// Makes the task scheduler that the section `scheduling` names.
#pragma once

#include <memory>
#include <string>

#include "sim/core/config.h"
#include "sim/scheduling/task/task_scheduler.h"

namespace netsim {

// Returns the name of the task scheduler that the node chooses.
std::string task_scheduler_name(const ConfigNode& node);

// Makes that scheduler. Throws ConfigError for an unknown one and for wrong parameters. Among these are keys
// of the section that stand among the parameters, and names that no communication has
// (TaskScheduler::named_communications).
std::unique_ptr<TaskScheduler> make_task_scheduler(const ConfigNode& node);

}  // namespace netsim
