#include "sim/workload/trace/chakra_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/core/errors.h"
#include "sim/core/text.h"
#include "sim/workload/program/program.h"
#include "sim/workload/trace/chakra_node.h"
#include "sim/workload/trace/trace_blocks.h"

namespace netsim {
namespace {

// ---- The wire format of protobuf

void put_varint(std::string& bytes, std::uint64_t value) {
  while (value >= 0x80) {
    bytes.push_back(static_cast<char>((value & 0x7fU) | 0x80U));
    value >>= 7;
  }
  bytes.push_back(static_cast<char>(value));
}
void put_number(std::string& bytes, std::uint64_t field, std::uint64_t value) {
  put_varint(bytes, field << 3);
  put_varint(bytes, value);
}
void put_bytes(std::string& bytes, std::uint64_t field, std::string_view value) {
  put_varint(bytes, field << 3 | 2);
  put_varint(bytes, value.size());
  bytes += value;
}
// Puts a packed list, if it has a number.
void put_varints(std::string& bytes, std::uint64_t field, const std::vector<std::uint32_t>& values) {
  std::string packed;
  for (const std::uint32_t value : values) put_varint(packed, value);
  if (!values.empty()) put_bytes(bytes, field, packed);
}
std::string in_record(const std::string& message) {
  std::string bytes;
  put_varint(bytes, message.size());
  return bytes + message;
}

// ---- Attributes, by the fields of AttributeProto

void put_attribute(std::string& node, std::string_view name, std::uint64_t field, std::int64_t value) {
  std::string attribute;
  put_bytes(attribute, 1, name);
  put_number(attribute, field, static_cast<std::uint64_t>(value));
  put_bytes(node, 10, attribute);
}
void put_int64(std::string& node, std::string_view name, std::int64_t value) {
  put_attribute(node, name, 9, value);
}
void put_int32(std::string& node, std::string_view name, std::int64_t value) {
  put_attribute(node, name, 7, value);
}
void put_bool(std::string& node, std::string_view name, bool value) {
  put_attribute(node, name, 27, value ? 1 : 0);
}
void put_text(std::string& node, std::string_view name, std::string_view value) {
  std::string attribute;
  put_bytes(attribute, 1, name);
  put_bytes(attribute, 29, value);
  put_bytes(node, 10, attribute);
}
void put_int64s(std::string& node, std::string_view name, const std::vector<std::int64_t>& values) {
  std::string packed, list, attribute;
  for (const std::int64_t value : values) put_varint(packed, static_cast<std::uint64_t>(value));
  put_bytes(list, 1, packed);
  put_bytes(attribute, 1, name);
  put_bytes(attribute, 10, list);
  put_bytes(node, 10, attribute);
}
void put_texts(std::string& node, std::string_view name, const std::vector<std::string>& values) {
  std::string list, attribute;
  for (const std::string& value : values) put_bytes(list, 1, value);
  put_bytes(attribute, 1, name);
  put_bytes(attribute, 30, list);
  put_bytes(node, 10, attribute);
}

// ---- Numbers of Chakra

// Returns the number of a collective in schema 1.0.0, or -1 where Chakra does not have it.
int chakra_collective(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 0;
    case CollectiveKind::reduce:
      return 1;
    case CollectiveKind::all_gather:
      return 2;
    case CollectiveKind::gather:
      return 3;
    case CollectiveKind::scatter:
      return 4;
    case CollectiveKind::broadcast:
      return 5;
    case CollectiveKind::all_to_all:
    case CollectiveKind::all_to_all_v:
    case CollectiveKind::dispatch:
    case CollectiveKind::combine:
      return 6;
    case CollectiveKind::reduce_scatter:
      return 7;
    case CollectiveKind::barrier:
      return 9;
    default:
      return -1;
  }
}

constexpr std::uint64_t kMemoryLoad = 2, kMemoryStore = 3, kComputation = 4, kSend = 5, kReceive = 6,
                        kCollective = 7;

std::uint64_t node_type(TaskKind kind) {
  switch (kind) {
    case TaskKind::collective:
      return kCollective;
    case TaskKind::send:
      return kSend;
    case TaskKind::receive:
      return kReceive;
    case TaskKind::copy_to_host:
      return kMemoryStore;
    case TaskKind::copy_from_host:
      return kMemoryLoad;
    default:
      return kComputation;
  }
}

// ---- The parts of a node

// Describes a work for other tools: its time in microseconds, or its operations and bytes.
void put_work(std::string& node, const Work& work) {
  Time time = 0;
  double operations = 0;
  Bytes bytes = 0;
  for (const Kernel& kernel : work.kernels) {
    time += kernel.kind == Kernel::Kind::fixed ? kernel.duration : 0;
    bytes += kernel.bytes;
    operations += 2.0 * static_cast<double>(kernel.m) * static_cast<double>(kernel.n) *
                  static_cast<double>(kernel.k) * static_cast<double>(kernel.batch);
  }
  if (time > 0) put_number(node, 7, static_cast<std::uint64_t>((time + kMicrosecond / 2) / kMicrosecond));
  constexpr double kMostOperations = 9e18;
  if (operations > 0)
    put_int64(node, "num_ops", static_cast<std::int64_t>(std::min(operations, kMostOperations)));
  if (bytes > 0) put_int64(node, "tensor_size", bytes);
}

// Returns whether the reader makes this work of a node's name and microseconds alone.
bool is_plain(const Work& work, const std::string& name) {
  return work.kernels.size() == 1 && work.kernels[0].kind == Kernel::Kind::fixed && work.name == name &&
         work.kernels[0].name == name && work.kernels[0].duration > 0 &&
         work.kernels[0].duration % kMicrosecond == 0;
}
Work fixed_kernel(const std::string& name, Time duration) {
  Kernel kernel;
  kernel.kind = Kernel::Kind::fixed;
  kernel.name = name;
  kernel.duration = duration;
  return {name, {kernel}};
}

void put_kernels(std::string& node, const Work& work) {
  std::vector<std::int64_t> numbers;
  std::vector<std::string> names;
  for (const Kernel& kernel : work.kernels) {
    const std::vector<std::int64_t> of_kernel = chakra_kernel(kernel);
    numbers.insert(numbers.end(), of_kernel.begin(), of_kernel.end());
    names.push_back(kernel.name);
  }
  names.push_back(work.name);
  put_int64s(node, "netsim_kernels", numbers);
  put_texts(node, "netsim_kernel_names", names);
}

void put_traits(std::string& node, const Task& task) {
  const auto put = [&](const char* name, std::int64_t value, std::int64_t other = 0) {
    if (value != other) put_int64(node, name, value);
  };
  put("netsim_not_before_ps", task.not_before);
  const Payload* payload = task.payload();
  if (payload == nullptr) return;
  put("netsim_class", payload->traits.traffic_class);
  put("netsim_priority", payload->traits.priority);
  put("netsim_deadline_ps", static_cast<std::int64_t>(payload->traits.deadline));
  if (is_raw(task)) put("netsim_channel", payload->traits.channel);
}

std::string list_text(const std::vector<Bytes>& sizes) {
  std::string text;
  for (const Bytes size : sizes) append_item(text, std::to_string(size));
  return "[" + text + "]";
}

// Puts the parts as PyTorch's execution traces do, in bytes. Tokens stand beside them.
void put_blocks(std::string& node, const CollectiveTask& call, const TraceBlocks& blocks) {
  put_text(node, "in_split_size", list_text(blocks.sends));
  put_text(node, "out_split_size", list_text(blocks.receives));
  if (!has_tokens(call.collective)) return;
  put_text(node, "netsim_collective", to_string(call.collective));
  put_int64(node, "netsim_token", blocks.tokens.token);
  put_int64(node, "netsim_host", blocks.tokens.host);
  put_int64s(node, "netsim_copies", blocks.tokens.copies);
  put_int64s(node, "netsim_to_hosts", blocks.tokens.to_hosts);
}

// Returns the stream that the reader gives a node of this kind.
Stream usual_stream(const Task& task) {
  if (task.kind() == TaskKind::collective)
    return chakra_collective(task.collective().collective) == 6 ? Stream::ep : Stream::dp;
  if (is_point_to_point(task)) return Stream::pp;
  return is_copy(task.kind()) ? Stream::offload : Stream::compute;
}

}  // namespace

