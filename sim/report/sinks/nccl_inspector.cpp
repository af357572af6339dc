// nccl_inspector: nccl_inspector.jsonl, the records of NCCL's profiler plug-in "inspector", a JSON object a
// line for each rank and communication (docs/how-to/timelines.md). The form is that of
// plugins/profiler/inspector/inspector_json.cc in github.com/NVIDIA/nccl.
//
// The plug-in writes a file for each process. Here one file holds the lines of all ranks, whose headers name
// the communicator and the rank. It is written while the run goes on.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/core/random.h"
#include "sim/core/registry.h"
#include "sim/report/result_sink.h"
#include "sim/report/timeline.h"

namespace netsim {
namespace {

constexpr const char* kInspectorFile = "nccl_inspector.jsonl";
constexpr const char* kInspectorVersion = "v4.0";
// The process of rank r is kFirstInspectorProcess + r.
constexpr std::uint32_t kFirstInspectorProcess = 1000;

// Communicator: a group of ranks as the header of a line names it.
struct Communicator {
  std::uint64_t id = 0;
  std::string name;
  std::map<std::uint32_t, std::uint32_t> places = {};  // rank in the communicator, by rank of the job
  std::size_t hosts = 1;
};

class NcclInspector final : public ResultSink,
                            public Receives<TaskRecord>,
                            public Receives<RecordedCommunication> {
 public:
  std::vector<std::string> files() const override { return {kInspectorFile}; }
  bool open(SinkFiles& files, const RunView& run) override;
  void add(const TaskRecord& record) override;
  void add(const RecordedCommunication& record) override {
    members_.end(record,
                 [this](const TaskRecord& task, const LibraryChoice* c) { write_collective(task, c); });
  }
  void finish(const FinishedRun& run, SinkFiles& files) override;
  std::vector<std::string> notes() const override { return limit_->notes(kInspectorFile); }

 private:
  using Function = std::string_view;

  void write_collective(const TaskRecord& record, const LibraryChoice* choice);
  void write_message(const TaskRecord& record);
  // Writes the messages of which NCCL composes an uneven all-to-all, a dispatch or a combine.
  void write_blocks(const TaskRecord& record);
  void write_perf(const Communicator& communicator, const TaskRecord& record, const char* function,
                  std::uint32_t peer, Bytes bytes);
  // Writes the header and the metadata of a line, up to the comma behind them.
  void write_head(const Communicator& communicator, const TaskRecord& record);
  const Communicator& of_group(const TaskRecord& record);
  const Communicator& of_job(const TaskRecord& record);
  Communicator make(JobId job, std::uint64_t number, std::string name,
                    const std::vector<RankId>& ranks) const;
  // Returns how many calls of the function the rank has ended in the communicator before this one.
  std::uint64_t next_sequence(const Communicator& communicator, const TaskRecord& record, Function function);

  const RunView* run_ = nullptr;
  OutputFile* file_ = nullptr;
  std::optional<RecordLimit> limit_;
  CollectiveMembers<TaskRecord> members_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Communicator> groups_;                 // by job and group
  std::map<std::uint32_t, Communicator> worlds_;                                           // by job
  std::map<std::tuple<std::uint64_t, std::uint32_t, Function>, std::uint64_t> sequences_;  // id, rank
};

// Returns a rate in 1e9 bytes a second, or 0 where it took no time.
double gigabytes_per_second(Bytes bytes, Time time) {
  return time > 0 ? static_cast<double>(bytes) / to_seconds(time) * 1e-9 : 0;
}

bool NcclInspector::open(SinkFiles& files, const RunView& run) {
  run_ = &run;
  file_ = &files.open(kInspectorFile);
  limit_.emplace("records", run.output.max_rows);
  return true;
}

void NcclInspector::add(const TaskRecord& record) {
  const bool collective = record.task.kind() == TaskKind::collective;
  if ((!collective && !is_point_to_point(record.task)) || !limit_->take()) return;
  if (!collective) return write_message(record);
  members_.add(record.job, record.communication, record,
               [this](const TaskRecord& task, const LibraryChoice* c) { write_collective(task, c); });
}

void NcclInspector::finish(const FinishedRun& /*run*/, SinkFiles& /*files*/) {
  members_.finish([this](const TaskRecord& task, const LibraryChoice* c) { write_collective(task, c); });
}

// The size of a collective with equal parts is that of the part of one rank, as NCCL's calls count it. Its
// bandwidth counts the whole buffer.
void NcclInspector::write_collective(const TaskRecord& record, const LibraryChoice* choice) {
  const CollectiveTask& call = record.task.collective();
  if (has_counts(call.collective)) return write_blocks(record);
  const Communicator& communicator = of_group(record);
  const auto ranks = static_cast<std::uint32_t>(std::max<std::size_t>(communicator.places.size(), 1));
  const CallBytes bytes = call_bytes(call.collective, call.bytes, ranks);
  const bool parts = call.collective == CollectiveKind::all_to_all;
  const Bytes size = parts ? call.bytes / ranks : std::min(bytes.in, bytes.out);
  const Time time = record.end - record.start;
  const double rate = gigabytes_per_second(std::max(bytes.in, bytes.out), time);
  const char* function = nccl_function(call.collective);
  write_head(communicator, record);
  file_->write(fmt::format(
      R"("coll_perf":{{"coll":"{}","coll_algo":"{}","coll_proto":"{}","coll_sn":{},)"
      R"("coll_msg_size_bytes":{},"coll_exec_time_us":{},"coll_timing_source":"kernel_gpu",)"
      R"("coll_algobw_gbs":{:.6f},"coll_busbw_gbs":{:.6f}}}}})"
      "\n",
      function, nccl_algorithm(choice), nccl_protocol(choice), next_sequence(communicator, record, function),
      size, time / kMicrosecond, rate, info_of(call.collective).bus_bandwidth(rate, ranks)));
}

void NcclInspector::write_message(const TaskRecord& record) {
  write_perf(of_job(record), record, record.task.kind() == TaskKind::send ? "Send" : "Recv",
             record.task.message().peer + 0U, record.task.bytes());
}

void NcclInspector::write_blocks(const TaskRecord& record) {
  const Communicator& communicator = of_group(record);
  const auto own = communicator.places.find(record.rank);
  const auto& counts = record.task.collective().counts;
  if (own == communicator.places.end() || counts == nullptr) return;
  for (std::uint32_t peer = 0; peer < counts->members(); ++peer) {
    if (peer == own->second) continue;
    if (const Bytes sent = counts->of(own->second, peer); sent > 0)
      write_perf(communicator, record, "Send", peer, sent);
    if (const Bytes received = counts->of(peer, own->second); received > 0)
      write_perf(communicator, record, "Recv", peer, received);
  }
}

void NcclInspector::write_perf(const Communicator& communicator, const TaskRecord& record,
                               const char* function, std::uint32_t peer, Bytes bytes) {
  const Time time = record.end - record.start;
  const double rate = gigabytes_per_second(bytes, time);
  write_head(communicator, record);
  file_->write(fmt::format(
      R"("p2p_perf":{{"p2p":"{}","p2p_sn":{},"p2p_peer":{},"p2p_msg_size_bytes":{},"p2p_exec_time_us":{},)"
      R"("p2p_timing_source":"kernel_gpu","p2p_algobw_gbs":{:.6f},"p2p_busbw_gbs":{:.6f}}}}})"
      "\n",
      function, next_sequence(communicator, record, function), peer, bytes, time / kMicrosecond, rate, rate));
}

void NcclInspector::write_head(const Communicator& communicator, const TaskRecord& record) {
  const auto place = communicator.places.find(record.rank);
  const std::string host = host_and_part(gpu_name(*run_, run_->gpu(record.job, record.rank))).host;
  file_->write(fmt::format(
      R"({{"header":{{"id":"{:#x}","comm_name":{},"rank":{},"n_ranks":{},"nnodes":{}}},)"
      R"("metadata":{{"inspector_output_format_version":"{}","git_rev":"netsim",)"
      R"("rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":{},"hostname":{},"pid":{}}},)",
      communicator.id, json_text(communicator.name), place == communicator.places.end() ? 0U : place->second,
      communicator.places.size(), communicator.hosts, kInspectorVersion, record.end / kMicrosecond,
      json_text(host.empty() ? "unknown" : host), kFirstInspectorProcess + record.rank));
}

const Communicator& NcclInspector::of_group(const TaskRecord& record) {
  const GroupId group = record.task.group();
  const auto [entry, added] = groups_.try_emplace({record.job, group});
  if (added) {
    const JobView& job = run_->jobs[record.job];
    entry->second = make(record.job, group + std::uint64_t{1},
                         fmt::format("{} {} {}", job.name, to_string(record.task.stream), group + 0U),
                         job.source->group(group));
  }
  return entry->second;
}

// Messages are those of the communicator of all ranks of the job, so the peer is a rank of the job.
const Communicator& NcclInspector::of_job(const TaskRecord& record) {
  const auto [entry, added] = worlds_.try_emplace(record.job);
  if (added) {
    const JobView& job = run_->jobs[record.job];
    std::vector<RankId> ranks;
    for (std::uint32_t rank = 0; rank < job.source->ranks(); ++rank) ranks.emplace_back(rank);
    entry->second = make(record.job, 0, job.name, ranks);
  }
  return entry->second;
}

Communicator NcclInspector::make(JobId job, std::uint64_t number, std::string name,
                                 const std::vector<RankId>& ranks) const {
  Communicator communicator{hash_combine(hash_combine(hash_name("communicator"), job), number),
                            std::move(name)};
  std::set<std::string> hosts;
  for (std::uint32_t place = 0; place < ranks.size(); ++place) {
    communicator.places.emplace(ranks[place], place);
    hosts.insert(host_and_part(gpu_name(*run_, run_->gpu(job, ranks[place]))).host);
  }
  communicator.hosts = hosts.size();
  return communicator;
}

std::uint64_t NcclInspector::next_sequence(const Communicator& communicator, const TaskRecord& record,
                                           Function function) {
  return sequences_[{communicator.id, record.rank, function}]++;
}

const Registration<ResultSink> kNcclInspectorRegistration{
    "nccl_inspector",
    "nccl_inspector.jsonl: the records of NCCL's profiler plug-in inspector, a line for a rank's "
    "communication",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<NcclInspector>(); }};

}  // namespace
}  // namespace netsim
