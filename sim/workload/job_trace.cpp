#include "sim/workload/job_trace.h"
#include "sim/core/config_entries.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "sim/core/csv.h"
#include "sim/core/errors.h"
#include "sim/core/input_file.h"
#include "sim/core/input_set.h"
#include "sim/core/parameters.h"
#include "sim/core/recognise.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/core/time_limits.h"
#include "sim/workload/deferred_source.h"
#include "sim/workload/job_list.h"
#include "sim/workload/job_traces/submitted_jobs.h"
#include "sim/workload/traffic/busy_source.h"

namespace netsim {
namespace {

constexpr Range<Time> kTraceTimes{0, 1'000'000 * kSecond};
constexpr Range<Time> kTraceDurations{1, 1'000'000 * kSecond};
constexpr std::int64_t kMostIterations = 1'000'000;

struct TraceParameters {
  ConfigNode trace, workloads;
  Time iteration = 0;
  std::int64_t first = 0;
  bool skip_incomplete = false, successful = false;
  double deadline = 0;
};

const Parameters<TraceParameters>& trace_parameters() {
  using P = TraceParameters;
  static const auto parameters =
      Parameters<P>()
          .names("trace", &P::trace, "",
                 "the trace: netsim's table of jobs (CSV), or that of a cluster (netsim --list "
                 "job_trace_reader); a file, or a sequence of files")
          .time("iteration", &P::iteration, {0, 1'000'000 * kSecond},
                "length of the iterations of jobs that have only a duration; 0: one iteration")
          .integer("first", &P::first, {0, kMostJobs}, "number of jobs that are read, the first ones; 0: all")
          .flag("skip_incomplete", &P::skip_incomplete,
                "traces of clusters: jobs of which a value is missing are left out, and a note counts them; "
                "false: they are errors")
          .flag("successful", &P::successful,
                "traces of clusters: only jobs that passed, completed or terminated")
          .real("deadline", &P::deadline, {0, 1e6},
                "traces of clusters: deadline of a job, in its durations after its submission; 0: none")
          .list(
              "workloads", &P::workloads,
              "traces of clusters: [{gpus: NUMBER, workload: FILE}], what jobs with so many GPUs run; others "
              "keep their GPUs busy for their duration");
  return parameters;
}

struct TraceWorkload {
  std::int64_t gpus = 1;
  std::string workload;
};

const Parameters<TraceWorkload>& trace_workload_parameters() {
  using P = TraceWorkload;
  static const auto parameters = Parameters<P>()
                                     .integer("gpus", &P::gpus, {1, 1 << 20}, "number of GPUs of the jobs")
                                     .required()
                                     .text("workload", &P::workload, "file with so many ranks")
                                     .required();
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

// JobTable: netsim's own table of jobs.
class JobTable {
 public:
  explicit JobTable(const InputSet::File& file) : table_(file), names_(trace_columns()) {}

  std::vector<SubmittedJob> read(std::int64_t first) {
    read_header();
    std::vector<SubmittedJob> jobs;
    while ((first == 0 || std::cmp_less(jobs.size(), first)) && table_.next()) {
      if (std::cmp_equal(jobs.size(), kMostJobs)) table_.fail("more than 1,000,000 jobs are too many");
      jobs.push_back(row());
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

  SubmittedJob row() const {
    SubmittedJob row;
    row.place.line = table_.line();
    for (std::size_t i = 0; i < columns_.size(); ++i) take(*columns_[i], table_.cells()[i], row);
    if (row.duration == 0 && row.workload.empty())
      table_.fail("the job has neither a duration nor a workload (allowed: one of them, or both)");
    return row;
  }

  // Takes a cell. An empty one has its default, unless its column is required.
  void take(const TraceColumnName& column, const Word& cell, SubmittedJob& row) const {
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
        row.gpus_cell = {0, cell.line, cell.column};
        break;
      case TraceColumn::iterations:
        row.iterations = reader.integer(cell, "the number of iterations", {1, kMostIterations});
        break;
      case TraceColumn::weight:
        row.weight = reader.real(cell, "the weight", {1e-9, 1e9});
        break;
      case TraceColumn::workload:
        row.workload = cell.text;
        row.workload_cell = {0, cell.line, cell.column};
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

  CsvReader table_;
  const std::vector<TraceColumnName> names_;
  std::vector<const TraceColumnName*> columns_;
};

// JobMaker: makes the jobs of a run from those of a trace.
class JobMaker {
 public:
  // The first job has the notes on the trace.
  JobMaker(const InputSet& input, const TraceParameters& p, const WorkloadContext& context,
           std::vector<std::string> notes)
      : input_(input), p_(p), context_(context), notes_(std::move(notes)) {}

  JobDescription make(const SubmittedJob& row, std::size_t number) {
    const auto submitted = static_cast<Time>(row.submitted);
    if (row.deadline <= submitted) fail(row.place, "the deadline is not after the job's submission");
    JobDescription job;
    job.name = row.name.empty() ? "job" + std::to_string(number) : row.name;
    if (!names_used_.insert(job.name).second) fail(row.place, "a second job is called '" + job.name + "'");
    job.file = input_.files()[row.place.file].path;
    job.arrival = submitted;
    job.deadline = row.deadline;
    job.duration = row.duration;
    job.weight = row.weight;
    job.vc = row.vc;
    job.at_begin = true;
    job.source = row.workload.empty() ? busy(row, job.name) : from_file(row, job);
    return job;
  }

 private:
  [[noreturn]] void fail(const JobTraceCell& cell, const std::string& message) const {
    throw InputError(place(cell), message);
  }
  Place place(const JobTraceCell& cell) const {
    return {input_.files()[cell.file].path, cell.line, cell.line > 0 ? cell.column : 0, ""};
  }

  std::unique_ptr<TaskSource> busy(const SubmittedJob& row, const std::string& name) {
    std::int64_t iterations = std::max<std::int64_t>(row.iterations, 1);
    if (row.iterations == 0 && p_.iteration > 0)
      iterations = std::min((row.duration + p_.iteration - 1) / p_.iteration, kMostIterations);
    if (row.duration < iterations) fail(row.place, "an iteration takes less than a picosecond");
    return std::make_unique<BusySource>(name, row.gpus, row.duration, static_cast<std::uint32_t>(iterations),
                                        std::exchange(notes_, {}));
  }

  std::unique_ptr<TaskSource> from_file(const SubmittedJob& row, JobDescription& job) {
    Kind& kind = kinds_[{row.workload, row.iterations}];
    if (kind.facts == nullptr) read_kind(row, kind);
    if (kind.facts->ranks != row.gpus) {
      fail(row.gpus_cell, "the workload '" + row.workload + "' has " + std::to_string(kind.facts->ranks) +
                              " ranks, and the job " + std::to_string(row.gpus) + " GPUs");
    }
    job.file = kind.file;
    if (notes_.empty()) return std::make_unique<DeferredSource>(job.name, kind.facts, kind.make);
    auto facts = std::make_shared<DeferredSource::Facts>(*kind.facts);
    for (std::string& note : notes_) facts->notes.push_back(std::move(note));
    notes_.clear();
    return std::make_unique<DeferredSource>(job.name, std::move(facts), kind.make);
  }

  // Kind: a workload with its number of iterations, which several jobs have.
  struct Kind {
    std::string file;
    std::shared_ptr<const DeferredSource::Facts> facts;
    DeferredSource::Make make;
  };
  void read_kind(const SubmittedJob& row, Kind& kind) const {
    kind.file = find_input_file(row.workload, place(row.workload_cell));
    WorkloadContext own = context_;
    own.gpus = row.gpus;
    own.assignments.clear();
    if (row.iterations > 0) own.assignments.push_back("iterations=" + std::to_string(row.iterations));
    kind.make = [own, file = kind.file] { return load_workload(file, own); };
    const std::unique_ptr<TaskSource> first = kind.make();
    if (const std::string why = refuse_deferred(*first); !why.empty()) fail(row.workload_cell, why);
    kind.facts = std::make_shared<const DeferredSource::Facts>(*first);
  }

  const InputSet& input_;
  const TraceParameters& p_;
  const WorkloadContext& context_;
  std::vector<std::string> notes_;
  std::map<std::pair<std::string, std::int64_t>, Kind> kinds_;
  std::set<std::string> names_used_;
};

// Reads the jobs of a cluster's trace, with the deadlines and workloads that the keys give them.
std::vector<SubmittedJob> read_cluster_trace(const InputSet& input, const std::string& reader,
                                             const TraceParameters& p, std::vector<std::string>& notes) {
  SubmittedJobs all({p.skip_incomplete, p.successful, p.first});
  Registry<JobTraceReader>::instance().create(reader)->read(input, all);
  std::vector<SubmittedJob> jobs = all.take();
  notes = all.notes();
  std::map<std::int64_t, std::string> workloads;
  for (const ConfigNode& item : p.workloads.items()) {
    const TraceWorkload one = trace_workload_parameters().parse(item);
    workloads[one.gpus] = find_input_file(one.workload, item.place());
  }
  for (SubmittedJob& job : jobs) {
    if (const auto own = workloads.find(job.gpus); own != workloads.end()) job.workload = own->second;
    if (p.deadline > 0)
      job.deadline =
          bounded_time(static_cast<double>(job.submitted) + p.deadline * static_cast<double>(job.duration));
  }
  if (jobs.empty()) {
    std::string left;
    for (const std::string& note : notes) append_item(left, note, "; ");
    fail_file(input.name(), "no jobs are left" + (left.empty() ? "" : " (" + left + ")"));
  }
  return jobs;
}

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
  const InputSet input(named_input(entry_or_self(node, "trace")));
  const Format* format = recognise(input.files().front());
  const bool of_cluster =
      format != nullptr && format->use == Format::Use::part &&
      Catalogue::instance().find(JobTraceReader::kComponentKind, format->component) != nullptr;
  if (!of_cluster) {
    for (const char* key : {"skip_incomplete", "successful", "deadline", "workloads"}) {
      if (const ConfigNode* given = node.find(key); given != nullptr)
        given->fail("the key is for traces of clusters (netsim --list job_trace_reader); this is " +
                    (format == nullptr ? "netsim's table of jobs" : format->what));
    }
  }
  std::vector<std::string> notes;
  const std::vector<SubmittedJob> rows = of_cluster ? read_cluster_trace(input, format->component, p, notes)
                                                    : JobTable(input.only("a trace of jobs")).read(p.first);
  input.log();
  JobMaker maker(input, p, context, std::move(notes));
  std::vector<JobDescription> jobs;
  jobs.reserve(rows.size());
  for (const SubmittedJob& row : rows) jobs.push_back(maker.make(row, jobs.size()));
  return jobs;
}

const ParameterTable& job_trace_table() {
  static const ParameterTable table = [] {
    ParameterTable made = trace_parameters().table();
    for (ParameterInfo& info : made.edit()) {
      if (info.name == "workloads") info.children = trace_workload_parameters().table();
    }
    return made;
  }();
  return table;
}

}  // namespace netsim
