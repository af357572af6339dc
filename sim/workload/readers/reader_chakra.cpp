// chakra: execution traces of MLCommons' Chakra, one file per rank, NAME.R.et. All schemas in circulation and
// the JSON form are read (chakra_node.h).
//
// Beside the traces an input may have the communicators, `{"1": [0, 1], ...}`, and ASTRA-sim's logical
// dimensions, `{"logical-dims": ["8", "2"]}`. One file stands for all files NAME.*.et beside it, and for
// NAME.json if it lists communicators.
//
// Sizes: comm_size is the input of one rank. So an all-gather of netsim has comm_size times the ranks of its
// group (astra-sim's Ring.cc). Durations are microseconds.
//
// A node waits for the nodes of its data and control dependencies. Nodes of one CUDA stream also follow each
// other in the order of their beginnings, where the trace names streams. Nodes of the CPU run on a thread of
// the rank's process, which nothing slows down.
//
// The recorded time of a communication is not used: its time is simulated.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "sim/core/errors.h"
#include "sim/core/input_set.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/workload/trace/chakra_counts.h"
#include "sim/workload/trace/chakra_input.h"
#include "sim/workload/trace/chakra_node.h"
#include "sim/workload/trace/chakra_writer.h"
#include "sim/workload/trace/stream_order.h"
#include "sim/workload/trace/trace_program.h"
#include "sim/workload/workload.h"

namespace netsim {
namespace {

// ---- One rank

// ChakraKeys: what the ranks of a trace name in common.
struct ChakraKeys {
  // Returns the group of a communicator. Communicators with equal ranks and different names are different.
  std::uint32_t group(TraceProgram& program, const std::string& name, const std::vector<RankId>& ranks) {
    std::map<std::string, std::uint32_t>& names = communicators[ranks];
    const auto number = static_cast<std::uint32_t>(names.size());
    return program.group(ranks, names.try_emplace(name, number).first->second);
  }

  std::map<std::pair<std::int64_t, Bytes>, std::uint32_t> tags;  // by tag and size
  std::map<std::vector<RankId>, std::map<std::string, std::uint32_t>> communicators;
};

// ChakraRankReader: makes the tasks of one rank.
class ChakraRankReader {
 public:
  ChakraRankReader(const ChakraInput& input, const ChakraInput::RankFile& rank, TraceProgram& program,
                   ChakraKeys& keys, ChakraCounts& counts)
      : input_(input),
        rank_(rank),
        program_(program),
        keys_(keys),
        counts_(counts),
        groups_(input.groups()) {}

  std::vector<TraceTask> read() {
    const auto visit = [this](RecordedNode& node) { add(node); };
    if (rank_.json) {
      for_each_chakra_json_node(rank_.file, visit);
    } else {
      for_each_chakra_node(rank_.file, visit);
    }
    connect();
    chain_streams();
    return std::move(tasks_);
  }

 private:
  using Kind = RecordedNode::Kind;

  void add(RecordedNode& node) {
    if (!node.problem.empty()) fail(node, node.problem);
    if (node.kind == Kind::metadata) read_metadata(node);
    const auto index = static_cast<std::uint32_t>(tasks_.size());
    if (!index_.try_emplace(node.id, index).second) fail(node, "is in the file twice; allowed: each id once");
    TraceTask task;
    task.name = program_.name(printable(node.name.empty() ? "node" : node.name));
    task.order = node.id;
    task.label = fmt::format("node {}", node.id);
    make(node, task);
    make_exact(node, task);
    // The order of a stream queue stands in control dependencies for other tools.
    if (!task.queue) node.waits.insert(node.waits.end(), node.controls.begin(), node.controls.end());
    if (node.stream && !node.on_cpu) streams_[*node.stream].emplace_back(node.start_us, index);
    tasks_.push_back(std::move(task));
    waits_.push_back(std::move(node.waits));
  }

  void make(const RecordedNode& node, TraceTask& task) {
    if (node.on_cpu) {
      ++counts_.on_cpu;
      return make_computation(node, TaskKind::host_thread, task);
    }
    switch (node.kind) {
      case Kind::collective:
        return make_collective(node, task);
      case Kind::send:
      case Kind::receive:
        return make_message(node, task);
      case Kind::memory_load:
      case Kind::memory_store:
        return make_copy(node, task);
      case Kind::compute:
        return make_computation(node, TaskKind::compute, task);
      case Kind::metadata:
      case Kind::invalid:
        ++counts_.metadata;
        return make_nothing(task);
      case Kind::other:
        ++counts_.other;
        counts_.types.insert(node.type);
        return make_computation(node, TaskKind::host_thread, task);
    }
  }

