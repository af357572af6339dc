// links.csv: the counters of all links. The columns are those of port_counters().
#include <fmt/format.h>

#include <memory>

#include "sim/network/counters.h"
#include "sim/report/csv_sink.h"

namespace netsim {
namespace {

// Number of columns of port_counters() before the column `utilisation`.
constexpr std::size_t kBeforeUtilisation = 1;

const std::vector<ColumnInfo>& link_columns() {
  static const std::vector<ColumnInfo> columns = [] {
    std::vector<ColumnInfo> all{{"link", "name of one direction of a link"},
                                {"kind", "ethernet, infiniband, pcie or nvlink"},
                                {"rate_bps", "rate of the link"}};
    for (const PortCounterInfo& counter : port_counters()) all.push_back({counter.column, counter.meaning});
    all.insert(all.begin() + 3 + kBeforeUtilisation,
               {"utilisation", "share of the run in which the link transmitted"});
    return all;
  }();
  return columns;
}

class LinksCsv : public FinalCsv {
 public:
  LinksCsv() : FinalCsv("links.csv", link_columns()) {}

 private:
  std::string rows(const Results& results) const override {
    std::string text;
    for (const LinkResult& link : results.links) {
      text += fmt::format("{},{},{}", csv_cell(link.name), to_string(link.kind), link.rate);
      std::size_t written = 0;
      for (const PortCounterInfo& counter : port_counters()) {
        if (written++ == kBeforeUtilisation)
          text += fmt::format(",{:.6f}", utilisation(link, results.simulated));
        text += fmt::format(",{}", value_of(link.counters, counter.field));
      }
      text += "\n";
    }
    return text;
  }
};

const Registration<ResultSink> kLinksCsvRegistration{
    "links_csv", "links.csv: a row is one direction of a link", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<LinksCsv>(); }, link_columns()};

}  // namespace
}  // namespace netsim
