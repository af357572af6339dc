// aggregation_samples.csv: what switches that add up do over time, and how much of their memory is in use.
#include <memory>

#include "sim/report/csv_sink.h"

namespace netsim {
namespace {

const std::vector<ColumnInfo>& aggregation_sample_columns() {
  static const std::vector<ColumnInfo> columns{
      {"time_ps", "time of the sample"},
      {"switch", "name of the switch, as in aggregation.csv"},
      {"used_bytes", "memory of trees with messages in flight, at that time"},
      {"memory_bytes", "memory that all trees have taken, idle ones too, at that time"},
      {"trees", "trees that have taken memory, at that time"},
      {"packets", "packets that it added to sums in the interval"},
      {"bytes", "bytes of these packets, headers included"},
      {"sums", "sums that became complete in the interval"},
  };
  return columns;
}

class AggregationSamplesCsv : public StreamedCsv, public Receives<AggregationSample> {
 public:
  AggregationSamplesCsv() : StreamedCsv("aggregation_samples.csv", aggregation_sample_columns()) {}

  void add(const AggregationSample& sample) override {
    if (!table().begin_row()) return;
    table().cell(sample.time);
    table().cell(sample.switch_name);
    table().cell(sample.used);
    table().cell(sample.memory);
    table().cell(sample.trees);
    table().cell(sample.packets);
    table().cell(sample.bytes);
    table().cell(sample.sums);
    table().end_row();
  }

 private:
  bool wanted(const RunView& run) const override {
    return run.output.sample.interval > 0 && run.output.sample.aggregation && run.aggregates;
  }
};

const Registration<ResultSink> kAggregationSamplesCsvRegistration{
    "aggregation_samples_csv",
    "aggregation_samples.csv: a row is a switch that adds up at a time; with output.sample",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<AggregationSamplesCsv>(); },
    aggregation_sample_columns()};

}  // namespace
}  // namespace netsim
