// bandwidths.csv: the times of collectives, with the columns of nccl-tests.
#include <fmt/format.h>

#include <memory>

#include "sim/report/csv_sink.h"

namespace netsim {
namespace {

const std::vector<ColumnInfo>& bandwidth_columns() {
  static const std::vector<ColumnInfo> columns{
      {"collective", "kind of collective"},
      {"ranks", "number of members"},
      {"bytes", "size as nccl-tests counts it"},
      {"elements", "nccl-tests' count, of 4 bytes; of a rank's part where all ranks have equal parts"},
      {"type", "type of an element"},
      {"redop", "reduction: sum or none"},
      {"count", "number of such collectives"},
      {"time_s", "mean time"},
      {"algbw_GBps", "algorithm bandwidth of the mean time"},
      {"busbw_GBps", "bus bandwidth of the mean time"},
      {"algorithm", "algorithm of the first one"},
      {"protocol", "protocol of the first one"},
      {"channels", "channels of the first one"},
      {"why", "reason of the first one's choice"},
      {"job", "name of the job"},
  };
  return columns;
}

class BandwidthsCsv : public FinalCsv {
 public:
  BandwidthsCsv() : FinalCsv("bandwidths.csv", bandwidth_columns()) {}

 private:
  std::string rows(const Results& results) const override {
    std::string text;
    for (const CollectiveTimes& row : results.collectives) {
      text += fmt::format("{},{},{},{},float,{},{},{},{:.6g},{:.6g},{},{},{},{},{}\n", to_string(row.kind),
                          row.ranks, row.bytes, row.elements(), row.reduction(), row.count, row.mean_s(),
                          row.algorithm_bandwidth() * 1e-9, row.bus_bandwidth() * 1e-9,
                          csv_cell(row.choice.algorithm), to_string(row.choice.protocol), row.choice.channels,
                          csv_cell(row.choice.why), csv_cell(results.jobs[row.job].name));
    }
    return text;
  }
};

const Registration<ResultSink> kBandwidthsCsvRegistration{
    "bandwidths_csv",
    "bandwidths.csv: a row is all collectives of one kind, number of ranks and size in a job",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<BandwidthsCsv>(); },
    bandwidth_columns()};

}  // namespace
}  // namespace netsim
