// ranks.csv: the ranks of all jobs, over the whole run.
#include <fmt/format.h>

#include <memory>

#include "sim/report/csv_sink.h"

namespace netsim {
namespace {

const std::vector<ColumnInfo>& rank_columns() {
  static const std::vector<ColumnInfo> columns =
      joined({{
                  {"job", "name of the job"},
                  {"rank", "rank in the job"},
                  {"gpu", "GPU that it runs on"},
                  {"nic", "NIC that it uses"},
                  {"compute_ps", "compute time"},
                  {"communication_ps", "time with a communication in flight"},
                  {"exposed_ps", "exposed communication"},
                  {"idle_ps", "idle time"},
              },
              exposed_columns("ps"),
              {
                  {"peak_memory_bytes", "largest use of its GPU's memory; empty where unknown"},
                  {"peak_memory_ps", "time of that; empty where unknown"},
              }});
  return columns;
}

class RanksCsv : public FinalCsv {
 public:
  RanksCsv() : FinalCsv("ranks.csv", rank_columns()) {}

 private:
  std::string rows(const Results& results) const override {
    std::string text;
    for (const JobResult& job : results.jobs) {
      for (std::size_t rank = 0; rank < job.rank_times.size(); ++rank) text += row(job, rank);
    }
    return text;
  }

  std::string row(const JobResult& job, std::size_t rank) const {
    const RankTimes& t = job.rank_times[rank];
    const GpuId gpu = job.gpus[rank];
    std::string text = fmt::format("{},{},{},{},{},{},{},{}", csv_cell(job.name), rank, gpu,
                                   csv_cell(run().nic(gpu)), t.compute, t.communication, t.exposed, t.idle);
    for (const Stream stream : kCommunicationStreams) {
      text += fmt::format(",{}", t.exposed_by[static_cast<std::size_t>(stream)]);
    }
    return text + (job.memory
                       ? fmt::format(",{},{}\n", job.memory->rank_peak[rank], job.memory->rank_time[rank])
                       : std::string(",,\n"));
  }
};

const Registration<ResultSink> kRanksCsvRegistration{
    "ranks_csv", "ranks.csv: a row is a rank, over the whole run", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<RanksCsv>(); }, rank_columns()};

}  // namespace
}  // namespace netsim
