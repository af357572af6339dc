#include "sim/scheduling/view_keeper.h"

#include <fmt/format.h>

#include <algorithm>

namespace netsim {
namespace {

// The fields of the network that `network()` fills, and those of the demand that `demand()` fills.
constexpr ViewFields kNetworkFields{ViewField::loads,    ViewField::queues,   ViewField::rates,
                                    ViewField::failures, ViewField::circuits, ViewField::stalls};
constexpr ViewFields kDemandFields{ViewField::coming, ViewField::deadlines, ViewField::slack,
                                   ViewField::phases, ViewField::jobs};

// Returns the node of `scheduling.views.FIELD.KEY`, or the nearest one above it that exists.
const ConfigNode& setting_of(const ConfigNode& scheduling, ViewField field, const char* key) {
  const ConfigNode* at = &scheduling;
  for (const std::string& name : {std::string("views"), std::string(name_of(field)), std::string(key)}) {
    const ConfigNode* next = at->is_map() ? at->find(name) : nullptr;
    if (next == nullptr) return *at;
    at = next;
  }
  return *at;
}

// Returns why a field has no age; "" if it has one.
std::string_view why_ageless(ViewField field) {
  if (field == ViewField::topology) return "the topology does not change";
  if (field == ViewField::phases) return "the phases of a job are measured once for its GPUs";
  return "";
}

void check_field(const ConfigNode& scheduling, const ViewSettings& settings, ViewField field, Time interval) {
  const std::string name = fmt::format("scheduling.views.{}", name_of(field));
  if (const std::string_view reason = why_ageless(field);
      !reason.empty() && (settings.age > 0 || settings.every > 0)) {
    setting_of(scheduling, field, settings.age > 0 ? "age" : "every")
        .fail(fmt::format("{} has neither an age nor a period, because {} (allowed: `on`)", name, reason));
  }
  if (settings.age > 0 && settings.age < interval) {
    setting_of(scheduling, field, "age")
        .fail(
            fmt::format("{}.age is {}, below scheduling.interval, which is {} (allowed: 0, and at least the "
                        "interval)",
                        name, format_time(settings.age), format_time(interval)));
  }
  if (settings.every > 0 && (settings.every < interval || settings.every % interval != 0)) {
    setting_of(scheduling, field, "every")
        .fail(fmt::format("{}.every is {}, and scheduling.interval is {} (allowed: 0, and multiples of the "
                          "interval)",
                          name, format_time(settings.every), format_time(interval)));
  }
}

}  // namespace

void check_views(const ConfigNode& scheduling, const ViewTable& views, Time interval) {
  for (const ViewField field : fields_in(ViewFields::all()))
    check_field(scheduling, views[field], field, interval);
}

ViewFields views_for(const ConfigNode& scheduling, const ViewTable& views, ViewFields used,
                     ViewFields required, const std::string& who) {
  for (const ViewField field : fields_in(required)) {
    if (views[field].on) continue;
    setting_of(scheduling, field, "on")
        .fail(fmt::format("{} cannot do without `{}`: scheduling.views.{}.on is false", who, name_of(field),
                          name_of(field)));
  }
  return views.on(used);
}

ViewKeeper::ViewKeeper(Engine& engine, const ViewTable& views, Time interval, ViewFields used)
    : engine_(engine) {
  clocks_.reserve(kViewFields);
  for (const ViewField field : fields_in(ViewFields::all())) {
    clocks_.emplace_back(views[field], interval, field == ViewField::loads);
    if (!clocks_.back().is_live() && views.on(used).has(field)) kept_ = kept_ | ViewFields{field};
  }
}

void ViewKeeper::keep(ViewField field, Take take) {
  if (keeps(field)) fields_.push_back({clock(field), std::move(take)});
}

NetworkView ViewKeeper::network(Time now, ViewFields wanted) const {
  const ViewFields fields = wanted & kNetworkFields;
  return fields.empty() || !make_network_ ? NetworkView() : make_network_(now, fields);
}

DemandView ViewKeeper::demand(Time now, ViewFields wanted) const {
  const ViewFields fields = wanted & kDemandFields;
  return fields.empty() || !make_demand_ ? DemandView() : make_demand_(now, fields);
}

void ViewKeeper::begin(SchedulingIntervals& intervals) {
  if (fields_.empty() || !intervals.has_subscribers()) return;
  engine_.watch_interval([this](Time now, Engine::WatchPhase phase) {
    phase == Engine::WatchPhase::before ? take_due(now) : take_ahead(now);
  });
  take_due(0);
  engine_.watch_interval_at(0);
}

void ViewKeeper::take_due(Time now) {
  for (const Kept& field : fields_) {
    if (now % field.clock.every() == 0) field.take(now, now);
  }
}

// Nothing changes before the next event or call. So the present values are those of all times up to there at
// which values are due.
void ViewKeeper::take_ahead(Time now) {
  const Time event = engine_.pending() > 0 ? engine_.next_time() : kNever;
  Time next = kNever;
  for (const Kept& field : fields_) {
    const Time due = field.clock.first_from(now + 1);
    const bool changes = event != kNever && event <= due;
    if (!changes) field.take(now, due);
    next = std::min(next, event == kNever ? due : std::max(due, field.clock.first_from(event)));
  }
  engine_.watch_interval_at(next);
}

}  // namespace netsim
