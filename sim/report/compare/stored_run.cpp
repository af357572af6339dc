#include "sim/report/compare/stored_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/text.h"
#include "sim/core/units.h"
#include "sim/report/compare/settings.h"
#include "sim/report/compare/stored_files.h"
#include "sim/report/quantiles.h"

namespace netsim::compare {
namespace {

const std::string kSummary = "summary.json", kManifest = "manifest.json";

StoredJob job_of(const StoredValue& job) {
  StoredJob result;
  result.name = job.at("name").text();
  result.warm_up = static_cast<std::uint64_t>(job.at("warm_up").number());
  result.jct_s = job.at("jct_s").optional_number();
  result.iteration_time_s = job.at("iteration_time_s").optional_number();
  result.exposed_s = job.at("exposed_communication_s").optional_number();
  const auto add = [&result](const std::string& name, const StoredValue& time) {
    if (const std::optional<double> seconds = time.optional_number(); seconds)
      result.parts.emplace_back(name, *seconds);
  };
  add("compute", job.at("compute_s"));
  for (const auto& [stream, time] : job.at("exposed_by").object()) add("exposed " + stream, time);
  add("idle", job.at("idle_s"));
  return result;
}

// Returns what names a row of collectives, whatever algorithm they ran by.
std::string collective_name(const StoredValue& row) {
  std::string name = row.at("collective").text() + ", " +
                     counted(static_cast<std::uint64_t>(row.at("ranks").number()), "rank") + ", " +
                     human_bytes(row.at("bytes").number());
  const StoredValue* own = row.find("own_algorithm");
  if (own != nullptr && own->kind == StoredValue::Kind::text) name += ", by " + own->text();
  return name;
}

std::string algorithm_of(const StoredValue& row) {
  const StoredValue& protocol = row.at("protocol");
  std::string text = row.at("algorithm").text();
  if (protocol.kind == StoredValue::Kind::text && !protocol.words.empty()) text += " " + protocol.words;
  return text + ", " + counted(static_cast<std::uint64_t>(row.at("channels").number()), "channel");
}

// Adds a row to the collectives of its name, whose means are over all rows of the name.
void add_collective(const StoredValue& row, std::vector<StoredCollective>& collectives) {
  const std::string name = collective_name(row), algorithm = algorithm_of(row);
  auto found = std::find_if(collectives.begin(), collectives.end(),
                            [&name](const StoredCollective& each) { return each.name == name; });
  if (found == collectives.end())
    found = collectives.insert(collectives.end(), StoredCollective{name, "", 0, 0, 0});
  const double count = row.at("count").number(), before = static_cast<double>(found->count);
  if (count <= 0) return;
  const auto mean = [&](double old, const char* key) {
    return (old * before + row.at(key).number() * count) / (before + count);
  };
  found->time_s = mean(found->time_s, "time_s");
  found->busbw_GBps = mean(found->busbw_GBps, "busbw_GBps");
  found->count += static_cast<std::uint64_t>(count);
  if (found->algorithm.find(algorithm) == std::string::npos) append_item(found->algorithm, algorithm, " + ");
}

// Sets the 99th percentile of each job's iterations, without those of its warm-up.
void read_iterations(const std::string& directory, std::vector<StoredJob>& jobs) {
  if (!has_file(directory, "iterations.csv")) return;
  const StoredTable table = read_table(path_in(directory, "iterations.csv"));
  const std::size_t job = table.column("job"), iteration = table.column("iteration"),
                    duration = table.column("duration_ps");
  std::map<std::string, std::pair<StoredJob*, Quantiles>> durations;
  for (StoredJob& each : jobs) durations[each.name].first = &each;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const auto found = durations.find(table.rows[row][job]);
    const double time = table.number(row, duration), number = table.number(row, iteration);
    if (found == durations.end() || time < 0) continue;
    auto& [of_job, times] = found->second;
    if (number >= static_cast<double>(of_job->warm_up)) times.add(std::llround(time));
  }
  for (auto& [name, entry] : durations) {
    if (entry.second.count() > 0) entry.first->iteration_p99_s = to_seconds(entry.second.quantile(99));
  }
}

void read_links(StoredRun& run) {
  if (!has_file(run.directory, "links.csv")) return;
  const StoredTable table = read_table(path_in(run.directory, "links.csv"));
  const std::size_t name = table.column("link"), kind = table.column("kind"),
                    utilisation = table.column("utilisation"), bytes = table.column("wire_bytes"),
                    queue = table.column("max_queue_bytes");
  run.links.emplace();
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    run.links->push_back({table.rows[row][name], table.rows[row][kind], table.number(row, utilisation),
                          table.number(row, bytes), table.number(row, queue)});
  }
}

void read_summary(StoredRun& run) {
  const StoredValue summary = read_json(path_in(run.directory, kSummary));
  run.outcome = summary.at("outcome").text();
  run.results = summary.at("fingerprint").at("results").text();
  for (const StoredValue& job : summary.at("jobs").list()) run.jobs.push_back(job_of(job));
  for (const StoredValue& row : summary.at("collectives").list()) add_collective(row, run.collectives);
  for (const auto& [key, value] : summary.object()) {
    if (key != "collectives") add_figures(value, key, run.figures);
  }
}

}  // namespace

bool is_run(const std::string& directory) { return has_file(directory, kSummary); }

StoredRun read_run(const std::string& directory) {
  StoredRun run;
  run.directory = directory;
  read_summary(run);
  const StoredValue manifest = read_json(path_in(directory, kManifest));
  run.version = manifest.at("netsim").text();
  if (const StoredValue& commit = manifest.at("commit"); commit.kind == StoredValue::Kind::text)
    run.commit = commit.words;
  run.settings = manifest_settings(manifest);
  run.workload = workload_settings(manifest);
  read_iterations(directory, run.jobs);
  read_links(run);
  return run;
}

Settings settings_of(const StoredRun& run, bool with_workload) {
  Settings settings = run.settings;
  if (with_workload && run.workload) settings.insert(run.workload->begin(), run.workload->end());
  return settings;
}

}  // namespace netsim::compare