  // Takes what netsim has written beside Chakra's fields.
  void make_exact(const RecordedNode& node, TraceTask& task) {
    if (!node.exact_stream.empty()) task.stream = exact_stream(node);
    if (node.exact_kind == "host_compute" && task.kind == TaskKind::compute)
      task.kind = TaskKind::host_compute;
    if (!node.kernels.empty()) {
      if (task.kind == TaskKind::host_thread && !node.on_cpu && node.kind == Kind::compute)
        task.kind = node.exact_kind == "host_compute" ? TaskKind::host_compute : TaskKind::compute;
      if (!has_work(task.kind)) fail(node, "has netsim_kernels and computes nothing");
      task.work = program_.work(exact_work(node));
    }
    if (node.exact.empty()) return;
    const auto number = [&](const char* name, std::int64_t most) {
      const std::int64_t value = node.exact_number(name).value_or(0);
      if (value < 0 || value > most)
        fail(node, fmt::format("has netsim_{} {}; allowed: 0 to {}", name, value, most));
      return value;
    };
    task.not_before = number("not_before_ps", ProgramLimits::kKernelTime);
    if (node.exact_number("queue")) {
      task.queue = static_cast<std::uint32_t>(number("queue", UINT32_MAX - 1));
      task.joins = number("joins", 1) != 0;
    }
    task.traits.traffic_class = static_cast<std::uint8_t>(number("class", UINT8_MAX));
    task.traits.priority = static_cast<std::uint8_t>(number("priority", UINT8_MAX));
    task.traits.channel = static_cast<std::uint32_t>(number("channel", UINT32_MAX));
    task.traits.set_deadline(number("deadline_ps", ProgramLimits::kKernelTime));
    if (node.exact_number("bytes") && is_communication(task.kind))
      task.bytes = number("bytes", ProgramLimits::kBytes);
  }
  Stream exact_stream(const RecordedNode& node) const {
    if (const auto stream = stream_called(node.exact_stream)) return *stream;
    fail(node, "has netsim_stream '" + printable(node.exact_stream) + "', which is no stream");
  }
  Work exact_work(const RecordedNode& node) const {
    const std::size_t count = node.kernels.size() / kChakraKernelNumbers;
    if (node.kernels.size() % kChakraKernelNumbers != 0 || count > ProgramLimits::kKernels ||
        node.kernel_names.size() != count + 1)
      fail(node, "has netsim_kernels that do not fit their names");
    Work work{printable(node.kernel_names.back()), {}};
    for (std::size_t i = 0; i < count; ++i) {
      std::optional<Kernel> kernel = kernel_of_chakra(node.kernels.data() + i * kChakraKernelNumbers);
      if (!kernel) fail(node, fmt::format("has numbers in netsim_kernels that kernel {} cannot have", i));
      kernel->name = printable(node.kernel_names[i]);
      work.kernels.push_back(std::move(*kernel));
    }
    return work;
  }

  void make_nothing(TraceTask& task) {
    task.kind = TaskKind::host_thread;
    task.work = program_.fixed_work("nothing", 0);
  }

  void make_computation(const RecordedNode& node, TaskKind kind, TraceTask& task) {
    constexpr std::uint64_t kLongest = ProgramLimits::kKernelTime / kMicrosecond;
    if (node.duration_us > kLongest)
      fail(node, fmt::format("takes {} us; allowed: 0 to {} us", node.duration_us, kLongest));
    task.kind = kind;
    const std::string name = printable(node.name);
    if (node.duration_us == 0 && kind == TaskKind::compute && node.operations.value_or(0) > 0) {
      ++counts_.by_work;
      task.work = program_.product_work(name, *node.operations, node.tensor_bytes.value_or(0));
      return;
    }
    if (node.duration_us == 0) {
      counts_.empty += kind == TaskKind::compute ? 1 : 0;
      return make_nothing(task);
    }
    task.work = program_.fixed_work(name, static_cast<Time>(node.duration_us) * kMicrosecond);
  }