std::string chakra_objection(const Task& task) {
  if (task.kind() == TaskKind::circuits) return "a request for optical circuits";
  if (task.kind() != TaskKind::collective) {
    const Payload* payload = task.payload();
    return payload != nullptr && payload->traits.path_hint != kNoPathHint ? "a message with its own path"
                                                                          : "";
  }
  const CollectiveTask& call = task.collective();
  if (chakra_collective(call.collective) < 0)
    return std::string("a collective of kind ") + to_string(call.collective);
  if (call.algorithm != nullptr) return "a collective with its own algorithm";
  return call.pause != 0 ? "a collective that begins at all members at once" : "";
}

std::vector<std::int64_t> chakra_kernel(const Kernel& kernel) {
  return {static_cast<std::int64_t>(kernel.kind),
          kernel.m,
          kernel.n,
          kernel.k,
          kernel.batch,
          kernel.element_bytes,
          static_cast<std::int64_t>(kernel.precision),
          kernel.pieces,
          kernel.backward ? 1 : 0,
          kernel.weight_gradient ? 1 : 0,
          kernel.accumulates ? 1 : 0,
          kernel.held_multiprocessors,
          kernel.bytes,
          kernel.kind == Kernel::Kind::memory ? kernel.atomic_adds : kernel.duration};
}

