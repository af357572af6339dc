// report.html: a page that shows the run (docs/how-to/report.md). It keeps a bounded part of the records
// while the run goes on, and is written at the end.
#include <memory>
#include <string>

#include "sim/core/registry.h"
#include "sim/report/page/page_document.h"
#include "sim/report/page/page_sections.h"
#include "sim/report/result_sink.h"

namespace netsim {
namespace {

constexpr const char* kReportFile = "report.html";
constexpr std::size_t kMostTimelines = 8;  // jobs with a timeline: those whose tasks end first

class ReportHtml : public ResultSink,
                   public Receives<TaskRecord>,
                   public Receives<QueueSample>,
                   public Receives<LinkSample>,
                   public Receives<FlowSample>,
                   public Receives<AggregationSample> {
 public:
  std::vector<std::string> files() const override { return {kReportFile}; }
  bool in_every_run() const override { return true; }
  bool open(SinkFiles& /*files*/, const RunView& run) override {
    run_ = &run;
    return run.report;
  }
  void add(const TaskRecord& record) override {
    if (IterationTimeline* timeline = timeline_of(record.job); timeline != nullptr) timeline->add(record);
  }
  void add(const QueueSample& sample) override {
    records_.queues.add(sample.port, sample.time, run_->output.sample.interval,
                        static_cast<double>(sample.bytes));
  }
  void add(const LinkSample& sample) override {
    records_.utilisation.add(sample.port, sample.time, run_->output.sample.interval, sample.utilisation);
  }
  void add(const FlowSample& sample) override;
  void add(const AggregationSample& sample) override {
    records_.aggregation.add(sample.switch_name, sample.time, run_->output.sample.interval,
                             static_cast<double>(sample.used));
  }
  void finish(const FinishedRun& run, SinkFiles& files) override;

 private:
  IterationTimeline* timeline_of(JobId job);

  const RunView* run_ = nullptr;
  PageRecords records_;
  // The timeline of the job whose task ended last; null: that job has none.
  JobId last_job_ = JobId::none();
  IterationTimeline* last_ = nullptr;
};

// Returns null for jobs that do not compute, and for those beyond kMostTimelines.
IterationTimeline* ReportHtml::timeline_of(JobId job) {
  if (job == last_job_) return last_;
  last_job_ = job;
  const TaskSource& source = *run_->jobs[job].source;
  auto found = records_.timelines.find(job);
  if (found == records_.timelines.end() && !source.works().empty()) {
    if (records_.timelines.size() < kMostTimelines) {
      found = records_.timelines.try_emplace(job, source).first;
    } else {
      records_.further_jobs = true;
    }
  }
  return last_ = found == records_.timelines.end() ? nullptr : &found->second;
}

void ReportHtml::add(const FlowSample& sample) {
  std::string name = gpu_name(*run_, sample.source) + " to " + gpu_name(*run_, sample.destination);
  if (sample.queue_pair > 0) name += ", queue pair " + std::to_string(sample.queue_pair);
  records_.rates.add(name, sample.time, run_->output.sample.interval, static_cast<double>(sample.delivered));
}

void ReportHtml::finish(const FinishedRun& run, SinkFiles& files) {
  if (run.text == nullptr) return;
  OutputFile& file = files.open(kReportFile);
  const std::string title = run.results.jobs.size() == 1 ? run.results.jobs.front().name : "jobs";
  write_page("netsim: " + title, page_json({run, *run_, records_}),
             [&file](std::string_view piece) { file.write(piece); });
}

const Registration<ResultSink> kReportHtmlRegistration{
    "report_html",
    "report.html: a page that shows the run, in one file that works offline; --report no leaves it out",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<ReportHtml>(); }};

}  // namespace
}  // namespace netsim
