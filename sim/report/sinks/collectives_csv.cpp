// collectives.csv: the communications that ended. The bus bandwidth is that of nccl-tests
// (doc/PERFORMANCE.md): the algorithm bandwidth times the kind's factor.
#include <fmt/format.h>

#include <memory>

#include "sim/report/csv_sink.h"

namespace netsim {
namespace {

const std::vector<ColumnInfo>& collective_columns() {
  static const std::vector<ColumnInfo> columns{
      {"job", "name of the job"},
      {"communication", "id of the operation"},
      {"name", "the workload's name for it"},
      {"kind", "kind of collective, or point_to_point"},
      {"stream", "stream of its tasks"},
      {"ranks", "number of members"},
      {"first_rank", "first member in the order of the group"},
      {"bytes", "size as nccl-tests counts it"},
      {"first_start_ps", "arrival of the first rank"},
      {"last_start_ps", "arrival of the last rank"},
      {"end_ps", "end at the last rank"},
      {"wait_s", "time between the two arrivals"},
      {"algbw_GBps", "bytes / (end - last start)"},
      {"busbw_GBps", "bus bandwidth"},
      {"algorithm", "algorithm that the library chose; empty for messages"},
      {"protocol", "protocol that the library chose; empty for messages"},
      {"channels", "channels that the library chose; those within a host are timed together"},
      {"why", "reason for the library's choice"},
  };
  return columns;
}

class CollectivesCsv : public StreamedCsv, public Receives<RecordedCommunication> {
 public:
  CollectivesCsv() : StreamedCsv("collectives.csv", collective_columns()) {}

  void add(const RecordedCommunication& record) override {
    CsvTable& row = table();
    if (!row.begin_row()) return;
    const CommunicationRecord& communication = record.communication;
    const LibraryChoice& choice = record.choice;
    job_cell(communication.job);
    row.id('c', communication.id);
    task_name_cell(communication.job, communication.name);
    row.cell(to_string(communication.kind));
    row.cell(to_string(communication.stream));
    row.cell(std::int64_t{communication.ranks});
    row.cell(std::int64_t{communication.first_rank});
    row.cell(communication.bytes);
    row.cell(communication.first_start);
    row.cell(communication.last_start);
    row.cell(communication.end);
    row.cell(fmt::format("{}", to_seconds(communication.last_start - communication.first_start)));
    const CollectiveTimes times = times_of(communication);
    row.cell(fmt::format("{:.3f}", times.algorithm_bandwidth() * 1e-9));
    row.cell(fmt::format("{:.3f}", times.bus_bandwidth() * 1e-9));
    const bool known = !choice.algorithm.empty();
    row.cell(choice.algorithm);
    row.cell(known ? to_string(choice.protocol) : "");
    known ? row.cell(std::int64_t{choice.channels}) : row.empty();
    row.cell(choice.why);
    row.end_row();
  }
};

const Registration<ResultSink> kCollectivesCsvRegistration{
    "collectives_csv", "collectives.csv: a row is a collective or point-to-point operation",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<CollectivesCsv>(); },
    collective_columns()};

}  // namespace
}  // namespace netsim
