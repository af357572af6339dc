#include "sim/workload/workload.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "sim/core/errors.h"
#include "sim/core/input_file.h"
#include "sim/core/output.h"
#include "sim/core/recognise.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/workload/program/program_file.h"
#include "sim/workload/program/role_program_source.h"

namespace netsim {
namespace {

std::string read_workload_file(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (!error && size > ProgramLimits::kFileBytes) {
    throw InputError(Place{path, 0, 0, ""},
                     std::to_string(size) + " bytes are too many for a workload: at most 1 GiB");
  }
  return read_file(path);
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Returns whether a file is text. Text does not begin with control characters other than white space; every
// other file counts as binary.
bool is_text(std::string_view bytes) {
  constexpr std::size_t kBeginning = 64;
  const std::string_view beginning = bytes.substr(0, kBeginning);
  return std::none_of(beginning.begin(), beginning.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && !is_space(c)) || c == 0x7f;
  });
}

[[noreturn]] void refuse(const std::string& path, const std::string& message) {
  throw InputError(Place{path, 0, 0, ""}, message);
}

// Refuses a text with control characters, because parts of it may appear in tables and on terminals.
void check_text(std::string_view text, const std::string& path) {
  const auto found = find_not_text(text);
  if (!found) return;
  const std::string_view before = text.substr(0, found->offset);
  const auto line = std::count(before.begin(), before.end(), '\n');
  const std::size_t column = found->offset - (line > 0 ? before.rfind('\n') + 1 : 0);
  throw InputError(Place{path, static_cast<int>(line) + 1, static_cast<int>(column) + 1, ""}, found->what);
}

// Refuses names of a job and its tasks that cannot appear in tables and on the screen.
void check_names(const TaskSource& source, const std::string& path) {
  const auto check = [&](const std::string& name) {
    if (const auto found = find_not_name(name); found)
      throw InputError(Place{path, 0, 0, ""}, "the name '" + name + "': " + found->what);
  };
  check(source.job_name());
  for (const std::string& name : source.names()) check(name);
}

// Returns the format if it is that of a workload; null if no format matched. Throws InputError for other
// formats.
const Format* workload_format(const Format* format, const std::string& path) {
  if (format != nullptr && format->use != Format::Use::workload) refuse(path, refusal(*format));
  if (format != nullptr && is_packed(path)) refuse(path, "is " + format->what + ", packed: unpack it first");
  return format;
}

// WorkloadFile: the file's bytes and their format. A file that is not a workload is refused before all of it
// is read.
struct WorkloadFile {
  explicit WorkloadFile(const std::string& path) {
    workload_format(recognise_file(path), path);
    bytes = read_workload_file(path);
    format = workload_format(recognise(bytes, path), path);
  }
  std::string bytes;
  const Format* format = nullptr;
};

ConfigNode parse_overlaid(const std::string& text, const std::string& path,
                          const std::vector<std::string>& assignments) {
  ConfigNode root = parse_config(text, path);
  for (const std::string& assignment : assignments) overlay_config(root, assignment);
  return root;
}

// Refuses assignments if there is no description to which they apply.
void refuse_assignments(const std::vector<std::string>& assignments, const std::string& path) {
  if (assignments.empty()) return;
  refuse(path, "--set workload." + assignments.front() +
                   ": the values of a YAML description can be set, and this is none");
}

std::unique_ptr<WorkloadKind> parse_description(const std::string& text, const std::string& path,
                                                const std::vector<std::string>& assignments) {
  if (std::all_of(text.begin(), text.end(), is_space)) {
    refuse(path, "is empty: a workload (.pb or .yaml) was expected");
  }
  if (!parse_config(text, path).is_map()) {
    refuse(path,
           "is not a workload: neither a netsim .pb, nor a YAML description with a 'kind', nor a flow list "
           "(netsim --list workload_reader)");
  }
  return Registry<WorkloadKind>::instance().create(parse_overlaid(text, path, assignments), "");
}

const FormatRegistration kDescription{{.name = "netsim_workload",
                                       .what = "a workload of netsim",
                                       .use = Format::Use::workload,
                                       .matches = [](const Excerpt& file) { return file.has_key("kind"); },
                                       .component = {},
                                       .advice = {},
                                       .endings = {".yaml", ".yml"}}};

constexpr const char* kJobsFormat = "netsim_jobs";

const FormatRegistration kJobs{{.name = kJobsFormat,
                                .what = "a list of jobs for netsim",
                                .use = Format::Use::workload,
                                .matches = [](const Excerpt& file) { return file.has_key("jobs"); },
                                .component = {},
                                .advice = {},
                                .endings = {".yaml", ".yml"}}};

struct JobParameters {
  std::string name;
  ConfigNode workload;
  Time arrival = 0;
  ConfigNode placement;
  std::int64_t priority = 0;
  std::int64_t seed = 0;
};

const Parameters<JobParameters>& job_parameters() {
  using P = JobParameters;
  static const auto parameters =
      Parameters<P>()
          .text("name", &P::name, "name of the job in tables and messages")
          .required()
          .time("arrival", &P::arrival, {0, 1'000'000 * kSecond}, "time at which the job begins")
          .component("placement", &P::placement, "placement", "packed", "placement of the ranks on GPUs")
          .integer("priority", &P::priority, {0, 255},
                   "priority of its messages among those of one queue pair; it has no effect between jobs, "
                   "which never share a queue pair")
          .integer("seed", &P::seed, {0, INT64_MAX},
                   "seed of the workload's random draws; 0: the run's seed");
  return parameters;
}

// Returns a workload that is written in place, or reads the one whose file is named.
std::unique_ptr<TaskSource> job_source(const ConfigNode& node, const WorkloadContext& context,
                                       std::string& file) {
  if (!node.is_scalar()) return Registry<WorkloadKind>::instance().create(node, "")->tasks(context);
  file = find_input_file(read_text(node), node.place().file);
  return load_workload(file, context);
}

JobDescription read_job(const ConfigNode& node, const WorkloadContext& context, const std::string& path) {
  const JobParameters p = job_parameters().parse(node, {"workload"});
  const ConfigNode* workload = node.find("workload");
  if (workload == nullptr || workload->is_null())
    node.fail("'workload' is missing: a file, or {kind: ...} (netsim --list workload)");
  WorkloadContext own = context;
  own.assignments.clear();
  if (p.seed != 0) own.seed = static_cast<std::uint64_t>(p.seed);
  JobDescription job;
  job.name = p.name;
  job.file = path;
  job.source = job_source(*workload, own, job.file);
  job.arrival = p.arrival;
  job.priority = static_cast<std::uint8_t>(p.priority);
  job.placement = p.placement;
  return job;
}

std::vector<JobDescription> read_jobs(const ConfigNode& root, const WorkloadContext& context,
                                      const std::string& path) {
  root.allow_keys({"jobs"});
  const ConfigNode& list = *root.find("jobs");
  if (!list.is_sequence() || list.items().empty())
    list.fail("a sequence of {name, workload, ...} is expected");
  std::vector<JobDescription> jobs;
  for (const ConfigNode& node : list.items()) {
    jobs.push_back(read_job(node, context, path));
    const std::string& name = jobs.back().name;
    const auto same = [&name](const JobDescription& other) { return other.name == name; };
    if (std::count_if(jobs.begin(), jobs.end(), same) > 1) node.fail("a second job is called '" + name + "'");
    if (const auto found = find_not_name(name); found) node.fail("the name '" + name + "': " + found->what);
  }
  return jobs;
}

// Reads a text workload. Every error in a description is an InputError of the workload, also in parts that
// are read as configurations.
std::unique_ptr<TaskSource> read_text_workload(const WorkloadFile& file, const std::string& path,
                                               const WorkloadContext& context) {
  if (file.format == nullptr || file.format->component.empty())
    return as_input([&] { return parse_description(file.bytes, path, context.assignments)->tasks(context); });
  refuse_assignments(context.assignments, path);
  return Registry<WorkloadReader>::instance().create(file.format->component)->read(file.bytes, path, context);
}

}  // namespace

