#include "sim/report/kineto_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace netsim {
namespace {

// CUDA streams: compute kernels are in stream 7, as in PyTorch's traces, and the other streams of netsim in
// 11, 15 and so on. Those behind them are for tasks that overlap.
constexpr std::uint32_t kComputeStream = 7, kStreamStep = 4,
                        kFirstExtraStream = kComputeStream + kStreamStep * kStreams;
// The process of rank r is kFirstProcess + r. A process below it is a GPU.
constexpr std::uint32_t kFirstProcess = 1000;
// Ranks that PyTorch writes in a list (torch/csrc/profiler/util.cpp: kTruncatLength, format_list).
constexpr std::size_t kListedRanks = 30;

// Returns the time in microseconds, with three decimals.
std::string microseconds(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

// Returns the time of launch of a task: the whole microsecond before it was posted.
std::int64_t launch_time(Time posted) { return posted / kMicrosecond * 1000; }

// Returns when the rank launches a task. A task with an earliest start is launched then.
Time launched(const TaskRecord& record) {
  return record.task.not_before <= record.start ? std::max(record.posted, record.task.not_before)
                                                : record.posted;
}

std::string rank_list(const std::vector<RankId>& ranks, std::size_t most) {
  const bool cut = ranks.size() > most;
  std::string text = "[";
  for (std::size_t i = 0; i < (cut ? most - 1 : ranks.size()); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i] + 0U);
  return text + (cut ? fmt::format(", ..., {}]", ranks.back() + 0U) : "]");
}

}  // namespace

std::string kineto_ranks(const std::vector<RankId>& ranks) { return rank_list(ranks, kListedRanks); }

void KinetoFile::begin(std::uint32_t world, const std::vector<KinetoGroup>& groups) {
  file_.write(fmt::format(R"({{"schemaVersion": 1, "deviceProperties": [{{"id": {}, "name": "netsim"}}],)"
                          "\n"
                          R"("distributedInfo": {{"backend": "nccl", "rank": {}, "world_size": {}, )"
                          R"("pg_count": {}, "pg_config": [)",
                          gpu_, rank_ + 0U, world, groups.size()));
  const char* before = "\n";
  for (const KinetoGroup& group : groups) {
    file_.write(fmt::format(R"({}{{"pg_name": {}, "pg_desc": {}, "backend_config": "cuda:nccl", )"
                            R"("pg_size": {}, "ranks": {}}})",
                            std::exchange(before, ",\n"), json_text(group.name), json_text(group.description),
                            group.ranks.size(), rank_list(group.ranks, group.ranks.size())));
  }
  file_.write(
      fmt::format("]}},\n\"netsim\": {{\"waits\": {}}},\n\"displayTimeUnit\": \"ms\", "
                  "\"baseTimeNanoseconds\": 0, \"traceName\": \"netsim\",\n\"traceEvents\": [",
                  waits_.complete()));
}

std::uint32_t KinetoFile::cpu() const { return kFirstProcess + rank_; }

std::uint32_t KinetoFile::take_stream(const TaskRecord& record) {
  const auto stream = static_cast<std::uint32_t>(record.task.stream);
  const std::uint32_t lane = lanes_[stream].take(record.start, record.end);
  const auto next = static_cast<std::uint32_t>(kFirstExtraStream + extra_streams_.size());
  const std::uint32_t number = lane == 0 ? kComputeStream + kStreamStep * stream
                                         : extra_streams_.try_emplace({stream, lane}, next).first->second;
  streams_.try_emplace(number, record.task.stream);
  return number;
}

KinetoFile::Launch KinetoFile::take_launch(const TaskRecord& record) {
  Launch launch;
  launch.stream = take_stream(record);
  launch.waits = waits_.of(record, launch.stream);
  // Correlations order the calls of a microsecond: the waits, the launch, the record of its event.
  launch.first_wait = correlation_ + 1;
  correlation_ += launch.waits.size();
  launch.correlation = ++correlation_;
  if (!waits_.complete()) return launch;
  waits_.add(
      {record.task.id, launch.stream, launched(record), record.start, record.end, ++correlation_, false});
  return launch;
}

void KinetoFile::event(std::string_view text) {
  file_.write(first_ ? "\n" : ",\n");
  first_ = false;
  file_.write(text);
}

void KinetoFile::include(const TaskRecord& record) {
  const auto [step, added] = steps_.try_emplace(record.task.iteration, Step{record.posted, record.end});
  if (added) return;
  step->second.begin = std::min(step->second.begin, record.posted);
  step->second.end = std::max(step->second.end, record.end);
}

void KinetoFile::write_runtime(const char* name, int number, std::string_view time,
                               std::uint64_t correlation) {
  event(fmt::format(R"({{"ph": "X", "cat": "cuda_runtime", "name": "{}", "pid": {}, "tid": {}, "ts": {}, )"
                    R"("dur": 0.000, "args": {{"External id": {}, "cbid": {}, "correlation": {}}}}})",
                    name, cpu(), cpu(), time, correlation, number, correlation));
}

