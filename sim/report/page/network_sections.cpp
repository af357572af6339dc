// The sections about the network: links, flows, samples, collectives and faults.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/report/fault_list.h"
#include "sim/report/link_groups.h"
#include "sim/report/page/link_map.h"
#include "sim/report/page/page_sections.h"
#include "sim/report/screen/collective_text.h"
#include "sim/report/screen/job_text.h"
#include "sim/report/screen/network_text.h"

namespace netsim {
namespace {

constexpr std::size_t kMostCurves = 12;            // of each quantity
constexpr std::size_t kMostCollectiveRows = 1000;  // bandwidths.csv has all
constexpr std::size_t kMostFaults = 200;           // rows of the table of faults
constexpr std::size_t kMostMarks = 50;             // times of faults that are drawn

void write_tier(JsonWriter& json, const Results& results, const TierOfLinks& tier) {
  const PortCounters& sum = tier.sum;
  json.field("tier", tier_name(results, tier));
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
  if (const Time held = sum.paused + sum.credit_stalled; held > 0) json.seconds("held", held);
}

// Returns a coordinate in tenths of a pixel, so that its text is short.
double tenths(double pixels) { return std::round(10 * pixels) / 10; }
// Returns a share of 1 in millionths.
double millionths(double share) { return std::round(1e6 * share) / 1e6; }

void write_map_node(JsonWriter& json, const LinkMap::Node& node) {
  json.field("x", tenths(node.x));
  json.field("y", tenths(node.y));
  json.field("w", tenths(node.width));
  json.field("kind", node.kind);
  json.field("name", node.name);
  if (!node.short_name.empty()) json.field("short", node.short_name);
  if (!node.named_below) json.field("below", false);
}

// Returns the paths of a line as SVG writes them.
std::string path_text(const std::vector<Path>& paths) {
  std::string text;
  for (const Path& path : paths) {
    for (std::size_t i = 0; i < path.points.size(); ++i) {
      const char* letter = i == 0 ? "M" : i > 1 ? " " : path.curved ? "C" : "L";
      text += fmt::format("{}{} {}", letter, tenths(path.points[i].x), tenths(path.points[i].y));
    }
  }
  return text;
}

void write_map(JsonWriter& json, const LinkMap& map) {
  if (map.lines.empty()) return;
  json.object("map", [&] {
    std::string note;
    for (const std::string& sentence : map.notes) append_item(note, sentence, " ");
    if (!note.empty()) json.field("note", note);
    json.array("nodes", [&] {
      for (const LinkMap::Node& node : map.nodes) json.object([&] { write_map_node(json, node); });
    });
    json.array("links", [&] {
      for (const LinkMap::Line& line : map.lines) {
        json.array([&] {
          for (const std::uint64_t number : {std::uint64_t{line.from}, std::uint64_t{line.to}, line.links})
            json.value(number);
          json.value(millionths(line.mean));
          json.value(millionths(line.maximum));
          json.value(line.longest_queue);
          if (!line.paths.empty()) json.value(path_text(line.paths));
        });
      }
    });
  });
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

std::string fault_text(const FaultEvent& event) {
  switch (event.kind) {
    case FaultEvent::Kind::loss:
      return fmt::format("loses {:.3g} % of its packets", 100 * event.probability);
    case FaultEvent::Kind::rate:
      return "has " + format_rate(event.rate);
    case FaultEvent::Kind::failure:
      return "fails";
    default:
      return "is down";
  }
}

// Returns "0 to 3", or "small_gpt: 0 to 3; other: 2" where there are several jobs.
std::string hits_text(const Results& results, const std::vector<HitIterations>& hits) {
  std::string text;
  for (const HitIterations& hit : hits) {
    const std::string range =
        hit.first == hit.last ? fmt::format("{}", hit.first) : fmt::format("{} to {}", hit.first, hit.last);
    const bool one = results.jobs.size() == 1;
    append_item(text, one ? range : results.jobs[hit.job].name + ": " + range, "; ");
  }
  return text.empty() ? "none" : text;
}

// A run of traffic only has no column of iterations.
std::vector<TableColumn> fault_table(const Results& results, const std::vector<FaultSpan>& spans) {
  TableColumn from{"from", 0, false, {}}, until{"until", 0, false, {}}, where{"where", 0, true, {}},
      fault{"fault", 0, true, {}}, lost{"packets lost", 0, false, {}}, hit{"iterations hit", 0, true, {}};
  for (std::size_t i = 0; i < std::min(spans.size(), kMostFaults); ++i) {
    const FaultSpan& span = spans[i];
    from.cells.push_back(human_seconds(to_seconds(span.event.at)));
    until.cells.push_back(span.end == kNever ? "the end" : human_seconds(to_seconds(span.end)));
    where.cells.push_back(results.faults[span.part].name);
    fault.cells.push_back(fault_text(span.event));
    lost.cells.push_back(fmt::format("{}", results.faults[span.part].lost));
    hit.cells.push_back(hits_text(results, span.hits));
  }
  std::vector<TableColumn> table{from, until, where, fault, lost};
  if (!only_traffic(results)) table.push_back(hit);
  return table;
}

// Writes the times at which faults begin or end, for timelines and curves.
void write_marks(JsonWriter& json, const Results& results, const std::vector<FaultSpan>& spans) {
  std::size_t left = kMostMarks;
  const auto mark = [&](Time at, const std::string& label) {
    if (left == 0 || at == 0 || at > results.simulated) return;
    --left;
    json.object([&] {
      json.field("s", to_seconds(at));
      json.field("text", human_seconds(to_seconds(at)));
      json.field("label", label);
    });
  };
  for (const FaultSpan& span : spans) {
    const std::string& name = results.faults[span.part].name;
    mark(span.event.at, name + " " + fault_text(span.event));
    if (span.event.kind == FaultEvent::Kind::down) mark(span.end, name + " is up again");
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
    if (input.view.cluster != nullptr) write_map(json, link_map(*input.view.cluster, results));
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
                        {records.rates, "Payload acknowledged from", "bps", "rate"},
                        {records.aggregation, "Memory in use for sums at", "bytes", "aggregation"}};
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
  std::erase_if(table, [](const TableColumn& column) {  // what bandwidths.csv has for tools
    return column.title == "count" || column.title == "type" || column.title == "redop";
  });
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
  if (results.faults.empty()) return;
  const std::vector<FaultSpan> spans = fault_spans(results);
  std::string note;
  if (spans.size() > kMostFaults) {
    note =
        fmt::format("These are the first {} of {} faults. summary.json has all.", kMostFaults, spans.size());
  }
  for (const JobResult& job : results.jobs) {
    if (const std::string recovery = screen::recovery_text(job); !recovery.empty())
      append_item(note, fmt::format("{}: goodput {}.", job.name, recovery), " ");
  }
  json.object("faults", [&] {
    write_table(json, fault_table(results, spans));
    if (!note.empty()) json.field("note", note);
    json.array("marks", [&] { write_marks(json, results, spans); });
  });
}

}  // namespace netsim
