#include "sim/report/compare/run_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace netsim::compare {
namespace {

template <class Map>
auto value_in(const Map& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? std::nullopt : std::optional<typename Map::mapped_type>(found->second);
}

template <class Map>
std::set<std::string> keys_of(const Map& a, const Map& b) {
  std::set<std::string> keys;
  for (const Map* map : {&a, &b}) {
    for (const auto& entry : *map) keys.insert(entry.first);
  }
  return keys;
}

// Returns whether a figure is a time of a job, which has its place in JobDifference.
bool is_time_of_job(std::string_view name) {
  if (!name.starts_with("jobs.")) return false;
  if (name.find(".exposed_by.") != std::string_view::npos) return true;
  return std::ranges::any_of(std::vector<std::string_view>{".jct_s", ".iteration_time_s", ".compute_s",
                                                           ".exposed_communication_s", ".idle_s"},
                             [&name](std::string_view end) { return name.ends_with(end); });
}

std::vector<Difference> notable_figures(const StoredRun& a, const StoredRun& b) {
  std::vector<Difference> notable;
  for (const std::string& name : keys_of(a.figures, b.figures)) {
    Difference each{name, value_in(a.figures, name), value_in(b.figures, name)};
    if (!is_time_of_job(name) && each.is_notable()) notable.push_back(std::move(each));
  }
  return notable;
}

double total_of(const StoredJob& job) {
  double total = 0;
  for (const auto& part : job.parts) total += part.second;
  return total;
}

std::vector<PartDifference> part_differences(const StoredJob& a, const StoredJob& b) {
  std::vector<PartDifference> parts;
  const double total_a = total_of(a), total_b = total_of(b);
  const std::map<std::string, double> others(b.parts.begin(), b.parts.end());
  for (const auto& [name, seconds] : a.parts) {
    const std::optional<double> other = value_in(others, name);
    if (seconds == 0 && other.value_or(0) == 0) continue;
    parts.push_back({{name, seconds, other},
                     total_a > 0 ? seconds / total_a : 0,
                     total_b > 0 ? other.value_or(0) / total_b : 0});
  }
  return parts;
}

bool computes(const StoredJob& job) {
  return std::ranges::any_of(job.parts,
                             [](const auto& part) { return part.first == "compute" && part.second > 0; });
}

JobDifference job_difference(const StoredJob& a, const StoredJob& b) {
  JobDifference job;
  job.name = a.name == b.name ? a.name : a.name + " -> " + b.name;
  job.times = {{"jct_s", a.jct_s, b.jct_s},
               {"iteration_time_s", a.iteration_time_s, b.iteration_time_s},
               {"iteration_p99_s", a.iteration_p99_s, b.iteration_p99_s},
               {"exposed_communication_s", a.exposed_s, b.exposed_s}};
  job.parts = part_differences(a, b);
  job.computes = computes(a) || computes(b);
  return job;
}

// Matches jobs by their names, and two only jobs whatever their names are.
void compare_jobs(const StoredRun& a, const StoredRun& b, RunComparison& comparison) {
  if (a.jobs.size() == 1 && b.jobs.size() == 1) {
    comparison.jobs.push_back(job_difference(a.jobs.front(), b.jobs.front()));
    return;
  }
  const auto named = [](const StoredRun& run, const std::string& name) {
    return std::ranges::find(run.jobs, name, &StoredJob::name);
  };
  std::string only_a, only_b;
  for (const StoredJob& job : a.jobs) {
    const auto other = named(b, job.name);
    if (other == b.jobs.end()) {
      append_item(only_a, job.name);
    } else {
      comparison.jobs.push_back(job_difference(job, *other));
    }
  }
  for (const StoredJob& job : b.jobs) {
    if (named(a, job.name) == a.jobs.end()) append_item(only_b, job.name);
  }
  if (!only_a.empty()) comparison.notes.push_back("Only A has the jobs " + only_a + ".");
  if (!only_b.empty()) comparison.notes.push_back("Only B has the jobs " + only_b + ".");
}

void compare_collectives(const StoredRun& a, const StoredRun& b, RunComparison& comparison) {
  std::size_t only_one = b.collectives.size();
  for (const StoredCollective& of_a : a.collectives) {
    const auto of_b = std::ranges::find(b.collectives, of_a.name, &StoredCollective::name);
    if (of_b == b.collectives.end()) {
      ++only_one;
      continue;
    }
    --only_one;
    CollectiveDifference each{of_a.name,
                              of_a.algorithm,
                              of_b->algorithm,
                              {"busbw_GBps", of_a.busbw_GBps, of_b->busbw_GBps},
                              {"time_s", of_a.time_s, of_b->time_s}};
    if (each.algorithm_a != each.algorithm_b || each.busbw_GBps.is_notable() || each.time_s.is_notable())
      comparison.collectives.push_back(std::move(each));
  }
  if (only_one > 0) {
    comparison.notes.push_back(
        fmt::format("Kinds of collectives (by ranks and size) that only one of the runs has: {}.", only_one));
  }
}

void compare_links(const StoredRun& a, const StoredRun& b, RunComparison& comparison) {
  if (!a.links || !b.links) {
    comparison.notes.push_back(std::string("Links are not compared, because ") + (a.links ? "B" : "A") +
                               " has no links.csv.");
    return;
  }
  std::map<std::string, const StoredLink*> others;
  for (const StoredLink& link : *b.links) others[link.name] = &link;
  std::size_t matched = 0;
  for (const StoredLink& link : *a.links) {
    const auto found = others.find(link.name);
    if (found == others.end()) continue;
    const StoredLink& other = *found->second;
    ++matched;
    if (link.utilisation == other.utilisation && link.wire_bytes == other.wire_bytes &&
        link.max_queue_bytes == other.max_queue_bytes)
      continue;
    comparison.links.push_back({link.name,
                                link.kind,
                                {"utilisation", link.utilisation, other.utilisation},
                                {"wire_bytes", link.wire_bytes, other.wire_bytes},
                                {"max_queue_bytes", link.max_queue_bytes, other.max_queue_bytes}});
  }
  std::ranges::stable_sort(comparison.links, std::greater<>(), [](const LinkDifference& link) {
    return std::abs(link.utilisation.difference().value_or(0));
  });
  const std::size_t only_one = a.links->size() + b.links->size() - 2 * matched;
  if (only_one > 0)
    comparison.notes.push_back(fmt::format("Links that only one of the runs has: {}.", only_one));
}

void note_outcome(const char* side, const StoredRun& run, RunComparison& comparison) {
  if (run.outcome == "done") return;
  comparison.notes.push_back(std::string(side) + " ended as '" + run.outcome +
                             "': its times are totals so far, and not those of an iteration.");
}

}  // namespace

