// flows.csv: the messages on the scale-out fabric.
#include <fmt/format.h>

#include <memory>

#include "sim/report/csv_sink.h"

namespace netsim {
namespace {

const std::vector<ColumnInfo>& flow_columns() {
  static const std::vector<ColumnInfo> columns{
      {"flow", "id of the flow"},
      {"job", "name of the job"},
      {"communication",
       "id of the operation that it belongs to, as in tasks.csv and collectives.csv; of fused collectives "
       "that "
       "of the first one"},
      {"name",
       "the workload's name; `flow 3` is the fourth of ns-3's flow.txt, `connection 12` is htsim's id"},
      {"class", "data class"},
      {"source", "NIC of the sender"},
      {"destination", "NIC of the receiver"},
      {"source_gpu", "GPU of the sender"},
      {"destination_gpu", "GPU of the receiver"},
      {"channel", "channel of the collective"},
      {"queue_pair", "number of the queue pair"},
      {"bytes", "payload"},
      {"start_ps", "hand-over by the sender"},
      {"end_ps", "delivery of the last byte"},
      {"fct_ps", "flow completion time: end - start"},
      {"acknowledged_ps",
       "time at which the last acknowledgement was back at the sender; empty where the run was cut before "
       "that"},
      {"ideal_ps", "least time of the message alone in an idle network; empty where unknown"},
      {"slowdown", "fct_ps / ideal_ps; empty where unknown"},
      {"part",
       "number of the part of the operation, from 0; empty where no task scheduler cut the operation into "
       "parts"},
  };
  return columns;
}

class FlowsCsv : public StreamedCsv, public Receives<FlowRecord> {
 public:
  FlowsCsv() : StreamedCsv("flows.csv", flow_columns()) {}

  void add(const FlowRecord& record) override {
    CsvTable& row = table();
    if (!row.begin_row()) return;
    const Message& message = record.message;
    row.id('f', record.id);
    job_cell(message.traits.job);
    row.id('c', message.whole_communication());
    task_name_cell(message.traits.job, message.name);
    row.cell(std::int64_t{message.traits.traffic_class});
    row.cell(run().nic(message.source));
    row.cell(run().nic(message.destination));
    row.cell(std::int64_t{message.source});
    row.cell(std::int64_t{message.destination});
    row.cell(std::int64_t{message.traits.channel});
    row.cell(std::int64_t{record.queue_pair});
    row.cell(record.bytes);
    row.cell(record.start);
    row.cell(record.end);
    row.cell(record.end - record.start);
    for (const std::int64_t known : {record.acknowledged, record.ideal}) {
      known > 0 ? row.cell(known) : row.empty();
    }
    const std::int64_t slowdown = slowdown_millionths(record);
    row.cell(slowdown > 0 ? fmt::format("{}.{:06}", slowdown / 1'000'000, slowdown % 1'000'000) : "");
    message.part == kNoIndex ? row.empty() : row.cell(std::int64_t{message.part});
    row.end_row();
  }
};

const Registration<ResultSink> kFlowsCsvRegistration{
    "flows_csv", "flows.csv: a row is a message on the scale-out fabric", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<FlowsCsv>(); }, flow_columns()};

}  // namespace
}  // namespace netsim
