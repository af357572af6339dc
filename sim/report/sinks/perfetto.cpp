// perfetto: timeline.pftrace, a trace in Perfetto's native format (docs/how-to/timelines.md). It is written
// while the run goes on. The memory holds the tracks, up to some thousand names, and the collectives in
// flight.
//
// A host is a process. Its tracks are its GPUs, with a track for each stream of a rank, and its NICs. Ports
// that are sampled are counters of a process of their own.
#include <fmt/format.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/core/random.h"
#include "sim/core/registry.h"
#include "sim/report/perfetto_trace.h"
#include "sim/report/result_sink.h"
#include "sim/report/timeline.h"

namespace netsim {
namespace {

constexpr const char* kPerfettoFile = "timeline.pftrace";
// The numbers of processes: hosts from 1, then the jobs of a run without known GPUs, and the network.
constexpr std::uint32_t kFirstJobProcess = 1'000'000'000, kNetworkProcess = 2'000'000'000;
// The place of the first NIC among the tracks of a host, behind all GPUs.
constexpr std::uint32_t kFirstNicOrder = 1'000'000;

struct PerfettoParameters {
  bool messages = true;
};

using Track = PerfettoTrace::Track;

// LanedTracks: a track and further ones of the same name, for slices that overlap.
struct LanedTracks {
  Track parent = 0;
  std::string name;
  std::uint32_t order = 0;
  Lanes lanes = {};
  std::vector<Track> tracks = {};