std::optional<Kernel> kernel_of_chakra(const std::int64_t* numbers) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 32;
  const bool in_range = std::all_of(numbers, numbers + 12,
                                    [](std::int64_t number) { return number >= 0 && number <= kLargest; });
  if (!in_range || numbers[0] > 3 || numbers[5] > 16 || numbers[6] > 4 || numbers[12] < 0 ||
      numbers[12] > ProgramLimits::kBytes || numbers[13] < 0 || numbers[13] > ProgramLimits::kKernelTime)
    return std::nullopt;
  Kernel kernel;
  kernel.kind = static_cast<Kernel::Kind>(numbers[0]);
  kernel.m = numbers[1];
  kernel.n = numbers[2];
  kernel.k = numbers[3];
  kernel.batch = numbers[4];
  kernel.element_bytes = numbers[5];
  kernel.precision = static_cast<Precision>(numbers[6]);
  kernel.pieces = numbers[7];
  kernel.backward = numbers[8] != 0;
  kernel.weight_gradient = numbers[9] != 0;
  kernel.accumulates = numbers[10] != 0;
  kernel.held_multiprocessors = numbers[11];
  kernel.bytes = numbers[12];
  (kernel.kind == Kernel::Kind::memory ? kernel.atomic_adds : kernel.duration) = numbers[13];
  const bool has_matrices = kernel.kind == Kernel::Kind::gemm || kernel.kind == Kernel::Kind::attention;
  const bool is_empty = std::min({kernel.m, kernel.n, kernel.k, kernel.batch, kernel.element_bytes}) < 1;
  const bool needs_bytes = kernel.kind == Kernel::Kind::memory || kernel.kind == Kernel::Kind::attention;
  if ((has_matrices && is_empty) || (needs_bytes && kernel.bytes < 1) || !is_allowed_size(kernel))
    return std::nullopt;
  kernel.pieces = std::max<std::int64_t>(kernel.pieces, 1);
  return kernel;
}

std::string ChakraWriter::header() const {
  std::string metadata, job;
  put_bytes(metadata, 1, "1.0.0");
  put_bytes(job, 1, kChakraJob);
  put_bytes(job, 29, workload_.job_name());
  put_bytes(metadata, 2, job);
  return in_record(metadata);
}

// Returns the name of a communicator, which is above 0 because Chakra's 0 stands for all ranks.
std::string ChakraWriter::communicator(GroupId group) {
  groups_ = std::max<std::uint32_t>(groups_, group + 1U);
  return std::to_string(group + 1U);
}

std::string ChakraWriter::communicators() const {
  std::string text = "{";
  for (std::uint32_t group = 0; group < groups_; ++group) {
    std::string ranks;
    for (const RankId rank : workload_.group(group)) append_item(ranks, std::to_string(rank));
    text += fmt::format("{}\n  \"{}\": [{}]", group == 0 ? "" : ",", group + 1, ranks);
  }
  return text + "\n}\n";
}