std::unique_ptr<TaskSource> load_workload(const std::string& path, const WorkloadContext& context) {
  const WorkloadFile file(path);
  if (file.format != nullptr && file.format->name == kJobsFormat)
    refuse(path, "is a list of jobs: a job itself cannot be one");
  std::unique_ptr<TaskSource> source;
  if (!is_text(file.bytes)) {
    refuse_assignments(context.assignments, path);
    source = make_role_program_source(parse_program(file.bytes, path), path);
  } else {
    check_text(file.bytes, path);
    source = read_text_workload(file, path, context);
  }
  check_names(*source, path);
  return source;
}

std::vector<JobDescription> load_jobs(const std::string& path, const WorkloadContext& context) {
  const Format* format = recognise_file(path);
  if (format != nullptr && format->name == kJobsFormat) {
    const std::string text = read_workload_file(path);
    check_text(text, path);
    std::vector<JobDescription> jobs =
        as_input([&] { return read_jobs(parse_overlaid(text, path, context.assignments), context, path); });
    for (const JobDescription& job : jobs) check_names(*job.source, job.file);
    return jobs;
  }
  std::vector<JobDescription> jobs(1);
  jobs[0].source = load_workload(path, context);
  jobs[0].name = jobs[0].source->job_name();
  jobs[0].file = path;
  return jobs;
}

std::string compile_workload(const std::string& yaml_path, const std::vector<std::string>& assignments) {
  const WorkloadFile file(yaml_path);
  if (!is_text(file.bytes) || (file.format != nullptr && !file.format->component.empty())) {
    refuse(yaml_path, "is not a YAML description: only those are compiled");
  }
  const std::string bytes =
      as_input([&] { return parse_description(file.bytes, yaml_path, assignments)->compile(); });
  if (bytes.empty()) refuse(yaml_path, "this kind of workload has no .pb form: run it as it is");
  return bytes;
}

}  // namespace netsim
