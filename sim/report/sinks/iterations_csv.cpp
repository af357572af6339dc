// iterations.csv: the iterations that ended.
#include <fmt/format.h>

#include <memory>

#include "sim/report/csv_sink.h"

namespace netsim {
namespace {

const std::vector<ColumnInfo>& iteration_columns() {
  static const std::vector<ColumnInfo> columns{
      {"job", "name of the job"},
      {"iteration", "number of the iteration, from 0"},
      {"begin_ps", "end of the iteration before"},
      {"end_ps", "end of its last rank"},
      {"duration_ps", "end - begin"},
      {"iteration_time_s", "the duration in seconds"},
      {"tflops_per_gpu", "rate of this iteration; 0 without a model"},
  };
  return columns;
}

class IterationsCsv : public FinalCsv {
 public:
  IterationsCsv() : FinalCsv("iterations.csv", iteration_columns()) {}

 private:
  std::string rows(const Results& results) const override {
    std::string text;
    for (const JobResult& job : results.jobs) {
      Time begin = job.begin;
      for (std::size_t i = 0; i < job.iteration_ends.size(); ++i) {
        const Time end = job.iteration_ends[i];
        const double seconds = to_seconds(end - begin);
        const double rank_seconds = seconds * static_cast<double>(job.gpus.size());
        text += fmt::format("{},{},{},{},{},{},{}\n", csv_cell(job.name), i, begin, end, end - begin, seconds,
                            rank_seconds > 0 ? job.model_flops / rank_seconds * 1e-12 : 0);
        begin = end;
      }
    }
    return text;
  }
};

const Registration<ResultSink> kIterationsCsvRegistration{
    "iterations_csv", "iterations.csv: a row is an iteration that ended", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<IterationsCsv>(); },
    iteration_columns()};

}  // namespace
}  // namespace netsim
