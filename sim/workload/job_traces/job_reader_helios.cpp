// helios: the trace of SenseTime's Helios clusters (cluster_log.csv,
// github.com/S-Lab-System-Group/HeliosData). A row is a job with gpu_num GPUs, which takes `duration`.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "sim/core/recognise.h"
#include "sim/core/registry.h"
#include "sim/workload/job_traces/submitted_jobs.h"

namespace netsim {
namespace {

class HeliosReader final : public JobTraceReader {
 public:
  void read(const InputSet& input, SubmittedJobs& jobs) const override {
    for (std::uint32_t i = 0; i < input.files().size(); ++i) {
      JobTraceTable table(input.files()[i], i,
                          {"job_id", "user", "vc", "gpu_num", "cpu_num", "node_num", "state", "submit_time",
                           "start_time", "end_time", "duration", "queue"});
      while (table.next()) read_job(table, input.files()[i].path, jobs);
    }
  }

 private:
  static void read_job(const JobTraceTable& table, const std::string& file, SubmittedJobs& jobs) {
    const bool succeeded = table.text("state") == "COMPLETED";
    if (table.leaves_out({"gpu_num", "job_id", "submit_time", "duration"}, succeeded, jobs)) return;
    SubmittedJob job;
    job.name = table.text("job_id");
    job.vc = table.text("vc");
    job.gpus = static_cast<std::uint32_t>(table.whole("gpu_num"));
    job.submitted =
        submitted_at(date_microseconds(table.text("submit_time"), "submit_time", table.place("submit_time")));
    job.duration = trace_duration(table.seconds("duration"));
    job.place = table.cell("job_id");
    job.gpus_cell = table.cell("gpu_num");
    if (job.duration == 0)
      return jobs.incomplete(table.place("duration"), "the job takes no time", succeeded);
    jobs.add(std::move(job), succeeded, file);
  }
};

bool is_helios(const Excerpt& file) {
  const auto cells = file.cells(0, ',');
  if (cells.size() > 3 && cells[0] == "job_id" && cells[1] == "user" && cells[2] == "vc") return true;
  // Files of pandas may have the columns in another order.
  const auto has = [&](std::string_view name) {
    return std::find(cells.begin(), cells.end(), name) != cells.end();
  };
  return has("job_id") && has("gpu_num") && has("vc");
}

const FormatRegistration kHeliosFormat{{.name = "helios_jobs",
                                        .what = "a job trace of Helios",
                                        .use = Format::Use::part,
                                        .matches = is_helios,
                                        .component = "helios",
                                        .advice = "a list of jobs names it: `jobs: {trace: FILE}`",
                                        .endings = {".csv"}}};

const Registration<JobTraceReader> kHelios{
    "helios", "jobs of SenseTime's Helios clusters (cluster_log.csv)", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<HeliosReader>(); }};

}  // namespace
}  // namespace netsim
