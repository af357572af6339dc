// jobs.csv: the jobs of the run.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "sim/report/csv_sink.h"

namespace netsim {
namespace {

const std::vector<ColumnInfo>& job_columns() {
  static const std::vector<ColumnInfo> columns =
      joined({{
                  {"job", "name of the job"},
                  {"ranks", "number of ranks"},
                  {"done", "whether all its tasks ended"},
                  {"jct_s", "time from its arrival to its end; empty if it did not end"},
                  {"iterations", "iterations asked for; empty if unknown before the end"},
                  {"iterations_done", "iterations that ended"},
                  {"iteration_time_s", "mean iteration time; empty if no iteration ended"},
                  {"compute_s", "compute time: mean over ranks, per iteration"},
                  {"communication_s", "communication time: mean over ranks, per iteration"},
                  {"exposed_communication_s", "exposed communication: mean over ranks, per iteration"},
                  {"idle_s", "idle time: mean over ranks, per iteration"},
                  {"tflops_per_gpu", "rate that the model reaches"},
                  {"peak_tflops_per_gpu", "peak rate of the GPU"},
              },
              exposed_columns("s"),
              {
                  {"begin_ps", "begin of its ranks"},
                  {"end_ps", "end of its last task, or of the run"},
                  {"tasks_done", "tasks that ended"},
                  {"tasks", "all tasks; empty if unknown"},
                  {"arrival_ps", "arrival of the job"},
                  {"priority", "priority of its messages"},
                  {"queued_ps", "time from its arrival to its begin, for which it waited for GPUs"},
                  {"state", "done, under way, waits for GPUs, never fits, not arrived, stopped by a failure"},
                  {"slowdown", "jct divided by the time in which it ran; empty if it is not done"},
                  {"held_gpu_s", "number of its GPUs x time for which it held them, in seconds"},
                  {"pauses", "number of its pauses by the job scheduler"},
                  {"paused_ps", "time without GPUs since its begin"},
                  {"moved_ps", "time of its moves, with GPUs and without work"},
                  {"vc", "virtual cluster of the trace"},
                  {"weight", "weight that the job scheduler was told"},
                  {"tardiness_ps", "time from its deadline to its end; empty without a deadline or an end"},
              }});
  return columns;
}

template <class T>
std::string cell_of(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "";
}

class JobsCsv : public FinalCsv {
 public:
  JobsCsv() : FinalCsv("jobs.csv", job_columns()) {}

 private:
  std::string rows(const Results& results) const override {
    std::string text;
    for (const JobResult& job : results.jobs) {
      const JobSummary s = summarise(job);
      text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},", csv_cell(job.name), job.gpu_count(),
                          job.done, cell_of(s.jct_s), cell_of(job.iterations), job.iteration_ends.size(),
                          cell_of(s.iteration_time_s), s.compute_s, s.communication_s, s.exposed_s, s.idle_s,
                          cell_of(s.tflops_per_gpu), job.peak_flops * 1e-12);
      for (const Stream stream : kCommunicationStreams) {
        text += fmt::format("{},", s.exposed_by_s[static_cast<std::size_t>(stream)]);
      }
      text += fmt::format("{},{},{},{},{},{},{},", job.begin, job.end, job.tasks_done,
                          cell_of(job.tasks_total), job.arrival, job.priority, job.queued());
      text += fmt::format("{},{},{},{},{},{},{},{},{}\n", job.state(), cell_of(job.slowdown()),
                          to_seconds(job.held()) * static_cast<double>(job.gpu_count()), job.pauses,
                          job.paused, job.moved, csv_cell(job.vc), job.weight, cell_of(job.tardiness()));
    }
    return text;
  }
};

const Registration<ResultSink> kJobsCsvRegistration{
    "jobs_csv", "jobs.csv: a row is a job", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<JobsCsv>(); }, job_columns()};

}  // namespace
}  // namespace netsim
