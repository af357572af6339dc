#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/report/compare/difference_text.h"
#include "sim/report/compare/run_comparison.h"
#include "sim/report/compare/set_comparison.h"

namespace netsim::compare {
namespace {

using OrderedJson = nlohmann::ordered_json;

template <class Value>
OrderedJson json_or_null(const std::optional<Value>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

OrderedJson difference_json(const Difference& each) {
  return {{"name", each.name},
          {"a", json_or_null(each.a)},
          {"b", json_or_null(each.b)},
          {"difference", json_or_null(each.difference())},
          {"change", json_or_null(each.change())}};
}

template <class Items, class Make>
OrderedJson json_list(const Items& items, Make make) {
  OrderedJson list = OrderedJson::array();
  for (const auto& item : items) list.push_back(make(item));
  return list;
}

OrderedJson part_json(const PartDifference& part) {
  OrderedJson json = difference_json(part.time);
  json["share_a"] = part.share_a;
  json["share_b"] = part.share_b;
  return json;
}

OrderedJson job_json(const JobDifference& job) {
  return {{"job", job.name},
          {"times", json_list(job.times, difference_json)},
          {"parts", json_list(job.parts, part_json)}};
}

OrderedJson collective_json(const CollectiveDifference& each) {
  return {{"collective", each.name},
          {"algorithm_a", each.algorithm_a},
          {"algorithm_b", each.algorithm_b},
          {"figures", json_list(std::vector<Difference>{each.busbw_GBps, each.time_s}, difference_json)}};
}

OrderedJson link_json(const LinkDifference& link) {
  const std::vector<Difference> figures{link.utilisation, link.wire_bytes, link.max_queue_bytes};
  return {{"link", link.name}, {"kind", link.kind}, {"figures", json_list(figures, difference_json)}};
}

void add_row(std::string& csv, const std::string& section, const std::string& item, const Difference& each) {
  csv += csv_line({section, item, each.name, exact_number(each.a), exact_number(each.b),
                   exact_number(each.difference()), exact_number(each.change())});
}

void add_texts(std::string& csv, const std::string& section, const SettingChange& each) {
  csv += csv_line({section, each.name, "", each.a.value_or(""), each.b.value_or(""), "", ""});
}

OrderedJson setting_json(const SettingChange& each) {
  return {{"name", each.name}, {"a", json_or_null(each.a)}, {"b", json_or_null(each.b)}};
}

OrderedJson spread_json(const Spread& spread) {
  return {{"count", spread.count}, {"mean", spread.mean}, {"deviation", spread.deviation}};
}

// Returns the values of a point's axes by their names.
OrderedJson values_json(const std::vector<std::string>& axes, const std::vector<std::string>& values) {
  OrderedJson json = OrderedJson::object();
  for (std::size_t i = 0; i < axes.size(); ++i) json[axes[i]] = values[i];
  return json;
}

OrderedJson point_json(const SetComparison& comparison, const ComparedPoint& point) {
  const auto figure = [&comparison](const SpreadDifference& each) -> OrderedJson {
    const Difference means = each.means();
    return {{"name", each.name},
            {"a", spread_json(each.a)},
            {"b", spread_json(each.b)},
            {"difference", json_or_null(means.difference())},
            {"change", json_or_null(means.change())},
            {"p", json_or_null(each.probability)},
            {"significant", each.is_significant(comparison.significance)}};
  };
  return {{"axes", values_json(comparison.axes, point.values)},
          {"figures", json_list(point.figures, figure)}};
}

std::vector<std::string> spread_cells(const SpreadDifference& each, double significance) {
  const Difference means = each.means();
  return {each.name,
          std::to_string(each.a.count),
          exact_number(each.a.mean),
          exact_number(each.a.deviation),
          std::to_string(each.b.count),
          exact_number(each.b.mean),
          exact_number(each.b.deviation),
          exact_number(means.difference()),
          exact_number(means.change()),
          exact_number(each.probability),
          each.is_significant(significance) ? "true" : "false"};
}

}  // namespace

std::string comparison_json(const RunComparison& comparison) {
  const OrderedJson json = {{"netsim", NETSIM_VERSION},
                            {"compared", "runs"},
                            {"a", comparison.a},
                            {"b", comparison.b},
                            {"same_results", comparison.same_results},
                            {"inputs", json_list(comparison.settings, setting_json)},
                            {"jobs", json_list(comparison.jobs, job_json)},
                            {"figures", json_list(comparison.figures, difference_json)},
                            {"collectives", json_list(comparison.collectives, collective_json)},
                            {"links", json_list(comparison.links, link_json)},
                            {"notes", comparison.notes}};
  return json.dump(2) + "\n";
}

std::string comparison_csv(const RunComparison& comparison) {
  std::string csv = "section,item,figure,a,b,difference,change\n";
  for (const SettingChange& each : comparison.settings) add_texts(csv, "input", each);
  for (const JobDifference& job : comparison.jobs) {
    for (const Difference& time : job.times) add_row(csv, "job", job.name, time);
    for (const PartDifference& part : job.parts) add_row(csv, "part", job.name, part.time);
  }
  for (const Difference& each : comparison.figures) add_row(csv, "figure", "", each);
  for (const CollectiveDifference& each : comparison.collectives) {
    add_texts(csv, "algorithm", {each.name, each.algorithm_a, each.algorithm_b});
    add_row(csv, "collective", each.name, each.busbw_GBps);
    add_row(csv, "collective", each.name, each.time_s);
  }
  for (const LinkDifference& link : comparison.links) {
    for (const Difference& each : {link.utilisation, link.wire_bytes, link.max_queue_bytes})
      add_row(csv, "link", link.name, each);
  }
  return csv;
}

std::string comparison_json(const SetComparison& comparison) {
  const auto point = [&comparison](const ComparedPoint& each) { return point_json(comparison, each); };
  const OrderedJson json = {{"netsim", NETSIM_VERSION},
                            {"compared", "sets of runs"},
                            {"a", comparison.a},
                            {"b", comparison.b},
                            {"significance", comparison.significance},
                            {"inputs", json_list(comparison.settings, setting_json)},
                            {"points", json_list(comparison.points, point)},
                            {"only_a", comparison.only_a},
                            {"only_b", comparison.only_b},
                            {"notes", comparison.notes}};
  return json.dump(2) + "\n";
}

std::string comparison_csv(const SetComparison& comparison) {
  std::vector<std::string> header = comparison.axes;
  for (const char* name : {"figure", "count_a", "mean_a", "deviation_a", "count_b", "mean_b", "deviation_b",
                           "difference", "change", "p", "significant"})
    header.emplace_back(name);
  std::string csv = csv_line(header);
  for (const ComparedPoint& point : comparison.points) {
    for (const SpreadDifference& each : point.figures) {
      std::vector<std::string> cells = point.values;
      const std::vector<std::string> more = spread_cells(each, comparison.significance);
      cells.insert(cells.end(), more.begin(), more.end());
      csv += csv_line(cells);
    }
  }
  return csv;
}

}  // namespace netsim::compare