  void make_copy(const RecordedNode& node, TraceTask& task) {
    const std::int64_t bytes = node.tensor_bytes.value_or(0);
    ++(bytes > 0 ? counts_.memory : counts_.unsized_copies);
    if (bytes <= 0) return make_nothing(task);
    task.kind = node.kind == Kind::memory_load ? TaskKind::copy_from_host : TaskKind::copy_to_host;
    task.stream = Stream::offload;
    task.bytes = limited(node, bytes);
  }

  Bytes limited(const RecordedNode& node, std::int64_t bytes) const {
    if (bytes > ProgramLimits::kBytes)
      fail(node, fmt::format("has {} bytes; allowed: 0 to {}", bytes, ProgramLimits::kBytes));
    return bytes;
  }

  // A communication whose size or kind is not known keeps the time that was recorded.
  void make_unsized(const RecordedNode& node, TraceTask& task) {
    ++counts_.unsized;
    make_computation(node, TaskKind::compute, task);
  }

  void make_collective(const RecordedNode& node, TraceTask& task) {
    if (!node.collective) return make_unsized(node, task);
    const bool parted =
        *node.collective == kAllToAll && (names_parts(node.in_parts) || names_parts(node.out_parts));
    if (!parted && node.bytes.value_or(0) <= 0 && *node.collective != kBarrier)
      return make_unsized(node, task);
    static const std::map<std::int64_t, CollectiveKind> kinds{
        {0, CollectiveKind::all_reduce},     {1, CollectiveKind::reduce},
        {2, CollectiveKind::all_gather},     {3, CollectiveKind::gather},
        {4, CollectiveKind::scatter},        {5, CollectiveKind::broadcast},
        {6, CollectiveKind::all_to_all},     {7, CollectiveKind::reduce_scatter},
        {8, CollectiveKind::reduce_scatter}, {kBarrier, CollectiveKind::barrier}};
    const auto kind = kinds.find(*node.collective);
    if (kind == kinds.end()) fail(node, fmt::format("has comm_type {}; allowed: 0 to 9", *node.collective));
    task.kind = TaskKind::collective;
    task.collective = kind->second;
    task.group = group_of(node);
    const auto ranks = static_cast<std::int64_t>(program_.group_size(task.group));
    const bool of_one =
        task.collective == CollectiveKind::all_gather || task.collective == CollectiveKind::gather;
    const std::int64_t bytes = limited(node, node.bytes.value_or(0));
    task.bytes =
        task.collective == CollectiveKind::barrier ? 0 : limited(node, of_one ? bytes * ranks : bytes);
    task.stream = task.collective == CollectiveKind::all_to_all ? Stream::ep : Stream::dp;
    if (node.root && has_root(task.collective)) task.root = static_cast<std::uint32_t>(*node.root);
    if (task.root >= ranks) fail(node, fmt::format("has root {}; allowed: 0 to {}", task.root, ranks - 1));
    if (parted) make_blocks(node, task);
  }

