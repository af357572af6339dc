// flow_samples.csv: the rates of queue pairs over time.
#include <memory>

#include "sim/report/csv_sink.h"

namespace netsim {
namespace {

const std::vector<ColumnInfo>& flow_sample_columns() {
  static const std::vector<ColumnInfo> columns{
      {"time_ps", "end of the interval"},
      {"source_gpu", "GPU of the sender"},
      {"destination_gpu", "GPU of the receiver"},
      {"queue_pair", "number among the queue pairs of these two"},
      {"delivered_bps", "rate of payload acknowledged in the interval"},
      {"allowed_bps", "rate that congestion control allows at the end of the interval"},
      {"job", "name of the job that it belongs to"},
  };
  return columns;
}

class FlowSamplesCsv : public StreamedCsv, public Receives<FlowSample> {
 public:
  FlowSamplesCsv() : StreamedCsv("flow_samples.csv", flow_sample_columns()) {}

  void add(const FlowSample& sample) override {
    if (!table().begin_row()) return;
    table().cell(sample.time);
    table().cell(std::int64_t{sample.source});
    table().cell(std::int64_t{sample.destination});
    table().cell(std::int64_t{sample.queue_pair});
    table().cell(sample.delivered);
    table().cell(sample.allowed);
    job_cell(sample.job);
    table().end_row();
  }

 private:
  bool wanted(const RunView& run) const override {
    return run.output.sample.interval > 0 && run.output.sample.flows;
  }
};

const Registration<ResultSink> kFlowSamplesCsvRegistration{
    "flow_samples_csv", "flow_samples.csv: a row is a queue pair in an interval; with output.sample",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<FlowSamplesCsv>(); },
    flow_sample_columns()};

}  // namespace
}  // namespace netsim
