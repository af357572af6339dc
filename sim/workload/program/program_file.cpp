#include "sim/workload/program/program_file.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/input_set.h"
#include "sim/core/parameters.h"
#include "sim/core/recognise.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/workload/program/program_checks.h"
#include "sim/workload/program/program_message.h"
#include "sim/workload/program/role_program_source.h"
#include "sim/workload/program/workload.pb.h"
#include "sim/workload/workload.h"

namespace netsim {
namespace {

constexpr std::string_view kMagic = kProgramMagic;

// ProgramParser: checks the wire format of a program file and parses it.
class ProgramParser {
 public:
  explicit ProgramParser(const std::string& file) : file_(file) {}

  Program read(std::string_view bytes) const {
    pb::Workload message;
    parse(bytes, message);
    refuse_unknown(message, "");
    Program program = program_of_message(message, file_);
    if (total_tasks(program, file_) != message.total_tasks()) {
      fail("total_tasks", message.total_tasks() == 0
                              ? "is missing: the file is truncated"
                              : std::to_string(message.total_tasks()) + " is not the number of tasks, " +
                                    std::to_string(total_tasks(program, file_)) + ": the file is damaged");
    }
    return program;
  }

 private:
  [[noreturn]] void fail(const std::string& path, const std::string& message) const {
    fail_program(file_, path, message);
  }

  void parse(std::string_view bytes, pb::Workload& message) const {
    if (bytes.empty()) fail("", "is empty: a netsim workload was expected");
    if (bytes.size() > ProgramLimits::kFileBytes) {
      fail("", count_of(bytes.size(), "bytes") + " are too many: at most 1 GiB");
    }
    check_wire(bytes);
    const google::protobuf::LogSilencer silent;  // errors are exceptions here, never lines on stderr
    if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      fail("", looks_like_program(bytes) ? "is damaged: a field cannot be decoded"
                                         : "is not a netsim workload: it does not start with the magic '" +
                                               std::string(kMagic) + "'");
    }
    if (message.magic() != kMagic) {
      fail("magic", (message.magic().empty() ? "is missing" : "is wrong") +
                        std::string(": not a netsim workload ('") + std::string(kMagic) + "' was expected)");
    }
    if (message.schema() == 0) fail("schema", "is missing: the file is truncated or damaged");
    if (message.schema() > kProgramSchema) {
      fail("schema", "version " + std::to_string(message.schema()) +
                         " is newer than this program, which reads up to " + std::to_string(kProgramSchema) +
                         ": use a newer netsim");
    }
  }

  // Walks the top level, so that a truncated file, and bytes that are not text in a text field, are reported
  // with their offset.
  void check_wire(std::string_view bytes) const {
    google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                              static_cast<int>(bytes.size()));
    while (true) {
      const int offset = in.CurrentPosition();
      const std::uint32_t tag = in.ReadTag();
      if (tag == 0 && static_cast<std::size_t>(in.CurrentPosition()) == bytes.size() &&
          static_cast<std::size_t>(offset) == bytes.size()) {
        return;
      }
      if (tag == 0 || !skip(in, tag)) cut(bytes, offset);
      check_name(bytes.substr(0, static_cast<std::size_t>(in.CurrentPosition())), offset, tag >> 3);
    }
  }
  // Checks the field `number` that ends `bytes`. Its tag has one byte, at `offset`; its text follows its
  // length.
  void check_name(std::string_view bytes, int offset, std::uint32_t number) const {
    const char* field = number == pb::Workload::kJobFieldNumber     ? "job"
                        : number == pb::Workload::kNamesFieldNumber ? "names"
                                                                    : nullptr;
    if (field == nullptr) return;
    std::size_t begin = static_cast<std::size_t>(offset) + 1;
    while (begin < bytes.size() && (bytes[begin] & 0x80) != 0) ++begin;
    begin = std::min(begin + 1, bytes.size());
    if (const auto found = find_not_name(bytes.substr(begin)); found)
      fail(field, "byte " + std::to_string(begin + found->offset) + ": " + found->what);
  }
  static bool skip(google::protobuf::io::CodedInputStream& in, std::uint32_t tag) {
    std::uint64_t word = 0;
    std::uint32_t length = 0;
    switch (tag & 7) {
      case 0:
        return in.ReadVarint64(&word);
      case 1:
        return in.Skip(8);
      case 2:
        return in.ReadVarint32(&length) && length <= INT32_MAX && in.Skip(static_cast<int>(length));
      case 5:
        return in.Skip(4);
      default:
        return false;
    }
  }
  [[noreturn]] void cut(std::string_view bytes, int offset) const {
    if (!looks_like_program(bytes.substr(0, static_cast<std::size_t>(offset) + kMagic.size() + 2))) {
      fail("", "is not a netsim workload: it does not start with the magic '" + std::string(kMagic) + "'");
    }
    fail("", "is truncated or damaged: the field at byte " + std::to_string(offset) + " is not complete (" +
                 count_of(bytes.size(), "bytes in the file") + ")");
  }

  void refuse_unknown(const google::protobuf::Message& message, const std::string& path) const {
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    const auto& unknown = reflection.GetUnknownFields(message);
    if (!unknown.empty()) {
      fail(path, "has the unknown field number " + std::to_string(unknown.field(0).number()) +
                     ": written by a newer netsim, or damaged");
    }
    std::vector<const google::protobuf::FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    for (const auto* field : fields) {
      if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
      const std::string name = (path.empty() ? "" : path + ".") + field->name();
      if (!field->is_repeated()) {
        refuse_unknown(reflection.GetMessage(message, field), name);
        continue;
      }
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        refuse_unknown(reflection.GetRepeatedMessage(message, field, i),
                       name + "[" + std::to_string(i) + "]");
      }
    }
  }

  const std::string& file_;
};

std::string serialize(const pb::Workload& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  NETSIM_CHECK(message.SerializeToCodedStream(&out), "workload message cannot be written");
  out.Trim();
  return bytes;
}

std::string beginning_of_program() { return std::string("\x0a\x0f") + std::string(kMagic); }

const FormatRegistration kProgramFileFormat{
    {.name = kProgramReader,
     .what = "a workload of netsim (.pb)",
     .use = Format::Use::workload,
     .matches = [](const Excerpt& file) { return file.bytes().starts_with(beginning_of_program()); },
     .component = kProgramReader,
     .advice = {},
     .endings = {".pb"}}};

// ProgramFileReader: reads a program file as a workload.
class ProgramFileReader final : public WorkloadReader {
 public:
  std::unique_ptr<TaskSource> open(const InputSet& input, const WorkloadContext& context) const override {
    const InputSet::File& file = input.only("a workload of netsim");
    Program program = parse_program(read_file(file, ProgramLimits::kFileBytes), file.path);
    check_classes(program, context.classes, file.path);
    return make_role_program_source(std::move(program), file.path);
  }
};

const Registration<WorkloadReader> kProgramFile{
    kProgramReader, "a workload of netsim (.pb), which --compile writes", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<ProgramFileReader>(); }};

}  // namespace

bool looks_like_program(std::string_view bytes) {
  const std::string start = beginning_of_program();
  return bytes.substr(0, start.size()) == start.substr(0, bytes.size()) && bytes.size() > 2;
}

Program parse_program(std::string_view bytes, const std::string& file) {
  return ProgramParser(file).read(bytes);
}

std::string serialize_program(const Program& program) { return serialize(message_of_program(program)); }

}  // namespace netsim
