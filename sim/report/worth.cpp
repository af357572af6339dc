#include "sim/report/worth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "sim/core/config.h"
#include "sim/core/output.h"

namespace netsim {
namespace {

using WorthJson = nlohmann::ordered_json;
using Seconds = std::optional<double>;

// Returns the jobs of a run by name.
std::map<std::string_view, const WorthJob*> jobs_by_name(const WorthRun& run) {
  std::map<std::string_view, const WorthJob*> jobs;
  for (const WorthJob& job : run.jobs) jobs.emplace(job.name, &job);
  return jobs;
}

// Completes a line with the time of `all`.
WorthLine compared(WorthLine line, Seconds before) {
  if (!line.time_s || !before) return line;
  line.difference_s = *line.time_s - *before;
  if (*before > 0) line.change = *line.difference_s / *before;
  return line;
}

WorthLine line_of_job(const WorthJob& job, const WorthJob* before) {
  WorthLine line;
  line.name = job.name;
  line.time_s = job.jct_s;
  line.exposed_s = job.exposed_s;
  if (before == nullptr) return line;
  line.exposed_difference_s = job.exposed_s - before->exposed_s;
  return compared(std::move(line), before->jct_s);
}

// MeanTimes: sums of times over jobs, and the number of these jobs.
struct MeanTimes {
  double time = 0, before = 0, exposed = 0;
  std::size_t count = 0;
};

// Returns the mean over the jobs that are done, with the difference over those that are done in both runs.
WorthLine line_of_mean(const std::vector<WorthLine>& jobs) {
  MeanTimes done, both;
  for (const WorthLine& job : jobs) {
    if (!job.time_s) continue;
    done.time += *job.time_s;
    done.exposed += job.exposed_s.value_or(0);
    ++done.count;
    if (!job.difference_s) continue;
    both.time += *job.difference_s;
    both.before += *job.time_s - *job.difference_s;
    both.exposed += job.exposed_difference_s.value_or(0);
    ++both.count;
  }
  WorthLine line;
  line.kind = WorthLine::Kind::mean_jct;
  line.name = fmt::format("mean of {}", done.count);
  const auto mean = [](double sum, const MeanTimes& of) { return sum / static_cast<double>(of.count); };
  if (done.count > 0) line.time_s = mean(done.time, done);
  if (done.count > 0) line.exposed_s = mean(done.exposed, done);
  if (both.count == 0) return line;
  line.difference_s = mean(both.time, both);
  line.exposed_difference_s = mean(both.exposed, both);
  if (both.before > 0) line.change = both.time / both.before;
  return line;
}

WorthLine line_of_flows(WorthLine::Kind kind, const FlowTimes& flows, const FlowTimes& before) {
  const auto seconds = [kind](const FlowTimes& of) -> Seconds {
    if (of.count == 0) return std::nullopt;
    return kind == WorthLine::Kind::mean_fct ? of.mean * 1e-12 : to_seconds(of.p99);
  };
  WorthLine line;
  line.kind = kind;
  line.name = kind == WorthLine::Kind::mean_fct ? "mean FCT" : "p99 FCT";
  line.time_s = seconds(flows);
  return compared(std::move(line), seconds(before));
}

// ---- The files

WorthJson json_of(const Seconds& value) { return value ? WorthJson(*value) : WorthJson(nullptr); }

WorthJson json_of(const WorthLine& line) {
  WorthJson json = {{"what", to_string(line.kind)}, {"name", line.name}};
  json["time_s"] = json_of(line.time_s);
  json["difference_s"] = json_of(line.difference_s);
  json["change"] = json_of(line.change);
  json["exposed_communication_s"] = json_of(line.exposed_s);
  json["exposed_difference_s"] = json_of(line.exposed_difference_s);
  return json;
}

WorthJson json_of(const Worth& worth, const WorthRun& run) {
  WorthJson json = {{"run", run.name}};
  json["field"] = run.field.empty() ? WorthJson(nullptr) : WorthJson(run.field);
  json["age_s"] = run.age ? WorthJson(to_seconds(*run.age)) : WorthJson(nullptr);
  json["set"] = run.assignments;
  json["same_as_all"] = run.same_as_all;
  json["state"] = run.state;
  json["message"] = run.message.empty() ? WorthJson(nullptr) : WorthJson(run.message);
  json["times"] = WorthJson::array();
  for (const WorthLine& line : worth_lines(worth, run)) json["times"].push_back(json_of(line));
  return json;
}

std::string csv_number(const Seconds& value) { return value ? fmt::format("{}", *value) : ""; }

// Returns the cells of a row before those of its line.
std::string csv_run(const WorthRun& run) {
  return fmt::format("{},{},{},{},{}", run.name, run.field, run.age ? fmt::format("{}", *run.age) : "",
                     run.state, csv_cell(run.message));
}

}  // namespace

const char* to_string(WorthLine::Kind kind) {
  switch (kind) {
    case WorthLine::Kind::job:
      return "job";
    case WorthLine::Kind::mean_jct:
      return "mean_jct";
    case WorthLine::Kind::mean_fct:
      return "mean_fct";
    default:
      return "p99_fct";
  }
}

std::string age_text(Time age) { return age == 0 ? "0" : format_time(age); }

bool Worth::interrupted() const {
  return std::any_of(runs.begin(), runs.end(),
                     [](const WorthRun& run) { return run.state == to_string(Outcome::interrupted); });
}

void record_worth(Worth& worth, WorthRun& run, const Results& results) {
  run.state = to_string(results.outcome);
  run.message = explain(results);
  run.flows = results.flows;
  run.jobs.clear();
  for (const JobResult& job : results.jobs) {
    const JobSummary summary = summarise(job);
    run.jobs.push_back({job.name, summary.jct_s, summary.exposed_s});
  }
  worth.only_traffic = only_traffic(results);
}

std::vector<WorthLine> worth_lines(const Worth& worth, const WorthRun& run) {
  std::vector<WorthLine> lines;
  if (!run.played()) return lines;
  const WorthRun& all = worth.runs.front();
  const auto before = jobs_by_name(all);
  for (const WorthJob& job : run.jobs) {
    const auto found = before.find(job.name);
    lines.push_back(line_of_job(job, found == before.end() ? nullptr : found->second));
  }
  if (lines.size() > 1) lines.push_back(line_of_mean(lines));
  if (!worth.only_traffic) return lines;
  for (const auto kind : {WorthLine::Kind::mean_fct, WorthLine::Kind::p99_fct})
    lines.push_back(line_of_flows(kind, run.flows, all.flows));
  return lines;
}

const WorthLine* deciding_line(const std::vector<WorthLine>& lines) {
  const WorthLine* best = nullptr;
  for (const WorthLine& line : lines) {
    if (line.kind == WorthLine::Kind::p99_fct) continue;
    if (best == nullptr || line.kind != WorthLine::Kind::job) best = &line;
  }
  return best;
}

std::vector<std::string> most_changed_jobs(const Worth& worth, std::size_t most) {
  const std::vector<WorthJob>& jobs = worth.runs.front().jobs;
  std::map<std::string, double> changes;  // largest by name
  for (const WorthRun& run : worth.runs) {
    for (const WorthLine& line : worth_lines(worth, run)) {
      if (line.kind != WorthLine::Kind::job) continue;
      double& change = changes[line.name];
      change = std::max(change, std::abs(line.change.value_or(0)));
    }
  }
  std::vector<std::size_t> order(jobs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return changes[jobs[a].name] > changes[jobs[b].name];
  });
  order.resize(std::min(most, order.size()));
  std::sort(order.begin(), order.end());
  std::vector<std::string> names;
  for (const std::size_t job : order) names.push_back(jobs[job].name);
  return names;
}

std::string worth_json(const Worth& worth) {
  WorthJson json = {{"netsim", NETSIM_VERSION}, {"runs", WorthJson::array()}};
  for (const WorthRun& run : worth.runs) json["runs"].push_back(json_of(worth, run));
  return json.dump(2, ' ', false, nlohmann::detail::error_handler_t::replace) + "\n";
}

std::string worth_csv(const Worth& worth) {
  std::string text =
      "run,field,age_ps,state,message,what,name,time_s,difference_s,change,exposed_communication_s,"
      "exposed_difference_s\n";
  for (const WorthRun& run : worth.runs) {
    const std::vector<WorthLine> lines = worth_lines(worth, run);
    if (lines.empty()) text += csv_run(run) + ",,,,,,,\n";
    for (const WorthLine& line : lines) {
      text +=
          fmt::format("{},{},{},{},{},{},{},{}\n", csv_run(run), to_string(line.kind), csv_cell(line.name),
                      csv_number(line.time_s), csv_number(line.difference_s), csv_number(line.change),
                      csv_number(line.exposed_s), csv_number(line.exposed_difference_s));
    }
  }
  return text;
}

}  // namespace netsim