std::vector<SettingChange> setting_changes(const Settings& a, const Settings& b) {
  std::vector<SettingChange> changes;
  for (const std::string& name : keys_of(a, b)) {
    SettingChange each{name, value_in(a, name), value_in(b, name)};
    if (each.a != each.b) changes.push_back(std::move(each));
  }
  return changes;
}

std::optional<double> Difference::difference() const {
  if (!a || !b) return std::nullopt;
  return *b - *a;
}

std::optional<double> Difference::change() const {
  if (!a || !b) return std::nullopt;
  if (*a == *b) return 0.0;
  if (*a == 0) return std::nullopt;
  return (*b - *a) / std::abs(*a);
}

bool Difference::is_notable() const {
  if (!a || !b) return a.has_value() != b.has_value();
  if (*a == *b) return false;
  const std::optional<double> relative = change();
  return !relative || std::abs(*relative) > kLeastChange;
}

std::string version_note(const StoredRun& a, const StoredRun& b) {
  const auto text = [](const StoredRun& run) {
    return run.version + " (" + (run.commit.empty() ? "built outside git" : "commit " + run.commit) + ")";
  };
  if (a.version == b.version && a.commit == b.commit) return "";
  return "The runs are of different versions of netsim, " + text(a) + " and " + text(b) +
         ". Differences may come from the program.";
}

RunComparison compare_runs(const StoredRun& a, const StoredRun& b) {
  RunComparison comparison;
  comparison.a = a.directory;
  comparison.b = b.directory;
  comparison.same_results = a.results == b.results;
  const bool with_workload = a.workload && b.workload;
  comparison.settings = setting_changes(settings_of(a, with_workload), settings_of(b, with_workload));
  if (std::string note = version_note(a, b); !note.empty()) comparison.notes.push_back(std::move(note));
  note_outcome("A", a, comparison);
  note_outcome("B", b, comparison);
  compare_jobs(a, b, comparison);
  comparison.figures = notable_figures(a, b);
  compare_collectives(a, b, comparison);
  compare_links(a, b, comparison);
  return comparison;
}

}  // namespace netsim::compare
