// queue_samples.csv: the lengths of queues over time.
#include <memory>

#include "sim/report/csv_sink.h"

namespace netsim {
namespace {

const std::vector<ColumnInfo>& queue_sample_columns() {
  static const std::vector<ColumnInfo> columns{
      {"time_ps", "time of the sample"},
      {"port", "name of the port, as in links.csv"},
      {"queue_bytes", "bytes that wait there at that time"},
  };
  return columns;
}

class QueueSamplesCsv : public StreamedCsv, public Receives<QueueSample> {
 public:
  QueueSamplesCsv() : StreamedCsv("queue_samples.csv", queue_sample_columns()) {}

  void add(const QueueSample& sample) override {
    if (!table().begin_row()) return;
    table().cell(sample.time);
    table().cell(sample.port);
    table().cell(sample.bytes);
    table().end_row();
  }

 private:
  bool wanted(const RunView& run) const override {
    return run.output.sample.interval > 0 && run.output.sample.queues;
  }
};

const Registration<ResultSink> kQueueSamplesCsvRegistration{
    "queue_samples_csv", "queue_samples.csv: a row is a port at a time; with output.sample",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<QueueSamplesCsv>(); },
    queue_sample_columns()};

}  // namespace
}  // namespace netsim
