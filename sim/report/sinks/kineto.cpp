// kineto: kineto_rank_N.json, a trace for each rank of a job in the form of PyTorch's profiler, which
// Holistic Trace Analysis and ui.perfetto.dev read (docs/how-to/timelines.md). The files are written while
// the run goes on.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/report/kineto_events.h"
#include "sim/report/result_sink.h"
#include "sim/report/timeline.h"
#include "sim/report/work_times.h"
#include "sim/workload/trace/trace_blocks.h"

namespace netsim {
namespace {

constexpr const char* kAllRanks = "all";
// Files without `ranks`, and the most that may be named: each is open during the run.
constexpr std::uint32_t kFirstRanks = 64, kMostFiles = 512;

enum class ElementType : std::uint8_t { bf16, half, floating, byte };

// ElementName: a type as PyTorch and as NCCL's kernels name it.
struct ElementName {
  Bytes size;
  const char *torch, *nccl;
};
constexpr ElementName kElements[] = {
    {2, "BFloat16", "bf16"}, {2, "Half", "f16"}, {4, "Float", "f32"}, {1, "Byte", "u8"}};

struct KinetoParameters {
  ConfigNode ranks;
  std::string job;
  ElementType dtype = ElementType::bf16;
};

std::string kineto_file(std::uint32_t rank) { return fmt::format("kineto_rank_{}.json", rank); }

// Returns the name of a collective as ProcessGroupNCCL records it.
const char* torch_collective(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "allreduce";
    case CollectiveKind::all_gather:
      return "_allgather_base";
    case CollectiveKind::reduce_scatter:
      return "_reduce_scatter_base";
    case CollectiveKind::all_to_all_v:
    case CollectiveKind::dispatch:
    case CollectiveKind::combine:
      return "all_to_allv";
    default:
      return to_string(kind);
  }
}

// Returns the type of the elements of a call: `wanted`, or bytes where its size does not divide the buffers
// and their parts.
ElementName element_of(const CallBytes& bytes, ElementType wanted, const TraceBlocks& parts = {}) {
  const ElementName& element = kElements[static_cast<std::size_t>(wanted)];
  const auto divides = [&](Bytes size) { return size % element.size == 0; };
  const bool fits = divides(bytes.in) && divides(bytes.out) &&
                    std::all_of(parts.sends.begin(), parts.sends.end(), divides) &&
                    std::all_of(parts.receives.begin(), parts.receives.end(), divides);
  return fits ? element : kElements[static_cast<std::size_t>(ElementType::byte)];
}

// Returns the parts of a buffer in elements: "[3, 1]". PyTorch cuts the lists of its profiler after 30
// numbers. Those of netsim are whole, as in PyTorch's execution traces, so that a replay has all parts.
std::string split_sizes(const std::vector<Bytes>& parts, const ElementName& element) {
  std::string text;
  for (const Bytes part : parts) append_item(text, std::to_string(part / element.size));
  return "[" + text + "]";
}

Bytes sum_of(const std::vector<Bytes>& parts) {
  return std::accumulate(parts.begin(), parts.end(), Bytes{0});
}

// Returns members of `args` for what no call of PyTorch tells: the tokens of a dispatch or a combine.
std::string tokens_of(CollectiveKind kind, const TokenBytes& tokens) {
  if (!has_tokens(kind)) return "";
  const auto list = [](const std::vector<Bytes>& row) { return split_sizes(row, {1, "", ""}); };
  return fmt::format(R"(, "netsim_collective": "{}", "netsim_token": {}, "netsim_host": {}, )"
                     R"("netsim_copies": "{}", "netsim_to_hosts": "{}")",
                     to_string(kind), tokens.token, tokens.host, list(tokens.copies), list(tokens.to_hosts));
}

// Returns the name of NCCL's kernel (src/device/generate.py there). Kinds that NCCL composes of messages run
// in the kernel of sends and receives.
std::string nccl_kernel(CollectiveKind kind, const ElementName& element, const LibraryChoice* choice) {
  std::string name = nccl_function(kind);
  const bool reduces = name == "AllReduce" || name == "ReduceScatter" || name == "Reduce";
  const bool composed = name == "AlltoAll" || name == "Gather" || name == "Scatter" || name == "SendRecv";
  if (composed) name = "SendRecv";
  if (reduces) name += fmt::format("_Sum_{}", element.nccl);
  if (!composed && choice != nullptr && !choice->algorithm.empty())
    name += "_" + nccl_algorithm(choice) + "_" + nccl_protocol(choice);
  return "ncclDevKernel_" + name + "(ncclDevKernelArgsStorage<4096ul>)";
}

class Kineto final : public ResultSink, public Receives<TaskRecord>, public Receives<RecordedCommunication> {
 public:
  // `node` is the map of the parameters, for places in errors.
  Kineto(const KinetoParameters& parameters, const ConfigNode& node);

