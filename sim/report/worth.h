// Worth: what each piece of information was worth to each job. `--worth` plays a run as configured, `all`,
// and then one run for each field of scheduling.views without it, or with older values. This file holds the
// runs and their results as plain data, and the texts that are made of them.
//
// A difference is the time of a run less that of `all`. It is positive where the information helped.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/text.h"
#include "sim/core/units.h"
#include "sim/report/results.h"

namespace netsim {

struct WorthJob {
  std::string name;
  std::optional<double> jct_s;  // empty: the run ended before the job
  double exposed_s = 0;         // JobSummary::exposed_s
};

// Returns "0", or the age with its unit.
std::string age_text(Time age);

// WorthRun: one of the runs, and its results once it was played.
struct WorthRun {
  std::string name;         // of its directory: "all", "without_queues", "age_queues_10us"
  std::string title;        // for people: "without queues"
  std::string field;        // key in scheduling.views; "" for `all`
  std::optional<Time> age;  // of the field; empty: the run has the field as configured or not at all
  std::vector<std::string> assignments;  // laid over the configuration (overlay_config)
  bool same_as_all = false;  // the configuration has this age, so that the results are those of `all`

  std::string state = "not run";  // or to_string(Outcome), or "refused" by an error in the configuration
  std::string message;            // why it is not done; "" for a run that is
  std::vector<WorthJob> jobs;
  FlowTimes flows;

  bool played() const { return state != "not run" && state != "refused"; }
};

struct Worth {
  std::vector<WorthRun> runs;  // `all` first
  bool only_traffic = false;   // no job computes, so flow completion times are compared too

  // Returns whether the user ended the runs.
  bool interrupted() const;
};

// Takes the results of one of the runs of `worth`.
void record_worth(Worth& worth, WorthRun& run, const Results& results);

// WorthLine: a time of one run beside that of `all`.
struct WorthLine {
  enum class Kind { job, mean_jct, mean_fct, p99_fct };
  Kind kind = Kind::job;
  std::string name;                         // of the job, or of the mean
  std::optional<double> time_s, exposed_s;  // JCT or flow completion time; exposed communication
  std::optional<double> difference_s;       // empty where a time is missing
  std::optional<double> change;             // difference divided by the time of `all`
  std::optional<double> exposed_difference_s;
};
const char* to_string(WorthLine::Kind kind);

// Returns a line for each job of the run and one for the mean of several. The difference of means is over
// jobs that are done in both runs. Traffic has lines for the mean and the 99th percentile of flow completion
// times. `run` is one of `worth.runs`.
std::vector<WorthLine> worth_lines(const Worth& worth, const WorthRun& run);
// Returns the line that decides what a field was worth. That is the mean flow completion time of traffic, or
// else the mean JCT, or the JCT of the only job. Returns null for a run without lines.
const WorthLine* deciding_line(const std::vector<WorthLine>& lines);
// Returns at most `most` names of jobs: those with the largest change in any run, in the order of the jobs.
std::vector<std::string> most_changed_jobs(const Worth& worth, std::size_t most);

// Returns the table of the screen with a closing sentence, in lines of at most `width` columns.
std::string render_worth(const Worth& worth, std::size_t width = kDefaultWidth);
// Returns the list of runs for --dry-run.
std::string render_worth_plan(const Worth& worth, std::size_t width = kDefaultWidth);
// Return the content of worth.json and worth.csv.
std::string worth_json(const Worth& worth);
std::string worth_csv(const Worth& worth);
// Returns the content of worth.svg: a bar for each field and job, and curves over the ages if there are any.
std::string draw_worth(const Worth& worth);

}  // namespace netsim
