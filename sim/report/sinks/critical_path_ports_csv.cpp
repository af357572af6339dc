// critical_path_ports.csv: the ports that delayed the transfers of critical paths.
#include <memory>

#include "sim/report/csv_sink.h"

namespace netsim {
namespace {

const std::vector<ColumnInfo>& critical_path_ports_columns() {
  static const std::vector<ColumnInfo> columns{
      {"job", "name of the job"},
      {"iteration", "number of the iteration, from 0"},
      {"begin_ps", "begin of the transfer"},
      {"end_ps", "end of the transfer"},
      {"stream", "stream of the task"},
      {"name", "name of the task"},
      {"communication", "id of the operation"},
      {"source_gpu", "sending GPU"},
      {"destination_gpu", "receiving GPU"},
      {"port", "name of the port, as in links.csv"},
      {"transmission_ps", "transmission at the port"},
      {"queueing_ps", "waiting at the port behind other packets"},
      {"paused_ps", "time for which PFC or missing credits held the port back"},
  };
  return columns;
}

class CriticalPathPortsCsv : public StreamedCsv, public Receives<RecordedPortDelay> {
 public:
  CriticalPathPortsCsv() : StreamedCsv("critical_path_ports.csv", critical_path_ports_columns()) {}

  void add(const RecordedPortDelay& record) override {
    CsvTable& row = table();
    if (!row.begin_row()) return;
    const PathStep& step = record.step;
    job_cell(record.job);
    row.cell(std::int64_t{record.iteration});
    row.cell(step.begin);
    row.cell(step.end);
    row.cell(to_string(step.stream));
    task_name_cell(record.job, step.name);
    row.id('c', step.id);
    row.cell(std::int64_t{step.source});
    row.cell(std::int64_t{step.destination});
    row.cell(record.port);
    for (const Time part : {record.delay.transmission, record.delay.queueing, record.delay.paused})
      row.cell(part);
    row.end_row();
  }

 private:
  bool wanted(const RunView& run) const override { return run.output.critical_path; }
};

const Registration<ResultSink> kCriticalPathPortsCsvRegistration{
    "critical_path_ports_csv",
    "critical_path_ports.csv: a row is a port that delayed a transfer of critical_path.csv; the rows of a "
    "transfer add up to its parts",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<CriticalPathPortsCsv>(); },
    critical_path_ports_columns()};

}  // namespace
}  // namespace netsim
