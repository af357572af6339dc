#include "sim/report/compare/set_comparison.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

namespace netsim::compare {
namespace {

using PointValues = std::vector<std::string>;

// PointRuns: the runs of a set at one point, which differ in their seeds.
struct PointRuns {
  PointValues values;
  std::vector<const Observation*> runs;
};

// Returns the value of a setting, or "" where a run has no such setting.
std::string setting_in(const Settings& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() ? "" : found->second;
}

// Returns the settings that have one value in all runs of a set.
Settings constant_settings(const StoredSet& set) {
  if (set.runs.empty()) return {};
  Settings constant = set.runs.front().settings;
  for (const Observation& run : set.runs)
    std::erase_if(constant,
                  [&run](const auto& each) { return setting_in(run.settings, each.first) != each.second; });
  return constant;
}

// Adds the names of the settings that vary within a set.
void add_varying(const StoredSet& set, std::set<std::string>& names) {
  const Settings constant = constant_settings(set);
  for (const Observation& run : set.runs) {
    for (const auto& [name, value] : run.settings) {
      if (constant.find(name) == constant.end()) names.insert(name);
    }
  }
}

std::set<std::string> varying_settings(const StoredSet& a, const StoredSet& b) {
  std::set<std::string> names;
  add_varying(a, names);
  add_varying(b, names);
  return names;
}

// Returns the axes that both sweeps have, or the settings that vary within a folder of runs. Seeds are no
// axis, and the hash of a workload's content goes with its name.
std::vector<std::string> common_axes(const StoredSet& a, const StoredSet& b) {
  std::vector<std::string> axes;
  if (a.is_sweep) {
    std::copy_if(a.axes.begin(), a.axes.end(), std::back_inserter(axes), [&b](const std::string& axis) {
      return std::find(b.axes.begin(), b.axes.end(), axis) != b.axes.end();
    });
    return axes;
  }
  std::set<std::string> names = varying_settings(a, b);
  names.erase("seed");
  names.erase("workload content");
  return {names.begin(), names.end()};
}

std::vector<PointRuns> points_of(const StoredSet& set, const std::vector<std::string>& axes) {
  std::vector<PointRuns> points;
  std::map<PointValues, std::size_t> known;
  for (const Observation& run : set.runs) {
    PointValues values;
    for (const std::string& axis : axes)
      values.push_back(setting_in(set.is_sweep ? run.axes : run.settings, axis));
    const auto [entry, is_new] = known.try_emplace(values, points.size());
    if (is_new) points.push_back({values, {}});
    points[entry->second].runs.push_back(&run);
  }
  return points;
}

std::vector<double> values_at(const PointRuns& point, const std::string& figure) {
  std::vector<double> values;
  for (const Observation* run : point.runs) {
    if (const auto found = run->figures.find(figure); found != run->figures.end())
      values.push_back(found->second);
  }
  return values;
}

ComparedPoint compared_point(const PointRuns& a, const PointRuns& b) {
  std::set<std::string> names;
  for (const Observation* run : a.runs) {
    for (const auto& figure : run->figures) names.insert(figure.first);
  }
  ComparedPoint point{a.values, {}};
  for (const std::string& name : names) {
    SpreadDifference each{name, spread_of(values_at(a, name)), spread_of(values_at(b, name)), std::nullopt};
    if (each.b.count == 0) continue;
    each.probability = welch_test(each.a, each.b);
    point.figures.push_back(std::move(each));
  }
  return point;
}

std::string point_name(const PointValues& values) {
  std::string name;
  for (const std::string& value : values) append_item(name, value.empty() ? "(none)" : value);
  return name;
}

void match_points(const StoredSet& a, const StoredSet& b, SetComparison& comparison) {
  const std::vector<PointRuns> of_a = points_of(a, comparison.axes), of_b = points_of(b, comparison.axes);
  const auto at = [](const std::vector<PointRuns>& points, const PointValues& values) {
    return std::ranges::find(points, values, &PointRuns::values);
  };
  for (const PointRuns& point : of_a) {
    const auto other = at(of_b, point.values);
    if (other == of_b.end()) {
      comparison.only_a.push_back(point_name(point.values));
    } else {
      comparison.points.push_back(compared_point(point, *other));
    }
  }
  for (const PointRuns& point : of_b) {
    if (at(of_a, point.values) == of_a.end()) comparison.only_b.push_back(point_name(point.values));
  }
}

// Notes axes that only one of two sweeps has. Points are then means over them.
void note_axes(const StoredSet& set, const SetComparison& comparison, std::vector<std::string>& notes) {
  for (const std::string& axis : set.axes) {
    if (std::find(comparison.axes.begin(), comparison.axes.end(), axis) == comparison.axes.end()) {
      notes.push_back("Only " + set.directory + " has the axis '" + axis +
                      "': its points are means over that axis too, and spreads contain it.");
    }
  }
}

void note_programs(const StoredSet& a, const StoredSet& b, std::vector<std::string>& notes) {
  std::set<std::string> programs(a.programs.begin(), a.programs.end());
  programs.insert(b.programs.begin(), b.programs.end());
  if (programs.size() < 2) return;
  std::string list;
  for (const std::string& program : programs) append_item(list, program);
  notes.push_back("The runs are of different versions of netsim (" + list +
                  "). Differences may come from the program.");
}

bool is_of_description(const Settings::value_type& setting) { return setting.first.starts_with("workload."); }

// Returns whether the values of the workload's description are known for all runs.
bool have_descriptions(const StoredSet& set) {
  return std::ranges::all_of(set.runs, [](const Observation& run) {
    return std::any_of(run.settings.begin(), run.settings.end(), is_of_description);
  });
}

void drop_descriptions(StoredSet& set) {
  for (Observation& run : set.runs) std::erase_if(run.settings, is_of_description);
}

// Returns whether both sets have a figure that differs or is above 0 at some point.
bool has_figure(const SetComparison& comparison, const std::string& name) {
  return std::ranges::any_of(comparison.points, [&name](const ComparedPoint& point) {
    const SpreadDifference* figure = point.find(name);
    return figure != nullptr && (figure->a.mean != 0 || figure->b.mean != 0);
  });
}

}  // namespace

const SpreadDifference* ComparedPoint::find(const std::string& name) const {
  const auto found = std::ranges::find(figures, name, &SpreadDifference::name);
  return found == figures.end() ? nullptr : &*found;
}

SetComparison compare_sets(StoredSet a, StoredSet b, double significance) {
  if (!have_descriptions(a) || !have_descriptions(b)) {
    drop_descriptions(a);
    drop_descriptions(b);
  }
  SetComparison comparison;
  comparison.a = a.directory;
  comparison.b = b.directory;
  comparison.significance = significance;
  comparison.axes = common_axes(a, b);
  const std::set<std::string> varying = varying_settings(a, b);
  for (SettingChange& each : setting_changes(constant_settings(a), constant_settings(b))) {
    if (each.name != "seed" && varying.count(each.name) == 0) comparison.settings.push_back(std::move(each));
  }
  for (const StoredSet* set : {&a, &b}) {
    comparison.notes.insert(comparison.notes.end(), set->notes.begin(), set->notes.end());
    note_axes(*set, comparison, comparison.notes);
  }
  note_programs(a, b, comparison.notes);
  match_points(a, b, comparison);
  return comparison;
}

std::vector<std::string> leading_figures(const SetComparison& comparison) {
  constexpr std::size_t kMost = 4;
  const bool computes = has_figure(comparison, "jobs.0.compute_s");
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (names.size() < kMost && has_figure(comparison, name)) names.push_back(name);
  };
  if (computes) {
    for (const char* name :
         {"jobs.0.iteration_time_s", "jobs.0.exposed_communication_s", "jobs.1.iteration_time_s"})
      add(name);
  }
  for (const char* name : {"flows.fct_mean_s", "flows.fct_p99_s", "jobs.0.jct_s", "network.max_queue_bytes"})
    add(name);
  return names;
}

}  // namespace netsim::compare
