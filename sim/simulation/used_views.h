// The fields of views that the schedulers of a configuration use (sim/scheduling/views.h).
#pragma once

#include "sim/core/config.h"
#include "sim/scheduling/views.h"

namespace netsim {

// Returns the union of needs().views of the job, flow and task schedulers that the configuration `root`
// names, whether the fields are on or not. Without a job scheduler `fifo` counts. Throws ConfigError for an
// invalid section `scheduling`.
ViewFields used_views(const ConfigNode& root);

}  // namespace netsim