// The event is recorded behind the launch that it stands for, and waited for before the task's own launch.
void KinetoFile::write_waits(const Kernel& kernel) {
  std::uint64_t number = kernel.launch.first_wait;
  const std::string launch = microseconds(launch_time(launched(kernel.record)));
  for (const KinetoWaits::Wait& wait : kernel.launch.waits) {
    const KinetoWaits::Launched& waited = wait.launched;
    if (wait.is_first)
      write_runtime("cudaEventRecord", 135, microseconds(launch_time(waited.posted)), waited.event);
    write_runtime("cudaStreamWaitEvent", 147, launch, number);
    event(fmt::format(
        R"({{"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "pid": {}, "tid": {}, "ts": {}, )"
        R"("dur": 0.000, "args": {{"External id": {}, "cuda_sync_kind": "Stream Wait Event", )"
        R"("wait_on_stream": {}, "wait_on_cuda_event_record_corr_id": {}, "wait_on_cuda_event_id": {}, )"
        R"("stream": {}, "correlation": {}, "device": {}, "context": 1}}}})",
        gpu_, kernel.launch.stream, launch, number, waited.stream, waited.event, waited.event,
        kernel.launch.stream, number, gpu_));
    ++number;
  }
}

void KinetoFile::add(const Kernel& kernel) {
  const TaskRecord& record = kernel.record;
  include(record);
  write_waits(kernel);
  const std::uint64_t number = kernel.launch.correlation;
  const std::uint32_t stream = kernel.launch.stream;
  const std::string launch = microseconds(launch_time(launched(record)));
  const std::int64_t start = nanoseconds(record.start);
  const bool copies = kernel.category == "gpu_memcpy";
  event(fmt::format(R"({{"ph": "X", "cat": "cpu_op", "name": {}, "pid": {}, "tid": {}, "ts": {}, )"
                    R"("dur": 0.000, "args": {{"External id": {}, "Ev Idx": {}, "Iteration": {}{}}}}})",
                    json_text(kernel.operation), cpu(), cpu(), launch, number, number, record.task.iteration,
                    kernel.call));
  write_runtime(copies ? "cudaMemcpyAsync" : "cudaLaunchKernel", copies ? 41 : 211, launch, number);
  event(fmt::format(R"({{"ph": "s", "id": {}, "pid": {}, "tid": {}, "ts": {}, "cat": "ac2g", )"
                    R"("name": "ac2g"}})",
                    number, cpu(), cpu(), launch));
  event(fmt::format(R"({{"ph": "X", "cat": "{}", "name": {}, "pid": {}, "tid": {}, "ts": {}, "dur": {}, )"
                    R"("args": {{"External id": {}, "queued": 0, "device": {}, "context": 1, "stream": {}, )"
                    R"("correlation": {}, "Task": {}{}}}}})",
                    kernel.category, json_text(kernel.name), gpu_, stream, microseconds(start),
                    microseconds(nanoseconds(record.end) - start), number, gpu_, stream, number,
                    record.task.id + 0U, kernel.call));
  event(fmt::format(R"({{"ph": "f", "id": {}, "pid": {}, "tid": {}, "ts": {}, "cat": "ac2g", )"
                    R"("name": "ac2g", "bp": "e"}})",
                    number, gpu_, stream, microseconds(start)));
}

void KinetoFile::add_host(const TaskRecord& record, const std::string& name, const std::string& members) {
  include(record);
  const std::uint32_t thread = cpu() + 1 + host_lanes_.take(record.start, record.end);
  host_threads_.insert(thread);
  const std::int64_t start = nanoseconds(record.start);
  event(fmt::format(R"({{"ph": "X", "cat": "cpu_op", "name": {}, "pid": {}, "tid": {}, "ts": {}, )"
                    R"("dur": {}, "args": {{"External id": {}, "Iteration": {}, "Task": {}{}}}}})",
                    json_text(name), cpu(), thread, microseconds(start),
                    microseconds(nanoseconds(record.end) - start), ++correlation_, record.task.iteration,
                    record.task.id + 0U, members));
}

// A step lasts until the next one begins, and the last one until its end, so that steps do not overlap.
void KinetoFile::write_steps() {
  for (auto step = steps_.begin(); step != steps_.end(); ++step) {
    const auto next = std::next(step);
    const std::int64_t begin = launch_time(step->second.begin);
    const std::int64_t after = next == steps_.end() ? launch_time(step->second.end) + 1000
                                                    : std::max(launch_time(next->second.begin), begin);
    event(fmt::format(R"({{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{}", "pid": {}, )"
                      R"("tid": {}, "ts": {}, "dur": {}, "args": {{"External id": {}}}}})",
                      step->first, cpu(), cpu(), microseconds(begin), microseconds(after - begin),
                      ++correlation_));
  }
}

void KinetoFile::write_name(std::uint32_t pid, std::uint32_t tid, const char* what,
                            const std::string& value) {
  const std::string_view kind(what);
  event(fmt::format(R"({{"ph": "M", "name": "{}", "ts": 0.000, "pid": {}, "tid": {}, "args": {{"{}": {}}}}})",
                    kind, pid, tid, kind == "process_labels" ? "labels" : "name", json_text(value)));
}

void KinetoFile::finish(const std::string& job) {
  write_steps();
  write_name(cpu(), 0, "process_name", fmt::format("{} rank {}", job, rank_ + 0U));
  write_name(cpu(), 0, "process_labels", "CPU");
  write_name(gpu_, 0, "process_name", fmt::format("{} rank {}", job, rank_ + 0U));
  write_name(gpu_, 0, "process_labels", fmt::format("GPU {}", gpu_));
  for (const auto& [number, stream] : streams_)
    write_name(gpu_, number, "thread_name", fmt::format("stream {} {}", number, to_string(stream)));
  for (const std::uint32_t thread : host_threads_) write_name(cpu(), thread, "thread_name", "host");
  file_.write("\n]}\n");
}

}  // namespace netsim
