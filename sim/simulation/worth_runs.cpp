#include "sim/simulation/worth_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/text.h"
#include "sim/scheduling/scheduling_parameters.h"
#include "sim/simulation/used_views.h"

namespace netsim {
namespace {

std::string names_of(ViewFields set) {
  std::string names;
  for (const ViewField field : fields_in(set)) append_item(names, name_of(field));
  return names;
}

// Throws ConfigError if there is nothing to leave out.
void require_fields(const SchedulingParameters& scheduling, ViewFields used) {
  if (scheduling.jobs.is_null() && scheduling.tasks.is_null() && scheduling.flows.is_null()) {
    throw ConfigError(
        "--worth: the configuration names no scheduler, so nobody uses information that could be left out; "
        "name one in scheduling.flows, scheduling.jobs or scheduling.tasks, e.g. --set "
        "scheduling.flows=srpt");
  }
  if (used.empty()) {
    throw ConfigError(
        "--worth: the configured schedulers use no field of scheduling.views, so nothing can be left out; "
        "--describe of a scheduler says which fields it uses");
  }
  if (scheduling.views.on(used).empty()) {
    throw ConfigError("--worth: all fields that the configured schedulers use are off (scheduling.views): " +
                      names_of(used));
  }
}

WorthRun run_without(const std::string& field) {
  WorthRun run;
  run.name = "without_" + field;
  run.title = "without " + field;
  run.field = field;
  run.assignments = {"scheduling.views." + field + ".on=false"};
  return run;
}

WorthRun run_of_age(const std::string& field, Time age, Time configured) {
  const std::string text = age_text(age);
  std::string word = text;
  std::erase(word, ' ');
  WorthRun run;
  run.name = "age_" + field + "_" + word;
  run.title = field + ", age " + text;
  run.field = field;
  run.age = age;
  run.assignments = {"scheduling.views." + field + ".age=" + text};
  run.same_as_all = age == configured;
  return run;
}

// Plays a run other than `all`.
void play_variant(WorthRun& run, const WorthPlayer& play) {
  const auto refuse = [&run](const std::string& message) {
    run.state = "refused";
    run.message = message;
  };
  try {
    play(run);
  } catch (const ConfigError& error) {
    refuse(error.what());
  } catch (const InputError& error) {
    refuse(error.what());
  }
}

void copy_results(const WorthRun& from, WorthRun& to) {
  to.state = from.state;
  to.message = from.message;
  to.jobs = from.jobs;
  to.flows = from.flows;
}

}  // namespace

std::vector<WorthRun> worth_runs(const ConfigNode& root, const std::vector<Time>& ages) {
  const SchedulingParameters scheduling = scheduling_parameters().parse(section_of(root, "scheduling"));
  const ViewFields used = used_views(root);
  require_fields(scheduling, used);
  const std::vector<ViewField> fields = fields_in(scheduling.views.on(used));
  std::vector<WorthRun> runs(1);
  runs.front().name = runs.front().title = "all";
  for (const ViewField field : fields) runs.push_back(run_without(std::string(name_of(field))));
  for (const ViewField field : fields) {
    for (const Time age : ages)
      runs.push_back(run_of_age(std::string(name_of(field)), age, scheduling.views[field].age));
  }
  return runs;
}

void play_worth(Worth& worth, const WorthPlayer& play) {
  for (WorthRun& run : worth.runs) {
    WorthRun& all = worth.runs.front();
    if (&run == &all) {
      play(run);
    } else if (run.same_as_all) {
      copy_results(all, run);
    } else {
      play_variant(run, play);
    }
    if (run.state == to_string(Outcome::interrupted)) return;
  }
}

}  // namespace netsim
