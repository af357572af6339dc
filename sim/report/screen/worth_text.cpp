#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sim/report/worth.h"

namespace netsim {
namespace {

constexpr std::size_t kJobsInTable = 4;

std::string signed_seconds(const std::optional<double>& value) {
  if (!value) return "-";
  if (*value == 0) return "0 s";
  return (*value < 0 ? "-" : "+") + human_seconds(std::abs(*value));
}

std::string percent_text(const std::optional<double>& change) {
  if (!change) return "-";
  return *change == 0 ? "0 %" : fmt::format("{:+.2f} %", 100 * *change);
}

std::string seconds_text(const std::optional<double>& value) { return value ? human_seconds(*value) : "-"; }

// Returns the name of a job, without its end if it is too long for the table.
std::string short_name(const std::string& name) {
  constexpr std::size_t kLongest = 20;
  std::string text = printable(name);
  if (columns(text) <= kLongest) return text;
  while (columns(text) > kLongest - 3) text.pop_back();
  return text + "...";
}

// WorthTable: the columns of the table of all runs.
struct WorthTable {
  TableColumn run{"run", 0, true, {}}, job{"job", 0, true, {}}, time{"time", 0, false, {}},
      difference{"more", 1, false, {}}, change{"", 0, false, {}}, exposed{"exposed", 2, false, {}},
      exposed_difference{"more", 3, false, {}};

  void add(const std::string& title, const WorthLine& line) {
    run.cells.push_back(title);
    job.cells.push_back(short_name(line.name));
    time.cells.push_back(seconds_text(line.time_s));
    difference.cells.push_back(signed_seconds(line.difference_s));
    change.cells.push_back(percent_text(line.change));
    exposed.cells.push_back(line.exposed_s ? human_seconds(*line.exposed_s) : "");
    exposed_difference.cells.push_back(line.exposed_difference_s ? signed_seconds(line.exposed_difference_s)
                                                                 : "");
  }
  void add(const WorthRun& without_results) {
    run.cells.push_back(without_results.title);
    job.cells.push_back(without_results.state);
    for (TableColumn* column : {&time, &difference, &change, &exposed, &exposed_difference})
      column->cells.emplace_back();
  }
  std::string text(std::size_t width) const {
    return text_table({run, job, time, difference, change, exposed, exposed_difference}, 2, width);
  }
};

// Adds the lines of a run that the table shows: the jobs of `shown`, and all means.
void add_run(WorthTable& table, const Worth& worth, const WorthRun& run,
             const std::vector<std::string>& shown) {
  const std::vector<WorthLine> lines = worth_lines(worth, run);
  std::string title = run.title;
  for (const WorthLine& line : lines) {
    const bool job = line.kind == WorthLine::Kind::job;
    if (job && std::find(shown.begin(), shown.end(), line.name) == shown.end()) continue;
    table.add(title, line);
    title.clear();
  }
  if (lines.empty()) table.add(run);
}

// Returns the name of the time by which fields are compared.
const char* deciding_time(const WorthLine& line) {
  if (line.kind == WorthLine::Kind::mean_fct) return "mean flow completion time";
  return line.kind == WorthLine::Kind::job ? "JCT" : "mean JCT";
}

// Returns the fields without which a run was refused, or "".
std::string indispensable(const Worth& worth) {
  std::string fields;
  for (const WorthRun& run : worth.runs) {
    if (run.state == "refused" && !run.age) append_item(fields, "`" + run.field + "`", " and ");
  }
  return fields.empty() ? "" : " The schedulers cannot do without " + fields + ".";
}

// Returns the sentence about the run without the field that was worth most.
std::string sentence_of(const WorthRun& run, const WorthLine& line) {
  const char* time = deciding_time(line);
  if (*line.difference_s == 0)
    return fmt::format("No field was worth anything here: the {} is the same without each.", time);
  const std::string by =
      fmt::format("{:.2f} % ({})", 100 * std::abs(*line.change), human_seconds(std::abs(*line.difference_s)));
  if (*line.difference_s > 0)
    return fmt::format("`{}` was worth most: without it the {} is {} longer.", run.field, time, by);
  return fmt::format("No field shortened the {}: without `{}` it is {} shorter, the smallest change.", time,
                     run.field, by);
}

std::string conclusion(const Worth& worth) {
  std::string best;
  double most = 0;
  for (const WorthRun& run : worth.runs) {
    if (run.field.empty() || run.age) continue;
    const std::vector<WorthLine> lines = worth_lines(worth, run);
    const WorthLine* line = deciding_line(lines);
    if (line == nullptr || !line->difference_s || !line->change) continue;
    if (!best.empty() && *line->difference_s <= most) continue;
    most = *line->difference_s;
    best = sentence_of(run, *line);
  }
  if (best.empty()) best = "No run without a field can be compared with `all`.";
  return best + indispensable(worth);
}

}  // namespace

std::string render_worth(const Worth& worth, std::size_t width) {
  const std::vector<std::string> shown = most_changed_jobs(worth, kJobsInTable);
  const std::size_t jobs = worth.runs.front().jobs.size();
  std::string text = "worth of information: completion times, and how they differ from those of `all`\n";
  if (jobs > shown.size())
    text += wrapped(fmt::format("The {} jobs of {} are listed that changed most.", shown.size(), jobs), 0, 0,
                    width) +
            "\n";
  WorthTable table;
  for (const WorthRun& run : worth.runs) add_run(table, worth, run, shown);
  text += "\n" + table.text(width) + "\n";
  for (const WorthRun& run : worth.runs) {
    if (run.message.empty() || run.same_as_all) continue;
    const std::string refused = run.state == "refused" ? "refused: " : "";
    text += "  " + wrapped(printable(run.title + ": " + refused + run.message), 2, 4, width) + "\n";
  }
  return text + wrapped(conclusion(worth), 0, 0, width) + "\n";
}

std::string render_worth_plan(const Worth& worth, std::size_t width) {
  TableColumn name{"run", 0, true, {}}, set{"set over the configuration", 0, true, {}};
  for (const WorthRun& run : worth.runs) {
    name.cells.push_back(run.name);
    std::string assignments;
    for (const std::string& assignment : run.assignments) append_item(assignments, assignment);
    if (run.same_as_all) assignments += " (as in `all`)";
    set.cells.push_back(assignments);
  }
  return counted(worth.runs.size(), "run") + " for --worth\n" +
         text_table({std::move(name), std::move(set)}, 2, width);
}

}  // namespace netsim
