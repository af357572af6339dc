// The sections about the network: links, flows, samples, collectives and faults.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "sim/report/link_groups.h"
#include "sim/report/page/fault_rows.h"
#include "sim/report/page/page_sections.h"
#include "sim/report/screen/collective_text.h"
#include "sim/report/screen/network_text.h"

namespace netsim {
namespace {

constexpr std::size_t kMostCurves = 12;            // of each quantity
constexpr std::size_t kMostCollectiveRows = 1000;  // bandwidths.csv has all
constexpr std::size_t kMostMarks = 50;             // times of faults that are drawn

void write_tier(JsonWriter& json, const Results& results, const TierOfLinks& tier) {
  const PortCounters& sum = tier.sum;
  json.field("tier", tier_name(results, tier));
  json.field("kind", to_string(tier.kind));
  json.field("links", tier.links);
  json.field("rate_text", screen::rates_text(tier));
  json.field("mean", tier.mean_utilisation);
  json.field("mean_text", screen::percent_text(tier.mean_utilisation));
  json.field("maximum", tier.most_utilisation);
  json.field("maximum_text", screen::percent_text(tier.most_utilisation));
  json.field("busiest", screen::short_link_name(results.links[tier.busiest].name));
  json.field("carried_bytes", sum.wire_bytes);
  json.field("carried_text", human_bytes(static_cast<double>(sum.wire_bytes)));
  json.field("queue_bytes", sum.max_queue);
  json.field("queue_text", human_bytes(static_cast<double>(sum.max_queue)));
  json.field("queue_where",
             sum.max_queue > 0 ? screen::short_link_name(results.links[tier.longest_queue].name) : "");
  json.field("ecn_marks", sum.ecn_marks);
  json.seconds("held", sum.paused + sum.credit_stalled);
}

// Writes a distribution as points [value, share], at most 100. `unit` is the value of 1.
void write_cdf(JsonWriter& json, const Percentiles& percentiles, double unit) {
  json.array("cdf", [&] {
    for (std::size_t i = 0; i < percentiles.size(); ++i) {
      json.array([&] {
        json.value(static_cast<double>(percentiles[i]) / unit);
        json.value(static_cast<double>(i + 1) / static_cast<double>(percentiles.size()));
      });
    }
  });
}

void write_ratio(JsonWriter& json, const char* name, double ratio) {
  json.object(name, [&] {
    json.field("value", ratio);
    json.field("text", fmt::format("{:.2f}", ratio));
  });
}

std::vector<std::string> flow_lines(const Results& results) {
  std::vector<std::string> lines{"Flows: " + screen::flows_done_text(results) + "."};
  if (results.simulated > 0) lines.push_back("Throughput: " + screen::throughput_text(results) + ".");
  lines.push_back("Queues: " + screen::queues_text(results) + ".");
  lines.push_back("Network: " + screen::counters_text(results) + ".");
  return lines;
}

struct Curves {
  const SampledSeries& samples;
  const char *title, *unit, *kind;
};

void write_curves(JsonWriter& json, const Curves& curves) {
  for (const SampledSeries::Series& series : curves.samples.largest(kMostCurves)) {
    json.object([&] {
      json.field("title", fmt::format("{} {}", curves.title, series.name));
      json.field("unit", curves.unit);
      json.field("kind", curves.kind);
      json.array("points", [&] {
        for (const SampledSeries::Point& point : series.points) {
          json.array([&] {
            json.value(to_seconds(point.time));
            json.value(point.value);
          });
        }
      });
    });
  }
}

}  // namespace

void write_links(JsonWriter& json, const PageInput& input) {
  const Results& results = input.results();
  const std::vector<TierOfLinks> tiers = tiers_of_links(results);
  if (tiers.empty()) return;
  json.object("links", [&] {
    json.array("tiers", [&] {
      for (const TierOfLinks& tier : tiers) json.object([&] { write_tier(json, results, tier); });
    });
  });
}

void write_flows(JsonWriter& json, const PageInput& input) {
  const Results& results = input.results();
  if (!results.packet_network || results.flows.count == 0) return;
  json.object("flows", [&] {
    json.field("count", results.flows.count);
    json.list("text", flow_lines(results));
    json.object("completion", [&] {
      json.seconds("mean", results.flows.mean * 1e-12);
      json.seconds("p50", results.flows.p50);
      json.seconds("p99", results.flows.p99);
      json.seconds("max", results.flows.maximum);
      write_cdf(json, results.flow_times_ps, 1e12);
    });
    if (results.slowdowns.count == 0) return;
    json.object("slowdown", [&] {
      write_ratio(json, "mean", results.slowdowns.mean);
      write_ratio(json, "p50", results.slowdowns.p50);
      write_ratio(json, "p95", results.slowdowns.p95);
      write_ratio(json, "p99", results.slowdowns.p99);
      write_cdf(json, results.slowdowns_millionths, 1e6);
    });
    json.object("by_size", [&] { write_table(json, screen::slowdown_table(results)); });
  });
}

void write_samples(JsonWriter& json, const PageInput& input) {
  const PageRecords& records = input.records;
  if (input.view.output.sample.interval == 0) return;
  const Curves all[] = {{records.queues, "Queue of", "bytes", "queue"},
                        {records.utilisation, "Utilisation of", "share", "utilisation"},
                        {records.rates, "Payload acknowledged from", "bps", "rate"}};
  json.object("samples", [&] {
    json.seconds("interval", input.view.output.sample.interval);
    std::string note = fmt::format(
        "A curve has the largest value of each of at most {} intervals. Of each quantity the {} largest are "
        "drawn; the tables of samples have all.",
        SampledSeries::kMostPoints, kMostCurves);
    for (const Curves& curves : all) {
      if (curves.samples.cut())
        note += fmt::format(" Only the first {} of some quantity are kept.", SampledSeries::kMostSeries);
    }
    json.field("note", note);
    json.array("series", [&] {
      for (const Curves& curves : all) write_curves(json, curves);
    });
  });
}

void write_collectives(JsonWriter& json, const PageInput& input) {
  const Results& results = input.results();
  if (results.collectives.empty()) return;
  std::vector<TableColumn> table = screen::collective_table(results);
  TableColumn channels{"channels", 0, false, {}}, count{"number", 0, false, {}}, why{"reason", 0, true, {}};
  for (const CollectiveTimes& row : results.collectives) {
    channels.cells.push_back(fmt::format("{}", row.choice.channels));
    count.cells.push_back(fmt::format("{}", row.count));
    why.cells.push_back(row.choice.why);
  }
  table.insert(table.end(), {channels, count, why});
  const std::size_t rows = results.collectives.size();
  for (TableColumn& column : table) column.cells.resize(std::min(rows, kMostCollectiveRows));
  json.object("collectives", [&] {
    write_table(json, table);
    if (rows > kMostCollectiveRows)
      json.field("note", fmt::format("These are the first {} of {} rows. bandwidths.csv has all.",
                                     kMostCollectiveRows, rows));
  });
}

void write_faults(JsonWriter& json, const PageInput& input) {
  const Results& results = input.results();
  const std::vector<FaultRow> rows = fault_rows(results);
  const std::string recoveries = recovered_jobs(results);
  if (rows.empty() && recoveries.empty()) return;
  TableColumn time{"time", 0, true, {}}, fault{"fault", 0, true, {}}, hit{"iterations hit", 0, true, {}};
  for (const FaultRow& row : rows) {
    time.cells.push_back(row.time);
    fault.cells.push_back(row.text);
    hit.cells.push_back(row.iterations);
  }
  json.object("faults", [&] {
    write_table(json, {time, fault, hit});
    if (!recoveries.empty()) json.field("note", recoveries);
    json.array("marks", [&] {
      std::size_t left = kMostMarks;
      for (const FaultRow& row : rows) {
        for (const auto& [at, label] : row.marks) {
          if (left == 0 || at > results.simulated) continue;
          --left;
          json.object([&, when = at, &what = label] {
            json.field("s", to_seconds(when));
            json.field("text", human_seconds(to_seconds(when)));
            json.field("label", what);
          });
        }
      }
    });
  });
}

}  // namespace netsim
