// alibaba: the trace of Alibaba's PAI of 2020 (pai_task_table.csv and pai_job_table.csv,
// github.com/alibaba/clusterdata, cluster-trace-gpu-v2020). The job table says when a job was submitted. Its
// GPUs are inst_num x plan_gpu / 100 of all tasks, rounded up. It takes from the first begin to the last end
// of its tasks with GPUs. The trace has no virtual clusters, so the user stands for it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/recognise.h"
#include "sim/core/registry.h"
#include "sim/workload/job_traces/submitted_jobs.h"

namespace netsim {
namespace {

const char* const kNotInTaskTable = "the job is not in the task table";

// AlibabaTasks: what the task table says of a job.
struct AlibabaTasks {
  std::int64_t first = INT64_MAX, last = 0;  // us
  std::int64_t micro_gpus = 0;               // millionths of a hundredth of a GPU, of all tasks
  bool succeeded = true, found = false;      // found: the job table has it
  const char* missing = nullptr;             // name of a column
  JobTraceCell place, missing_place;
};

class AlibabaTrace {
 public:
  AlibabaTrace(const InputSet& input, SubmittedJobs& jobs) : input_(input), jobs_(jobs) {
    std::optional<std::uint32_t> tasks, table;
    for (std::uint32_t i = 0; i < input.files().size(); ++i) (is_task_table(i) ? tasks : table) = i;
    if (!tasks || !table || input.files().size() != 2) {
      fail_file(input.name(),
                "two files are expected: the task table and the job table of Alibaba's PAI "
                "(trace: [pai_task_table.csv, pai_job_table.csv])");
    }
    read_tasks(*tasks);
    read_jobs(*table);
    for (const auto& [name, task] : tasks_) {
      if (!task.found) jobs_.incomplete(place(task.place), "the job is not in the job table", task.succeeded);
    }
  }

 private:
  // The task table has ten columns, with or without names, and the job table six.
  bool is_task_table(std::uint32_t index) const {
    CsvReader table(input_.files()[index]);
    return table.next() && table.cells().size() >= 10;
  }
  Place place(const JobTraceCell& cell) const {
    return {input_.files()[cell.file].path, cell.line, cell.column, ""};
  }

  void read_tasks(std::uint32_t index) {
    JobTraceTable table(input_.files()[index], index,
                        {"job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu",
                         "plan_mem", "plan_gpu", "gpu_type"});
    while (table.next()) {
      AlibabaTasks& job = tasks_[std::string(table.text("job_name"))];
      if (job.place.line == 0) job.place = table.cell("job_name");
      job.succeeded = job.succeeded && table.text("status") == "Terminated";
      const std::int64_t percent = table.text("plan_gpu").empty() ? 0 : table.seconds("plan_gpu");
      if (percent == 0) continue;
      const char* missing = nullptr;
      for (const char* column : {"end_time", "start_time", "inst_num"}) {
        if (table.text(column).empty()) missing = column;
      }
      if (missing != nullptr) {
        job.missing = missing;
        job.missing_place = table.cell(missing);
        job.micro_gpus = std::max<std::int64_t>(job.micro_gpus, 1);
        continue;
      }
      if (percent > kMostPercent)
        throw InputError(table.place("plan_gpu"),
                         fmt::format("the plan_gpu is {}; allowed: up to {}", table.text("plan_gpu"),
                                     kMostPercent / 1'000'000));
      job.micro_gpus = std::min(job.micro_gpus + table.whole("inst_num") * percent, kMostMicroGpus);
      const std::int64_t begin = table.seconds("start_time");
      const std::int64_t end = table.seconds("end_time");
      if (end < begin) throw InputError(table.place("end_time"), "the end_time is before the start_time");
      job.first = std::min(job.first, begin);
      job.last = std::max(job.last, end);
    }
  }

  void read_jobs(std::uint32_t index) {
    JobTraceTable table(input_.files()[index], index,
                        {"job_name", "inst_id", "user", "status", "start_time", "end_time"});
    while (table.next()) {
      const bool succeeded = table.text("status") == "Terminated";
      const auto task = tasks_.find(std::string(table.text("job_name")));
      if (task == tasks_.end()) {
        jobs_.incomplete(table.place("job_name"), kNotInTaskTable, succeeded);
        continue;
      }
      task->second.found = true;
      add(table, task->second, succeeded);
    }
  }
  void add(const JobTraceTable& table, const AlibabaTasks& tasks, bool succeeded) {
    if (tasks.micro_gpus == 0) return jobs_.leave_out("without GPUs");
    if (tasks.missing != nullptr)
      return jobs_.incomplete(place(tasks.missing_place), fmt::format("the {} is missing", tasks.missing),
                              succeeded);
    for (const char* column : {"job_name", "start_time"}) {
      if (table.text(column).empty())
        return jobs_.incomplete(table.place(column), fmt::format("the {} is missing", column), succeeded);
    }
    SubmittedJob job;
    constexpr std::int64_t kGpu = 100'000'000;
    const std::int64_t gpus = (tasks.micro_gpus + kGpu - 1) / kGpu;
    if (gpus > 1 << 20)
      throw InputError(place(tasks.place),
                       fmt::format("the job has {} GPUs; allowed: up to {}", gpus, 1 << 20));
    job.gpus = static_cast<std::uint32_t>(gpus);
    job.name = table.text("job_name");
    job.vc = table.text("user");
    job.submitted = submitted_at(table.seconds("start_time"));
    job.duration = trace_duration(tasks.last - tasks.first);
    job.place = job.gpus_cell = table.cell("job_name");
    if (job.duration == 0)
      return jobs_.incomplete(table.place("job_name"), "the job takes no time", succeeded);
    const std::string& file = input_.files()[job.place.file].path;
    jobs_.add(std::move(job), succeeded, file);
  }

  static constexpr std::int64_t kMostPercent =
      100'000 * std::int64_t{1'000'000};  // 1,000 GPUs of an instance
  static constexpr std::int64_t kMostMicroGpus = std::int64_t{1} << 60;
  const InputSet& input_;
  SubmittedJobs& jobs_;
  std::map<std::string, AlibabaTasks> tasks_;  // by job
};

bool is_job_name(std::string_view word) {
  return word.size() >= 12 && word.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Matches the task table and the job table, which have their names in a file of their own.
bool is_alibaba_jobs(const Excerpt& file) {
  const auto cells = file.cells(0, ',');
  const bool tasks = cells.size() == 10, jobs = cells.size() == 6;
  if (!tasks && !jobs) return false;
  if (cells[0] == "job_name") return cells[1] == (tasks ? "task_name" : "inst_id");
  return is_job_name(cells[0]) &&
         is_one_of(cells[3], {"Terminated", "Running", "Failed", "Waiting", "Interrupted"});
}

const FormatRegistration kAlibabaFormat{
    {.name = "alibaba_pai_jobs",
     .what = "a task or job table of Alibaba's PAI",
     .use = Format::Use::part,
     .matches = is_alibaba_jobs,
     .component = "alibaba",
     .advice = "a list of jobs names both: `jobs: {trace: [TASKS, JOBS]}`",
     .endings = {".csv"}}};

class AlibabaReader final : public JobTraceReader {
 public:
  void read(const InputSet& input, SubmittedJobs& jobs) const override { AlibabaTrace(input, jobs); }
};

const Registration<JobTraceReader> kAlibaba{
    "alibaba", "jobs of Alibaba's PAI of 2020 (pai_task_table.csv and pai_job_table.csv)",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<AlibabaReader>(); }};

}  // namespace
}  // namespace netsim
