// cluster.csv: the use of the cluster over time.
#include <fmt/format.h>

#include <memory>

#include "sim/report/csv_sink.h"

namespace netsim {
namespace {

const std::vector<ColumnInfo>& cluster_columns() {
  static const std::vector<ColumnInfo> columns{
      {"time_ps", "time from which on the cluster is used like this, until the next row"},
      {"gpus_held", "GPUs that jobs hold"},
      {"gpus", "GPUs of the cluster"},
      {"running", "jobs that hold GPUs, those that pause or move soon included"},
      {"paused", "jobs that have begun and hold no GPUs"},
      {"queued", "jobs that have arrived and not begun"},
  };
  return columns;
}

// Only runs in which jobs get their GPUs at their arrival or later have the table.
class ClusterCsv : public FinalCsv {
 public:
  ClusterCsv() : FinalCsv("cluster.csv", cluster_columns()) {}
  bool open(SinkFiles& files, const RunView& run) override { return run.queue && FinalCsv::open(files, run); }

 private:
  std::string rows(const Results& results) const override {
    std::string text;
    for (const ClusterUse& use : results.uses) {
      text += fmt::format("{},{},{},{},{},{}\n", use.time, use.gpus_held, results.gpus, use.running,
                          use.paused, use.queued);
    }
    return text;
  }
};

const Registration<ResultSink> kClusterCsvRegistration{
    "cluster_csv", "cluster.csv: a row is a change of the cluster's use by jobs", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<ClusterCsv>(); }, cluster_columns()};

}  // namespace
}  // namespace netsim