  std::vector<std::string> files() const override {
    std::vector<std::string> names;
    for (const std::uint32_t rank : ranks_) names.push_back(kineto_file(rank));
    return names;
  }
  bool open(SinkFiles& files, const RunView& run) override;
  void add(const TaskRecord& record) override;
  void add(const RecordedCommunication& record) override {
    members_.end(record, [this](const Held& held, const LibraryChoice* choice) { write(held, choice); });
  }
  void finish(const FinishedRun& run, SinkFiles& files) override;
  std::vector<std::string> notes() const override;

 private:
  // Held: a task with the launch that it was given when it ended.
  struct Held {
    TaskRecord record;
    KinetoFile::Launch launch;
  };

  JobId find_job() const;
  KinetoFile& file_of(RankId rank);
  std::vector<KinetoGroup> groups_of(RankId rank) const;
  KinetoGroup group(GroupId id, Stream stream) const;
  void write(const Held& held, const LibraryChoice* choice);
  KinetoFile::Kernel message(const Held& held) const;
  KinetoFile::Kernel collective(const Held& held, const LibraryChoice* choice) const;
  std::string call(const char* name, const CallBytes& bytes, const ElementName& element,
                   const KinetoGroup& group, Stream stream, const TraceBlocks& parts = {}) const;
  std::string marks(const TaskRecord& record) const;
  std::string task_name(const TaskRecord& record) const {
    return run_->jobs[job_].task_name(record.task.name);
  }

