// link_samples.csv: the counters of links over time. The columns are those counters of port_counters() that
// are sampled.
#include <fmt/format.h>

#include <memory>

#include "sim/network/counters.h"
#include "sim/report/csv_sink.h"

namespace netsim {
namespace {

const std::vector<ColumnInfo>& link_sample_columns() {
  static const std::vector<ColumnInfo> columns = [] {
    std::vector<ColumnInfo> all{{"time_ps", "end of the interval"},
                                {"link", "name of the link, as in links.csv"}};
    for (const PortCounterInfo* counter : sampled_counters()) {
      all.push_back({counter->column, std::string("in the interval: ") + counter->meaning});
    }
    all.insert(all.begin() + 3, {"utilisation", "share of the interval in which the link transmitted"});
    return all;
  }();
  return columns;
}

class LinkSamplesCsv : public StreamedCsv, public Receives<LinkSample> {
 public:
  LinkSamplesCsv() : StreamedCsv("link_samples.csv", link_sample_columns()) {}

  void add(const LinkSample& sample) override {
    if (!table().begin_row()) return;
    table().cell(sample.time);
    table().cell(sample.port);
    for (const PortCounterInfo* counter : sampled_counters()) {
      table().cell(value_of(sample.counters, counter->field));
      if (counter->sampled == 1) table().cell(fmt::format("{:.6f}", sample.utilisation));
    }
    table().end_row();
  }

 private:
  bool wanted(const RunView& run) const override {
    return run.output.sample.interval > 0 && run.output.sample.links;
  }
};

const Registration<ResultSink> kLinkSamplesCsvRegistration{
    "link_samples_csv", "link_samples.csv: a row is a link in an interval; with output.sample",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<LinkSamplesCsv>(); },
    link_sample_columns()};

}  // namespace
}  // namespace netsim
