#include "sim/workload/job_trace.h"
#include "sim/core/config_entries.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "sim/core/csv.h"
#include "sim/core/errors.h"
#include "sim/core/input_file.h"
#include "sim/core/input_set.h"
#include "sim/core/parameters.h"
#include "sim/core/recognise.h"
#include "sim/core/text.h"
#include "sim/workload/deferred_source.h"
#include "sim/workload/job_list.h"
#include "sim/workload/traffic/busy_source.h"

namespace netsim {
namespace {

constexpr Range<Time> kTraceTimes{0, 1'000'000 * kSecond};
constexpr Range<Time> kTraceDurations{1, 1'000'000 * kSecond};
constexpr std::int64_t kMostIterations = 1'000'000;

struct TraceParameters {
  std::string trace;
  Time iteration = 0;
  std::int64_t first = 0;
};

const Parameters<TraceParameters>& trace_parameters() {
  using P = TraceParameters;
  static const auto parameters =
      Parameters<P>()
          .text("trace", &P::trace, "CSV file with a line for each job")
          .time("iteration", &P::iteration, {0, 1'000'000 * kSecond},
                "length of the iterations of jobs that have only a duration; 0: one iteration")
          .integer("first", &P::first, {0, kMostJobs},
                   "number of jobs that are read, the first ones; 0: all");
  return parameters;
}

enum class TraceColumn : std::uint8_t {
  submitted,
  gpus,
  duration,
  iterations,
  workload,
  vc,
  weight,
  deadline,
  name
};

struct TraceColumnName {
  std::string name;
  TraceColumn column;
  Time unit = 0;  // of plain numbers; 0: cells have a unit, or need none
};

// Returns the names of all columns: those of times also with units.
std::vector<TraceColumnName> trace_columns() {
  std::vector<TraceColumnName> columns{
      {"gpus", TraceColumn::gpus},         {"iterations", TraceColumn::iterations},
      {"workload", TraceColumn::workload}, {"vc", TraceColumn::vc},
      {"weight", TraceColumn::weight},     {"name", TraceColumn::name}};
  const std::pair<const char*, Time> units[] = {
      {"", 0}, {"_s", kSecond}, {"_ms", kMillisecond}, {"_us", kMicrosecond}, {"_ns", kNanosecond}};
  for (const auto& [name, column] :
       {std::pair{"submitted", TraceColumn::submitted}, std::pair{"duration", TraceColumn::duration},
        std::pair{"deadline", TraceColumn::deadline}}) {
    for (const auto& [ending, unit] : units) columns.push_back({std::string(name) + ending, column, unit});
  }
  return columns;
}

// TraceRow: the cells of one job.
struct TraceRow {
  Time submitted = 0, duration = 0, deadline = kNever;
  std::uint32_t gpus = 1;
  std::int64_t iterations = 0;  // 0: not given
  std::string workload, vc, name;
  Word workload_cell, gpus_cell;
  double weight = 1;
};

class JobTrace {
 public:
  JobTrace(const InputSet::File& file, const TraceParameters& p, const WorkloadContext& context)
      : table_(file), path_(file.path), p_(p), context_(context), names_(trace_columns()) {}

  std::vector<JobDescription> read() {
    read_header();
    std::vector<JobDescription> jobs;
    while ((p_.first == 0 || std::cmp_less(jobs.size(), p_.first)) && table_.next()) {
      if (std::cmp_equal(jobs.size(), kMostJobs)) table_.fail("more than 1,000,000 jobs are too many");
      jobs.push_back(job_of(row(), jobs.size()));
    }
    if (jobs.empty()) table_.fail("no jobs follow the header");
    return jobs;
  }

 private:
  void read_header() {
    std::vector<std::string> names;
    for (const TraceColumnName& name : names_) names.push_back(name.name);
    std::array<bool, 9> seen{};
    for (const std::size_t index : table_.header(names, 1)) {
      const TraceColumnName& known = names_[index];
      bool& given = seen[static_cast<std::size_t>(known.column)];
      if (given) table_.fail("a second column for '" + known.name + "'");
      given = true;
      columns_.push_back(&known);
    }
    const auto has = [&](TraceColumn column) { return seen[static_cast<std::size_t>(column)]; };
    if (!has(TraceColumn::submitted)) table_.fail("column 'submitted' or 'submitted_s' is missing");
    if (!has(TraceColumn::duration) && !has(TraceColumn::workload))
      table_.fail("column 'duration', 'duration_s' or 'workload' is missing");
  }

  TraceRow row() const {
    TraceRow row;
    for (std::size_t i = 0; i < columns_.size(); ++i) take(*columns_[i], table_.cells()[i], row);
    if (row.duration == 0 && row.workload.empty())
      table_.fail("the job has neither a duration nor a workload (allowed: one of them, or both)");
    return row;
  }