  Track take(PerfettoTrace& trace, Time start, Time end) {
    const std::uint32_t lane = lanes.take(start, end);
    if (lane == tracks.size()) tracks.push_back(trace.add_track(parent, name, order));
    return tracks[lane];
  }
};

// Ids of arrows, which are global in a trace. They are never 0.
std::uint64_t arrow_of(JobId job, std::uint64_t communication) {
  return hash_combine(hash_combine(hash_name("communication"), job), communication) | 1;
}
std::uint64_t arrow_of(const FlowRecord& flow) { return hash_combine(hash_name("flow"), flow.id) | 1; }

class Perfetto final : public ResultSink,
                       public Receives<TaskRecord>,
                       public Receives<RecordedCommunication>,
                       public Receives<FlowRecord>,
                       public Receives<QueueSample>,
                       public Receives<LinkSample> {
 public:
  explicit Perfetto(bool messages) : messages_(messages) {}

  std::vector<std::string> files() const override { return {kPerfettoFile}; }
  bool open(SinkFiles& files, const RunView& run) override;
  void add(const TaskRecord& record) override;
  void add(const RecordedCommunication& record) override {
    members_.end(record, [this](const Member& member, const LibraryChoice* choice) { end(member, choice); });
  }
  void add(const FlowRecord& flow) override;
  void add(const QueueSample& sample) override;
  void add(const LinkSample& sample) override;
  void finish(const FinishedRun& run, SinkFiles& files) override;
  std::vector<std::string> notes() const override;

 private:
  // Member: a task of a collective, which waits in the queue of its track.
  struct Member {
    Track track;
    TaskId task;
  };
  // Waiting: a task that ended. The slices of a track are written in order, because an end closes the slice
  // that began last where times are equal. So they wait for collectives before them.
  struct Waiting {
    TaskRecord record;
    bool ready;
    std::optional<LibraryChoice> choice = {};
  };
  // SampledTracks: the counters of one port, and the end of the last interval that has a utilisation.
  struct SampledTracks {
    Track queue = 0, utilisation = 0;
    Time last_end = 0;
  };

  void end(const Member& member, const LibraryChoice* choice);
  void write_ready(Track track);
  void write(Track track, const Waiting& task);
  std::vector<PerfettoTrace::Annotation> annotations(const Waiting& waiting) const;
  void write_message(const FlowRecord& flow, GpuId gpu, bool sends);
  Track process(std::uint32_t pid, const std::string& name);
  Track process_of(GpuId gpu);
  Track track_of_rank(JobId job, RankId rank);
  LanedTracks& stream_of(const TaskRecord& record);
  SampledTracks& port(std::string_view name);

  bool messages_;
  const RunView* run_ = nullptr;
  std::optional<PerfettoTrace> trace_;
  std::optional<RecordLimit> tasks_, flows_, samples_;
  CollectiveMembers<Member> members_;
  std::map<Track, std::deque<Waiting>> waiting_;
  std::map<std::uint32_t, Track> processes_;                     // by number
  std::map<std::pair<Track, std::uint32_t>, Track> gpu_tracks_;  // by process, and number in it
  std::map<std::tuple<Track, std::uint32_t, std::uint32_t, Stream>, LanedTracks> streams_;  // job, rank
  std::map<std::pair<std::uint32_t, bool>, LanedTracks> nics_;  // by GPU; true: it sends
  std::map<std::string, SampledTracks, std::less<>> ports_;
};

bool Perfetto::open(SinkFiles& files, const RunView& run) {
  run_ = &run;
  trace_.emplace(files.open(kPerfettoFile));
  tasks_.emplace("tasks", run.output.max_rows);
  flows_.emplace("messages", run.output.max_rows);
  samples_.emplace("samples", run.output.max_rows);
  return true;
}

void Perfetto::add(const TaskRecord& record) {
  if (!tasks_->take()) return;
  const Track track = stream_of(record).take(*trace_, record.start, record.end);
  const bool collective = record.task.kind() == TaskKind::collective;
  waiting_[track].push_back({record, !collective});
  if (!collective) return write_ready(track);
  members_.add(record.job, record.communication, {track, record.task.id},
               [this](const Member& member, const LibraryChoice* choice) { end(member, choice); });
}

// The collective of a member has ended, or the run has.
void Perfetto::end(const Member& member, const LibraryChoice* choice) {
  for (Waiting& task : waiting_[member.track]) {
    if (task.record.task.id != member.task) continue;
    task.ready = true;
    if (choice != nullptr) task.choice = *choice;
  }
  write_ready(member.track);
}

void Perfetto::write_ready(Track track) {
  std::deque<Waiting>& waiting = waiting_[track];
  for (; !waiting.empty() && waiting.front().ready; waiting.pop_front()) write(track, waiting.front());
}

// The arrow of a message goes from the beginning of its send to the end of its receive. The arrows of a
// collective join the beginnings of its members in order of time.
void Perfetto::write(Track track, const Waiting& task) {
  const TaskRecord& record = task.record;
  const std::string name = run_->jobs[record.job].task_name(record.task.name);
  PerfettoTrace::Slice slice{track, name, to_string(record.task.kind()), record.start, record.end};
  if (record.task.kind() == TaskKind::send || has_group(record.task))
    slice.flow_at_begin = arrow_of(record.job, record.communication);
  if (record.task.kind() == TaskKind::receive) slice.flow_to_end = arrow_of(record.job, record.communication);
  slice.annotations = annotations(task);
  trace_->add(slice);
}

std::vector<PerfettoTrace::Annotation> Perfetto::annotations(const Waiting& waiting) const {
  const TaskRecord& record = waiting.record;
  const Task& task = record.task;
  std::vector<PerfettoTrace::Annotation> all{{"job", run_->jobs[record.job].name},
                                             {"rank", std::int64_t{record.rank}},
                                             {"iteration", std::int64_t{task.iteration}},
                                             {"task", std::int64_t{task.id}},
                                             {"stream", std::string(to_string(task.stream))},
                                             {"posted_ps", record.posted},
                                             {"start_ps", record.start},
                                             {"end_ps", record.end}};
  if (is_communication(task)) all.push_back({"bytes", task.bytes()});
  if (task.kind() != TaskKind::compute)
    all.push_back({"communication", fmt::format("c{:016x}", record.communication)});
  if (is_point_to_point(task)) all.push_back({"peer", std::int64_t{task.message().peer}});
  if (record.parts > 1) all.push_back({"parts", std::int64_t{record.parts}});
  for (const NamedNumber& number : mark_numbers(*run_, record)) {
    PerfettoTrace::Annotation& added = all.emplace_back();
    added.name = number.name;
    added.value = number.value;
  }
  if (task.kind() != TaskKind::collective) return all;
  all.push_back({"collective", std::string(to_string(task.collective().collective))});
  const std::optional<LibraryChoice>& choice = waiting.choice;
  if (!choice || choice->algorithm.empty()) return all;
  all.push_back({"algorithm", choice->algorithm});
  all.push_back({"protocol", std::string(to_string(choice->protocol))});
  all.push_back({"channels", std::int64_t{choice->channels}});
  return all;
}

void Perfetto::add(const FlowRecord& flow) {
  if (!messages_ || !flows_->take()) return;
  write_message(flow, flow.message.source, true);
  write_message(flow, flow.message.destination, false);
}

void Perfetto::write_message(const FlowRecord& flow, GpuId gpu, bool sends) {
  LanedTracks& nic = nics_[{gpu, sends}];
  if (nic.parent == 0) {
    const std::string part = host_and_part(run_->nic(gpu)).part;
    const bool known = run_->cluster != nullptr;
    nic.parent = process_of(gpu);
    nic.name = fmt::format("{} {}", known ? (part.empty() ? "NIC" : part) : fmt::format("GPU {}", gpu + 0U),
                           sends ? "sends" : "receives");
    nic.order = kFirstNicOrder + 2 * (known ? run_->cluster->gpus[gpu].local : gpu + 0U) + (sends ? 0 : 1);
  }
  const std::string name = run_->jobs[flow.message.traits.job].task_name(flow.message.name);
  PerfettoTrace::Slice slice{nic.take(*trace_, flow.start, flow.end), name, "message", flow.start, flow.end};
  (sends ? slice.flow_at_begin : slice.flow_to_end) = arrow_of(flow);
  slice.annotations = {{"job", run_->jobs[flow.message.traits.job].name},
                       {"flow", fmt::format("f{:016x}", flow.id)},
                       {"communication", fmt::format("c{:016x}", flow.message.whole_communication())},
                       {"bytes", flow.bytes},
                       {"source_gpu", std::int64_t{flow.message.source}},
                       {"destination_gpu", std::int64_t{flow.message.destination}},
                       {"start_ps", flow.start},
                       {"end_ps", flow.end}};
  trace_->add(slice);
}

void Perfetto::add(const QueueSample& sample) {
  if (samples_->take())
    trace_->count(port(sample.port).queue, sample.time, static_cast<double>(sample.bytes));
}

// The sample covers the interval that ends at its time. Quiet intervals have no sample, so the counter falls
// to 0 where the last sample's interval ended.
void Perfetto::add(const LinkSample& sample) {
  if (!samples_->take()) return;
  const Time interval = run_->output.sample.interval;
  const Time begin = (sample.time - 1) / interval * interval;
  SampledTracks& tracks = port(sample.port);
  if (tracks.last_end < begin && tracks.last_end > 0) trace_->count(tracks.utilisation, tracks.last_end, 0);
  trace_->count(tracks.utilisation, begin, 100 * sample.utilisation);
  tracks.last_end = sample.time;
}

void Perfetto::finish(const FinishedRun& /*run*/, SinkFiles& /*files*/) {
  members_.finish([this](const Member& member, const LibraryChoice* choice) { end(member, choice); });
  for (const auto& [name, tracks] : ports_) {
    if (tracks.last_end > 0) trace_->count(tracks.utilisation, tracks.last_end, 0);
  }
}

std::vector<std::string> Perfetto::notes() const {
  std::vector<std::string> all;
  for (const auto* limit : {&*tasks_, &*flows_, &*samples_}) {
    for (std::string& note : limit->notes(kPerfettoFile)) all.push_back(std::move(note));
  }
  return all;
}

Track Perfetto::process(std::uint32_t pid, const std::string& name) {
  Track& track = processes_[pid];
  if (track == 0) track = trace_->add_process(pid, name);
  return track;
}

Track Perfetto::process_of(GpuId gpu) {
  if (run_->cluster == nullptr) return process(kNetworkProcess, "network");
  return process(run_->cluster->gpus[gpu].host + 1, host_and_part(gpu_name(*run_, gpu)).host);
}

// Returns the track of the rank's GPU, or of the rank itself where the run does not know its GPUs.
Track Perfetto::track_of_rank(JobId job, RankId rank) {
  const GpuId gpu = run_->gpu(job, rank);
  const std::string node = gpu_name(*run_, gpu);
  const bool known = !node.empty();
  const Track parent = known ? process_of(gpu) : process(kFirstJobProcess + job, run_->jobs[job].name);
  const std::uint32_t order = known ? run_->cluster->gpus[gpu].local : rank + 0U;
  Track& track = gpu_tracks_[{parent, order}];
  if (track != 0) return track;
  const std::string part = host_and_part(node).part;
  const std::string name = known ? (part.empty() ? "gpu" : part) : fmt::format("rank {}", rank + 0U);
  return track = trace_->add_track(parent, name, order);
}

// Returns the tracks of a stream of the rank, on the GPU on which it runs at present.
LanedTracks& Perfetto::stream_of(const TaskRecord& record) {
  const Track parent = track_of_rank(record.job, record.rank);
  LanedTracks& stream = streams_[{parent, record.job, record.rank, record.task.stream}];
  if (stream.parent != 0) return stream;
  stream.parent = parent;
  stream.order = record.rank * std::uint32_t{kStreams} + static_cast<std::uint32_t>(record.task.stream);
  const std::string job = run_->jobs.size() > 1 ? run_->jobs[record.job].name + " " : "";
  stream.name = fmt::format("{}rank {} {}", job, record.rank + 0U, to_string(record.task.stream));
  return stream;
}

Perfetto::SampledTracks& Perfetto::port(std::string_view name) {
  const auto found = ports_.find(name);
  if (found != ports_.end()) return found->second;
  SampledTracks& tracks = ports_[std::string(name)];
  const Track network = process(kNetworkProcess, "network");
  if (run_->output.sample.queues)
    tracks.queue = trace_->add_counter(network, fmt::format("{} queue", name), PerfettoTrace::Unit::bytes);
  if (run_->output.sample.links) {
    tracks.utilisation =
        trace_->add_counter(network, fmt::format("{} utilisation", name), PerfettoTrace::Unit::percent);
  }
  return tracks;
}

const Registration<ResultSink> kPerfettoRegistration{
    "perfetto",
    "timeline.pftrace: a timeline of tasks, messages and samples in Perfetto's format, for ui.perfetto.dev",
    Parameters<PerfettoParameters>().flag("messages", &PerfettoParameters::messages,
                                          "write each message of the scale-out fabric at the NIC that sends "
                                          "it and at the one that receives it"),
    [](const PerfettoParameters& p, const ConfigNode&) { return std::make_unique<Perfetto>(p.messages); }};

}  // namespace
}  // namespace netsim
