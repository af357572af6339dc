#include "sim/scheduling/scheduling_parameters.h"

#include "sim/scheduling/flow/flow_scheduler.h"
#include "sim/scheduling/job/job_scheduler.h"
#include "sim/scheduling/task/task_scheduler.h"

namespace netsim {

const Parameters<SchedulingParameters>& scheduling_parameters() {
  using P = SchedulingParameters;
  static const auto parameters =
      Parameters<P>()
          .time("interval", &P::interval, {kNanosecond, kSecond},
                "simulated time from one possible decision of the schedulers of jobs and flows to the next; "
                "intervals in which nobody asks for a decision are left out. It is not about "
                "network.switch.scheduler, the queue discipline of switches")
          .component(
              "jobs", &P::jobs, JobScheduler::kComponentKind, "",
              "the job scheduler, which decides which jobs have GPUs; each job then gets its GPUs at its "
              "arrival or later; default: none, so that jobs that fit together are placed before the "
              "run, and others wait in the order of their arrivals")
          .component("tasks", &P::tasks, TaskScheduler::kComponentKind, "",
                     "the task scheduler, which decides which communication a rank launches next; default: "
                     "none, so that the communications of a stream run in program order")
          .choice(
              "order", &P::agreed, {{"agreed", true}, {"local", false}},
              "who orders collectives: `agreed` lets the first rank of a group decide and tell the others; "
              "with `local` each rank decides for itself, and a run whose ranks disagree stalls")
          .time("latency", &P::latency, {kNanosecond, kSecond},
                "time from a decision of the first rank of a group until the others know it")
          .component("flows", &P::flows, FlowScheduler::kComponentKind, "",
                     "the flow scheduler, which decides how the flows of all jobs use the fabric: class, "
                     "priority, rate, path and hold; default: none, so that all flows are sent at once")
          .time("flow_delay", &P::flow_delay, {0, kSecond},
                "time from a decision of the flow scheduler about all flows until it acts at the hosts")
          .time("flow_idle", &P::flow_idle, {0, kSecond},
                "how long a flow without messages under way is remembered: with its rate, its path and the "
                "bytes that it has sent")
          .section("views", &P::views, view_parameters(),
                   "the information about other layers that schedulers get, by field: each can be switched "
                   "off, aged, and taken less often");
  return parameters;
}

}  // namespace netsim
