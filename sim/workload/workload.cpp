#include "sim/workload/workload.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

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

// Throws InputError for a format that is not that of a workload. Null stands for a file that no format
// matched.
void check_format(const Format* format, const InputSet::File& file) {
  if (format != nullptr && format->use != Format::Use::workload) refuse(file.path, refusal(*format));
}

// Returns the reader of a format, or "" for netsim's own descriptions.
std::string reader_of(const Format* format) { return format == nullptr ? std::string() : format->component; }

// InputFormat: the format of an input's first file.
struct InputFormat {
  const Format* format = nullptr;  // null if no format matched
  bool text = false;               // whether the file begins as a text does
  std::string left_out;            // note on files of a folder that are no traces; empty: none
  bool is_unknown_binary() const { return format == nullptr && !text; }
};

bool is_trace(const Format* format) {
  return format != nullptr && format->use == Format::Use::workload && !format->component.empty();
}
std::string name_of(const InputSet::File& file) {
  return std::filesystem::path(file.path).filename().string();
}

// Returns whether a file of this name is about others, whatever its ending.
bool is_document(const std::string& name) {
  const std::string lower = lower_case(name);
  constexpr std::string_view kBegins[] = {"readme", "license", "licence", "copying", "notice", "changelog"};
  return std::any_of(std::begin(kBegins), std::end(kBegins),
                     [&](std::string_view begin) { return lower.starts_with(begin); });
}

// Returns whether a file is JSON by its name and its begin. Damaged traces in JSON begin as traces do, so
// that other JSON, such as a configuration, is none.
bool is_json(const std::string& name, std::string_view first_bytes) {
  if (!name.ends_with(".json") && !name.ends_with(".json.gz")) return false;
  if (first_bytes.starts_with("\xef\xbb\xbf")) first_bytes.remove_prefix(3);
  const std::size_t first = first_bytes.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (first_bytes[first] == '{' || first_bytes[first] == '[');
}

// Leaves out the files of folders that are no workloads, if others are traces, and returns a note that names
// them. A file with the ending of a trace stays, because it may be a damaged one, unless it is JSON.
std::string leave_out_others(InputSet& input, std::vector<const Format*>& formats,
                             const std::vector<std::string>& begins) {
  const std::vector<InputSet::File>& files = input.files();
  std::set<std::string> endings;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (is_trace(formats[i])) endings.insert(std::filesystem::path(files[i].path).extension().string());
  }
  if (endings.empty()) return {};
  std::vector<bool> keeps(files.size(), true);
  std::vector<const Format*> kept;
  std::string names;
  std::uint64_t count = 0;
  constexpr std::uint64_t kNamed = 10;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const bool other = formats[i] == nullptr || formats[i]->use != Format::Use::workload;
    const std::string name = name_of(files[i]);
    const bool like_a_trace = endings.count(std::filesystem::path(name).extension().string()) > 0;
    const bool known = is_document(name) || is_json(name, begins[i]);
    keeps[i] = !files[i].in_folder || !other || (like_a_trace && !known);
    if (keeps[i]) kept.push_back(formats[i]);
    if (!keeps[i] && ++count <= kNamed) append_item(names, printable(name));
  }
  if (count == 0) return {};
  if (count > kNamed) append_item(names, "...");
  input.keep(keeps);
  formats = std::move(kept);
  return "files of the folder that are no traces and are left out: " + std::to_string(count) + " (" + names +
         ")";
}

// Returns the format of the first file, after leaving out what leave_out_others() does. Throws InputError
// unless the formats of all files have one reader.
InputFormat input_format(InputSet& input) {
  std::vector<const Format*> formats;
  formats.reserve(input.files().size());
  std::vector<std::string> begins(input.files().size());  // the first bytes of each file
  for (const InputSet::File& file : input.files())
    formats.push_back(recognise(file, &begins[formats.size()]));
  std::string left_out = leave_out_others(input, formats, begins);
  const bool any_known =
      std::any_of(formats.begin(), formats.end(), [](const Format* format) { return format != nullptr; });
  if (!any_known && formats.size() > 1)
    refuse(input.name(),
           "no file has a known format; allowed: one of those that netsim --list workload_reader "
           "names, or a YAML description with a 'kind'");
  const InputSet::File& first = input.files().front();
  for (std::size_t i = 0; i < formats.size(); ++i) {
    const InputSet::File& file = input.files()[i];
    check_format(formats[i], file);
    if (reader_of(formats[i]) == reader_of(formats[0])) continue;
    const auto what = [](const Format* known) {
      return known == nullptr ? "of no known format" : known->what;
    };
    refuse(file.path,
           "is " + what(formats[i]) + ", but " + first.path + " is " + what(formats[0]) +
               ": the files of one workload have formats of one reader; name only those, or take the "
               "others out of the folder");
  }
  return {formats[0], is_text(begins.front()), std::move(left_out)};
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
  try {
    if (!parse_config(text, path).is_map()) {
      refuse(path,
             "is not a workload: neither a netsim .pb, nor a YAML description with a 'kind', nor of a format "
             "that netsim --list workload_reader names");
    }
  } catch (const ConfigError& error) {
    if (recognise(text, path) != nullptr) throw;
    throw ConfigError(std::string(error.what()) +
                      ". Nor has the file a format that netsim --list workload_reader names");
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
  if (std::find(context.outer.begin(), context.outer.end(), file.version) != context.outer.end())
    throw InputError(context.named_at, "names '" + printable(file.path) +
                                           "', by which it is read itself; allowed: a workload that does not "
                                           "name this one, itself or through others");
  const std::string text = read_description(file);
  WorkloadContext inner = context;
  if (file.content == nullptr) inner.outer.push_back(file.version);
  return as_input([&] { return parse_description(text, file.path, context.assignments)->tasks(inner); });
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
  if (!found.left_out.empty()) source->add_note(found.left_out);
  return source;
}

}  // namespace

std::unique_ptr<TaskSource> load_workload(const InputPaths& paths, const WorkloadContext& context) {
  InputSet input(paths);
  const InputFormat found = input_format(input);
  return open_input_set(input, found, context);
}

std::vector<JobDescription> load_jobs(const InputPaths& paths, const WorkloadContext& context) {
  InputSet input(paths);
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
  InputSet input(paths);
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