  // An all-to-all with parts. A member may send nothing.
  void make_blocks(const RecordedNode& node, TraceTask& task) const {
    const std::size_t members = program_.group_size(task.group);
    TraceBlocks blocks = blocks_of_splits(node.in_parts, node.out_parts, members, task.bytes, std::nullopt);
    task.collective = CollectiveKind::all_to_all_v;
    if (!node.tokens.collective.empty()) {
      const auto kind = node.tokens.add_to(blocks, members);
      if (!kind)
        fail(node,
             "has a netsim_collective, netsim_token, netsim_host, netsim_copies or netsim_to_hosts that "
             "does not fit its parts");
      task.collective = *kind;
    }
    task.blocks = std::make_shared<TraceBlocks>(std::move(blocks));
  }
  // Returns the group of a node: its communicator, its dimensions of the logical topology, or all ranks.
  std::uint32_t group_of(const RecordedNode& node) {
    if (!node.group.empty() && node.group != "0") {
      const auto found = groups_.find(node.group);
      if (found == groups_.end())
        fail(node, "is of communicator " + printable(node.group) +
                       ", which is in no list; allowed: a file of communicators beside the traces, "
                       R"({"1": [0, 1]}, or a metadata node that lists them)");
      if (!found->second.empty()) return keys_.group(program_, node.group, found->second);
    }
    if (std::find(node.dimensions.begin(), node.dimensions.end(), false) == node.dimensions.end() ||
        input_.dimensions().size() <= 1)
      return dimension_missing(node) ? fail_dimensions(node) : all_ranks();
    return keys_.group(program_, "", ranks_along(node.dimensions));
  }
  bool dimension_missing(const RecordedNode& node) const {
    const auto used =
        static_cast<std::size_t>(std::count(node.dimensions.begin(), node.dimensions.end(), true));
    return used > 0 && used < node.dimensions.size() && input_.dimensions().empty() && !is_prefix(node);
  }
  // Dimensions that are left out at the end may be those that the topology does not have.
  static bool is_prefix(const RecordedNode& node) {
    return std::is_sorted(node.dimensions.begin(), node.dimensions.end(), std::greater<>()) &&
           node.dimensions.size() == 4;
  }
  [[noreturn]] std::uint32_t fail_dimensions(const RecordedNode& node) const {
    fail(node,
         "names some dimensions of a logical topology (involved_dim), which no file describes; allowed: "
         R"({"logical-dims": ["8", "2"]} in a file beside the traces)");
  }
  std::uint32_t all_ranks() {
    if (!all_) {
      std::vector<RankId> members;
      for (std::uint32_t rank = 0; rank < program_.ranks(); ++rank) members.emplace_back(rank);
      all_ = keys_.group(program_, "", members);
    }
    return *all_;
  }
  // Returns the ranks that differ from this one in the given dimensions only; the first one varies fastest.
  std::vector<RankId> ranks_along(const std::vector<bool>& involved) const {
    std::vector<RankId> ranks{RankId(0)};
    std::uint32_t base = 0, stride = 1;
    for (std::size_t d = 0; d < input_.dimensions().size(); ++d) {
      const std::uint32_t size = input_.dimensions()[d];
      if (d < involved.size() && !involved[d]) {
        base += (rank_.rank / stride % size) * stride;
      } else {
        std::vector<RankId> wider;
        for (std::uint32_t i = 0; i < size; ++i) {
          for (const RankId rank : ranks) wider.emplace_back(rank + i * stride);
        }
        ranks = std::move(wider);
      }
      stride *= size;
    }
    for (RankId& rank : ranks) rank = RankId(rank + base);
    return ranks;
  }

  void make_message(const RecordedNode& node, TraceTask& task) {
    const bool sends = node.kind == Kind::send;
    std::optional<std::int64_t> peer = sends ? node.destination : node.source;
    if (!peer) peer = other_of_pair(node);
    const std::int64_t bytes = node.bytes.value_or(node.tensor_bytes.value_or(0));
    if (!peer || (bytes <= 0 && !node.exact_number("bytes"))) return make_unsized(node, task);
    if (*peer < 0 || *peer >= program_.ranks() || *peer == rank_.rank) {
      fail(node, fmt::format("{} rank {}; allowed: another rank, 0 to {}",
                             sends ? "sends to" : "receives from", *peer, program_.ranks() - 1));
    }
    task.kind = sends ? TaskKind::send : TaskKind::receive;
    task.peer = RankId(static_cast<std::uint32_t>(*peer));
    task.bytes = limited(node, bytes);
    task.stream = Stream::pp;
    const auto next = static_cast<std::uint32_t>(keys_.tags.size());
    task.tag = keys_.tags.try_emplace({node.tag.value_or(0), task.bytes}, next).first->second;
    if (const auto tag = node.exact_number("tag")) task.tag = static_cast<std::uint32_t>(*tag);
    task.raw = node.exact_number("raw").value_or(0) != 0;
  }
  // Returns the other rank of a communicator of two.
  std::optional<std::int64_t> other_of_pair(const RecordedNode& node) const {
    const auto found = groups_.find(node.group);
    if (found == groups_.end() || found->second.size() != 2) return std::nullopt;
    const RankId other = found->second[found->second[0] == rank_.rank ? 1 : 0];
    return std::int64_t{other};
  }

