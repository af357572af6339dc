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
#include "sim/workload/program_file.h"
#include "sim/workload/role_program_source.h"

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

// Text has no control characters but white space; every other file is taken for binary.
bool is_text(std::string_view bytes) {
  return std::none_of(bytes.begin(), bytes.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && !is_space(c)) || c == 0x7f;
  });
}

[[noreturn]] void refuse(const std::string& path, const std::string& message) {
  throw InputError(Place{path, 0, 0, ""}, message);
}

// Null for what no format knows.
const Format* workload_format(const Format* format, const std::string& path) {
  if (format != nullptr && format->use != Format::Use::workload) refuse(path, refusal(*format));
  if (format != nullptr && is_packed(path)) refuse(path, "is " + format->what + ", packed: unpack it first");
  return format;
}

// The file's bytes and what they are. What is no workload is refused before it is read as a whole.
struct WorkloadFile {
  explicit WorkloadFile(const std::string& path) {
    workload_format(recognise_file(path), path);
    bytes = read_workload_file(path);
    format = workload_format(recognise(bytes, path), path);
  }
  std::string bytes;
  const Format* format = nullptr;
};

std::unique_ptr<WorkloadKind> parse_description(const std::string& text, const std::string& path) {
  if (std::all_of(text.begin(), text.end(), is_space)) {
    refuse(path, "is empty: a workload (.pb or .yaml) was expected");
  }
  const ConfigNode root = parse_config(text, path);
  if (!root.is_map()) {
    refuse(path,
           "is not a workload: neither a netsim .pb, nor a YAML description with a 'kind', nor a flow list "
           "(netsim --list workload_reader)");
  }
  return Registry<WorkloadKind>::instance().create(root, "");
}

const FormatRegistration kDescription{{.name = "netsim_workload",
                                       .what = "a workload of netsim",
                                       .use = Format::Use::workload,
                                       .matches = [](const Excerpt& file) { return file.has_key("kind"); },
                                       .component = {},
                                       .advice = {},
                                       .endings = {".yaml", ".yml"}}};

}  // namespace

// Whatever is wrong in a description is the workload's fault, also what is read as configurations are.
std::unique_ptr<TaskSource> load_workload(const std::string& path, const WorkloadContext& context) {
  const WorkloadFile file(path);
  if (file.format != nullptr && !file.format->component.empty()) {
    return Registry<WorkloadReader>::instance()
        .create(file.format->component)
        ->read(file.bytes, path, context);
  }
  if (is_text(file.bytes)) {
    return as_input([&] { return parse_description(file.bytes, path)->tasks(context); });
  }
  return make_role_program_source(parse_program(file.bytes, path), path);
}

std::string compile_workload(const std::string& yaml_path) {
  const WorkloadFile file(yaml_path);
  if (!is_text(file.bytes) || (file.format != nullptr && !file.format->component.empty())) {
    refuse(yaml_path, "is not a YAML description: only those are compiled");
  }
  const std::string bytes = as_input([&] { return parse_description(file.bytes, yaml_path)->compile(); });
  if (bytes.empty()) refuse(yaml_path, "this kind of workload has no .pb form: run it as it is");
  return bytes;
}

}  // namespace netsim
