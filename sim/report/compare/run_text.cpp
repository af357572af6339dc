#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "sim/report/compare/difference_text.h"
#include "sim/report/compare/run_comparison.h"

namespace netsim::compare {
namespace {

constexpr std::size_t kFiguresShown = 20, kCollectivesShown = 12, kLinksShown = 8, kNameColumns = 34,
                      kLinkColumns = 30;

// DifferenceTable: the columns of a table of figures.
struct DifferenceTable {
  TableColumn name{"", 0, true, {}}, a{"A", 0, false, {}}, b{"B", 0, false, {}},
      difference{"B - A", 1, false, {}}, change{"change", 0, false, {}};

  void add(const std::string& title, const Difference& each) {
    name.cells.push_back(cut_text(title, kNameColumns));
    a.cells.push_back(figure_text(each.name, each.a));
    b.cells.push_back(figure_text(each.name, each.b));
    difference.cells.push_back(signed_figure(each.name, each.difference()));
    change.cells.push_back(change_text(each.change()));
  }
  std::string text(std::size_t width) const { return text_table({name, a, b, difference, change}, 2, width); }
};

// Returns how many lines a table has left out, or "".
std::string left_out(std::size_t all, std::size_t shown) {
  return all > shown ? fmt::format("  and {} more (--json and --out have all)\n", all - shown) : "";
}

const char* time_title(const std::string& name) {
  if (name == "jct_s") return "JCT";
  if (name == "iteration_time_s") return "iteration, mean";
  return name == "iteration_p99_s" ? "iteration, p99" : "exposed communication";
}

std::string breakdown_table(const JobDifference& job, std::size_t width) {
  TableColumn name{"", 0, true, {}}, a{"A", 0, false, {}}, b{"B", 0, false, {}}, more{"B - A", 0, false, {}},
      share_a{"of A", 0, false, {}}, share_b{"of B", 0, false, {}}, points{"points", 1, false, {}};
  for (const PartDifference& part : job.parts) {
    name.cells.push_back(part.time.name);
    a.cells.push_back(figure_text("_s", part.time.a));
    b.cells.push_back(figure_text("_s", part.time.b));
    more.cells.push_back(signed_figure("_s", part.time.difference()));
    share_a.cells.push_back(fmt::format("{:.1f} %", 100 * part.share_a));
    share_b.cells.push_back(fmt::format("{:.1f} %", 100 * part.share_b));
    points.cells.push_back(fmt::format("{:+.1f}", 100 * (part.share_b - part.share_a)));
  }
  return "\n  where the time of a GPU goes (mean per iteration)\n" +
         text_table({name, a, b, more, share_a, share_b, points}, 4, width);
}

// A job of traffic has one time, as on the screen of its run.
std::string job_text(const JobDifference& job, std::size_t width) {
  DifferenceTable table;
  for (const Difference& time : job.times) {
    if (!job.computes && time.name != "jct_s") continue;
    if (time.a || time.b) table.add(job.computes ? time_title(time.name) : "time", time);
  }
  const std::string title = "\n" + cut_text(job.name, width) + "\n" + table.text(width);
  return job.parts.empty() || !job.computes ? title : title + breakdown_table(job, width);
}

// Returns figures without a relative change first, then those with the largest change.
std::vector<Difference> most_changed(std::vector<Difference> figures) {
  std::stable_sort(figures.begin(), figures.end(), [](const Difference& x, const Difference& y) {
    const auto size = [](const Difference& each) {
      const std::optional<double> change = each.change();
      return change ? std::abs(*change) : INFINITY;
    };
    return size(x) > size(y);
  });
  return figures;
}

std::string figures_text(const RunComparison& comparison, std::size_t width) {
  if (comparison.figures.empty()) return "\nNo other figure changed by more than 1 %.\n";
  DifferenceTable table;
  const std::vector<Difference> sorted = most_changed(comparison.figures);
  const std::size_t shown = std::min(sorted.size(), kFiguresShown);
  for (std::size_t i = 0; i < shown; ++i) table.add(sorted[i].name, sorted[i]);
  return "\nother figures that changed by more than 1 %\n" + table.text(width) +
         left_out(sorted.size(), shown);
}

std::string collectives_text(const RunComparison& comparison, std::size_t width) {
  if (comparison.collectives.empty()) return "";
  std::string text = "\ncollectives with another algorithm or bandwidth\n";
  const std::size_t shown = std::min(comparison.collectives.size(), kCollectivesShown);
  for (std::size_t i = 0; i < shown; ++i) {
    const CollectiveDifference& each = comparison.collectives[i];
    std::string line = each.name + ": " + each.algorithm_a;
    if (each.algorithm_a != each.algorithm_b) line += " -> " + each.algorithm_b;
    line += fmt::format("; busbw {:.4g} -> {:.4g} GB/s ({}); {} -> {}", each.busbw_GBps.a.value_or(0),
                        each.busbw_GBps.b.value_or(0), change_text(each.busbw_GBps.change()),
                        figure_text("_s", each.time_s.a), figure_text("_s", each.time_s.b));
    text += "  " + wrapped(printable(line), 2, 6, width) + "\n";
  }
  return text + left_out(comparison.collectives.size(), shown);
}

std::string percent(const std::optional<double>& share) {
  return fmt::format("{:.2f} %", 100 * share.value_or(0));
}

// LinkGroup: links of a kind whose utilisations are the same in both runs. The first one stands for them.
struct LinkGroup {
  const LinkDifference* first = nullptr;
  std::size_t count = 0;
};

std::vector<LinkGroup> link_groups(const std::vector<LinkDifference>& links) {
  std::vector<LinkGroup> groups;
  std::map<std::tuple<std::string, double, double>, std::size_t> known;
  for (const LinkDifference& link : links) {
    const auto [entry, is_new] = known.try_emplace(
        {link.kind, link.utilisation.a.value_or(0), link.utilisation.b.value_or(0)}, groups.size());
    if (is_new) groups.push_back({&link, 0});
    ++groups[entry->second].count;
  }
  return groups;
}

std::string links_text(const RunComparison& comparison, std::size_t width) {
  const std::vector<LinkGroup> groups = link_groups(comparison.links);
  if (groups.empty()) return "";
  TableColumn name{"link", 0, true, {}}, more{"alike", 1, false, {}}, kind{"kind", 2, true, {}},
      a{"use in A", 0, false, {}}, b{"in B", 0, false, {}}, points{"points", 0, false, {}},
      queue{"longest queue", 3, false, {}};
  const std::size_t shown = std::min(groups.size(), kLinksShown);
  for (std::size_t i = 0; i < shown; ++i) {
    const LinkDifference& link = *groups[i].first;
    name.cells.push_back(cut_text(link.name, kLinkColumns));
    more.cells.push_back(groups[i].count > 1 ? fmt::format("+{}", groups[i].count - 1) : "");
    kind.cells.push_back(link.kind);
    a.cells.push_back(percent(link.utilisation.a));
    b.cells.push_back(percent(link.utilisation.b));
    points.cells.push_back(fmt::format("{:+.2f}", 100 * link.utilisation.difference().value_or(0)));
    queue.cells.push_back(figure_text("bytes", link.max_queue_bytes.a) + " -> " +
                          figure_text("bytes", link.max_queue_bytes.b));
  }
  return "\nlinks whose utilisation changed most\n" +
         text_table({name, more, kind, a, b, points, queue}, 2, width) + left_out(groups.size(), shown);
}

}  // namespace

std::string render_comparison(const RunComparison& comparison, std::size_t width) {
  std::string text = sides_text(comparison.a, comparison.b) + settings_text(comparison.settings, width);
  if (comparison.same_results) {
    text += "\n" +
            wrapped(
                "The results are the same: the fingerprints of all tasks, collectives, flows and "
                "counters are equal.",
                0, 0, width) +
            "\n";
    return text + notes_text(comparison.notes, width);
  }
  for (const JobDifference& job : comparison.jobs) text += job_text(job, width);
  text +=
      figures_text(comparison, width) + collectives_text(comparison, width) + links_text(comparison, width);
  return text + notes_text(comparison.notes, width);
}

}  // namespace netsim::compare
