// critical_path.csv: the steps of the critical paths of all iterations.
#include <fmt/format.h>

#include <memory>

#include "sim/report/csv_sink.h"

namespace netsim {
namespace {

const std::vector<ColumnInfo>& critical_path_columns() {
  static const std::vector<ColumnInfo> columns{
      {"job", "name of the job"},
      {"iteration", "number of the iteration, from 0"},
      {"begin_ps", "begin of the step, at the end of the step before"},
      {"end_ps", "end of the step"},
      {"duration_ps", "end - begin"},
      {"kind", "kind of step"},
      {"stream", "stream of the task; empty where held"},
      {"name", "name of the task; empty where held"},
      {"collective", "kind of collective, or point_to_point; empty for other steps"},
      {"rank", "rank where the step ended"},
      {"task", "id of the task that ended there; empty where held"},
      {"communication", "id of the operation; empty for compute and held steps"},
      {"source_gpu", "sending GPU of a transfer or an acknowledgement"},
      {"destination_gpu", "receiving GPU of these"},
      {"propagation_ps", "part of a transfer: propagation on links and delays of devices"},
      {"transmission_ps", "part of a transfer: transmission at the ports"},
      {"queueing_ps", "part of a transfer: waiting behind other packets"},
      {"paused_ps", "part of a transfer: ports held back by PFC or by credits"},
      {"at_sender_ps", "part of a transfer: what the parts before do not cover"},
  };
  return columns;
}

class CriticalPathCsv : public StreamedCsv, public Receives<RecordedStep> {
 public:
  CriticalPathCsv() : StreamedCsv("critical_path.csv", critical_path_columns()) {}

  void add(const RecordedStep& record) override {
    CsvTable& row = table();
    if (!row.begin_row()) return;
    const PathStep& step = record.step;
    const bool held = step.kind == PathStep::Kind::held;
    const bool communication = !held && step.kind != PathStep::Kind::compute;  // also what a scheduler held
    const bool collective = communication && step.kind != PathStep::Kind::circuits;
    job_cell(record.job);
    row.cell(std::int64_t{record.iteration});
    row.cell(step.begin);
    row.cell(step.end);
    row.cell(step.end - step.begin);
    row.cell(to_string(step.kind));
    row.cell(held ? "" : to_string(step.stream));
    held ? row.empty() : task_name_cell(record.job, step.name);
    row.cell(collective ? to_string(step.collective) : "");
    row.cell(std::int64_t{step.rank});
    held ? row.empty() : row.task_id(step.rank, step.task);
    communication ? row.id('c', step.id) : row.empty();
    for (const GpuId gpu : {step.source, step.destination}) {
      gpu == kNoIndex ? row.empty() : row.cell(std::int64_t{gpu});
    }
    for (const Time part :
         {step.propagation, step.transmission, step.queueing, step.paused, step.at_sender}) {
      step.kind == PathStep::Kind::transfer ? row.cell(part) : row.empty();
    }
    row.end_row();
  }

 private:
  bool wanted(const RunView& run) const override { return run.output.critical_path; }
};

const Registration<ResultSink> kCriticalPathCsvRegistration{
    "critical_path_csv",
    "critical_path.csv: a row is a step of the critical path of an iteration; with output.critical_path",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<CriticalPathCsv>(); },
    critical_path_columns()};

}  // namespace
}  // namespace netsim
