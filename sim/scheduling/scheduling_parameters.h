// The section `scheduling` of the configuration. It must not be confused with `network.switch.scheduler`, the
// queue discipline of switches.
#pragma once

#include "sim/core/config.h"
#include "sim/core/parameters.h"
#include "sim/core/units.h"
#include "sim/scheduling/views.h"

namespace netsim {

// SchedulingParameters: how jobs, tasks and flows are scheduled.
struct SchedulingParameters {
  Time interval =
      kMicrosecond;    // simulated time from one possible decision to the next (SchedulingIntervals)
  ConfigNode jobs;     // the job scheduler; null: none, jobs run in the order of their arrivals
  ConfigNode tasks;    // the task scheduler; null: none
  bool agreed = true;  // `order: agreed`; false: `order: local`
  Time latency = 10 * kMicrosecond;
  ConfigNode flows;     // the flow scheduler; null: none
  Time flow_delay = 0;  // from a decision about flows until it acts
  // How long a flow without messages under way is remembered. An assumption: longer than the pauses between
  // the messages of a collective, and shorter than an iteration.
  Time flow_idle = kMillisecond;
  ViewTable views;    // what schedulers see of other layers
  ConfigNode splits;  // the flow splitter; null: none, messages take one NIC as a whole
};
const Parameters<SchedulingParameters>& scheduling_parameters();

}  // namespace netsim
