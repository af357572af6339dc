#include "sim/workload/workload.h"

#include <algorithm>
#include <string_view>

#include "sim/core/errors.h"
#include "sim/core/input_file.h"
#include "sim/core/recognise.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/workload/job_list.h"
#include "sim/workload/program/program_file.h"

namespace netsim {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Returns whether a file with this beginning is text. Text does not begin with control characters other than
// white space; every other file counts as binary.
bool is_text(std::string_view beginning) {
  return std::none_of(beginning.begin(), beginning.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && !is_space(c)) || c == 0x7f;
  });
}

[[noreturn]] void refuse(const std::string& path, const std::string& message) {
  throw InputError(Place{path, 0, 0, ""}, message);
}

// Refuses a text with control characters, because parts of it may appear in tables and on terminals.
void check_text(std::string_view text, const std::string& path) {
  if (const auto found = find_not_text(text); found)
    throw InputError(place_in(text, found->offset, path), found->what);
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

// Returns the format of the file if it is that of a workload; null if no format matched. Throws InputError
// for other formats.
const Format* workload_format(const InputSet::File& file, std::string* first_bytes = nullptr) {
  const Format* format = recognise(file, first_bytes);
  if (format != nullptr && format->use != Format::Use::workload) refuse(file.path, refusal(*format));
  const bool reads_whole =
      format != nullptr && (format->component.empty() || format->component == kProgramReader);
  if (reads_whole && is_packed(file.path))
    refuse(file.path, "is " + format->what + ", packed: unpack it first");
  return format;
}

// Returns the reader of a format, or "" for netsim's own descriptions.
std::string reader_of(const Format* format) { return format == nullptr ? std::string() : format->component; }

// InputFormat: the format of an input's first file.
struct InputFormat {
  const Format* format = nullptr;  // null if no format matched
  bool text = false;               // whether the file begins as a text does
  bool is_unknown_binary() const { return format == nullptr && !text; }
};

// Returns the format of the first file. Throws InputError unless the formats of all files have one reader.
InputFormat input_format(const InputSet& input) {
  const InputSet::File& first = input.files().front();
  std::string first_bytes;
  const Format* format = workload_format(first, &first_bytes);
  for (std::size_t i = 1; i < input.files().size(); ++i) {
    const InputSet::File& file = input.files()[i];
    const Format* other = workload_format(file);
    if (reader_of(other) == reader_of(format)) continue;
    const auto what = [](const Format* known) {
      return known == nullptr ? "of no known format" : known->what;
    };
    refuse(file.path,
           "is " + what(other) + ", but " + first.path + " is " + what(format) +
               ": the files of one workload have formats of one reader; name only those, or take the "
               "others out of the folder");
  }
  return {format, is_text(first_bytes)};
}

ConfigNode parse_overlaid(const std::string& text, const std::string& path,
                          const std::vector<std::string>& assignments) {
  ConfigNode root = parse_config(text, path);
  for (const std::string& assignment : assignments) overlay_config(root, assignment, "workload");
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

// Reads a description or a list of jobs, which must be text.
std::string read_description(const InputSet::File& file) {
  std::string text = read_file(file);
  check_text(text, file.path);
  return text;
}

constexpr const char* kJobsFormat = "netsim_jobs";

const FormatRegistration kJobs{{.name = kJobsFormat,
                                .what = "a list of jobs for netsim",
                                .use = Format::Use::workload,
                                .matches = [](const Excerpt& file) { return file.has_key("jobs"); },
                                .component = {},
                                .advice = {},
                                .endings = {".yaml", ".yml"}}};

// Reads a description. Every error in it is an InputError of the workload, also in parts that are read as
// configurations.
std::unique_ptr<TaskSource> open_description(const InputSet& input, const WorkloadContext& context) {
  const InputSet::File& file = input.only("a workload of netsim");
  const std::string text = read_description(file);
  return as_input([&] { return parse_description(text, file.path, context.assignments)->tasks(context); });
}

std::unique_ptr<TaskSource> open_with_reader(const std::string& reader, const InputSet& input,
                                             const WorkloadContext& context) {
  refuse_assignments(context.assignments, input.name());
  std::unique_ptr<TaskSource> source =
      Registry<WorkloadReader>::instance().create(reader)->open(input, context);
  input.log();
  return source;
}

std::unique_ptr<TaskSource> open_input_set(const InputSet& input, const InputFormat& found,
                                           const WorkloadContext& context) {
  if (found.format != nullptr && found.format->name == kJobsFormat)
    refuse(input.name(), "is a list of jobs: a job itself cannot be one");
  std::string reader = reader_of(found.format);
  // A binary file of no known format is read as a .pb, whose errors say what is wrong with its beginning.
  if (found.is_unknown_binary()) reader = kProgramReader;
  std::unique_ptr<TaskSource> source =
      reader.empty() ? open_description(input, context) : open_with_reader(reader, input, context);
  check_names(*source, input.name());
  return source;
}

}  // namespace

std::unique_ptr<TaskSource> load_workload(const InputPaths& paths, const WorkloadContext& context) {
  const InputSet input(paths);
  return open_input_set(input, input_format(input), context);
}

std::vector<JobDescription> load_jobs(const InputPaths& paths, const WorkloadContext& context) {
  const InputSet input(paths);
  const InputFormat found = input_format(input);
  if (found.format != nullptr && found.format->name == kJobsFormat) {
    const InputSet::File& file = input.only("a list of jobs");
    const std::string text = read_description(file);
    std::vector<JobDescription> jobs = as_input(
        [&] { return read_jobs(parse_overlaid(text, file.path, context.assignments), context, file.path); });
    for (const JobDescription& job : jobs) check_names(*job.source, job.file);
    return jobs;
  }
  std::vector<JobDescription> jobs(1);
  jobs[0].source = open_input_set(input, found, context);
  jobs[0].name = jobs[0].source->job_name();
  jobs[0].file = input.name();
  return jobs;
}

std::string compile_workload(const InputPaths& paths, const std::vector<std::string>& assignments) {
  const InputSet input(paths);
  if (const InputFormat found = input_format(input);
      !reader_of(found.format).empty() || found.is_unknown_binary())
    refuse(input.name(), "is not a YAML description: only those are compiled");
  const InputSet::File& file = input.only("a description that is compiled");
  const std::string text = read_file(file);
  std::string bytes = as_input([&] { return parse_description(text, file.path, assignments)->compile(); });
  if (bytes.empty()) refuse(file.path, "this kind of workload has no .pb form: run it as it is");
  return bytes;
}

}  // namespace netsim