  // Takes a cell. An empty one has its default, unless its column is required.
  void take(const TraceColumnName& column, const Word& cell, TraceRow& row) const {
    const TextReader& reader = table_.reader();
    if (cell.text.empty()) {
      if (column.column == TraceColumn::submitted || column.column == TraceColumn::gpus)
        reader.fail(cell, "the value of '" + column.name + "' is missing");
      return;
    }
    switch (column.column) {
      case TraceColumn::submitted:
        row.submitted = time(column, cell, "the submission", kTraceTimes);
        break;
      case TraceColumn::duration:
        row.duration = time(column, cell, "the duration", kTraceDurations);
        break;
      case TraceColumn::deadline:
        row.deadline = time(column, cell, "the deadline", kTraceTimes);
        break;
      case TraceColumn::gpus:
        row.gpus = static_cast<std::uint32_t>(reader.integer(cell, "the number of GPUs", {1, 1 << 20}));
        row.gpus_cell = cell;
        break;
      case TraceColumn::iterations:
        row.iterations = reader.integer(cell, "the number of iterations", {1, kMostIterations});
        break;
      case TraceColumn::weight:
        row.weight = reader.real(cell, "the weight", {1e-9, 1e9});
        break;
      case TraceColumn::workload:
        row.workload = cell.text;
        row.workload_cell = cell;
        break;
      case TraceColumn::vc:
        row.vc = cell.text;
        break;
      case TraceColumn::name:
        row.name = cell.text;
        if (const auto found = find_not_name(row.name); found) reader.fail(cell, found->what);
        break;
    }
  }
  Time time(const TraceColumnName& column, const Word& cell, const char* what, Range<Time> range) const {
    return column.unit != 0 ? table_.reader().time_in(cell, what, column.unit, range)
                            : table_.reader().time(cell, what, range);
  }

  JobDescription job_of(const TraceRow& row, std::size_t number) {
    if (row.deadline <= row.submitted) table_.fail("the deadline is not after the job's submission");
    JobDescription job;
    job.name = row.name.empty() ? "job" + std::to_string(number) : row.name;
    if (!names_used_.emplace(job.name, number).second)
      table_.fail("a second job is called '" + job.name + "'");
    job.file = path_;
    job.arrival = row.submitted;
    job.deadline = row.deadline;
    job.duration = row.duration;
    job.weight = row.weight;
    job.vc = row.vc;
    job.at_begin = true;
    job.source = row.workload.empty() ? busy(row, job.name) : from_file(row, job);
    return job;
  }

  std::unique_ptr<TaskSource> busy(const TraceRow& row, const std::string& name) const {
    std::int64_t iterations = std::max<std::int64_t>(row.iterations, 1);
    if (row.iterations == 0 && p_.iteration > 0)
      iterations = std::min((row.duration + p_.iteration - 1) / p_.iteration, kMostIterations);
    if (row.duration < iterations) table_.fail("an iteration takes less than a picosecond");
    return std::make_unique<BusySource>(name, row.gpus, row.duration, static_cast<std::uint32_t>(iterations));
  }

  std::unique_ptr<TaskSource> from_file(const TraceRow& row, JobDescription& job) {
    Kind& kind = kinds_[{row.workload, row.iterations}];
    if (kind.facts == nullptr) read_kind(row, kind);
    if (kind.facts->ranks != row.gpus) {
      table_.reader().fail(row.gpus_cell, "the workload '" + row.workload + "' has " +
                                              std::to_string(kind.facts->ranks) + " ranks, and the job " +
                                              std::to_string(row.gpus) + " GPUs");
    }
    job.file = kind.file;
    return std::make_unique<DeferredSource>(job.name, kind.facts, kind.make);
  }

  // Kind: a workload with its number of iterations, which several jobs have.
  struct Kind {
    std::string file;
    std::shared_ptr<const DeferredSource::Facts> facts;
    DeferredSource::Make make;
  };
  void read_kind(const TraceRow& row, Kind& kind) const {
    const TextReader& reader = table_.reader();
    kind.file = find_input_file(row.workload, reader.place(row.workload_cell));
    WorkloadContext own = context_;
    own.gpus = row.gpus;
    own.assignments.clear();
    if (row.iterations > 0) own.assignments.push_back("iterations=" + std::to_string(row.iterations));
    kind.make = [own, file = kind.file] { return load_workload(file, own); };
    const std::unique_ptr<TaskSource> first = kind.make();
    if (const std::string why = refuse_deferred(*first); !why.empty()) reader.fail(row.workload_cell, why);
    kind.facts = std::make_shared<const DeferredSource::Facts>(*first);
  }

  CsvReader table_;
  std::string path_;
  TraceParameters p_;
  const WorkloadContext& context_;
  const std::vector<TraceColumnName> names_;
  std::vector<const TraceColumnName*> columns_;
  std::map<std::pair<std::string, std::int64_t>, Kind> kinds_;
  std::map<std::string, std::size_t> names_used_;
};

// Returns whether the first line names the columns of a trace of jobs.
bool is_job_trace(const Excerpt& file) {
  bool gpus = false, submitted = false;
  for (const auto& cell : file.cells(0, ',')) {
    gpus = gpus || cell == "gpus";
    submitted = submitted || cell.substr(0, 9) == "submitted";
  }
  return gpus && submitted;
}

const FormatRegistration kJobTrace{{.name = "netsim_job_trace",
                                    .what = "a trace of jobs",
                                    .use = Format::Use::part,
                                    .matches = is_job_trace,
                                    .component = {},
                                    .advice = "a list of jobs names it: `jobs: {trace: FILE}`",
                                    .endings = {}}};

}  // namespace

std::vector<JobDescription> read_job_trace(const ConfigNode& node, const WorkloadContext& context) {
  const TraceParameters p = trace_parameters().parse(node);
  const std::string path = find_input_file(p.trace, entry_or_self(node, "trace").place());
  const InputSet input{InputPaths(path)};
  return JobTrace(input.only("a trace of jobs"), p, context).read();
}

const ParameterTable& job_trace_table() { return trace_parameters().table(); }

}  // namespace netsim
