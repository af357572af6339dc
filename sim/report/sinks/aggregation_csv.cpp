// aggregation.csv: what each switch has added up, of runs in which switches do.
#include <fmt/format.h>

#include <memory>

#include "sim/report/csv_sink.h"

namespace netsim {
namespace {

const std::vector<ColumnInfo>& aggregation_columns() {
  static const std::vector<ColumnInfo> columns{
      {"switch", "name of the switch"},
      {"packets", "packets that it added to sums"},
      {"bytes", "bytes of these packets, headers included"},
      {"sums", "sums that became complete"},
      {"repeated", "packets that came again, whose sum was complete and was sent again"},
      {"discarded", "packets that came again, whose sum still waited for others"},
      {"memory_bytes", "largest memory that aggregation trees took of it; 0 for NVSwitches"},
      {"trees", "largest number of aggregation trees at once; 0 for NVSwitches"},
      {"messages_waited", "messages that waited because it had no memory for their tree"},
      {"unfinished", "sums that left it without the packets of all members (SwitchAgg)"},
      {"collided", "packets of best-effort trees (atp) that found another sum in their aggregator"},
      {"flushed", "packets of best-effort trees that came again, and freed their aggregator"},
      {"aggregators", "largest number of aggregators that best-effort trees occupied at once"},
  };
  return columns;
}

class AggregationCsv : public FinalCsv {
 public:
  AggregationCsv() : FinalCsv("aggregation.csv", aggregation_columns()) {}

 private:
  bool wanted(const Results& results) const override { return !results.aggregation.empty(); }
  std::string rows(const Results& results) const override {
    std::string text;
    for (const auto& [name, use] : results.aggregation) {
      const AggregationCounters& c = use.counters;
      text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_cell(name), c.packets, c.bytes,
                          c.sums, c.repeated, c.discarded, use.memory, use.trees, use.waited, c.unfinished,
                          c.collided, c.flushed, use.aggregators);
    }
    return text;
  }
};

const Registration<ResultSink> kAggregationCsvRegistration{
    "aggregation_csv",
    "aggregation.csv: a row is a switch that added up packets; only of runs in which switches do",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<AggregationCsv>(); },
    aggregation_columns()};

}  // namespace
}  // namespace netsim
