#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/report/compare/difference_text.h"
#include "sim/report/compare/set_comparison.h"

namespace netsim::compare {
namespace {

constexpr std::size_t kPointsShown = 40, kPointColumns = 20, kPointsNamed = 4;

// Returns "1.23 ms ± 0.4 %": the mean, and the deviation as a share of it where there are several values.
std::string mean_text(const std::string& name, const Spread& spread) {
  std::string mean = figure_text(name, spread.mean);
  if (spread.count < 2) return mean;
  if (spread.mean == 0) return mean + " ± " + figure_text(name, spread.deviation);
  return mean + fmt::format(" ± {:.1f} %", 100 * spread.deviation / std::abs(spread.mean));
}

std::string probability_text(const std::optional<double>& probability) {
  if (!probability) return "-";
  return *probability < 0.001 ? "<0.001" : fmt::format("{:.3f}", *probability);
}

std::string count_text(const SpreadDifference& each) {
  return each.a.count == each.b.count ? std::to_string(each.a.count)
                                      : fmt::format("{}, {}", each.a.count, each.b.count);
}

std::string axes_title(const std::vector<std::string>& axes) {
  std::string title;
  for (const std::string& axis : axes) append_item(title, axis.substr(axis.rfind('.') + 1));
  return cut_text(title, kPointColumns);
}

std::string values_title(const std::vector<std::string>& values) {
  std::string title;
  for (const std::string& value : values) append_item(title, value.empty() ? "(none)" : value);
  return cut_text(title, kPointColumns);
}

// Writes the table of a figure: a line for each point.
std::string figure_table(const SetComparison& comparison, const std::string& name, std::size_t width) {
  TableColumn point{axes_title(comparison.axes), 0, true, {}}, runs{"runs", 3, false, {}, true},
      a{"A", 0, false, {}}, b{"B", 0, false, {}}, change{"change", 0, false, {}}, p{"p", 2, false, {}},
      mark{"", 0, true, {}};
  std::size_t left = 0;
  for (const ComparedPoint& each : comparison.points) {
    const SpreadDifference* figure = each.find(name);
    if (figure == nullptr) continue;
    if (point.cells.size() == kPointsShown) {
      ++left;
      continue;
    }
    point.cells.push_back(values_title(each.values));
    runs.cells.push_back(count_text(*figure));
    a.cells.push_back(mean_text(name, figure->a));
    b.cells.push_back(mean_text(name, figure->b));
    change.cells.push_back(change_text(figure->means().change()));
    p.cells.push_back(probability_text(figure->probability));
    mark.cells.emplace_back(figure->is_significant(comparison.significance) ? "*" : "");
  }
  const std::string more =
      left > 0 ? fmt::format("  and {} more points (--json and --out have all)\n", left) : "";
  return "\n" + name + "\n" + text_table({point, runs, a, b, change, p, mark}, 2, width) + more;
}

// Returns how many differences were tested for one figure, and how many are marked.
std::string test_sentence(const SetComparison& comparison, const std::vector<std::string>& figures) {
  std::size_t tested = 0, marked = 0;
  for (const ComparedPoint& point : comparison.points) {
    for (const std::string& name : figures) {
      const SpreadDifference* figure = point.find(name);
      if (figure == nullptr || !figure->probability) continue;
      ++tested;
      marked += figure->is_significant(comparison.significance) ? 1 : 0;
    }
  }
  if (tested == 0)
    return "No difference can be tested: that needs two seeds or more at a point, in both sets.";
  return fmt::format(
      "± is the standard deviation over the runs of a point. * marks differences that are significant at {} "
      "by "
      "Welch's t-test, two-sided, each by itself: {} of {}. If nothing had changed, about {:.2g} would be "
      "marked by chance.",
      comparison.significance, marked, tested, comparison.significance * static_cast<double>(tested));
}

std::string only_text(const char* side, const std::vector<std::string>& points) {
  if (points.empty()) return "";
  std::string list;
  for (std::size_t i = 0; i < std::min(points.size(), kPointsNamed); ++i) append_item(list, points[i], "; ");
  if (points.size() > kPointsNamed) append_item(list, "...", "; ");
  return fmt::format("Only {} has {}: {}.", side, counted(points.size(), "point"), list);
}

}  // namespace

std::string render_comparison(const SetComparison& comparison, std::size_t width) {
  std::string text = sides_text(comparison.a, comparison.b) + settings_text(comparison.settings, width);
  const std::vector<std::string> figures = leading_figures(comparison);
  if (comparison.points.empty()) text += "\nThe two have no point in common.\n";
  for (const std::string& name : figures) text += figure_table(comparison, name, width);
  if (!figures.empty()) text += "\n" + wrapped(test_sentence(comparison, figures), 0, 0, width) + "\n";
  std::vector<std::string> notes = comparison.notes;
  for (const std::string& only : {only_text("A", comparison.only_a), only_text("B", comparison.only_b)}) {
    if (!only.empty()) notes.push_back(only);
  }
  return text + notes_text(notes, width);
}

}  // namespace netsim::compare