  KinetoParameters parameters_;
  ConfigNode node_;
  std::vector<std::uint32_t> ranks_;
  const RunView* run_ = nullptr;
  JobId job_ = 0;
  KinetoGroup world_;
  std::map<std::uint32_t, OutputFile*> outputs_;  // by rank, here and below
  std::map<std::uint32_t, KinetoFile> files_;
  CollectiveMembers<Held> members_;
  std::optional<RecordLimit> limit_;
  std::optional<WorkTimes> work_times_;
  std::uint64_t listed_ = 0;  // tasks whose waits are known, up to OutputParameters::max_rows
};

Kineto::Kineto(const KinetoParameters& parameters, const ConfigNode& node)
    : parameters_(parameters), node_(node) {
  std::set<std::uint32_t> ranks;
  const std::vector<ConfigNode> named = read_names(parameters.ranks, kAllRanks);
  if (named.size() == 1 && named.front().text() == kAllRanks) {
    ranks_.resize(kFirstRanks);
    std::iota(ranks_.begin(), ranks_.end(), 0U);
    return;
  }
  for (const ConfigNode& rank : named) {
    const std::int64_t number = read_integer(rank);
    if (number < 0 || number >= UINT32_MAX) rank.fail("a rank from 0 on is expected");
    if (!ranks.insert(static_cast<std::uint32_t>(number)).second) rank.fail("this rank is named twice");
    if (ranks.size() > kMostFiles) rank.fail(fmt::format("at most {} ranks may be named", kMostFiles));
  }
  ranks_.assign(ranks.begin(), ranks.end());
}

bool Kineto::open(SinkFiles& files, const RunView& run) {
  run_ = &run;
  job_ = find_job();
  const std::uint32_t ranks = run.jobs[job_].source->ranks();
  const ConfigNode* named = node_.find("ranks");
  if (named != nullptr && named->text() != kAllRanks && !ranks_.empty() && ranks_.back() >= ranks) {
    named->fail(fmt::format("job '{}' has the ranks 0 to {}, and rank {} is named", run.jobs[job_].name,
                            ranks - 1, ranks_.back()));
  }
  world_ = {"0", "default_pg", {}};
  for (std::uint32_t rank = 0; rank < ranks; ++rank) world_.ranks.emplace_back(rank);
  for (const std::uint32_t rank : ranks_) {
    if (rank < ranks) outputs_[rank] = &files.open(kineto_file(rank));
  }
  limit_.emplace("tasks", run.output.max_rows);
  work_times_.emplace(run, job_);
  return true;
}

JobId Kineto::find_job() const {
  if (parameters_.job.empty()) return 0;
  std::string known;
  for (std::uint32_t job = 0; job < run_->jobs.size(); ++job) {
    if (run_->jobs[job].name == parameters_.job) return job;
    known += (job == 0 ? "" : ", ") + run_->jobs[job].name;
  }
  node_.find("job")->fail("no job is called '" + parameters_.job + "' (" + known + ")");
}

// Files begin with the first task, when the rank's GPU is known.
KinetoFile& Kineto::file_of(RankId rank) {
  const auto found = files_.find(rank);
  if (found != files_.end()) return found->second;
  const GpuId gpu = run_->gpu(job_, rank);
  const bool known = run_->cluster != nullptr && gpu < run_->cluster->gpus.size();
  KinetoFile& file =
      files_.try_emplace(rank, *outputs_.at(rank), rank, known ? run_->cluster->gpus[gpu].local : 0U)
          .first->second;
  listed_ +=
      file.list_waits(*run_->jobs[job_].source, static_cast<std::uint64_t>(run_->output.max_rows) - listed_);
  file.begin(static_cast<std::uint32_t>(world_.ranks.size()), groups_of(rank));
  return file;
}

// Returns the group of all ranks and those of the rank's collectives, as far as they are known before the
// run.
std::vector<KinetoGroup> Kineto::groups_of(RankId rank) const {
  std::map<std::uint32_t, Stream> streams;  // by group
  run_->jobs[job_].source->for_each_task(rank, [&](const Task& task) {
    if (has_group(task)) streams.try_emplace(task.group(), task.stream);
  });
  std::vector<KinetoGroup> groups{world_};
  for (const auto& [id, stream] : streams) groups.push_back(group(id, stream));
  return groups;
}

KinetoGroup Kineto::group(GroupId id, Stream stream) const {
  return {std::to_string(id + 1U), to_string(stream), run_->jobs[job_].source->group(id)};
}

void Kineto::add(const TaskRecord& record) {
  if (record.job != job_ || !outputs_.contains(record.rank) || !limit_->take()) return;
  KinetoFile& file = file_of(record.rank);
  if ((is_of_host(record.task) && !is_copy(record.task.kind())) || record.task.kind() == TaskKind::circuits)
    return file.add_host(record, task_name(record), marks(record));
  Held held{record, file.take_launch(record)};
  if (record.task.kind() != TaskKind::collective) return write(held, nullptr);
  members_.add(record.job, record.communication, held,
               [this](const Held& member, const LibraryChoice* choice) { write(member, choice); });
}

void Kineto::write(const Held& held, const LibraryChoice* choice) {
  const TaskRecord& record = held.record;
  KinetoFile& file = file_of(record.rank);
  const TaskKind kind = record.task.kind();
  if (kind == TaskKind::collective) return file.add(collective(held, choice));
  if (is_point_to_point(kind)) return file.add(message(held));
  const std::string name = task_name(record);
  if (!is_copy(kind)) {
    return file.add({record, held.launch, name, name, "kernel",
                     fmt::format(R"(, "netsim_work_ps": {}{})", work_times_->of(record), marks(record))});
  }
  const char* copy =
      kind == TaskKind::copy_to_host ? "Memcpy DtoH (Device -> Pinned)" : "Memcpy HtoD (Pinned -> Device)";
  file.add({record, held.launch, name, copy, "gpu_memcpy",
            fmt::format(R"(, "bytes": {}{})", record.task.bytes(), marks(record))});
}

KinetoFile::Kernel Kineto::message(const Held& held) const {
  const Task& task = held.record.task;
  const bool sends = task.kind() == TaskKind::send;
  const CallBytes bytes{task.bytes(), task.bytes()};
  const ElementName element = element_of(bytes, parameters_.dtype);
  std::string text = call(sends ? "send" : "recv", bytes, element, world_, task.stream);
  text += fmt::format(R"(, "{} Rank": {}, "Name": {}{})", sends ? "Dst" : "Src", task.message().peer + 0U,
                      json_text(task_name(held.record)), marks(held.record));
  return {held.record,
          held.launch,
          "record_param_comms",
          nccl_kernel(CollectiveKind::point_to_point, element, nullptr),
          "kernel",
          text};
}

KinetoFile::Kernel Kineto::collective(const Held& held, const LibraryChoice* choice) const {
  const Task& task = held.record.task;
  const CollectiveTask& called = task.collective();
  const KinetoGroup of = group(called.group, task.stream);
  const auto ranks = static_cast<std::uint32_t>(of.ranks.size());
  // PyTorch records the root, or the caller's own place in the group, under the same name.
  const auto own = std::find(of.ranks.begin(), of.ranks.end(), held.record.rank) - of.ranks.begin();
  CallBytes bytes = call_bytes(called.collective, called.bytes, std::max(ranks, 1U));
  TraceBlocks parts;
  if (called.counts != nullptr) {
    parts = blocks_of_member(*called.counts, static_cast<std::uint32_t>(own));
    bytes = {sum_of(parts.sends), sum_of(parts.receives)};
  }
  const ElementName element = element_of(bytes, parameters_.dtype, parts);
  std::string text = call(torch_collective(called.collective), bytes, element, of, task.stream, parts);
  text += tokens_of(called.collective, parts.tokens);
  text += fmt::format(R"(, "Rank": {}, "Seq": {}, "Name": {}{})",
                      has_root(called.collective) ? std::int64_t{called.root} : own, task.sequence,
                      json_text(task_name(held.record)), marks(held.record));
  if (choice != nullptr && !choice->algorithm.empty()) {
    text += fmt::format(R"(, "Algorithm": {}, "Protocol": "{}", "Channels": {})",
                        json_text(choice->algorithm), to_string(choice->protocol), choice->channels);
  }
  return {held.record, held.launch, "record_param_comms", nccl_kernel(called.collective, element, choice),
          "kernel",    text};
}

// Returns members of `args` for the layer, microbatch and chunk, as far as they are known.
std::string Kineto::marks(const TaskRecord& record) const {
  std::string text;
  for (const NamedNumber& number : mark_numbers(*run_, record))
    text += fmt::format(R"(, "{}": {})", number.name, number.value);
  return text;
}

// Returns the members of `args` that torch/csrc/distributed/c10d/ParamCommsUtils.hpp records.
std::string Kineto::call(const char* name, const CallBytes& bytes, const ElementName& element,
                         const KinetoGroup& group, Stream stream, const TraceBlocks& parts) const {
  return fmt::format(R"(, "Collective name": "{}", "In msg nelems": {}, "Out msg nelems": {}, )"
                     R"("Group size": {}, "dtype": "{}", "In split size": "{}", "Out split size": "{}", )"
                     R"("Process Group Name": {}, "Process Group Description": {}, )"
                     R"("Process Group Ranks": "{}")",
                     name, bytes.in / element.size, bytes.out / element.size, group.ranks.size(),
                     element.torch, split_sizes(parts.sends, element), split_sizes(parts.receives, element),
                     json_text(group.name), json_text(to_string(stream)), kineto_ranks(group.ranks));
}

void Kineto::finish(const FinishedRun& /*run*/, SinkFiles& /*files*/) {
  members_.finish([this](const Held& held, const LibraryChoice* choice) { write(held, choice); });
  for (const auto& [rank, output] : outputs_) file_of(rank).finish(run_->jobs[job_].name);
}

std::vector<std::string> Kineto::notes() const {
  std::vector<std::string> all = limit_->notes("the files of `kineto`");
  const auto ranks = run_->jobs[job_].source->ranks();
  if (node_.find("ranks") == nullptr && ranks > kFirstRanks)
    all.push_back(fmt::format("`kineto` wrote the first {} of {} ranks; its key `ranks` names others",
                              kFirstRanks, ranks));
  return all;
}

const Registration<ResultSink> kKinetoRegistration{
    "kineto",
    "kineto_rank_N.json: a trace for each rank as PyTorch's profiler writes it, for Holistic Trace Analysis",
    Parameters<KinetoParameters>()
        .names("ranks", &KinetoParameters::ranks, kAllRanks,
               "ranks that get a file: a list, or all for the first 64")
        .text("job", &KinetoParameters::job, "name of the job whose ranks get files; empty: the first job")
        .choice("dtype", &KinetoParameters::dtype,
                {{"bf16", ElementType::bf16},
                 {"half", ElementType::half},
                 {"float", ElementType::floating},
                 {"byte", ElementType::byte}},
                "type of the elements of communications, which the workload does not know; byte where its "
                "size does not divide the bytes"),
    [](const KinetoParameters& p, const ConfigNode& node) { return std::make_unique<Kineto>(p, node); }};

}  // namespace
}  // namespace netsim
