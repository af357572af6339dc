#include "sim/simulation/used_views.h"

#include "sim/configuration/configuration.h"
#include "sim/core/registry.h"
#include "sim/jobs/make_task_scheduler.h"
#include "sim/scheduling/flow/flow_scheduler.h"
#include "sim/scheduling/job/job_scheduler.h"
#include "sim/scheduling/scheduling_parameters.h"

namespace netsim {
namespace {

template <class Scheduler>
ViewFields views_of(const ConfigNode& node, const char* otherwise) {
  if (node.is_null() && *otherwise == '\0') return {};
  return Registry<Scheduler>::instance().create(node, otherwise)->needs().views;
}

}  // namespace

ViewFields used_views(const ConfigNode& root) {
  const SchedulingParameters parameters = scheduling_parameters().parse(section_of(root, "scheduling"));
  const ViewFields of_tasks =
      parameters.tasks.is_null() ? ViewFields() : make_task_scheduler(parameters.tasks)->needs().views;
  return views_of<JobScheduler>(parameters.jobs, "fifo") | views_of<FlowScheduler>(parameters.flows, "") |
         of_tasks;
}

}  // namespace netsim
