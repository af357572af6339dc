#include "sim/workload/program/program_file.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/recognise.h"
#include "sim/core/text.h"
#include "sim/workload/program/workload.pb.h"

namespace netsim {
namespace {

constexpr std::string_view kMagic = "netsim-workload";
constexpr std::uint32_t kSchema = 1;

// Tables of pairs of an enum of netsim and one of protobuf, for both directions.
template <class Ours, class Theirs>
using EnumTable = std::vector<std::pair<Ours, Theirs>>;

const EnumTable<Kernel::Kind, int>& kernel_kinds() {
  static const EnumTable<Kernel::Kind, int> table = {{Kernel::Kind::gemm, pb::Kernel::GEMM},
                                                     {Kernel::Kind::memory, pb::Kernel::MEMORY},
                                                     {Kernel::Kind::fixed, pb::Kernel::FIXED},
                                                     {Kernel::Kind::attention, pb::Kernel::ATTENTION}};
  return table;
}
const EnumTable<Precision, int>& precisions() {
  static const EnumTable<Precision, int> table = {{Precision::half, pb::Kernel::HALF},
                                                  {Precision::fp32, pb::Kernel::FP32},
                                                  {Precision::tf32, pb::Kernel::TF32},
                                                  {Precision::fp8, pb::Kernel::FP8},
                                                  {Precision::fp4, pb::Kernel::FP4}};
  return table;
}
const EnumTable<TaskKind, int>& task_kinds() {
  static const EnumTable<TaskKind, int> table = {{TaskKind::compute, pb::Op::COMPUTE},
                                                 {TaskKind::collective, pb::Op::COLLECTIVE},
                                                 {TaskKind::send, pb::Op::SEND},
                                                 {TaskKind::receive, pb::Op::RECEIVE},
                                                 {TaskKind::circuits, pb::Op::CIRCUITS},
                                                 {TaskKind::copy_to_host, pb::Op::COPY_TO_HOST},
                                                 {TaskKind::copy_from_host, pb::Op::COPY_FROM_HOST},
                                                 {TaskKind::host_compute, pb::Op::HOST_COMPUTE}};
  return table;
}
const EnumTable<Stream, int>& streams() {
  static const EnumTable<Stream, int> table = {
      {Stream::compute, pb::Op::STREAM_COMPUTE}, {Stream::tp, pb::Op::STREAM_TP},
      {Stream::pp, pb::Op::STREAM_PP},           {Stream::dp, pb::Op::STREAM_DP},
      {Stream::ep, pb::Op::STREAM_EP},           {Stream::cp, pb::Op::STREAM_CP},
      {Stream::io, pb::Op::STREAM_IO},           {Stream::offload, pb::Op::STREAM_OFFLOAD}};
  return table;
}
const EnumTable<CollectiveKind, int>& collectives() {
  static const EnumTable<CollectiveKind, int> table = [] {
    EnumTable<CollectiveKind, int> of_all;
    for (const CollectiveKindInfo& info : kCollectiveKinds) {
      if (info.protobuf != 0) of_all.emplace_back(info.kind, info.protobuf);
    }
    return of_all;
  }();
  return table;
}

template <class Ours>
int theirs(const EnumTable<Ours, int>& table, Ours value) {
  for (const auto& [ours, number] : table) {
    if (ours == value) return number;
  }
  check_failed("enum value", __FILE__, __LINE__, "value without a place in workload.proto");
}

// Returns "3 bytes", for messages.
std::string count_of(std::size_t count, const char* what) { return std::to_string(count) + " " + what; }

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  Program read(std::string_view bytes) {
    pb::Workload message;
    parse(bytes, message);
    refuse_unknown(message, "");
    Program program = convert(message);
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
    if (message.schema() > kSchema) {
      fail("schema", "version " + std::to_string(message.schema()) +
                         " is newer than this program, which reads up to " + std::to_string(kSchema) +
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

  template <class Ours>
  Ours ours(const EnumTable<Ours, int>& table, int number, const std::string& path) const {
    for (const auto& [value, theirs_number] : table) {
      if (theirs_number == number) return value;
    }
    fail(path, number == 0 ? "is missing" : "the value " + std::to_string(number) + " is unknown");
  }
  std::uint32_t index(std::uint32_t value, std::size_t size, const char* what,
                      const std::string& path) const {
    if (value < size) return value;
    fail(path, std::to_string(value) + " is out of range: there are " + count_of(size, what));
  }
  std::int64_t in_range(std::int64_t value, std::int64_t low, std::int64_t high,
                        const std::string& path) const {
    if (value >= low && value <= high) return value;
    fail(path,
         std::to_string(value) + " is out of range: " + std::to_string(low) + " to " + std::to_string(high));
  }

  Program convert(const pb::Workload& message) const {
    Program program;
    program.producer = message.producer();
    program.job = message.job();
    program.iterations = message.iterations();
    program.model_flops = message.model_flops();
    if (program.iterations == 0) fail("iterations", "0 is not a number of iterations: at least 1");
    program.warm_up = message.warm_up();
    if (program.warm_up >= program.iterations)
      fail("warm_up", std::to_string(program.warm_up) + " of " + std::to_string(program.iterations) +
                          " iterations: fewer than all are allowed");
    if (!(program.model_flops >= 0 && program.model_flops < 1e40))
      fail("model_flops", "is not a number of operations");
    convert_axes(message, program);
    program.names.assign(message.names().begin(), message.names().end());
    for (int i = 0; i < message.works_size(); ++i) {
      program.works.push_back(work(message.works(i), program, "works[" + std::to_string(i) + "]"));
    }
    for (int i = 0; i < message.tables_size(); ++i) {
      const auto& values = message.tables(i).values();
      if (values.empty() || static_cast<std::uint64_t>(values.size()) % rank_count(program) != 0) {
        fail("tables[" + std::to_string(i) + "]",
             count_of(static_cast<std::size_t>(values.size()), "values") + " for " +
                 std::to_string(rank_count(program)) + " ranks");
      }
      program.tables.emplace_back(values.begin(), values.end());
    }
    for (int i = 0; i < message.counts_size(); ++i)
      program.counts.push_back(counts(message.counts(i), "counts[" + std::to_string(i) + "]"));
    for (int i = 0; i < message.groups_size(); ++i) program.groups.push_back(group(message.groups(i)));
    for (int i = 0; i < message.blocks_size(); ++i) {
      program.blocks.push_back(block(message.blocks(i), program, "blocks[" + std::to_string(i) + "]"));
    }
    for (int i = 0; i < message.roles_size(); ++i) program.roles.push_back(role(message.roles(i)));
    return program;
  }

  void convert_axes(const pb::Workload& message, Program& program) const {
    if (message.axes_size() == 0) fail("axes", "is missing: a workload has at least one axis of ranks");
    in_range(message.axes_size(), 1, ProgramLimits::kAxes, "axes");
    for (int i = 0; i < message.axes_size(); ++i) {
      in_range(message.axes(i).size(), 1, ProgramLimits::kRanks, "axes[" + std::to_string(i) + "].size");
      program.axes.push_back({message.axes(i).name(), message.axes(i).size()});
    }
    if (rank_count(program) > ProgramLimits::kRanks) {
      fail("axes", std::to_string(rank_count(program)) + " ranks are too many: at most " +
                       std::to_string(ProgramLimits::kRanks));
    }
  }

  Work work(const pb::Work& message, const Program& program, const std::string& path) const {
    Work result;
    result.name = program.names[index(message.name(), program.names.size(), "names", path + ".name")];
    in_range(message.kernels_size(), 0, ProgramLimits::kKernels, path + ".kernels");
    for (int i = 0; i < message.kernels_size(); ++i) {
      result.kernels.push_back(
          kernel(message.kernels(i), program, path + ".kernels[" + std::to_string(i) + "]"));
    }
    return result;
  }

  Kernel kernel(const pb::Kernel& message, const Program& program, const std::string& path) const {
    constexpr std::int64_t kDimension = 1LL << 32;
    Kernel result;
    result.kind = ours(kernel_kinds(), message.kind(), path + ".kind");
    result.name = program.names[index(message.name(), program.names.size(), "names", path + ".name")];
    switch (result.kind) {
      case Kernel::Kind::gemm:
      case Kernel::Kind::attention:
        result.m = in_range(message.m(), 1, kDimension, path + ".m");
        result.n = in_range(message.n(), 1, kDimension, path + ".n");
        result.k = in_range(message.k(), 1, kDimension, path + ".k");
        result.batch = in_range(message.batch(), 1, kDimension, path + ".batch");
        result.element_bytes = in_range(message.element_bytes(), 1, 16, path + ".element_bytes");
        result.precision = ours(precisions(), message.precision(), path + ".precision");
        result.pieces =
            in_range(std::max<std::int64_t>(1, message.pieces()), 1, kDimension, path + ".pieces");
        result.backward = message.backward();
        result.weight_gradient = message.weight_gradient();
        result.accumulates = message.accumulates();
        result.held_multiprocessors =
            in_range(message.held_multiprocessors(), 0, kDimension, path + ".held_multiprocessors");
        check_operations(result, path);
        result.bytes = in_range(message.bytes(), result.kind == Kernel::Kind::attention ? 1 : 0,
                                ProgramLimits::kBytes, path + ".bytes");
        break;
      case Kernel::Kind::memory:
        result.bytes = in_range(message.bytes(), 1, ProgramLimits::kBytes, path + ".bytes");
        break;
      case Kernel::Kind::fixed:
        result.duration =
            in_range(message.duration_ps(), 0, ProgramLimits::kKernelTime, path + ".duration_ps");
        break;
    }
    return result;
  }

  // Checks the number of operations. Tiles round small dimensions up, so each counts 256 more than its size
  // here.
  void check_operations(const Kernel& gemm, const std::string& path) const {
    const auto padded = [](std::int64_t size) { return static_cast<double>(size) + 256.0; };
    const double operations = 2.0 * padded(gemm.m) * padded(gemm.n) * static_cast<double>(gemm.k) *
                              static_cast<double>(gemm.batch) * static_cast<double>(gemm.element_bytes);
    const bool fused = gemm.kind == Kernel::Kind::attention;
    if (operations <= ProgramLimits::kOperations && fused) return;
    if (operations <= ProgramLimits::kOperations &&
        gemm_elements(gemm) <= static_cast<double>(ProgramLimits::kBytes))
      return;
    fail(path, "the matrices are too large for one kernel");
  }
  static double gemm_elements(const Kernel& gemm) {
    const double m = static_cast<double>(gemm.m), n = static_cast<double>(gemm.n),
                 k = static_cast<double>(gemm.k);
    return (m * k + k * n + m * n) * static_cast<double>(gemm.batch) *
           static_cast<double>(gemm.element_bytes);
  }

  static GroupExpression group(const pb::Group& message) {
    GroupExpression result;
    for (const auto& subset : message.axes()) {
      result.axes.push_back({subset.axis(), {subset.members().begin(), subset.members().end()}});
    }
    result.ranks.assign(message.ranks().begin(), message.ranks().end());
    result.communicator = message.communicator();
    for (const auto& list : message.lists())
      result.lists.emplace_back(list.ranks().begin(), list.ranks().end());
    return result;
  }

  ProgramBlock block(const pb::Block& message, const Program& program, const std::string& path) const {
    ProgramBlock result{message.name(), {}};
    result.items.reserve(static_cast<std::size_t>(message.items_size()));
    for (int i = 0; i < message.items_size(); ++i) {
      const pb::Block::Item& item = message.items(i);
      const std::string where = path + ".items[" + std::to_string(i) + "]";
      if (item.has_op()) {
        result.items.emplace_back(op(item.op(), program, where + ".op"));
      } else if (item.has_repeat()) {
        result.items.emplace_back(ProgramRepeat{item.repeat().block(), item.repeat().count()});
      } else {
        fail(where, "is empty: an operation or a repeat was expected");
      }
    }
    return result;
  }

  BlockCounts counts(const pb::Counts& message, const std::string& path) const {
    const auto size = static_cast<std::uint64_t>(message.values_size());
    std::uint32_t members = 0;
    while (std::uint64_t{members} * members < size && members < ProgramLimits::kCountsMembers) ++members;
    if (members < 2 || std::uint64_t{members} * members != size) {
      fail(path, count_of(size, "values") + " are not the blocks of 2 to " +
                     std::to_string(ProgramLimits::kCountsMembers) + " ranks, a square number");
    }
    std::vector<Bytes> rows;
    rows.reserve(size);
    for (int i = 0; i < message.values_size(); ++i) {
      rows.push_back(
          in_range(message.values(i), 0, ProgramLimits::kBytes, path + ".values[" + std::to_string(i) + "]"));
    }
    BlockCounts counts(members, std::move(rows), tokens(message, members, path));
    if (counts.busiest() == 0) fail(path, "no rank sends anything to another");
    return counts;
  }

  TokenBytes tokens(const pb::Counts& message, std::uint32_t members, const std::string& path) const {
    TokenBytes tokens;
    tokens.token = in_range(message.token(), 0, ProgramLimits::kBytes, path + ".token");
    if (tokens.token == 0) {
      if (message.host() != 0 || message.copies_size() != 0 || message.to_hosts_size() != 0)
        fail(path + ".token", "is 0, and there are counts of tokens");
      return tokens;
    }
    tokens.host = static_cast<std::uint32_t>(
        in_range(message.host(), 1, ProgramLimits::kCountsMembers, path + ".host"));
    const std::size_t hosts = (members + tokens.host - 1) / tokens.host;
    tokens.copies =
        of_tokens(message.copies(), std::size_t{members} * members, tokens.token, path + ".copies");
    tokens.to_hosts = of_tokens(message.to_hosts(), members * hosts, tokens.token, path + ".to_hosts");
    of_tokens(message.values(), std::size_t{members} * members, tokens.token, path + ".values");
    return tokens;
  }
  template <class Values>
  std::vector<Bytes> of_tokens(const Values& values, std::size_t size, Bytes token,
                               const std::string& path) const {
    if (static_cast<std::size_t>(values.size()) != size)
      fail(path, count_of(static_cast<std::uint64_t>(values.size()), "values") + " instead of " +
                     std::to_string(size));
    std::vector<Bytes> bytes;
    bytes.reserve(size);
    for (int i = 0; i < values.size(); ++i) {
      const std::string at = path + "[" + std::to_string(i) + "]";
      bytes.push_back(in_range(values[i], 0, ProgramLimits::kBytes, at));
      if (bytes.back() % token != 0) fail(at, std::to_string(bytes.back()) + " bytes are no whole tokens");
    }
    return bytes;
  }

  ProgramOp collective(const pb::Op& message, const Program& program, const std::string& path,
                       ProgramOp result) const {
    result.collective = ours(collectives(), message.collective(), path + ".collective");
    result.group = index(message.group(), program.groups.size(), "groups", path + ".group");
    result.root = message.root();
    result.counts_plus_one =
        index(message.counts_plus_one(), program.counts.size() + 1, "counts", path + ".counts_plus_one");
    const std::string name = to_string(result.collective);
    if (has_counts(result.collective) != (result.counts_plus_one != 0)) {
      fail(path + ".counts_plus_one",
           name + (result.counts_plus_one == 0 ? " needs counts" : " has no counts of blocks"));
    }
    if (has_counts(result.collective) &&
        program.counts[result.counts_plus_one - 1].has_tokens() != has_tokens(result.collective)) {
      fail(path + ".counts_plus_one",
           name + (has_tokens(result.collective) ? " needs counts of tokens" : " has no tokens"));
    }
    if (has_bytes(result.collective)) return result;
    if (result.table_plus_one != 0 || message.bytes() != 0) {
      fail(path + (result.table_plus_one != 0 ? ".table_plus_one" : ".bytes"),
           name + (has_counts(result.collective) ? " has its bytes from counts" : " has no bytes"));
    }
    return result;
  }

  void check_chooses(const pb::Op& message, const std::string& path) const {
    const bool counts = message.kind() == pb::Op::COLLECTIVE &&
                        (message.collective() == pb::Op::ALL_TO_ALL_V ||
                         message.collective() == pb::Op::DISPATCH || message.collective() == pb::Op::COMBINE);
    if (message.kind() != pb::Op::COMPUTE && !counts) {
      fail(path + ".choice_plus_one",
           "only a compute operation, a dispatch, a combine and an all-to-all-v take their values from a "
           "table");
    }
    if (message.table_plus_one() != 0)
      fail(path + ".choice_plus_one", "table_plus_one is given, too: give one of the two");
  }

  ProgramOp op(const pb::Op& message, const Program& program, const std::string& path) const {
    ProgramOp result;
    result.kind = ours(task_kinds(), message.kind(), path + ".kind");
    result.stream = ours(streams(), message.stream(), path + ".stream");
    result.queue = message.queue();
    result.unordered = message.unordered();
    result.raw = message.raw();
    result.joins = message.joins();
    result.name = index(message.name(), program.names.size(), "names", path + ".name");
    result.table_plus_one =
        index(message.table_plus_one(), program.tables.size() + 1, "tables", path + ".table_plus_one");
    result.choice_plus_one =
        index(message.choice_plus_one(), program.tables.size() + 1, "tables", path + ".choice_plus_one");
    if (result.choice_plus_one != 0) check_chooses(message, path);
    result.after.assign(message.after().begin(), message.after().end());
    result.after_previous.assign(message.after_previous().begin(), message.after_previous().end());
    result.not_before = in_range(message.not_before_ps(), 0, kNever / 4, path + ".not_before_ps");
    if (result.kind == TaskKind::compute) {
      if (result.table_plus_one == 0)
        result.work = index(message.work(), program.works.size(), "works", path + ".work");
      return result;
    }
    if (result.kind == TaskKind::host_compute) {
      if (result.table_plus_one != 0 || result.choice_plus_one != 0)
        fail(path + ".table_plus_one", "what a host computes is the same for all ranks");
      result.work = index(message.work(), program.works.size(), "works", path + ".work");
      return result;
    }
    if (result.kind == TaskKind::circuits) {
      if (result.table_plus_one != 0) fail(path + ".table_plus_one", "circuits have no numbers");
      result.circuits = index(message.circuits(), program.names.size(), "names", path + ".circuits");
      result.group = index(message.group(), program.groups.size(), "groups", path + ".group");
      return result;
    }
    if (result.kind == TaskKind::collective) {
      result = collective(message, program, path, std::move(result));
      if (!has_bytes(result.collective)) return result;
    } else if (!is_copy(result.kind)) {
      result.peer = peer(message.peer(), program, path + ".peer");
      result.tag = message.tag();
    }
    if (result.table_plus_one == 0)
      result.bytes = in_range(message.bytes(), 1, ProgramLimits::kBytes, path + ".bytes");
    return result;
  }

  PeerExpression peer(const pb::Peer& message, const Program& program, const std::string& path) const {
    PeerExpression result;
    if (message.has_offset()) {
      result.kind = PeerExpression::Kind::offset;
      result.axis = message.offset().axis();
      result.offset = message.offset().offset();
      result.wrap = message.offset().wrap();
    } else if (message.where_case() == pb::Peer::kRank) {
      result.kind = PeerExpression::Kind::rank;
      result.rank = message.rank();
    } else if (message.where_case() == pb::Peer::kTable) {
      result.kind = PeerExpression::Kind::table;
      result.table = index(message.table(), program.tables.size(), "tables", path + ".table");
    } else {
      fail(path, "is missing");
    }
    return result;
  }

  static ProgramRole role(const pb::Role& message) {
    ProgramRole result{message.name(), {}, message.block()};
    for (const auto& coordinate : message.where()) {
      result.where.push_back({coordinate.axis(), {coordinate.values().begin(), coordinate.values().end()}});
    }
    return result;
  }

  const std::string& file_;
};

class Writer {
 public:
  explicit Writer(const Program& program) : program_(program) {
    for (std::size_t i = 0; i < program.names.size(); ++i) {
      name_index_.emplace(program.names[i], static_cast<std::uint32_t>(i));
    }
  }

  std::string write() {
    pb::Workload message;
    message.set_magic(std::string(kMagic));
    message.set_schema(kSchema);
    message.set_producer(program_.producer);
    message.set_job(program_.job);
    for (const ProgramAxis& axis : program_.axes) {
      auto& out = *message.add_axes();
      out.set_name(axis.name);
      out.set_size(axis.size);
    }
    for (const std::string& name : program_.names) message.add_names(name);
    for (const Work& work : program_.works) write_work(work, *message.add_works());
    for (const auto& table : program_.tables) {
      message.add_tables()->mutable_values()->Add(table.begin(), table.end());
    }
    for (const BlockCounts& counts : program_.counts) {
      const std::span<const Bytes> rows = counts.rows();
      pb::Counts& out = *message.add_counts();
      out.mutable_values()->Add(rows.begin(), rows.end());
      if (!counts.has_tokens()) continue;
      const TokenBytes& tokens = counts.tokens();
      out.set_token(tokens.token);
      out.set_host(tokens.host);
      out.mutable_copies()->Add(tokens.copies.begin(), tokens.copies.end());
      out.mutable_to_hosts()->Add(tokens.to_hosts.begin(), tokens.to_hosts.end());
    }
    for (const GroupExpression& group : program_.groups) write_group(group, *message.add_groups());
    for (const ProgramBlock& block : program_.blocks) write_block(block, *message.add_blocks());
    for (const ProgramRole& role : program_.roles) write_role(role, *message.add_roles());
    message.set_iterations(program_.iterations);
    message.set_warm_up(program_.warm_up);
    message.set_model_flops(program_.model_flops);
    message.set_total_tasks(total_tasks(program_, "program"));
    return serialize(message);
  }

 private:
  static std::string serialize(const pb::Workload& message) {
    std::string bytes;
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.SetSerializationDeterministic(true);
    NETSIM_CHECK(message.SerializeToCodedStream(&out), "workload message cannot be written");
    out.Trim();
    return bytes;
  }

  std::uint32_t name(const std::string& text) const {
    const auto it = name_index_.find(text);
    NETSIM_CHECK(it != name_index_.end(), "name '" + text + "' is not among the program's names");
    return it->second;
  }

  void write_work(const Work& work, pb::Work& out) const {
    out.set_name(name(work.name));
    for (const Kernel& kernel : work.kernels) {
      pb::Kernel& k = *out.add_kernels();
      k.set_kind(static_cast<pb::Kernel::Kind>(theirs(kernel_kinds(), kernel.kind)));
      k.set_name(name(kernel.name));
      if (kernel.kind == Kernel::Kind::gemm || kernel.kind == Kernel::Kind::attention) {
        k.set_m(kernel.m);
        k.set_n(kernel.n);
        k.set_k(kernel.k);
        k.set_batch(kernel.batch);
        k.set_element_bytes(kernel.element_bytes);
        k.set_precision(static_cast<pb::Kernel::Precision>(theirs(precisions(), kernel.precision)));
        if (kernel.pieces > 1) k.set_pieces(kernel.pieces);
        if (kernel.backward) k.set_backward(true);
        if (kernel.weight_gradient) k.set_weight_gradient(true);
        if (kernel.accumulates) k.set_accumulates(true);
        if (kernel.held_multiprocessors > 0) k.set_held_multiprocessors(kernel.held_multiprocessors);
        k.set_bytes(kernel.bytes);
      } else if (kernel.kind == Kernel::Kind::memory) {
        k.set_bytes(kernel.bytes);
      } else {
        k.set_duration_ps(kernel.duration);
      }
    }
  }

  static void write_group(const GroupExpression& group, pb::Group& out) {
    for (const auto& subset : group.axes) {
      auto& axis = *out.add_axes();
      axis.set_axis(subset.axis);
      axis.mutable_members()->Add(subset.members.begin(), subset.members.end());
    }
    out.mutable_ranks()->Add(group.ranks.begin(), group.ranks.end());
    out.set_communicator(group.communicator);
    for (const std::vector<std::uint32_t>& list : group.lists)
      out.add_lists()->mutable_ranks()->Add(list.begin(), list.end());
  }

  static void write_block(const ProgramBlock& block, pb::Block& out) {
    out.set_name(block.name);
    for (const auto& item : block.items) {
      if (const auto* op = std::get_if<ProgramOp>(&item)) {
        write_op(*op, *out.add_items()->mutable_op());
      } else {
        auto& repeat = *out.add_items()->mutable_repeat();
        repeat.set_block(std::get<ProgramRepeat>(item).block);
        repeat.set_count(std::get<ProgramRepeat>(item).count);
      }
    }
  }

  static void write_op(const ProgramOp& op, pb::Op& out) {
    out.set_kind(static_cast<pb::Op::Kind>(theirs(task_kinds(), op.kind)));
    out.set_stream(static_cast<pb::Op::Stream>(theirs(streams(), op.stream)));
    out.set_queue(op.queue);
    out.set_unordered(op.unordered);
    out.set_raw(op.raw);
    out.set_joins(op.joins);
    out.set_name(op.name);
    out.set_table_plus_one(op.table_plus_one);
    out.set_choice_plus_one(op.choice_plus_one);
    out.mutable_after()->Add(op.after.begin(), op.after.end());
    out.mutable_after_previous()->Add(op.after_previous.begin(), op.after_previous.end());
    out.set_not_before_ps(op.not_before);
    if (has_work(op.kind)) {
      out.set_work(op.work);
      return;
    }
    if (op.kind == TaskKind::circuits) {
      out.set_circuits(op.circuits);
      out.set_group(op.group);
      return;
    }
    out.set_bytes(op.bytes);
    if (is_copy(op.kind)) return;
    if (op.kind == TaskKind::collective) {
      out.set_collective(static_cast<pb::Op::Collective>(theirs(collectives(), op.collective)));
      out.set_group(op.group);
      out.set_root(op.root);
      out.set_counts_plus_one(op.counts_plus_one);
      return;
    }
    out.set_tag(op.tag);
    if (op.peer.kind == PeerExpression::Kind::rank) {
      out.mutable_peer()->set_rank(op.peer.rank);
    } else if (op.peer.kind == PeerExpression::Kind::table) {
      out.mutable_peer()->set_table(op.peer.table);
    } else {
      auto& offset = *out.mutable_peer()->mutable_offset();
      offset.set_axis(op.peer.axis);
      offset.set_offset(op.peer.offset);
      offset.set_wrap(op.peer.wrap);
    }
  }

  static void write_role(const ProgramRole& role, pb::Role& out) {
    out.set_name(role.name);
    out.set_block(role.block);
    for (const auto& coordinate : role.where) {
      auto& where = *out.add_where();
      where.set_axis(coordinate.axis);
      where.mutable_values()->Add(coordinate.values.begin(), coordinate.values.end());
    }
  }

  const Program& program_;
  std::map<std::string, std::uint32_t> name_index_;
};

}  // namespace

namespace {
const FormatRegistration kProgramFileFormat{{.name = "netsim_program",
                                             .what = "a workload of netsim (.pb)",
                                             .use = Format::Use::workload,
                                             .matches =
                                                 [](const Excerpt& file) {
                                                   return file.bytes().starts_with(std::string("\x0a\x0f") +
                                                                                   std::string(kMagic));
                                                 },
                                             .component = {},
                                             .advice = {},
                                             .endings = {".pb"}}};
}  // namespace

bool looks_like_program(std::string_view bytes) {
  const std::string start = std::string("\x0a\x0f") + std::string(kMagic);
  return bytes.substr(0, start.size()) == start.substr(0, bytes.size()) && bytes.size() > 2;
}

Program parse_program(std::string_view bytes, const std::string& file) { return Reader(file).read(bytes); }

std::string serialize_program(const Program& program) { return Writer(program).write(); }

}  // namespace netsim
