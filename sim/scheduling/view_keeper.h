// ViewKeeper: takes the values of views during a run, and hands out those that are old enough (views.h).
//
// It keeps the values of fields that a scheduler uses, if they are on and have an age or an `every`. Those of
// `loads` are always kept, because a load is a difference. A run without such fields has no history.
//
// Values are taken before schedulers decide at that time. Multiples up to the next event are left out,
// because the values after the last decision are valid until then. Taking is no event and counts as nothing
// pending (Engine::watch_interval), so it changes neither the run nor its end.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/units.h"
#include "sim/scheduling/demand_view.h"
#include "sim/scheduling/network_view.h"
#include "sim/scheduling/scheduling_intervals.h"
#include "sim/scheduling/view_history.h"
#include "sim/scheduling/views.h"

namespace netsim {

// Refuses ages and periods that the intervals cannot give, at their places in `scheduling`, the section of
// the configuration. Throws ConfigError.
void check_views(const ConfigNode& scheduling, const ViewTable& views, Time interval);

// Returns the fields of `used` that are on. Throws ConfigError where one of `required` is off. `who` names
// the scheduler for the message: "flow scheduler 'varys'".
ViewFields views_for(const ConfigNode& scheduling, const ViewTable& views, ViewFields used,
                     ViewFields required, const std::string& who);

class ViewKeeper {
 public:
  // `engine` must outlive this. `used` are the fields that the schedulers of the run use.
  ViewKeeper(Engine& engine, const ViewTable& views, Time interval, ViewFields used);
  ViewKeeper(const ViewKeeper&) = delete;
  ViewKeeper& operator=(const ViewKeeper&) = delete;

  const ViewClock& clock(ViewField field) const { return clocks_[static_cast<std::size_t>(field)]; }
  // Returns whether values of the field are kept.
  bool keeps(ViewField field) const { return kept_.has(field); }

  // Takes the values of a field at time `now`, as those of `time`, which is not earlier.
  using Take = std::function<void(Time now, Time time)>;
  // Lets `take` be called when values of the field are due, if they are kept. Called before begin().
  void keep(ViewField field, Take take);

  // Set the functions that make views of the fields `wanted` for a decision at `now`.
  using MakeNetwork = std::function<NetworkView(Time now, ViewFields wanted)>;
  using MakeDemand = std::function<DemandView(Time now, ViewFields wanted)>;
  void set_network(MakeNetwork make) { make_network_ = std::move(make); }
  void set_demand(MakeDemand make) { make_demand_ = std::move(make); }
  // Return the views for a decision at `now`. Without the function, or without fields, they are empty.
  NetworkView network(Time now, ViewFields wanted) const;
  DemandView demand(Time now, ViewFields wanted) const;

  // Takes the first values, and lets the intervals ask for more. Called once, when all subscribers of the
  // intervals are known. Without subscribers there are no decisions, and nothing is taken.
  void begin(SchedulingIntervals& intervals);

 private:
  struct Kept {
    ViewClock clock;
    Take take;
  };
  void take_due(Time now);
  void take_ahead(Time now);

  Engine& engine_;
  std::vector<ViewClock> clocks_;  // by ViewField
  ViewFields kept_;
  std::vector<Kept> fields_;
  MakeNetwork make_network_;
  MakeDemand make_demand_;
};

}  // namespace netsim
