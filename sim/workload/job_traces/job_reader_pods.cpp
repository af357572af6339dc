// alibaba_pods: the pods of Alibaba's cluster of 2023 (openb_pod_list_*.csv, github.com/alibaba/clusterdata,
// cluster-trace-gpu-v2023). A row is a pod with num_gpu GPUs, or with a share of one GPU (gpu_milli), which
// counts as one. It takes from scheduled_time to deletion_time. The trace has no virtual clusters, so the
// class of quality (qos) stands for one.
#include <memory>
#include <string>
#include <utility>

#include "sim/core/recognise.h"
#include "sim/core/registry.h"
#include "sim/workload/job_traces/submitted_jobs.h"

namespace netsim {
namespace {

class PodReader final : public JobTraceReader {
 public:
  void read(const InputSet& input, SubmittedJobs& jobs) const override {
    for (std::uint32_t i = 0; i < input.files().size(); ++i) {
      JobTraceTable table(input.files()[i], i,
                          {"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos",
                           "pod_phase", "creation_time", "deletion_time", "scheduled_time"});
      while (table.next()) read_pod(table, input.files()[i].path, jobs);
    }
  }

 private:
  static void read_pod(const JobTraceTable& table, const std::string& file, SubmittedJobs& jobs) {
    const bool succeeded = table.text("pod_phase") == "Succeeded";
    if (table.leaves_out({"num_gpu", "name", "creation_time", "scheduled_time", "deletion_time"}, succeeded,
                         jobs))
      return;
    SubmittedJob job;
    job.name = table.text("name");
    job.vc = table.text("qos");
    job.gpus = static_cast<std::uint32_t>(table.whole("num_gpu"));
    job.submitted = submitted_at(table.seconds("creation_time"));
    const std::int64_t duration = table.seconds("deletion_time") - table.seconds("scheduled_time");
    job.place = table.cell("name");
    job.gpus_cell = table.cell("num_gpu");
    if (duration <= 0)
      return jobs.incomplete(table.place("deletion_time"), "the pod is deleted before it runs", succeeded);
    job.duration = trace_duration(duration);
    jobs.add(std::move(job), succeeded, file);
  }
};

bool is_pod_list(const Excerpt& file) {
  const auto cells = file.cells(0, ',');
  return cells.size() > 4 && cells[0] == "name" && cells[1] == "cpu_milli" && cells[3] == "num_gpu";
}

const FormatRegistration kPodFormat{{.name = "alibaba_pods",
                                     .what = "a list of pods of Alibaba's cluster of 2023",
                                     .use = Format::Use::part,
                                     .matches = is_pod_list,
                                     .component = "alibaba_pods",
                                     .advice = "a list of jobs names it: `jobs: {trace: FILE}`",
                                     .endings = {".csv"}}};

const Registration<JobTraceReader> kPods{
    "alibaba_pods", "pods of Alibaba's cluster of 2023 (openb_pod_list_*.csv)", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<PodReader>(); }};

}  // namespace
}  // namespace netsim