  // Reads the communicators that PyTorch's traces list in a metadata node.
  void read_metadata(const RecordedNode& node) {
    const std::size_t begin = node.groups_text.find("[{"), end = node.groups_text.rfind("}]");
    if (begin == std::string::npos || end == std::string::npos || end < begin) return;
    std::string text = node.groups_text.substr(begin, end + 2 - begin);
    text.erase(std::remove(text.begin(), text.end(), '\\'), text.end());
    const nlohmann::json list = nlohmann::json::parse(text, nullptr, false);
    if (!list.is_array()) return;
    for (const nlohmann::json& group : list) {
      const auto name = group.find("pg_name"), ranks = group.find("ranks");
      if (name == group.end() || ranks == group.end() || !ranks->is_array()) continue;
      std::vector<RankId> members;
      for (const nlohmann::json& rank : *ranks) {
        if (rank.is_number_unsigned()) members.emplace_back(rank.get<std::uint32_t>());
      }
      groups_[name->is_string() ? name->get<std::string>() : name->dump()] = std::move(members);
    }
  }

  void connect() {
    for (std::uint32_t i = 0; i < tasks_.size(); ++i) {
      for (const std::uint64_t id : waits_[i]) {
        const auto found = index_.find(id);
        if (found == index_.end()) {
          ++counts_.lost;
        } else {
          tasks_[i].after.push_back(found->second);
        }
      }
    }
  }

  // A node waits for the one before it in its CUDA stream, where the trace has both streams and times.
  void chain_streams() {
    std::vector<RecordedStream> streams;
    for (auto& [stream, nodes] : streams_) {
      const bool timed =
          std::any_of(nodes.begin(), nodes.end(), [](const auto& node) { return node.first > 0; });
      if (timed) streams.push_back(std::move(nodes));
    }
    counts_.contradictions += order_streams(tasks_, streams);
    for (const RecordedStream& nodes : streams) {
      for (std::size_t i = 1; i < nodes.size(); ++i) {
        tasks_[nodes[i].second].after.push_back(nodes[i - 1].second);
        ++counts_.chained;
      }
    }
  }

  [[noreturn]] void fail(const RecordedNode& node, const std::string& message) const {
    fail_file(rank_.file.path, fmt::format("node {} ('{}') {}", node.id, printable(node.name), message));
  }

  static constexpr std::int64_t kAllToAll = 6, kBarrier = 9;
  const ChakraInput& input_;
  const ChakraInput::RankFile& rank_;
  TraceProgram& program_;
  ChakraKeys& keys_;
  ChakraCounts& counts_;
  std::map<std::string, std::vector<RankId>> groups_;
  std::optional<std::uint32_t> all_;
  std::vector<TraceTask> tasks_;
  std::vector<std::vector<std::uint64_t>> waits_;
  std::unordered_map<std::uint64_t, std::uint32_t> index_;  // of a node, by its id; never iterated
  // By CUDA stream: begin and index of its nodes.
  std::map<std::int64_t, RecordedStream> streams_;
};

// ---- The reader

class ChakraReader final : public WorkloadReader {
 public:
  std::unique_ptr<TaskSource> open(const InputSet& input, const WorkloadContext&) const override {
    const ChakraInput files(input);
    const ChakraInput::RankFile& first = files.ranks().front();
    const std::string job = first.json ? "" : chakra_job_name(first.file);
    TraceProgram program(job.empty() ? files.name() : printable(job),
                         static_cast<std::uint32_t>(files.ranks().size()), input.name());
    ChakraKeys keys;
    add_groups(files, program, keys);
    ChakraCounts counts;
    for (const ChakraInput::RankFile& rank : files.ranks())
      program.add_rank(rank.rank, ChakraRankReader(files, rank, program, keys, counts).read(),
                       rank.file.path);
    return program.finish(counts.notes());
  }

 private:
  // Numbers the listed communicators in the order of their names, whichever rank uses them first.
  static void add_groups(const ChakraInput& files, TraceProgram& program, ChakraKeys& keys) {
    std::map<std::pair<std::size_t, std::string>, const std::vector<RankId>*> sorted;
    for (const auto& [name, ranks] : files.groups()) sorted[{name.size(), name}] = &ranks;
    const auto is_here = [&](const std::vector<RankId>& ranks) {
      return !ranks.empty() &&
             std::all_of(ranks.begin(), ranks.end(), [&](RankId rank) { return rank < program.ranks(); });
    };
    for (const auto& [name, ranks] : sorted) {
      if (is_here(*ranks)) keys.group(program, name.second, *ranks);
    }
  }
};

const Registration<WorkloadReader> kChakra{
    "chakra", "execution traces of Chakra (MLCommons), NAME.R.et of each rank R, with their communicators",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<ChakraReader>(); }};

}  // namespace
}  // namespace netsim