void ChakraWriter::put_computation(std::string& node, const Task& task,
                                   const std::optional<RecordedTimes>& times) const {
  const std::string name = workload_.name(task.name);
  if (times) {
    const Time recorded = times->end - times->start;
    const Work work = fixed_kernel(name, times->work);
    put_work(node, fixed_kernel(name, recorded));
    if (recorded != times->work || !is_plain(work, name)) put_kernels(node, work);
  } else {
    const Work& work = workload_.works()[task.work()];
    put_work(node, work);
    if (!is_plain(work, name)) put_kernels(node, work);
  }
  if (task.kind() == TaskKind::host_compute) put_text(node, "netsim_kind", "host_compute");
}

void ChakraWriter::put_message(std::string& node, RankId rank, const Task& task) {
  const bool sends = task.kind() == TaskKind::send;
  const MessageTask& message = task.message();
  put_int64(node, "comm_size", task.bytes());
  put_int32(node, "comm_src", sends ? rank : message.peer);
  put_int32(node, "comm_dst", sends ? message.peer : rank);
  put_int32(node, "comm_tag", static_cast<std::int32_t>(message.tag));
  put_int64(node, "netsim_tag", message.tag);
  if (task.bytes() == 0) put_int64(node, "netsim_bytes", 0);
  if (message.raw) put_bool(node, "netsim_raw", true);
}

void ChakraWriter::put_collective(std::string& node, RankId rank, const CollectiveTask& call) {
  const std::vector<RankId>& members = workload_.group(call.group);
  const auto ranks = static_cast<std::int64_t>(members.size());
  const bool of_one =
      call.collective == CollectiveKind::all_gather || call.collective == CollectiveKind::gather;
  Bytes bytes = call.collective == CollectiveKind::barrier ? 0 : call.bytes;
  if (call.counts != nullptr) {
    const auto member = std::find(members.begin(), members.end(), rank) - members.begin();
    const TraceBlocks blocks = blocks_of_member(*call.counts, static_cast<std::uint32_t>(member));
    bytes = std::accumulate(blocks.sends.begin(), blocks.sends.end(), Bytes{0});
    put_blocks(node, call, blocks);
  }
  put_int64(node, "comm_type", chakra_collective(call.collective));
  put_int64(node, "comm_size", of_one ? (bytes + ranks - 1) / ranks : bytes);
  if (of_one && bytes % ranks != 0) put_int64(node, "netsim_bytes", bytes);
  if (has_root(call.collective)) put_int32(node, "root", call.root);
  put_text(node, "pg_name", communicator(call.group));
}

std::string ChakraWriter::node(RankId rank, std::uint64_t number, const Task& task, const Waits& waits,
                               const std::optional<RecordedTimes>& times) {
  std::string node;
  put_number(node, 1, number);
  put_bytes(node, 2, workload_.name(task.name));
  put_number(node, 3, node_type(task.kind()));
  put_varints(node, 4, waits.queued);
  put_varints(node, 5, waits.after);
  if (times) {
    put_number(node, 6, static_cast<std::uint64_t>(times->start / kMicrosecond));
    if (!has_work(task.kind()))
      put_number(node, 7, static_cast<std::uint64_t>((times->end - times->start) / kMicrosecond));
  }
  put_bool(node, "is_cpu_op", task.kind() == TaskKind::host_thread);
  if (has_work(task.kind())) {
    put_computation(node, task, times);
  } else if (is_copy(task.kind())) {
    put_int64(node, "tensor_size", task.bytes());
  } else if (is_point_to_point(task)) {
    put_message(node, rank, task);
  } else {
    put_collective(node, rank, task.collective());
  }
  put_traits(node, task);
  if (task.queue != Task::kUnordered) put_int64(node, "netsim_queue", task.queue);
  if (waits.joins) put_int64(node, "netsim_joins", 1);
  if (task.stream != usual_stream(task)) put_text(node, "netsim_stream", to_string(task.stream));
  return in_record(node);
}

}  // namespace netsim
