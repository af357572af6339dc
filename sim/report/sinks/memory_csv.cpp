// memory.csv: the memory of ranks over time, of jobs that know the memory of their tasks.
#include <algorithm>

#include <memory>

#include "sim/report/csv_sink.h"

namespace netsim {
namespace {

const std::vector<ColumnInfo>& memory_columns() {
  static const std::vector<ColumnInfo> columns{
      {"job", "name of the job"},
      {"rank", "rank: the first one of each role (pipeline stage)"},
      {"time_ps", "time of the change"},
      {"bytes", "all bytes in the GPU's memory from then on"},
      {"parameters_bytes", "of these: parameters"},
      {"gradients_bytes", "of these: gradients"},
      {"optimizer_bytes", "of these: states of the optimizer"},
      {"activations_bytes", "of these: activations"},
      {"gathered_bytes", "of these: parameters of other ranks, gathered for a layer"},
      {"communication_bytes", "of these: buffers of communications"},
      {"host_bytes", "bytes in the memory of the host"},
  };
  return columns;
}

class MemoryCsv : public StreamedCsv, public Receives<MemoryRecord> {
 public:
  MemoryCsv() : StreamedCsv("memory.csv", memory_columns()) {}

  void add(const MemoryRecord& record) override {
    CsvTable& row = table();
    if (!row.begin_row()) return;
    job_cell(record.job);
    row.cell(std::int64_t{record.rank});
    row.cell(record.time);
    row.cell(record.use.total());
    for (std::size_t kind = 0; kind < kMemoryKinds; ++kind)
      row.cell(record.use[static_cast<MemoryKind>(kind)]);
    row.end_row();
  }

 private:
  bool wanted(const RunView& run) const override {
    return std::any_of(run.jobs.begin(), run.jobs.end(),
                       [](const JobView& job) { return job.source->memory() != nullptr; });
  }
};

const Registration<ResultSink> kMemoryCsvRegistration{
    "memory_csv",
    "memory.csv: a row is a change of the memory of a rank; only of jobs that know the memory of their tasks",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<MemoryCsv>(); }, memory_columns()};

}  // namespace
}  // namespace netsim
